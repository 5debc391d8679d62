# SPDX-License-Identifier: Apache-2.0
"""`hil limit`: a limit in a thresholds file, written or changed, with nothing else of the file touched."""

from __future__ import annotations

import difflib
import shlex
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.thresholds.writing import NewLimit, check, with_limit
from tests.in_process import hil
from tests.lab import ROOT
from tests.make_records import publish_record
from tests.reports.allure_runs import judged

SHIPPED = (ROOT / "thresholds" / "publish.yaml").read_text(encoding="utf-8")
SINCE = {"date": "2026-11-29", "board": "'esp32-1'", "n": "60"}


def limit(bound: str = "abs_max_ms: 25", *, kind: str = "physical", **more: str) -> NewLimit:
    where = {"metric": "publish_latency_p95_us", "kind": kind, **more}
    return NewLimit(where, bound, "measured 3.51 ms in run r", SINCE)


def changes(before: str, after: str) -> list[str]:
    """Return the lines that differ, with - or + before them."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line[0] + line[2:] for line in lines if line[0] in "-+"]


def test_a_new_limit_comes_after_the_others() -> None:
    """Only its lines are new, where it came from is in them, and a run reads the file."""
    text = with_limit(SHIPPED, limit())
    assert [line.split()[0] for line in changes(SHIPPED, text)] == ["+", "+", "+", "+"]
    (found,) = [one for one in check(text, "publish").limits if one.where.conditions["kind"] == "physical"]
    assert (found.bound, found.value, found.why) == ("max", 25000.0, "measured 3.51 ms in run r")
    assert found.since
    assert (str(found.since.date), found.since.board, found.since.n) == ("2026-11-29", "esp32-1", 60)


def test_a_limit_for_the_same_is_changed_in_its_place() -> None:
    """Twice gives one entry; a comment in the entry stays."""
    once = with_limit(SHIPPED, limit()).replace(
        "abs_max_ms: 25\n    why: m", "abs_max_ms: 25 # agreed\n    why: m"
    )
    twice = with_limit(once, limit("abs_max_us: 9000"))
    assert changes(once, twice) == ["-    abs_max_ms: 25 # agreed", "+    abs_max_us: 9000 # agreed"]


def test_a_limit_of_a_person_is_changed_as_well() -> None:
    """Value, reason and origin; its day of expiry stays."""
    text = with_limit(SHIPPED, limit("abs_max_ms: 20", kind="virtual", air="lab"))
    before, after = check(SHIPPED, "publish").limits, check(text, "publish").limits
    assert [one.where for one in before] == [one.where for one in after]
    assert [(one.value, one.why, one.expires) for one in after[:1]] == [
        (20000.0, "measured 3.51 ms in run r", before[0].expires)
    ]
    assert [(one.value, one.why) for one in after[1:]] == [(one.value, one.why) for one in before[1:]]


@pytest.mark.parametrize("ending", ["limits: [] # none yet\n", ""])
def test_a_file_without_limits_gets_its_first(ending: str) -> None:
    """An empty list, or no key."""
    head = SHIPPED.partition("# `since` is")[0]
    text = with_limit(head + ending, limit())
    assert text.startswith(head.rstrip())
    assert [one.value for one in check(text, "publish").limits] == [25000.0]


def test_a_list_in_one_line_is_left_to_its_author() -> None:
    """Its line is named."""
    line = SHIPPED.partition("# `since` is")[0] + "limits: [{where: {metric: a}}]\n"
    with pytest.raises(ConfigError, match=r"line \d+: the limits are not a list"):
        with_limit(line, limit())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A stored run of a virtual board that measured publish."""
    return judged(tmp_path / "out", [publish_record()])


@pytest.fixture
def thresholds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's folder of limits, empty so far."""
    folder = tmp_path / "thresholds"
    folder.mkdir()
    monkeypatch.setattr("hil.cli.limit.PROJECT_THRESHOLDS", folder)
    return folder


@pytest.mark.parametrize("name", ["publish_latency_p95", "publish_latency_p95_us"])
def test_a_measured_metric_gets_its_limit(run: Path, thresholds: Path, name: str) -> None:
    """With or without its unit, in a copy of hil's own file; run, boards and samples are told in it."""
    done = hil("limit", name, run, "--max", "33 ms")
    assert done.returncode == 0, done.stdout
    text = (thresholds / "publish.yaml").read_text()
    assert check(text, "publish").limits
    assert "abs_max_ms: 33\n    why: measured" in text
    assert f" in run {run.name}\n    since: {{date: " in text
    assert "a copy of hil's own" in done.stdout


def test_what_exceeds_the_limit_already_is_said(run: Path, thresholds: Path) -> None:
    """It is written all the same, and the command at the end judges the run by it."""
    done = hil("limit", "publish_latency_p95", run, "--max", "1us")
    assert done.returncode == 0
    assert "Exceeded already: " in done.stdout
    assert "abs_max_us: 1\n" in (thresholds / "publish.yaml").read_text()
    command = done.stdout.splitlines()[-1].removeprefix("Next: hil ")
    assert hil(*shlex.split(command)).returncode == 1


@pytest.mark.usefixtures("thresholds")
def test_a_more_specific_limit_is_named(tmp_path: Path) -> None:
    """It counts for its case in the place of the new one, which a person would not see otherwise."""
    run = judged(tmp_path / "out", [publish_record(overrides={"qos": 2})])
    done = hil("limit", "publish_latency_p95", run, "--max", "33ms")
    assert "more specific limit" in done.stdout
    assert "case.qos=2" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("publish_latncy_p95_us", "--max", "25ms"), "did you mean 'publish_latency_p95_us'?"),
        (("publish_latency_p95", "--max", "25"), "'25' has no unit. Next: write it as 25us."),
        (("publish_latency_p95", "--max", "25 MB"), "MB"),
        (("publish_latency_p95", "--max", "soon"), "'soon' is not a number and a unit"),
        (("publish_latency_p95", "--min", "25ms"), "hil limit publish_latency_p95_us --max 25ms."),
        (("publish_latency_p95",), "exactly one of --max and --min"),
        (("publish_latency_p95", "--max", "1ms", "--min", "1us"), "exactly one of --max and --min"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(
    run: Path, thresholds: Path, words: tuple[str, ...], said: str
) -> None:
    """Exit 2 with the way out, and nothing is written."""
    done = hil("limit", words[0], run, *words[1:])
    assert (done.returncode, said in done.stdout) == (2, True), done.stdout
    assert not list(thresholds.iterdir())

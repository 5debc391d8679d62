# SPDX-License-Identifier: Apache-2.0
"""A verdict counts where its records come to the same, by limits that a pull request cannot loosen unseen."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ExitCode
from hil.ci import summary
from hil.ci.acceptance import Acceptance
from hil.ci.conclusion import CiVerdict, accept, conclude
from hil.ci.limits import Counting, LimitPlace, limits_at, limits_that_count
from hil.ci.plan import CiPlan
from hil.model import BaseCause, NoBase
from hil.store import RunDirectory
from hil.thresholds import load_all
from tests.ci.ci_rig import (
    Repository,
    a_plan,
    leave_rack_run,
    leave_run,
    limits_text,
    page_of,
    rejudge,
    write_limits,
)
from tests.ci.comment_rig import leave_comparison
from tests.make_records import RUN_ID, change_info, publish_record

SLOW_MS = 60.0  # the limits are 25 and 40 ms
LOOSER = limits_text().replace("_max_ms: 25", "_max_ms: 500").replace("_max_ms: 40", "_max_ms: 500")
PASS = {"outcome": "pass", "exit_code": 0, "sentence": "All is well.", "series": [], "compared": []}


def counting(folder: Path, head: str = "", base: str = "") -> Counting:
    """Return the limits of head and base, each publish.yaml as these runs have it where nothing is given."""
    head_limits = load_all(write_limits(folder / "head", head))
    return Counting(head_limits, load_all(write_limits(folder / "base", base)))


def concluded(folder: Path, limits: Counting, plan: CiPlan | None = None) -> CiVerdict:
    return conclude(plan or a_plan(), folder / "legs", {}, limits)


def change(run: RunDirectory, **told: object) -> None:
    stored = json.loads(run.verdicts_path.read_text())
    run.verdicts_path.write_text(json.dumps({**stored, **told}))


@pytest.mark.parametrize("told", [PASS, {"outcome": "pass", "exit_code": 0}])
def test_a_forged_pass_beside_records_that_regressed(tmp_path: Path, told: dict[str, object]) -> None:
    """The file says pass, the records break a limit: no verdict, and the sentence says what they come to.

    Control: without an edit, and with the limits of head and merge base the same, a pass counts.
    """
    leave_run(tmp_path / "legs/virtual")
    verdict = concluded(tmp_path, counting(tmp_path))
    assert (verdict.exit_code, verdict.headline, verdict.limits) == (ExitCode.PASS, "PASS: virtual", ())
    shutil.rmtree(tmp_path / "legs/virtual")
    run = leave_run(tmp_path / "legs/virtual", [publish_record(latency_ms=SLOW_MS)])
    change(run, **told)
    verdict = concluded(tmp_path, counting(tmp_path))
    assert verdict.exit_code == ExitCode.RIG
    assert "verdicts.json" in verdict.legs[0].sentence
    assert "pass (exit 0) → regressed (exit 1)" in verdict.legs[0].sentence


def test_limits_that_only_the_run_has_do_not_count(tmp_path: Path) -> None:
    """A run judged by a copy of its own, looser than the head's, is no verdict."""
    run = leave_run(tmp_path / "legs/virtual", [publish_record(latency_ms=SLOW_MS)])
    write_limits(run.path, LOOSER)
    rejudge(run)
    assert json.loads(run.verdicts_path.read_text())["exit_code"] == ExitCode.PASS
    assert concluded(tmp_path, counting(tmp_path)).exit_code == ExitCode.RIG
    assert concluded(tmp_path, Counting()).exit_code == ExitCode.PASS  # where nothing else is known


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ({"suite": "publish and qos=0"}, "'publish and qos=0' instead of 'quick'"),
        ({"legs": 1000}, "1000 legs, and the plan has 1"),
        ({"boards": []}, "names no board"),
        ({"plan": {}}, "1 of 1 cases"),
    ],
)
def test_less_than_the_plan_promised_is_no_pass(tmp_path: Path, damage: dict[str, object], why: str) -> None:
    """Suite, boards, cases and share of alpha are those of the plan, whatever run.json would have."""
    run = leave_run(tmp_path / "legs/virtual")
    change_info(run, **damage)
    leg = concluded(tmp_path, counting(tmp_path)).legs[0]
    assert leg.exit_code == ExitCode.RIG
    assert why in leg.sentence


@pytest.mark.parametrize("cause", ["sources", "identical"])
def test_a_leg_that_was_to_compare_and_did_not(tmp_path: Path, cause: BaseCause) -> None:
    """Without a comparison, and without the reason for none, limits that are kept are not the verdict."""
    leave_run(tmp_path / "legs/virtual")
    record = replace(publish_record(board="physical-1"), kind="physical", target="esp32")
    leave_rack_run(tmp_path / "legs/rack-esp32", [record])
    verdict = concluded(tmp_path, counting(tmp_path), a_plan(["esp32"]))
    assert verdict.exit_code == ExitCode.RIG
    assert "compared nothing" in verdict.legs[1].sentence
    shutil.rmtree(tmp_path / "legs/rack-esp32")
    reason = NoBase(RUN_ID, cause, "the merge base is none to compare with.")
    leave_rack_run(tmp_path / "legs/rack-esp32", [record, reason])
    assert concluded(tmp_path, counting(tmp_path), a_plan(["esp32"])).exit_code == ExitCode.PASS


def test_the_stricter_of_both_limits_counts(tmp_path: Path) -> None:
    """25 → 500 ms with figures of 60 ms: regressed by the merge base's limit; both are named.

    Summary and comment list what was loosened. With an owner's word it passes, and stays named.
    """
    run = leave_run(tmp_path / "legs/virtual", [publish_record(latency_ms=SLOW_MS)])
    write_limits(run.path, LOOSER)
    rejudge(run)
    verdict = concluded(tmp_path, counting(tmp_path, head=LOOSER))
    assert (verdict.exit_code, verdict.headline) == (ExitCode.FIRMWARE, "REGRESSED: virtual")
    assert verdict.legs[0].stricter
    assert any("max 25000 → max 500000" in text for text in verdict.loosened)
    page = page_of(a_plan(), verdict, tmp_path / "legs")
    assert page.startswith("### ✗ REGRESSED")
    for text in (summary.render(a_plan(), verdict, {}), page):
        assert "max 25000 → max 500000" in text.partition("What this change loosens")[2]
    assert verdict.acceptable
    accepted = accept(verdict, Acceptance("owner", "a slower radio", "2026-11-20T01:20:00Z"))
    assert (accepted.exit_code, accepted.conclusion) == (ExitCode.PASS, "neutral")
    assert accepted.loosened


def _without(section: str) -> str:
    """Return the limits without one of their lists."""
    lines, kept, inside = limits_text().splitlines(keepends=True), [], False
    for line in lines:
        if not line.startswith((" ", "-", "#", "\n")):
            inside = line.startswith(f"{section}:")
        if not inside:
            kept.append(line)
    return "".join(kept)


NO_P95 = re.sub(
    r"abs_max_ms: 25\n(.*\n)+?.* since: .*\n.* expires: .*\n",
    "abs_max_ms: none\n  why: a test\n",
    limits_text(),
    count=1,
)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (_without("compare"), "compared → not compared"),
        (_without("limits"), "→ no limit"),
        (NO_P95, "max 25000 → no limit"),
    ],
)
def test_each_way_to_loosen_is_named(tmp_path: Path, head: str, said: str) -> None:
    """A rule that is gone, with the line that says it; tolerance and policy: test_ci_loosened.py."""
    assert head != limits_text()
    loosened = [one.text for one in counting(tmp_path, head=head).changes if one.loosens]
    assert any(said in text and text.startswith("thresholds/publish.yaml:") for text in loosened), loosened


def test_a_stricter_limit_is_no_loosened_one(tmp_path: Path) -> None:
    """25 → 20 ms is listed, and needs nobody; a metric that is defined otherwise may be looser."""
    stricter = limits_text().replace("abs_max_ms: 25", "abs_max_ms: 20")
    (one,) = counting(tmp_path, head=stricter).changes
    assert not one.loosens
    assert "max 25000 → max 20000" in one.text
    moved = limits_text().replace("of: done_us - planned_us", "of: done_us - sent_us")
    changes = counting(tmp_path / "moved", head=moved).changes
    assert len(changes) == 4  # the statistics of one entry
    assert all(each.loosens and "is defined otherwise (terms)" in each.text for each in changes)


@pytest.mark.slow
def test_rules_of_comparison_that_are_gone_still_count(tmp_path: Path) -> None:
    """`compare:` emptied beside boots that are 18 % slower: regressed by the merge base's rules."""
    path = leave_comparison(tmp_path / "legs", effect=0.18)
    run = RunDirectory.open(path)
    emptied = _without("compare")
    write_limits(path, emptied)
    rejudge(run)
    assert json.loads(run.verdicts_path.read_text())["exit_code"] != ExitCode.FIRMWARE
    leave_run(tmp_path / "legs/virtual")
    verdict = concluded(tmp_path, counting(tmp_path, head=emptied), a_plan(compare=True))
    assert (verdict.exit_code, verdict.headline) == (ExitCode.FIRMWARE, "REGRESSED: compare")


def test_the_limits_of_a_commit(tmp_path: Path) -> None:
    """They are read from git, whatever lies in the work tree; a commit that git lacks is said."""
    repository = Repository(tmp_path / "repository")
    base = repository.commit({"thresholds/publish.yaml": limits_text()})
    repository.commit({"thresholds/publish.yaml": LOOSER})
    limits = limits_that_count(repository.path / "thresholds", repository.path, base)
    assert [one for one in limits.changes if one.loosens]
    assert (
        limits_at(repository.path, base, LimitPlace())["publish"].limits
        != limits_at(repository.path, "HEAD", LimitPlace())["publish"].limits
    )
    lost = limits_that_count(repository.path / "thresholds", repository.path, "d" * 40)
    (one,) = lost.changes
    assert one.loosens
    assert "the limits of dddddddddddd" in one.text

# SPDX-License-Identifier: Apache-2.0
"""A run's folder read once: what it holds, and what is said where a part is damaged or missing."""

from __future__ import annotations

import datetime
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError
from hil.model import Fault, NotRun, Verdict
from hil.store import JudgedRun, RunDirectory, read_judged_run, read_run, require_verdict
from hil.store.verdicts import no_verdict, status_of
from hil.thresholds import load, own_limits, own_limits_of
from tests.history.unchanged_runs import compared
from tests.make_records import RUN_ID, publish_record, publish_thresholds, run_info
from tests.reports.allure_runs import judged


def test_a_judged_run_holds_what_its_folder_holds(tmp_path: Path) -> None:
    """Journal, verdict and run.json parsed; the first two byte by byte too, for they are published."""
    folder = judged(tmp_path, [publish_record()])
    run = read_judged_run(folder)
    directory = RunDirectory.open(folder)
    assert (run.run_id, run.path, run.info) == (RUN_ID, folder.resolve(), directory.read_info())
    assert run.journal == directory.read()
    assert run.records == (publish_record(),)
    assert run.verdict.run_id == RUN_ID
    assert run.files == {name: (folder / name).read_bytes() for name in ("records.jsonl", "verdicts.json")}


def test_limits_are_those_that_the_run_keeps_as_of_its_day(tmp_path: Path) -> None:
    """A suppression that has ended since holds for the run; a damaged file costs its own bench alone."""
    folder = judged(tmp_path, [publish_record()])
    kept = folder / "thresholds"
    text = (kept / "publish.yaml").read_text()
    known = "{where: {metric: publish_latency_p95_us}, reason: known, issue: '#1', expires: 2026-11-21}"
    (kept / "publish.yaml").write_text(text.replace("suppressions: []", f"suppressions: [{known}]"))
    assert not load("publish", kept, today=datetime.date(2026, 11, 22)).suppressions
    (kept / "jitter.yaml").write_bytes(b"bench: \xff\n")
    run = read_run(folder)
    assert str(run.info.day) == "2026-11-20"
    assert own_limits_of(run, "publish").metrics.keys() == publish_thresholds().metrics.keys()
    assert own_limits_of(run, "publish").suppressions
    with pytest.raises(ConfigError, match=r"thresholds/jitter\.yaml:1: not UTF-8 text"):
        own_limits(run)


def test_a_run_that_was_cut_off_has_no_verdict(tmp_path: Path) -> None:
    """It is read all the same; who needs a verdict is told how to get one. A run whose path has a space and a
    quote: what a shell makes of the command is the run's path again."""
    folder = judged(tmp_path, [publish_record()])
    (folder / "verdicts.json").unlink()
    run = read_run(folder)
    assert not isinstance(run, JudgedRun)
    assert run.verdict is None
    for ask in (lambda: read_judged_run(folder), lambda: require_verdict(run)):
        with pytest.raises(ConfigError, match=r"verdicts\.json: its verdict cannot be read.*hil gate"):
            ask()
    folder = tmp_path / "it's a place" / "run"
    error = no_verdict(folder / "verdicts.json", "No such file or directory")
    command = error.next_step.partition(": ")[2]
    assert shlex.split(command) == ["hil", "gate", str(folder)]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("run.json", b"{", r"run\.json: not JSON"),
        ("run.json", b"\xff", r"run\.json: not JSON"),
        ("run.json", None, r"run\.json is missing.*restore it"),
        ("reporting.json", b'{"schema": 1, "report": 1}', r"reporting\.json: report is 1; expected text"),
        ("records.jsonl", b"7\n", r"records\.jsonl:1: not an entry"),
        ("verdicts.json", b"{}", r"verdicts\.json: its verdict cannot be read \(run_id is missing"),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, name: str, content: bytes | None, sentence: str) -> None:
    """One sentence names the file and what is wrong in it."""
    folder = judged(tmp_path, [publish_record()])
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    with pytest.raises(ConfigError, match=sentence):
        read_run(folder)


@pytest.mark.parametrize(
    ("unchanged", "changes", "status"),
    [
        (False, {}, 1),
        (True, {}, 0),
        (True, {"exit_code": 4, "outcome": "undecided"}, 0),
        (True, {"not_run": (NotRun("r", "b1", "c", "the run ended before it", "ended"),)}, 4),
        (True, {"compared": ()}, 4),
        (True, {"faults": (Fault("r", "firmware", 1, "it panicked"),)}, 1),
        (True, {"exit_code": 3, "faults": (Fault("r", "rig", 3, "no port"),)}, 3),
        (True, {"exit_code": 130}, 130),
    ],
)
def test_unchanged_firmware_blocks_nothing(unchanged: bool, changes: dict[str, Any], status: int) -> None:
    """A run of it ends with 0 whatever the gate said, as long as all was judged and nothing failed."""
    verdict = Verdict("r", "regressed", 1, "", (), (), (), compared=(compared("regressed"),))
    info = run_info(compared={"role": "base", "firmware": {}, "unchanged": unchanged})
    assert status_of(info, replace(verdict, **changes)) == status

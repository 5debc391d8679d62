# SPDX-License-Identifier: Apache-2.0
"""What one run says of its rack, from the folder it left: judged, killed, or never begun in earnest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hil.base.errors import ConfigError
from hil.boards.quarantine import Watch, read_quarantine
from hil.history.files import keep, read_past
from hil.history.from_run import figures_of
from hil.history.summary import BoardInRun
from hil.model import Fault, NotRun, Recovery
from hil.reports.finish import ReportOptions, finish
from hil.store import read_judged_run, read_run
from tests.history.health_runs import run_at
from tests.make_records import RUN_ID, leave_run, publish_record, publish_thresholds
from tests.reports.allure_runs import judged
from tests.reports.as_read import as_read

BOARDS = [{"id": f"v{n}", "kind": "virtual", "target": "virtual-esp32"} for n in (1, 2, 3)]
INFO: dict[str, Any] = {
    "boards": BOARDS,
    "profile": "lab",
    "lease_acquired_utc": "2026-11-20T22:13:07Z",
    "lease_released_utc": "2026-11-20T22:23:07Z",
    "firmware": {"virtual-esp32": {"sha256": "ab" * 32}},
}
KEPT_OUT = {"board": "v3", "since_utc": "2026-11-19T08:00:00Z", "who": "anna", "why": "its port vanishes"}
CASE = publish_thresholds().case({}).case_id


def parts(run: Path) -> dict[str, BoardInRun]:
    return {part.board: part for part in figures_of(read_run(run)).health.boards}


def killed(out: Path, *entries: Any, **info: Any) -> Path:
    """Return a run that was neither judged nor let go of its boards."""
    return leave_run(out, entries, **info).path


def test_a_judged_run_says_who_measured(tmp_path: Path) -> None:
    """Boards by what became of them; one that nothing brought back is lost. A fault of no board is the
    rack's, counted once."""
    entries = [
        publish_record(board="v1", latency_ms=60),
        Fault(RUN_ID, "firmware", 1, "panic: LoadProhibited", "v2", CASE),
        Fault(RUN_ID, "rig", 3, "its port vanished", "v2"),
        Fault(RUN_ID, "rig", 3, "no broker"),
        Recovery(RUN_ID, "v1", "not a byte came.", ("reset",), "reset", 12.5, CASE),
        Recovery(RUN_ID, "v2", "no sync.", ("power cycle",), "", 60.0),
        NotRun(RUN_ID, "v3", CASE, "quarantined since …", "ruled-out"),
    ]
    run = judged(tmp_path, entries, info={**INFO, "quarantined": [KEPT_OUT]})
    found = figures_of(read_run(run))
    assert (found.run_id, found.rack, found.trigger) == (RUN_ID, "virtual", "nightly")
    assert found.exit_code == 1
    assert (found.health.faults, found.health.first_fault) == ({"rig": 1}, "no broker")
    assert [part.is_lost for part in found.health.boards] == [False, True, False]
    one, two, three = found.health.boards
    assert (one.state, one.kind, one.target, one.faults) == ("measured", "virtual", "virtual-esp32", {})
    faults = {"firmware": 1, "rig": 1}
    assert (two.state, two.faults, two.first_fault) == ("faulted", faults, "its port vanished")
    assert three.state == "quarantined"
    assert three.quarantine
    assert three.quarantine.why == "its port vanishes"


def test_a_killed_run_counts_by_what_is_there(tmp_path: Path) -> None:
    """No verdict: what was measured, and an exit code that says interrupted. Killed before it measured
    anything it has no boards, or those of its faults."""
    info = {key: value for key, value in INFO.items() if key != "lease_released_utc"}
    found = figures_of(read_run(killed(tmp_path, publish_record(board="v1"), **info)))
    assert found.exit_code == 130
    assert [part.state for part in found.health.boards] == ["measured", "not-run", "not-run"]
    assert found.started_utc == "2026-11-20T22:12:57Z"
    found = figures_of(read_run(killed(tmp_path / "nothing")))
    assert (found.rack, found.health.boards, found.started_utc) == ("virtual", (), "2026-11-20T22:12:57Z")
    found = figures_of(read_run(killed(tmp_path / "fault", Fault(RUN_ID, "rig", 3, "not a byte came", "v1"))))
    assert found.exit_code == 3
    assert [part.state for part in found.health.boards] == ["faulted"]


def test_a_damaged_verdict_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    """A run that was judged is not taken for one that was not."""
    run = judged(tmp_path, [publish_record(board="v1")], info=INFO)
    (run / "verdicts.json").write_text("{")
    with pytest.raises(ConfigError, match=r"its verdict cannot be read.*hil gate"):
        figures_of(read_run(run))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Full and bare runs come back equal, in the order of their moments, whatever the offset of a clock."""
    parts = ("ok", "both", "absent", "quarantine")
    full = run_at(1, *parts, faults={"rig": 1}, first_fault="the broker did not start")
    east = replace(run_at(0), run_id="east", started_utc="2026-11-01T02:30:00+02:00")
    for run in (full, east, run_at(0)):
        keep(tmp_path, run)
    assert read_past(tmp_path).runs == (run_at(0), east, full)


def test_a_run_ends_in_the_history_and_says_whom_it_keeps_out(tmp_path: Path) -> None:
    """It joins OUT/history; a board that the rack's rule keeps out is in the summary."""
    entries = [publish_record(board="v1"), Fault(RUN_ID, "rig", 3, "its port vanished", "v2")]
    run = read_judged_run(judged(tmp_path / "out", entries, info=INFO))
    watch = Watch(tmp_path / "kept", 1, Path("rack.yaml"))
    done = finish(run, ReportOptions(tmp_path / "out", site=False, watch=watch), say=lambda _sentence: None)
    assert [one.run_id for one in read_past(tmp_path / "out" / "history").runs] == [RUN_ID]
    assert list(read_quarantine(tmp_path / "kept")) == ["v2"]
    (told,) = done.warnings
    assert told.startswith("board v2 is in quarantine")
    assert told in as_read((run.path / "summary.md").read_text())

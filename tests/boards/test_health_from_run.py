# SPDX-License-Identifier: Apache-2.0
"""What one run says of its rack, from the folder it left: judged, killed, or never begun in earnest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError
from hil.boards.health import health_of, read_lines, summarise
from hil.boards.health.lines import to_line
from hil.boards.health.quarantine import Watch, read_quarantine
from hil.boards.health.types import BoardRun
from hil.boards.health.words import rack_lines
from hil.model import Comparison, Fault, NotRun, Recovery
from hil.reports.finish import ReportOptions, finish
from hil.reports.history import append_health
from hil.store import RunDirectory, read_run
from tests.make_records import RUN_ID, publish_record, publish_thresholds
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


def parts(run: Path) -> dict[str, BoardRun]:
    return {part.board: part for part in health_of(read_run(run)).boards}


def killed(out: Path, *entries: Any, **info: Any) -> Path:
    """Return a run that was neither judged nor let go of its boards."""
    directory = RunDirectory.create(out, RUN_ID)
    for entry in entries:
        directory.append(entry)
    if info:
        directory.write_info({"run_id": RUN_ID, "rack": "virtual", **info})
    return directory.path


def test_a_judged_run_says_who_measured_and_what_blocked(tmp_path: Path) -> None:
    """Times from lease and id, boards by what became of them, blocking series by their outcome."""
    entries = [
        publish_record(board="v1", latency_ms=60),
        Fault(RUN_ID, "firmware", 1, "panic: LoadProhibited", "v2", CASE),
        Fault(RUN_ID, "rig", 3, "its port vanished", "v2"),
        NotRun(RUN_ID, "v3", CASE, "quarantined since …", "ruled-out"),
    ]
    run = judged(tmp_path, entries, info={**INFO, "quarantined": [KEPT_OUT]})
    found = health_of(read_run(run))
    assert (found.run_id, found.rack, found.trigger, found.profile) == (RUN_ID, "virtual", "nightly", "lab")
    assert found.lease_wait_s == 10.0  # the id holds when the run asked for its boards
    assert found.held_s == 600.0
    assert found.exit_code == 1
    assert found.firmware == {"virtual-esp32": "ab" * 32}
    one, two, three = found.boards
    assert (one.state, one.kind, one.target, one.faults) == ("measured", "virtual", "virtual-esp32", {})
    assert (two.state, two.faults, two.first_fault) == (
        "faulted",
        {"firmware": 1, "rig": 1},
        "its port vanished",
    )
    assert three.state == "quarantined"
    assert three.quarantine
    assert three.quarantine.why == "its port vanishes"
    assert any(name.endswith("/publish_latency_p95_us") for name in found.blocked)
    assert all(name.startswith("virtual/v1/") for name in (*found.blocked, *found.passed))
    assert not {*found.blocked} & {*found.passed}


def test_measured_time_is_the_samples_own(tmp_path: Path) -> None:
    """The latest moment of each record, summed over the boots: no set-up, no turns of others."""
    records = [publish_record(board="v1", boot_index=n) for n in (0, 1)]
    done_us = sum(max(record.columns["done_us"]) for record in records)
    run = judged(tmp_path, records, info=INFO)
    assert parts(run)["v1"].measured_s == pytest.approx(done_us / 1e6, abs=0.001)


def test_faults_of_no_board_are_the_racks(tmp_path: Path) -> None:
    """A broker that does not start is counted once, and no board is called faulted for it."""
    run = judged(tmp_path, [Fault(RUN_ID, "rig", 3, "the broker did not start")], info=INFO)
    found = health_of(read_run(run))
    assert (found.faults, found.first_fault) == ({"rig": 1}, "the broker did not start")
    assert {part.state for part in found.boards} == {"not-run"}


def test_a_killed_run_counts_by_what_is_there(tmp_path: Path) -> None:
    """No verdict, no end of the lease: what was measured, and an exit code that says interrupted."""
    info = {key: value for key, value in INFO.items() if key != "lease_released_utc"}
    found = health_of(read_run(killed(tmp_path, publish_record(board="v1"), **info)))
    assert (found.exit_code, found.held_s, found.lease_wait_s) == (130, None, 10.0)
    assert [part.state for part in found.boards] == ["measured", "not-run", "not-run"]
    assert found.started_utc == "2026-11-20T22:12:57Z"


def test_a_run_killed_before_it_wrote_anything_is_no_error(tmp_path: Path) -> None:
    """An empty journal without run.json: a run of no rack, at the time in its name; boards from faults."""
    found = health_of(read_run(killed(tmp_path / "nothing")))
    assert (found.rack, found.boards, found.started_utc) == ("", (), "2026-11-20T22:12:57Z")
    found = health_of(read_run(killed(tmp_path / "fault", Fault(RUN_ID, "rig", 3, "not a byte came", "v1"))))
    assert found.exit_code == 3
    assert [part.state for part in found.boards] == ["faulted"]


def test_what_was_compared_is_known_by_both_images(tmp_path: Path) -> None:
    """The base comes from the journal, image by image."""
    compared = Comparison(
        RUN_ID, "virtual", "virtual-esp32", "virtual-esp32", ("v1",), "base", "ab" * 32, "00" * 32, ((2, 2),)
    )
    found = health_of(read_run(killed(tmp_path, compared, publish_record(board="v1"), **INFO)))
    assert found.base == {"virtual-esp32": "00" * 32}


def test_a_damaged_verdict_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    """A run that was judged is not taken for one that was not."""
    run = judged(tmp_path, [publish_record(board="v1")], info=INFO)
    (run / "verdicts.json").write_text("{")
    with pytest.raises(ConfigError, match=r"no verdict can be read.*hil gate"):
        health_of(read_run(run))


def test_what_brought_a_board_back_is_counted(tmp_path: Path) -> None:
    """By rung, with the time that it took; a board that nothing brought back is lost. History keeps it."""
    run = killed(
        tmp_path,
        publish_record(board="v1"),
        Recovery(RUN_ID, "v1", "not a byte came.", ("reset", "power cycle"), "power cycle", 12.5, CASE),
        Recovery(RUN_ID, "v1", "no sync.", ("power cycle",), "power cycle", 2.5),
        Recovery(RUN_ID, "v2", "no sync.", ("power cycle",), "", 60.0),
        Fault(RUN_ID, "rig", 3, "no sync.", "v2"),
        boards=BOARDS,
    )
    line = to_line(health_of(read_run(run)))
    (tmp_path / "health.jsonl").write_text(line)
    (read,) = read_lines(tmp_path / "health.jsonl")
    found = {part.board: part for part in read.boards}
    assert (found["v1"].recovered, found["v1"].recovery_s, found["v1"].is_lost) == (
        {"power cycle": 2},
        15.0,
        None,
    )
    assert (found["v2"].recovered, found["v2"].is_lost) == ({}, True)
    assert "recovered" not in line.split('"v3"')[1]
    rack = summarise([read], now_utc="2026-11-21T00:00:00Z")[0]
    assert "brought back within a run: 2 by power cycle; on average after 8 s" in rack_lines(rack)


def test_a_run_joins_the_history_once(tmp_path: Path) -> None:
    """Appended twice it has one line."""
    run = judged(tmp_path, [publish_record(board="v1")], info=INFO)
    path = tmp_path / "history" / "health.jsonl"
    first = append_health(path, read_run(run))
    assert append_health(path, read_run(run)) == first
    assert len(path.read_text().splitlines()) == 1


def test_a_run_ends_with_its_line_and_says_whom_it_keeps_out(tmp_path: Path) -> None:
    """The line joins OUT/history/health.jsonl; a board that the rack's rule keeps out is in the summary."""
    entries = [publish_record(board="v1"), Fault(RUN_ID, "rig", 3, "its port vanished", "v2")]
    run = RunDirectory.open(judged(tmp_path / "out", entries, info=INFO))
    watch = Watch(tmp_path / "kept", 1, Path("rack.yaml"))
    done = finish(run, ReportOptions(tmp_path / "out", site=False, watch=watch), say=lambda _sentence: None)
    assert [one.run_id for one in read_lines(tmp_path / "out" / "history" / "health.jsonl")] == [RUN_ID]
    assert list(read_quarantine(tmp_path / "kept")) == ["v2"]
    (told,) = done.warnings
    assert told.startswith("board v2 is in quarantine from now on: the rig failed on it in 1 run in a row; ")
    assert told in as_read(run.summary_path.read_text())

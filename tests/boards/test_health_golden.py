# SPDX-License-Identifier: Apache-2.0
"""What follows from a golden check: bounds, whose fault it is, who is kept out and who is released."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.finding import Finding
from hil.boards.health import summarise
from hil.boards.health.golden import Checked, findings, judge_boards, line_of, shared
from hil.boards.health.quarantine import put, read_quarantine
from hil.boards.health.types import Quarantine
from hil.boards.rack import load_rack
from hil.boards.rack.golden import FIGURES
from hil.reports.metrics import golden_groups

RACK = load_rack(Path(__file__).resolve().parents[2] / "hil" / "racks" / "virtual.yaml")
V1, V2 = RACK.boards[:2]
GOOD = {
    "associate_s": 2.0,
    "rssi_dbm": -50.0,
    "publish_p50_ms": 7.0,
    "echo_p50_ms": 12.0,
    "failed_ratio": 0.0,
    "throughput_mbps": 6.0,
    "clock_drift_ppm": -8.0,
    "flash_mib": 4.0,
}
BAD = {
    "associate_s": 16.0,
    "rssi_dbm": -80.0,
    "publish_p50_ms": 101.0,
    "echo_p50_ms": 201.0,
    "failed_ratio": 0.03,
    "throughput_mbps": 0.9,
    "clock_drift_ppm": -140.0,
    "flash_mib": 2.0,
}
BOUNDS = {**RACK.golden_bounds, "flash_mib": 4.0}
SOUND = Checked(
    V1, BOUNDS, GOOD, {"clock_drift_ppm": 2.0}, Finding("power of v1", ok=True, sentence="it cuts")
)
WEAK = replace(SOUND, figures={**GOOD, "rssi_dbm": -80.0})
LIES = replace(SOUND, power=Finding("power of v1", ok=False, sentence="its power lies.", mend="another hub."))
DEAD = Checked(V1, BOUNDS, fault="board v1 says nothing.")
OTHER = replace(SOUND, board=V2)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_out_of_its_bound_is_named_with_how_to_mend_it(name: str) -> None:
    """Each figure has a bound, on one side; value, bound and way out stand in the finding of that board."""
    assert SOUND.beyond == ()
    bad = replace(SOUND, figures={**GOOD, name: BAD[name]})
    assert bad.beyond == (name,)
    (found,) = findings([bad])
    assert not found.ok
    assert f"{FIGURES[name].side} {BOUNDS[name]:g}" in found.sentence
    assert found.mend == FIGURES[name].mend
    assert found.subject == "golden v1"


def test_a_drift_counts_where_it_is_certain() -> None:
    """Fast or slow, beyond the bound by more than its uncertainty; an emulated chip's says nothing of it."""
    off = {**GOOD, "clock_drift_ppm": 140.0}
    assert replace(SOUND, figures=off).beyond == ("clock_drift_ppm",)
    assert replace(SOUND, figures=off, uncertainty={"clock_drift_ppm": 41.0}).beyond == ()
    assert replace(SOUND, figures=off, board=replace(V1, kind="emulated")).beyond == ()


def test_a_large_figure_is_told_in_whole_digits() -> None:
    """No power of ten: a crystal that is off by 5 % is off by 50,000 ppm."""
    off = replace(SOUND, figures={**GOOD, "clock_drift_ppm": -50_000.4}, uncertainty={"clock_drift_ppm": 120})
    (found,) = findings([off])
    assert found.sentence == "timer drift: -50,000 ± 120 ppm; at most 100 ppm is expected."


def test_a_board_that_fails_is_kept_out_until_it_passes(tmp_path: Path) -> None:
    """By the check, with what it failed by; the next check that it passes releases it, one that it fails does
    not, and it stays there since when it was put there."""
    (said,) = judge_boards(RACK, tmp_path, [WEAK, OTHER])
    assert said.startswith("board v1 is in quarantine from now on, until it passes: ")
    kept = read_quarantine(tmp_path)
    assert {board: (one.who, one.why) for board, one in kept.items()} == {
        "v1": ("check", "the golden check failed: RSSI")
    }
    assert judge_boards(RACK, tmp_path, [LIES, OTHER]) == []
    assert read_quarantine(tmp_path) == kept
    assert judge_boards(RACK, tmp_path, [SOUND, OTHER]) == ["board v1 passes again, and is released"]
    assert read_quarantine(tmp_path) == {}


@pytest.mark.parametrize("who", ["anna", "hil"])
def test_what_others_keep_out_needs_a_person(tmp_path: Path, who: str) -> None:
    """A person, or the rack's rule of so many runs, put it there: the check says that it passes, no more."""
    put(tmp_path, Quarantine("v1", "2026-11-01T05:00:00Z", who, "its port vanishes"))
    (said,) = judge_boards(RACK, tmp_path, [SOUND])
    assert f"{who} keeps it out (its port vanishes): release it: hil board release v1" in said
    assert judge_boards(RACK, tmp_path, [DEAD]) == []
    assert read_quarantine(tmp_path)["v1"].who == who


def test_another_board_on_the_port_is_no_fault_of_it(tmp_path: Path) -> None:
    """The configuration is at fault: it is named with its own way out, and keeps no board out."""
    swapped = Checked(V1, BOUNDS, fault="another board answers. Next: put its cable back.", is_misnamed=True)
    (found, _sound) = findings([swapped, OTHER])
    assert (found.ok, found.sentence, found.mend) == (False, "another board answers.", "put its cable back.")
    assert judge_boards(RACK, tmp_path, [swapped, OTHER]) == []
    line = line_of("20261101T060000Z-golden-0001", RACK, [swapped, OTHER], {}, held_s=40.0)
    assert (line.exit_code, line.boards[0].state, line.boards[0].faults) == (
        3,
        "faulted",
        {"configuration": 1},
    )


def test_what_all_boards_fail_alike_is_the_racks(tmp_path: Path) -> None:
    """No board is kept out for it, nor released; what one of them fails besides counts against that one."""
    both = [WEAK, replace(WEAK, board=V2, power=LIES.power)]
    assert shared(both) == {"rssi_dbm"}
    assert [found.sentence.endswith("it is the rack's own.") for found in findings(both)] == [
        True,
        True,
        False,
    ]
    put(tmp_path, Quarantine("v1", "2026-11-01T05:00:00Z", "check", "RSSI"))
    (said,) = judge_boards(RACK, tmp_path, both)
    assert said.startswith("board v2 is in quarantine")
    assert "its power switch lies;" in said
    assert sorted(read_quarantine(tmp_path)) == ["v1", "v2"]
    assert shared([WEAK]) == frozenset(), "one board alone proves nothing of its rack"


def test_a_check_is_a_run_of_the_racks_health(tmp_path: Path) -> None:
    """A board that fails is down since then, and the check that it passes ends its outage: so long took the
    recovery. What the rack failed counts as the rack's."""
    judge_boards(RACK, tmp_path, [DEAD, OTHER])
    kept = read_quarantine(tmp_path)
    down = line_of("20261101T060000Z-golden-0001", RACK, [DEAD, OTHER], kept, held_s=40.0)
    assert (down.trigger, down.exit_code, down.boards[0].first_fault) == (
        "golden",
        3,
        "golden check: board v1 says nothing.",
    )
    assert down.boards[0].quarantine == kept["v1"]
    up = line_of("20261102T060000Z-golden-0002", RACK, [SOUND, OTHER], {}, held_s=40.0)
    (health,) = summarise([down, up], now_utc="2026-11-02T12:00:00Z")
    assert (health.runs, health.faulted_runs, health.failure_ratio) == (2, 1, 0.5)
    assert (health.recoveries, health.mean_time_to_recovery_s) == (1, 86400.0)
    assert health.boards[0].quarantine is None
    both = line_of("20261103T060000Z-golden-0003", RACK, [WEAK, replace(WEAK, board=V2)], {}, held_s=40.0)
    assert (both.exit_code, both.faults, both.first_fault) == (3, {"rig": 1}, "all boards alike: RSSI")
    assert [part.state for part in both.boards] == ["measured", "measured"]


def test_a_board_pushes_its_figures_in_base_units() -> None:
    """One group a board, so that a check of one leaves the other's; what is out of bounds is told by name."""
    line = line_of("20261101T060000Z-golden-0001", RACK, [WEAK, replace(DEAD, board=V2)], {}, held_s=40.0)
    weak, dead = golden_groups(line)
    assert (weak.job, weak.key) == ("hil_golden", {"rack": "virtual", "board": "v1"})
    value = weak.families.value_of
    assert value("hil_golden_timestamp_seconds") == 1793512800
    assert (value("hil_golden_passed"), value("hil_golden_associate_seconds")) == (0, 2)
    assert value("hil_golden_throughput_bytes_per_second") == 750_000
    assert value("hil_golden_flash_bytes") == 4 << 20
    assert value("hil_golden_clock_drift_ratio") == pytest.approx(-8e-6)
    beyond = {
        sample.labels["figure"]: sample.value
        for family in weak.families.collect()
        for sample in family.samples
        if family.name == "hil_golden_beyond_bound"
    }
    assert beyond == {name: float(name == "rssi_dbm") for name in GOOD}
    assert dead.families.value_of("hil_golden_beyond_bound") == 1

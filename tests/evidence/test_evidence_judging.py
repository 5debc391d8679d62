# SPDX-License-Identifier: Apache-2.0
"""What a step's runs show, from their records: never ok without a run that measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.evidence.judging import found_in, publish_p50_us
from hil.evidence.programme import BOOTS, steps
from hil.model import Entry, Recovery
from tests.evidence.evidence_rig import fault, leave_run, physical_rack, record
from tests.lab import ROOT

BACK = Recovery("r", "d1", "not a byte came.", ("reset",), "reset", 1.5)


def test_the_rows_that_it_closes_are_in_the_table(tmp_path: Path) -> None:
    """Each row named begins a row of docs/explain/hardware.md; a physical rack closes some."""
    page = (ROOT / "docs/explain/hardware.md").read_text(encoding="utf-8")
    named = {row.name for step in steps() for row in step.rows}
    assert named
    assert not [name for name in named if f"\n| {name}" not in page]
    rack = physical_rack(tmp_path)
    closed = {row for step in steps() for row in step.closes(rack)}
    assert "Wi-Fi station bring-up" in closed
    assert "reset lines" not in closed  # neither board has USB of its own
    assert "power switching" not in closed  # neither has a switch


def test_nothing_measured_is_never_ok(tmp_path: Path) -> None:
    """A run without a record is not as expected in any step, and no run at all says nothing."""
    empty = leave_run(tmp_path, "20261120T221257Z-empty-0001", [])
    for step in steps():
        found = found_in(step.name, [empty, empty])
        assert found is None or not found[0], step.name
        assert found_in(step.name, []) is None


def test_every_case_measured_once(tmp_path: Path) -> None:
    """The suite quick: ok where all was measured; a fault, or a case that was not, is named."""
    whole = leave_run(tmp_path, "20261120T221257Z-quick-0001", [record(), record("d2")])
    found = found_in("quick", [whole])
    assert found
    assert (found[0], "on d1, d2" in found[1]) == (True, True)
    failed = leave_run(tmp_path, "20261120T221257Z-quick-0002", [record(), fault("rig", 3, "d2")])
    found = found_in("quick", [failed])
    assert found
    assert not found[0]
    assert "d2: rig: its port vanished." in found[1]


def test_boots_are_counted_over_all_runs_of_the_step(tmp_path: Path) -> None:
    """Unchanged firmware: too few boots, or nothing judged, is not as expected."""
    runs = [
        leave_run(tmp_path, f"20261120T221257Z-pr-000{n}", [record(boot=boot) for boot in range(BOOTS // 2)])
        for n in (1, 2)
    ]
    one, both = found_in("unchanged", runs[:1]), found_in("unchanged", runs)
    assert one
    assert both
    assert one[1].startswith(f"{BOOTS // 2} boots a board")
    assert both[1].startswith(f"{BOOTS} boots a board, 0 judgements")
    assert not both[0]


@pytest.mark.parametrize(
    ("first", "ok", "words"),
    [
        ([record(), fault("rig", 3)], True, "exit 3; d1: rig"),
        ([record(), BACK], True, "brought back by reset after 1.5 s"),
        ([record(), fault("firmware", 1)], False, "d1: firmware"),
        ([record(), fault("rig", 3), fault("firmware", 1)], False, "d1: firmware"),
        ([record()], False, "nothing was noticed"),
    ],
)
def test_a_fault_that_was_asked_for_is_the_rigs(
    tmp_path: Path, first: list[Entry], ok: bool, words: str
) -> None:
    """The rig's with exit 3, or a board that came back; blaming the firmware, or silence, is not expected."""
    runs = [leave_run(tmp_path, "20261120T221257Z-nightly-0001", first)]
    runs.append(leave_run(tmp_path, "20261120T221257Z-pr-0002", [record()]))
    found = found_in("unplug", runs)
    assert found
    assert found[0] is ok
    assert words in found[1]
    assert found[1].endswith("next run: untouched")


def test_a_fault_that_spoils_the_next_run_differs(tmp_path: Path) -> None:
    """Noticed rightly, and the board fails in the run after it; or there was none."""
    first = leave_run(tmp_path, "20261120T221257Z-nightly-0001", [record(), fault("rig", 3)])
    second = leave_run(tmp_path, "20261120T221257Z-pr-0002", [fault("rig", 3)])
    for runs in ([first], [first, second]):
        found = found_in("power", runs)
        assert found
        assert not found[0]


def test_a_slowdown_is_planted_by_the_boards_own_figures() -> None:
    """The median boot of a target, of publishes over TCP with QoS 1 alone."""
    slow = record(
        boot=2, columns=dict.fromkeys(("planned_us", "outcome"), (0,) * 110) | {"done_us": (9000,) * 110}
    )
    others = record(boot=9, parameters={**record().parameters, "transport": "tls"})
    p50_us = publish_p50_us([record(boot=0), record(boot=1), slow, others])
    assert list(p50_us) == ["esp32"]
    assert 6500 < p50_us["esp32"] < 7500
    assert publish_p50_us([others]) == {}

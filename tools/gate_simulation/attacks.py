# SPDX-License-Identifier: Apache-2.0
"""Slow firmware that has got past a gate before, and what the gate has to answer."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hil.model import Entry, RunRecord, Scalar
from tools.gate_simulation.judged import PASSES, Run, judged, measure
from tools.gate_simulation.racks import (
    ANY,
    PAIR,
    QUARTER,
    SLOWER,
    TENTH,
    TYPICAL,
    UNCHANGED,
    Effect,
    Rack,
)
from tools.gate_simulation.shipped import Leg, legs_of

BLOCKED = ("regressed",)
NO_PASS = ("regressed", "undecided")
THREEFOLD = Effect("three times as slow", 2.0)
_Edit = Callable[[RunRecord, int], RunRecord]  # (record, its place among the boots of its board and role)


def _as_it_is(record: RunRecord, _place: int) -> RunRecord:
    return record


@dataclass(frozen=True)
class Attack:
    """What is done to a case whose name begins with ``bench``; ``right`` are the answers that will do."""

    name: str
    effect: Effect
    edit: _Edit = _as_it_is
    right: Sequence[str] = BLOCKED
    rack: Rack = TYPICAL
    bench: str = ""


def _with_device(record: RunRecord, **facts: Scalar) -> RunRecord:
    device = {**record.environment["device"], **facts}
    return replace(record, environment={**record.environment, "device": device})


def _on_another_channel(record: RunRecord, place: int) -> RunRecord:
    early = record.role == "candidate" and place == 0
    return _with_device(record, channel=11) if early else record


def _weak(record: RunRecord, place: int) -> RunRecord:
    early = record.role == "candidate" and place == 0
    return _with_device(record, rssi_dbm=-86) if early else record


def _moved_but_once(record: RunRecord, place: int) -> RunRecord:
    return _with_device(record, rssi_dbm=-68) if record.role == "candidate" and place else record


def _larger(record: RunRecord, place: int) -> RunRecord:
    factor = 1.4 if record.role == "candidate" else 1.0
    columns = {
        name: tuple(round(value * factor) + place % 2 for value in column)
        for name, column in record.columns.items()
    }
    return replace(record, columns=columns)


def _second_board_worse(record: RunRecord, _place: int) -> RunRecord:
    if record.role != "candidate" or record.board != "b2":
        return record
    columns = {
        name: tuple(round(value * 1.50 / 1.13) for value in column) if name == "done_us" else column
        for name, column in record.columns.items()
    }
    return replace(record, columns=columns)


def _lost(record: RunRecord, _place: int) -> RunRecord:
    if record.role != "candidate":
        return record
    return replace(record, columns={**record.columns, "outcome": (1,) * record.rows})


ATTACKS = (
    Attack("3 x slower, one early boot a board on another channel", THREEFOLD, _on_another_channel),
    Attack("3 x slower, one early boot a board at -86 dBm", THREEFOLD, _weak),
    Attack("3 x slower, RSSI 8 dB lower but in one boot a board", THREEFOLD, _moved_but_once),
    Attack("image 40 % larger, boots differ by a byte", UNCHANGED, _larger, bench="footprint"),
    Attack("2 % of messages 20 x slower", Effect("", tail=(0.02, 20.0), tells=ANY)),
    Attack(
        "+13 % on one board, +50 % on the other", replace(SLOWER, slower=0.13), _second_board_worse, rack=PAIR
    ),
    Attack("no message gets through", UNCHANGED, _lost),
    Attack("a quarter of boots twice as slow", QUARTER, right=NO_PASS),
    Attack("10 % of boots ten times slower", TENTH, right=NO_PASS),
)


def attacked(attack: Attack, leg: Leg) -> str:
    """Return the id of the case that an attack is made on."""
    return next((one for one in leg.cases if attack.bench and one.startswith(attack.bench)), leg.telling)


def answered_rightly(attack: Attack, numbers: range, seed: int) -> int:
    """Return how many times the gate answers an attack rightly, each time with other noise."""
    (leg,) = legs_of(attack.rack.boards)
    case_id = attacked(attack, leg)
    own = (seed, zlib.crc32(attack.name.encode()))
    runs = [measure(leg, attack.rack, attack.effect, (*own, number), [case_id]) for number in numbers]
    return sum(_answer(one, attack, case_id) in attack.right for one in runs)


def _answer(run: Run, attack: Attack, case_id: str) -> str:
    """Return the worst that is said of the case."""
    compared = judged(replace(run, entries=edited(run.entries, attack.edit))).compared
    outcomes = {item.outcome for item in compared if item.case_id == case_id}
    return next((one for one in ("regressed", "undecided", *PASSES) if one in outcomes), "nothing")


def edited(entries: Sequence[Entry], edit: _Edit) -> list[Entry]:
    """Return a journal with all of its records edited."""
    places: dict[tuple[str, str], int] = {}
    found: list[Entry] = []
    for entry in entries:
        if isinstance(entry, RunRecord):
            place = places.get((entry.board, entry.role), 0)
            places[entry.board, entry.role] = place + 1
            entry = edit(entry, place)
        found.append(entry)
    return found

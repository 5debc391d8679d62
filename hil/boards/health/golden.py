# SPDX-License-Identifier: Apache-2.0
"""What follows from a golden check: findings, a line of the rack's health, who is kept out and who released.

A board that the check keeps out it releases again; one that a person keeps out, or the rack's own rule, is
left to people. What all boards fail alike is the rack's own, and keeps none of them out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.finding import Finding
from hil.boards.health.quarantine import BY_CHECK, put, read_quarantine, release, way_out
from hil.boards.health.types import GOLDEN, RIG, BoardRun, GoldenCheck, Quarantine, RunHealth
from hil.boards.rack import Board, Rack
from hil.boards.rack.golden import FIGURES
from hil.store import time_in
from hil.store.run_info import utc_now

POWER, FAULT = "power", "fault"


@dataclass(frozen=True)
class Checked:
    """A board after the check. ``fault`` is why it did not come to its end, "" where it did; ``is_misnamed``
    where that is the configuration's doing, such as another board on the port than the rack file says.

    ``uncertainty`` is a figure's own, where it has one. ``power`` is what was found of its switch, None where
    it has none that needs nobody, or it was not reached.
    """

    board: Board
    bounds: Mapping[str, float]
    figures: Mapping[str, float] = field(default_factory=dict)
    uncertainty: Mapping[str, float] = field(default_factory=dict)
    power: Finding | None = None
    fault: str = ""
    is_misnamed: bool = False
    measured_s: float = 0.0

    @property
    def beyond(self) -> tuple[str, ...]:
        """What it fails by: figures, "power" and "fault"."""
        figures = [name for name in FIGURES if name in self.figures and self._is_beyond(name)]
        power = [POWER] if self.power and not self.power.ok else []
        return (*figures, *power, *([FAULT] if self.fault else []))

    def held_against_it(self, alike: Collection[str]) -> list[str]:
        """Return what is the board's own of what it fails by; ``alike`` is what all boards fail."""
        return [
            name for name in self.beyond if name not in alike and not (name == FAULT and self.is_misnamed)
        ]

    def _is_beyond(self, name: str) -> bool:
        if name == "clock_drift_ppm" and self.board.kind == "emulated":
            return False  # it falls behind wherever its host is busy
        value = abs(self.figures[name]) if name == "clock_drift_ppm" else self.figures[name]
        return FIGURES[name].is_beyond(value, self.bounds[name], self.uncertainty.get(name, 0.0))


def shared(checked: Sequence[Checked]) -> frozenset[str]:
    """Return what all of several boards fail alike, which is no board's own."""
    if len(checked) < 2:
        return frozenset()
    return frozenset.intersection(*(frozenset(one.beyond) for one in checked))


def findings(checked: Sequence[Checked]) -> Iterator[Finding]:
    """Yield one finding of each board that passes, and one of each thing that another one fails."""
    alike = shared(checked)
    for one in checked:
        subject = f"golden {one.board.id}"
        if not one.beyond:
            yield Finding(subject, ok=True, sentence=told(one))
        for name in one.beyond:
            whose = " All boards that were checked fail so: it is the rack's own." if name in alike else ""
            if name == FAULT:
                sentence, _, mend = one.fault.partition(" Next: ")
                yield Finding(subject, ok=False, sentence=f"{sentence}{whose}", mend=mend or _MEND_FAULT)
            elif name == POWER:
                assert one.power
                sentence = f"{one.power.sentence}{whose}"
                yield Finding(one.power.subject, ok=False, sentence=sentence, mend=one.power.mend)
            else:
                sentence = f"{_beyond_bound(one, name)}{whose}"
                yield Finding(subject, ok=False, sentence=sentence, mend=FIGURES[name].mend)


_MEND_FAULT = (
    "see its cable, its port and its supply, for the firmware is known to be good; what it said is in the "
    "folder that is named at the end."
)


def told(one: Checked) -> str:
    """Return the figures of a board in one sentence."""
    words = [f"{FIGURES[name].words} {_value(one, name)}" for name in FIGURES if name in one.figures]
    return "; ".join([*words, *(["power really cuts"] if one.power and one.power.ok else [])])


def _value(one: Checked, name: str) -> str:
    sign = "+" if name == "clock_drift_ppm" else ""
    about = f" ± {_short(one.uncertainty[name], 2)}" if name in one.uncertainty else ""
    return f"{_short(round(one.figures[name], 3), 4, sign)}{about} {FIGURES[name].unit}".rstrip()


def _short(value: float, digits: int, sign: str = "") -> str:
    """Return so many digits, and all of a larger whole number: 50,000, not 5e+04."""
    is_large = abs(value) >= 10**digits - 0.5
    return f"{value:{sign},.0f}" if is_large else f"{value:{sign}.{digits}g}"


def _beyond_bound(one: Checked, name: str) -> str:
    figure = FIGURES[name]
    bound = f"{one.bounds[name]:g} {figure.unit}".rstrip()
    return f"{figure.words}: {_value(one, name)}; {figure.side} {bound} is expected."


def judge_boards(rack: Rack, folder: Path, checked: Sequence[Checked]) -> list[str]:
    """Keep out the boards that fail, release those that pass and that the check kept out.

    ``folder`` is that of quarantine.json. Returns a sentence for each change.

    Raises ConfigError and RigError as hil.boards.health.quarantine.put() does.
    """
    kept, alike = read_quarantine(folder), shared(checked)
    said = []
    for one in checked:
        board, beyond = one.board.id, one.beyond
        own = one.held_against_it(alike)
        before = kept.get(board)
        if before is None and own:
            why = f"the golden check failed: {', '.join(map(_reason, own))}"
            put(folder, Quarantine(board, utc_now(), BY_CHECK, why))
            said.append(
                f"board {board} is in quarantine from now on, until it passes: {why}; "
                f"{way_out(board, rack.path)}"
            )
        elif before and before.who == BY_CHECK and not beyond:
            release(folder, board)
            said.append(f"board {board} passes again, and is released")
        elif before and not beyond:
            said.append(
                f"board {board} passes; {before.who} keeps it out ({before.why}): {way_out(board, rack.path)}"
            )
    return said


def _reason(name: str) -> str:
    return {POWER: "its power switch lies", FAULT: "it did not come to its end"}.get(name) or FIGURES[
        name
    ].words


def line_of(
    run_id: str, rack: Rack, checked: Iterable[Checked], kept: Mapping[str, Quarantine], *, held_s: float
) -> RunHealth:
    """Return the check as a run of the rack's health; ``kept`` is who is in quarantine after it."""
    checked = list(checked)
    alike, begun = shared(checked), time_in(run_id)
    parts = tuple(_part(one, alike, kept.get(one.board.id)) for one in checked)
    failed = any(one.beyond for one in checked)
    return RunHealth(
        run_id=run_id,
        started_utc=begun,
        rack=rack.name,
        trigger=GOLDEN,
        exit_code=3 if failed else 0,
        lease_wait_s=None,
        held_s=round(held_s, 1),
        boards=parts,
        faults={RIG: 1} if alike else {},
        first_fault=f"all boards alike: {', '.join(map(_reason, sorted(alike)))}" if alike else "",
    )


def _part(one: Checked, alike: frozenset[str], kept: Quarantine | None) -> BoardRun:
    own = one.held_against_it(alike)
    faults = {RIG: len(own), "configuration": int(one.is_misnamed)}
    reasons = [one.fault if name == FAULT else _reason(name) for name in (*own, *[FAULT] * one.is_misnamed)]
    return BoardRun(
        board=one.board.id,
        kind=one.board.kind,
        target=one.board.target,
        state="faulted" if reasons else "measured",
        faults={owner: count for owner, count in faults.items() if count},
        first_fault=f"golden check: {'; '.join(reasons)}" if reasons else "",
        measured_s=round(one.measured_s, 3),
        quarantine=kept,
        golden=GoldenCheck(
            dict(one.figures), one.beyond, dict(one.uncertainty), one.power.ok if one.power else None
        ),
    )

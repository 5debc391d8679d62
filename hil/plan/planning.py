"""The plan: which board measures which cases in which boot, and what it leaves out and why."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from hil.errors import ConfigError
from hil.firmware.variant import DEFAULT_TICK_HZ, TICKS_HZ, Image
from hil.model import Case
from hil.plan.omission import Omitted, check_limits, why_omitted
from hil.plan.selection import CaseSource, select_cases
from hil.rack import Board, Rack

BOOTS_MAX = 100


@dataclass(frozen=True)
class Stage:
    """What is measured of one image: flashed once, then booted, each boot with the cases measured in it."""

    image: Image
    boots: tuple[tuple[Case, ...], ...]


@dataclass(frozen=True)
class BoardPlan:
    """What one board does: its boots, each with the cases measured in it.

    The cases of a boot need the same image; boots of one image follow each other. ``quarantine`` says why the
    board takes part in no run, "" where it does: then all of its cases are omitted.
    """

    board: Board
    boots: tuple[tuple[Case, ...], ...]
    omitted: tuple[Omitted, ...]
    quarantine: str = ""

    @property
    def cases(self) -> tuple[Case, ...]:
        """Each case once, in the order measured."""
        return tuple({case.case_id: case for boot in self.boots for case in boot}.values())

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The boots by the image that they need, in their order."""
        grouped = itertools.groupby(self.boots, key=lambda boot: tick_hz_of(boot[0]))
        return tuple(Stage(Image(self.board.target, tick_hz), tuple(boots)) for tick_hz, boots in grouped)

    def boots_of(self, case: Case) -> int:
        """Return in how many boots a case is measured."""
        return sum(case in boot for boot in self.boots)


@dataclass(frozen=True)
class Plan:
    """The whole run."""

    selection: str
    boards: tuple[BoardPlan, ...]

    def for_board(self, board_id: str) -> BoardPlan:
        return next(plan for plan in self.boards if plan.board.id == board_id)

    @property
    def present(self) -> tuple[BoardPlan, ...]:
        """The boards that are not in quarantine: those that a run may take and touch."""
        return tuple(plan for plan in self.boards if not plan.quarantine)

    @property
    def images(self) -> tuple[Image, ...]:
        """Each image that some board needs, by its name."""
        found = {stage.image for plan in self.boards for stage in plan.stages}
        return tuple(sorted(found, key=str))


def make_plan(
    rack: Rack,
    benches: Mapping[str, CaseSource],
    *,
    selection: str,
    board_ids: Sequence[str] = (),
    boots: int = 1,
    quarantine: Mapping[str, str] = MappingProxyType({}),
) -> Plan:
    """Plan a run of the selected cases on the boards named (all where none is).

    ``quarantine`` says of each board in quarantine why it measures nothing.

    Raises:
        ConfigError: a word that is no suite, bench or parameter; nothing selected; an unknown board; a
            board's limit on a parameter that no bench has; a tick that no image has; no boot, or more than
            BOOTS_MAX.
    """
    if not 1 <= boots <= BOOTS_MAX:
        raise ConfigError(f"{boots} boots a board; 1 to {BOOTS_MAX} are possible.")
    cases = select_cases(benches, selection)
    boards = rack.select(board_ids)
    kinds = {bench: source.kinds for bench, source in benches.items()}
    plans = (_plan_board(rack, board, cases, boots, kinds, quarantine.get(board.id, "")) for board in boards)
    return Plan(selection, tuple(plans))


def tick_hz_of(case: Case) -> int:
    """Return the tick of the image that a case runs on: its parameter ``tick_hz``.

    Raises:
        ConfigError: no image has such a tick.
    """
    value = str(case.parameters.get("tick_hz", DEFAULT_TICK_HZ))
    known = {str(tick_hz): tick_hz for tick_hz in TICKS_HZ}
    if value not in known:
        raise ConfigError(
            f"the case {case.case_id} needs an image with a tick of {value} Hz, and there is none.",
            next_step=f"use tick_hz {' or '.join(known)} in the thresholds file.",
        )
    return known[value]


def ticks_hz_of(benches: Mapping[str, CaseSource], selection: str) -> tuple[int, ...]:
    """Return the ticks of the images that the selected cases need. Raises ConfigError as make_plan() does."""
    needed = {tick_hz_of(case) for case in select_cases(benches, selection)}
    return tuple(tick_hz for tick_hz in TICKS_HZ if tick_hz in needed)


def _plan_board(
    rack: Rack,
    board: Board,
    cases: Sequence[Case],
    boots: int,
    kinds: Mapping[str, Sequence[str]],
    quarantine: str,
) -> BoardPlan:
    check_limits(board, cases)
    if quarantine:
        return BoardPlan(board, (), tuple(Omitted(case, quarantine) for case in cases), quarantine)
    reasons = {case.case_id: why_omitted(rack, board, case, kinds[case.bench]) for case in cases}
    measured = [case for case in cases if not reasons[case.case_id]]
    omitted = tuple(Omitted(case, reason) for case in cases if (reason := reasons[case.case_id]))
    return BoardPlan(board, tuple(_boots(measured, boots)), omitted)


def _boots(cases: Sequence[Case], boots: int) -> Iterable[tuple[Case, ...]]:
    """Yield the boots, those of the default image first."""
    for tick_hz in TICKS_HZ:
        own = tuple(case for case in cases if tick_hz_of(case) == tick_hz)
        if own:
            yield from (own,) * boots

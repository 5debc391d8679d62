# SPDX-License-Identifier: Apache-2.0
"""The plan: which board measures which cases in which boot, and what it leaves out and why.

Why a board does not measure a case: its limits, its chip, its labels, or what its rack has not.

A board in quarantine measures none; hil.boards.quarantine words the reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.boards.firmware.build_folder import DEFAULT_TICK_HZ, TICKS_HZ, Image
from hil.boards.rack import Board, Rack
from hil.model import KINDS, Case, Scalar
from hil.run.options import BOOTS_MAX
from hil.run.plan.selection import CaseSource, select_cases
from hil.virtual.emulator import drivers

# Values of parameters that need two cores. A parameter that ends in _core names a core by its number.
TWO_CORES: Mapping[str, frozenset[str]] = {
    "placement": frozenset({"cross"}),
    "load": frozenset({"other_core", "both", "migrate"}),
    "threads": frozenset({"core1", "all"}),
}
# Causes of an outage that are packets of a plain connection, and the transports that have TLS.
PLAIN_CAUSES = frozenset({"syn", "connect", "connack"})
TLS_TRANSPORTS = frozenset({"tls", "mtls"})
# Only an air that is the rack's own can be changed, or taken away. These values leave it as it is.
AIR_AS_IT_IS: Mapping[str, Scalar] = {
    "air": "rack",
    "delay_us": -1,
    "rate_up_kbit": 0,
    "rate_down_kbit": 0,
    "loss_up_ppm": 0,
    "loss_down_ppm": 0,
}
# What tc makes of them at a real access point's interface, where the rack file says so (shapes).
SHAPED_BY: Mapping[str, str] = {
    "delay_us": "delay",
    "rate_up_kbit": "rate",
    "rate_down_kbit": "rate",
    "loss_up_ppm": "loss",
    "loss_down_ppm": "loss",
}
AIR_TAKEN_AWAY: Mapping[str, str] = {"fault": "blackout", "cause": "access_point"}
PSRAM = "psram"  # the value of a parameter, and the label of a board that has it


@dataclass(frozen=True)
class Omitted:
    """A case that a board's limits, its chip, its labels, its rack or its quarantine rule out."""

    case: Case
    reason: str


def why_omitted(rack: Rack, board: Board, case: Case, kinds: Sequence[str] = KINDS) -> str:
    """Return why the board does not measure the case, which boards of ``kinds`` can; "" where it does."""
    return (
        _of_another_kind(board, case, kinds)
        or _beyond_limit(board, case)
        or _beyond_its_emulator(board, case, kinds)
        or _too_few_cores(board, case)
        or _without_psram(board, case)
        or _hidden_by_tls(case)
        or _beyond_the_rack(rack, case)
    )


def check_limits(board: Board, cases: Sequence[Case]) -> None:
    """Raise ConfigError where the board limits a parameter that no case has."""
    known = sorted({key for case in cases for key in case.parameters})
    for limit in board.limits:
        if limit[4:] not in known:
            raise ConfigError(
                f"{board.where}: limit {limit!r} of board {board.id!r} names the parameter {limit[4:]!r}, "
                f"which no selected bench has{did_you_mean(limit[4:], known)}",
                next_step=f"use max_ or min_ with one of: {', '.join(known)}.",
            )


def _of_another_kind(board: Board, case: Case, kinds: Sequence[str]) -> str:
    if board.kind in kinds:
        return ""
    return f"{case.bench} is for {' and '.join(kinds)} boards, and board {board.id} is {board.kind}"


def _beyond_its_emulator(board: Board, case: Case, kinds: Sequence[str]) -> str:
    """Return why a board cannot serve a case: that takes the access point away, which is its emulator's own;
    or of a bench for emulated boards alone, which counts instructions."""
    if board.kind == "emulated" and board.network.is_wifi and case.parameters.get("cause") == "access_point":
        return f"cause=access_point needs one that goes away, and board {board.id} is at its emulator's own"
    if tuple(kinds) != ("emulated",) or board.chip in drivers.driver_of(board.emulator).ABILITIES.counting:
        return ""
    return (
        f"{case.bench} counts instructions, and {board.emulator} does not count those of an {board.chip} "
        f"(board {board.id})"
    )


def _beyond_limit(board: Board, case: Case) -> str:
    for limit, bound in board.limits.items():
        value = case.parameters.get(limit[4:])
        if not isinstance(value, int | float):
            continue
        if (value > bound) if limit.startswith("max_") else (value < bound):
            return f"{limit[4:]}={value} is beyond {limit}={bound} of board {board.id}"
    return ""


def _too_few_cores(board: Board, case: Case) -> str:
    """Return why a case that needs a core cannot run on a chip without, as the firmware would say it."""
    cores = CHIPS[board.chip].cores
    for key, value in case.parameters.items():
        core = str(value)
        if key.endswith("_core") and core.isdecimal() and int(core) >= cores:
            return f"{key}={value}: an {board.chip} has no core {value} (board {board.id})"
        if cores < 2 and core in TWO_CORES.get(key, ()):
            return f"{key}={value} needs two cores, and an {board.chip} has one (board {board.id})"
    return ""


def _without_psram(board: Board, case: Case) -> str:
    for key in ("load", "memory"):
        if case.parameters.get(key) == PSRAM and PSRAM not in board.labels:
            return f"{key}={PSRAM} needs a board with the label {PSRAM!r}, which board {board.id} has not"
    return ""


def _hidden_by_tls(case: Case) -> str:
    cause, transport = str(case.parameters.get("cause", "")), str(case.parameters.get("transport", ""))
    if cause in PLAIN_CAUSES and transport in TLS_TRANSPORTS:
        return f"cause={cause} drops packets of plain TCP, and transport={transport} is TLS"
    return ""


def _beyond_the_rack(rack: Rack, case: Case) -> str:
    """Return why a rack whose access point is real cannot make this case."""
    if rack.is_virtual:
        return ""
    asked = [
        f"{key}={case.parameters[key]}"
        for key, plain in AIR_AS_IT_IS.items()
        if key in case.parameters and case.parameters[key] != plain
        if SHAPED_BY.get(key) not in rack.access_point.shapes
    ]
    asked += [f"{key}={value}" for key, value in AIR_TAKEN_AWAY.items() if case.parameters.get(key) == value]
    if asked:
        return (
            f"{', '.join(asked)} needs an air that the rack itself makes, and rack {rack.name}'s is a radio's"
        )
    cause = case.parameters.get("cause")
    if cause in PLAIN_CAUSES and not rack.capture.access_point:
        return f"cause={cause} needs an interface at the access point (capture: in {rack.path.name})"
    own = rack.capture.access_point not in ("", rack.host.interface)
    if case.parameters.get("fault") == "wire" and not own:
        return f"fault=wire needs an interface at the access point (capture: in {rack.path.name})"
    return ""


@dataclass(frozen=True)
class Stage:
    """What is measured of one image: flashed once, then booted, each boot with the cases measured in it."""

    image: Image
    boots: tuple[tuple[Case, ...], ...]


@dataclass(frozen=True)
class BoardPlan:
    """What one board does: its boots, each with the cases measured in it.

    The cases of a boot need the same image; boots of one image follow each other. ``quarantine`` says why the
    board takes part in no run, "" where it does: then all of its cases are omitted. ``probes`` are the
    benches that measure a team's own firmware.
    """

    board: Board
    boots: tuple[tuple[Case, ...], ...]
    omitted: tuple[Omitted, ...]
    quarantine: str = ""
    probes: Set[str] = frozenset()

    @property
    def cases(self) -> tuple[Case, ...]:
        """Each case once, in the order measured."""
        return tuple({case.case_id: case for boot in self.boots for case in boot}.values())

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The boots by the image that they need, in their order."""
        target = self.board.firmware_target
        grouped = itertools.groupby(self.boots, key=lambda boot: image_of(target, boot[0], self.probes))
        return tuple(Stage(image, tuple(boots)) for image, boots in grouped)

    def boots_of(self, case: Case) -> int:
        """Return the number of boots that measure a case."""
        return sum(case in boot for boot in self.boots)


@dataclass(frozen=True)
class Plan:
    """The whole run.

    ``takers`` says, where the run spreads its cases, which other boards can measure what (board, case id) is
    to measure.
    """

    selection: str
    boards: tuple[BoardPlan, ...]
    takers: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)

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
    probes: Set[str] = frozenset(),
) -> Plan:
    """Plan a run of the selected cases on the boards named (all where none is).

    ``quarantine`` says of each board in quarantine why it measures nothing; ``probes`` which benches measure
    a team's own firmware.

    Raises:
        ConfigError: a word that is no suite, bench or parameter; nothing selected; an unknown board; an
            emulator that is none, or lacks the board's chip or network; a board's limit on a parameter that
            no bench has; a tick that no image has; no boot, or more than BOOTS_MAX.
    """
    if not 1 <= boots <= BOOTS_MAX:
        raise ConfigError(f"{boots} boots per board; 1 to {BOOTS_MAX} are possible.")
    cases = select_cases(benches, selection)
    boards = rack.select(board_ids)
    kinds = {bench: source.kinds for bench, source in benches.items()}
    plans = (
        _plan_board(rack, board, cases, boots, kinds, quarantine.get(board.id, ""), probes)
        for board in boards
    )
    return Plan(selection, tuple(plans))


def kept_plan(plan: Plan, kept: Set[tuple[str, str]]) -> Plan:
    """Return the plan with the (board, case id) pairs in ``kept`` only; boards without any are left out.

    A board that can take some over stays, and of a run that is spread one in quarantine.
    """
    takers = {pair: boards for pair, boards in plan.takers.items() if pair in kept}
    spare = frozenset[str]().union(*takers.values())
    boards = []
    for old in plan.boards:
        mine = {case_id for board, case_id in kept if board == old.board.id}
        boots = tuple(tuple(case for case in boot if case.case_id in mine) for boot in old.boots)
        omitted = tuple(item for item in old.omitted if item.case.case_id in mine)
        if mine or old.board.id in spare or (plan.takers and old.quarantine):
            boards.append(replace(old, boots=tuple(boot for boot in boots if boot), omitted=omitted))
    return Plan(plan.selection, tuple(boards), takers)


def image_of(target: str, case: Case, probes: Set[str]) -> Image:
    """Return the image that a case runs on: a team's own firmware, or hil's. Raises as tick_hz_of()."""
    return Image(target, product=True) if case.bench in probes else Image(target, tick_hz_of(case))


def tick_hz_of(case: Case) -> int:
    """Return the tick of the image that a case runs on: its parameter ``tick_hz``.

    Raises:
        ConfigError: no image has such a tick.
    """
    value = str(case.parameters.get("tick_hz", DEFAULT_TICK_HZ))
    known = {str(tick_hz): tick_hz for tick_hz in TICKS_HZ}
    if value not in known:
        raise ConfigError(
            f"the case {case.case_id} needs an image with a tick of {value} Hz, which does not exist.",
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
    probes: Set[str],
) -> BoardPlan:
    check_limits(board, cases)
    drivers.emulators_of([board])
    if quarantine:
        return BoardPlan(board, (), tuple(Omitted(case, quarantine) for case in cases), quarantine)
    reasons = {case.case_id: why_omitted(rack, board, case, kinds[case.bench]) for case in cases}
    measured = [case for case in cases if not reasons[case.case_id]]
    omitted = tuple(Omitted(case, reason) for case in cases if (reason := reasons[case.case_id]))
    return BoardPlan(board, tuple(_boots(measured, boots, probes)), omitted, probes=probes)


def _boots(cases: Sequence[Case], boots: int, probes: Set[str]) -> Iterable[tuple[Case, ...]]:
    """Yield the boots, those of the default image first, a team's own firmware last."""
    images = {case.case_id: image_of("", case, probes) for case in cases}
    for wanted in (*(Image("", tick_hz) for tick_hz in TICKS_HZ), Image("", product=True)):
        own = tuple(case for case in cases if images[case.case_id] == wanted)
        if own:
            yield from (own,) * boots

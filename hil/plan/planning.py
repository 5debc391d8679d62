"""The plan: which board measures which cases in which boot, and what it leaves out and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hil.chips import CORES
from hil.errors import ConfigError
from hil.model import Case
from hil.plan.selection import CaseSource, select_cases
from hil.rack import Board, Rack
from hil.yamlvalue import did_you_mean

BOOTS_MAX = 100
GATEWAY_READY_S = 45.0  # how long a gateway may take before each phase until it says that it is ready
AMOUNT_FLOOR_BPS = 100_000.0  # slower than this no transfer by amount is waited for
AMOUNT_MAX_S = 3600.0


@dataclass(frozen=True)
class Omitted:
    """A case that a board's limits, or its chip, rule out."""

    case: Case
    reason: str


@dataclass(frozen=True)
class BoardPlan:
    """What one board does: its boots, each with the cases measured in it."""

    board: Board
    boots: tuple[tuple[Case, ...], ...]
    omitted: tuple[Omitted, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        """Each case once, in the order measured."""
        return tuple({case.case_id: case for boot in self.boots for case in boot}.values())


@dataclass(frozen=True)
class Plan:
    """The whole run."""

    selection: str
    boards: tuple[BoardPlan, ...]

    def for_board(self, board_id: str) -> BoardPlan:
        return next(plan for plan in self.boards if plan.board.id == board_id)


def make_plan(
    rack: Rack,
    benches: Mapping[str, CaseSource],
    *,
    selection: str,
    board_ids: Sequence[str] = (),
    boots: int = 1,
) -> Plan:
    """Plan a run of the selected cases on the boards named (all where none is).

    Raises:
        ConfigError: a word that is no suite, bench or parameter; nothing selected; an unknown board; a
            board's limit on a parameter that no bench has; no boot, or more than BOOTS_MAX.
    """
    if not 1 <= boots <= BOOTS_MAX:
        raise ConfigError(f"{boots} boots a board; 1 to {BOOTS_MAX} are possible.")
    cases = select_cases(benches, selection)
    boards = tuple(_plan_board(board, cases, boots) for board in rack.select(board_ids))
    return Plan(selection, boards)


def deadline_s(case: Case) -> float:
    """Return how long a case may take, in seconds, from the parameters that say how long it lasts.

    A schedule of random intervals may come out half as long again as its mean. What is done one after
    another (reads, cycles) may each take its timeout, so that whoever waits for it there says what it waited
    for. The rest is for the last timeout and the transfer of the samples.
    """
    rows = _number(case, "count") + _number(case, "warmup")
    planned_s = rows * _number(case, "interval_us") / 1e6
    planned_s = max(planned_s, _number(case, "duration_s"), _amount_s(case))
    timeout_ms = _number(case, "timeout_ms")
    phases = [reads for name in ("reads", "reads_after_reconnect") if (reads := _number(case, name))]
    reads = sum(phases)
    if case.parameters.get("order") == "interleaved":
        reads *= 3  # at most that many profiles take turns
    reading_ms = reads * (_number(case, "pause_ms") + timeout_ms)
    cycling_ms = _number(case, "cycles") * (_number(case, "outage_ms") + timeout_ms)
    ready_s = GATEWAY_READY_S * len(phases)
    return 1.5 * planned_s + ready_s + (reading_ms + cycling_ms + timeout_ms) / 1e3 + 45.0


def _amount_s(case: Case) -> float:
    """Return how long a transfer by amount may take, at the rate that is asked for or at a slow one."""
    asked_bps = 1000 * _number(case, "rate_kbps") or AMOUNT_FLOOR_BPS
    return min(8 * _number(case, "amount_bytes") / min(asked_bps, AMOUNT_FLOOR_BPS), AMOUNT_MAX_S)


def _number(case: Case, key: str) -> float:
    """Return a parameter that is a number; 0 where the case has none."""
    value = case.parameters.get(key, 0.0)
    return float(value) if isinstance(value, int | float) else 0.0


def _plan_board(board: Board, cases: Sequence[Case], boots: int) -> BoardPlan:
    _check_limits(board, cases)
    reasons = {case.case_id: _beyond_limit(board, case) or _absent_core(board, case) for case in cases}
    measured = tuple(case for case in cases if not reasons[case.case_id])
    omitted = tuple(Omitted(case, reason) for case in cases if (reason := reasons[case.case_id]))
    return BoardPlan(board, (measured,) * boots if measured else (), omitted)


def _check_limits(board: Board, cases: Sequence[Case]) -> None:
    known = sorted({key for case in cases for key in case.parameters})
    for limit in board.limits:
        if limit[4:] not in known:
            raise ConfigError(
                f"{board.where}: limit {limit!r} of board {board.id!r} names the parameter {limit[4:]!r}, "
                f"which no selected bench has{did_you_mean(limit[4:], known)}",
                next_step=f"use max_ or min_ with one of: {', '.join(known)}.",
            )


def _beyond_limit(board: Board, case: Case) -> str:
    for limit, bound in board.limits.items():
        value = case.parameters.get(limit[4:])
        if not isinstance(value, int | float):
            continue
        if (value > bound) if limit.startswith("max_") else (value < bound):
            return f"{limit[4:]}={value} is beyond {limit}={bound} of board {board.id}"
    return ""


def _absent_core(board: Board, case: Case) -> str:
    """Return why a case that pins a task to a core cannot run on this chip, as the firmware would say it."""
    for key, value in case.parameters.items():
        core = str(value)
        if key.endswith("_core") and core.isdecimal() and int(core) >= CORES[board.chip]:
            return f"{key}={value}: an {board.chip} has no core {value} (board {board.id})"
    return ""

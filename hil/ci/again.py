# SPDX-License-Identifier: Apache-2.0
"""A leg judged again from its records, since its verdicts.json is a file that anybody can write.

The verdict counts where records and limits come to the same, and the records are what the plan promised: its
suite, in whole, on boards, compared where it was to be compared. What a run says of itself has to be
possible: a board that calls itself physical would have none of the virtual limits, and a plan of no boots
demands none. That a record is true nobody can check here: only what a rack's own workflow left is more than
its author's word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hil.base.errors import ConfigError, ExitCode, combine_exit_codes
from hil.ci.limits import Counting, by_base
from hil.ci.loosened import ByBench
from hil.ci.plan import COMPARED_TARGET, EMULATED_JOB, EMULATOR_JOB, RACK_JOBS, CiPlan, Leg
from hil.gate import judge
from hil.gate.otherwise import judged_otherwise
from hil.model import Comparison, Entry, NoBase, NotRun, RunRecord, Verdict
from hil.run.plan.selection import select_cases
from hil.store import JudgedRun, RunInfo
from hil.store.run_info import planned_boots
from hil.thresholds import among_legs, own_limits

_MOST_NAMED = 3


@dataclass(frozen=True)
class JudgedAgain:
    """``wrong`` is why the leg's verdict does not count, "" where it does.

    ``stricter`` is the verdict by the merge base's definitions where these fail what the head's own let pass.
    ``unproven`` is why a pass that it comes to was not measured, "" where it was. ``loosened`` says what of
    the merge base's rack was not measured.
    """

    wrong: str = ""
    stricter: Verdict | None = None
    unproven: str = ""
    loosened: tuple[str, ...] = ()


def judge_again(run: JudgedRun, leg: Leg, plan: CiPlan, counting: Counting) -> JudgedAgain:
    """Judge the records of a leg by the limits that count. Raises ConfigError where it keeps none of use."""
    info, entries = run.info, run.journal.entries
    if wrong := _implausible(info, entries, leg):
        return JudgedAgain(wrong)
    limits = counting.head or own_limits(run)
    if not limits:
        raise ConfigError(f"the run {run.run_id} has no stored limits, so it cannot be judged again.")
    if wrong := _not_as_planned(info, leg, plan, entries, limits):
        return JudgedAgain(wrong)
    planned = planned_boots(info)
    now = _judged(entries, limits, info, planned)
    if changes := judged_otherwise(run.verdict, now):
        named = "; ".join(f"{one.subject}: {one.before} → {one.now}" for one in changes[:_MOST_NAMED])
        more = f"; and {len(changes) - _MOST_NAMED} more" if len(changes) > _MOST_NAMED else ""
        return JudgedAgain(f"its verdicts.json contradicts its records, judged again: {named}{more}")
    lost = tuple(_boards_lost(info, leg, counting))
    records = [entry for entry in entries if isinstance(entry, RunRecord)]
    by_those = by_base(limits, counting.base, records)
    if by_those is None:
        return JudgedAgain(unproven=_unproven(entries, plan), loosened=lost)
    strict = _judged(entries, by_those, info, planned)
    worse = combine_exit_codes([ExitCode(now.exit_code), ExitCode(strict.exit_code)]) != now.exit_code
    return JudgedAgain("", strict if worse else None, _unproven(entries, plan), lost)


def _implausible(info: RunInfo, entries: Iterable[Entry], leg: Leg) -> str:
    """Return what contradicts itself in a run, "" where nothing does.

    ``info`` is its run.json, ``entries`` its records.
    """
    kind = _kind_of(leg)
    others = [board for board in info.boards if board.kind != kind]
    if others:
        return f"its board {others[0].id} is {others[0].kind}, and this leg's are {kind}"
    boards = {(board.id, board.kind, board.target) for board in info.boards}
    measured = {(one.board, one.kind, one.target) for one in entries if isinstance(one, RunRecord)}
    if boards and (strangers := sorted(measured - boards)):
        return f"it has records of {' '.join(strangers[0])}, which is none of its boards"
    return ""


def _kind_of(leg: Leg) -> str:
    if leg.job in RACK_JOBS:
        return "physical"
    return "emulated" if leg.job in (EMULATED_JOB, EMULATOR_JOB) else "virtual"


def _unproven(entries: Sequence[Entry], plan: CiPlan) -> str:
    """Return why a leg that compared nothing is no pass: another job says that both images are one.

    Where the change leaves the firmware alone, its diff says the same.
    """
    said = any(
        (isinstance(one, Comparison) and one.identical)
        or (isinstance(one, NoBase) and one.cause == "identical")
        for one in entries
    )
    return SAID_IDENTICAL if said and "firmware" in plan.changes else ""


SAID_IDENTICAL = (
    "the change edits firmware, and that its image is the merge base's, byte for byte, "
    "only the job says that built both"
)


def _boards_lost(info: RunInfo, leg: Leg, counting: Counting) -> Iterator[str]:
    """Yield a sentence for each board of the merge base's virtual rack that the leg was to measure."""
    if leg.job not in ("virtual", "compare"):
        return
    measured = {(board.id, board.target) for board in info.boards}
    for name, target in counting.boards:
        is_wanted = not leg.compares_virtually or target == COMPARED_TARGET
        if is_wanted and (name, target) not in measured:
            yield f"the leg {leg.name} measured no board {name} ({target}), which the merge base's rack has"


def _judged(
    entries: Sequence[Entry],
    limits: ByBench,
    info: RunInfo,
    planned: Mapping[tuple[str, str], int],
) -> Verdict:
    return judge(entries, among_legs(limits, info.legs), planned)


def _not_as_planned(info: RunInfo, leg: Leg, plan: CiPlan, entries: Sequence[Entry], limits: ByBench) -> str:
    """Return what a run left out of what the plan promised, "" where nothing."""
    if info.suite != leg.suite:
        return f"it measured the suite {info.suite!r} instead of {leg.suite!r}"
    shared = 1 if leg.job == EMULATED_JOB else plan.legs_of_alpha
    if info.legs > shared:  # a smaller share of alpha blocks less
        return f"it shared alpha with {info.legs} legs, and the plan has {shared}"
    if not info.boards:
        return "it names no board"
    compared = [entry for entry in entries if isinstance(entry, Comparison)]
    if _is_to_compare(leg, plan) and not compared and not any(isinstance(one, NoBase) for one in entries):
        return "it compared nothing, and does not say why"
    if any(one.identical for one in compared):  # the same bytes on both sides need no boot
        return ""
    return _cases_left_out(info, leg, entries, limits)


def _is_to_compare(leg: Leg, plan: CiPlan) -> bool:
    """Return whether a leg must compare: elsewhere the same bytes are measured against the limits alone."""
    if not plan.base or plan.trigger != "pr":
        return False
    return leg.compares_virtually or (leg.job in ("rack", EMULATED_JOB) and plan.may_leave_out)


def _cases_left_out(info: RunInfo, leg: Leg, entries: Iterable[Entry], limits: ByBench) -> str:
    """Return which cases of the suite a board neither planned nor gave a reason for, "" where none."""
    said = {(entry.board, entry.case_id) for entry in entries if isinstance(entry, NotRun)}
    cases = select_cases(limits, leg.suite)
    planned = planned_boots(info)
    for board in info.boards:
        here = [case.case_id for case in cases if board.kind in limits[case.bench].kinds]
        pairs = [(board.id, case_id) for case_id in here]
        missing = [pair for pair in pairs if pair not in planned and pair not in said]
        if missing:
            return f"{len(missing)} of {len(here)} cases of its suite are not in its plan of {missing[0][0]}"
    return ""

# SPDX-License-Identifier: Apache-2.0
"""What the runs of a step show, from their records alone: so whoever receives them comes to the same.

Each function takes the step's runs in their order and returns whether it came out as expected, and what did.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from hil.base.untrusted import visible
from hil.evidence.programme import BOOTS
from hil.gate import judge
from hil.gate.otherwise import judged_otherwise
from hil.model import Fault, Recovery, RunRecord, Verdict
from hil.store import StoredRun
from hil.store.run_info import planned_boots
from hil.thresholds import among_legs, own_limits

Found = tuple[bool, str]
_SENTENCE = 120  # characters of a fault's: its run has the rest
_PUBLISH_P50 = "publish_latency_p50_us"


def judged(run: StoredRun) -> Verdict:
    """Judge a run again by the limits that it kept. Raises ConfigError where these are none."""
    limits = among_legs(own_limits(run), int(run.info.get("legs", 1)))
    return judge(run.journal.entries, limits, planned_boots(run.info))


def contradiction(run: StoredRun) -> str:
    """Return what the stored verdict says otherwise than the records, judged again; "" where nothing."""
    if run.verdict is None:
        return ""
    changes = judged_otherwise(run.verdict, judged(run))
    return "; ".join(f"{one.subject}: {one.before} → {one.now}" for one in changes[:3])


def found_in(step: str, runs: Sequence[StoredRun]) -> Found | None:
    """Return what the runs of a step show; None where it has none that show anything."""
    if step not in JUDGED or not runs:
        return None
    return JUDGED[step](runs)


def _quick(runs: Sequence[StoredRun]) -> Found:
    run = runs[-1]
    verdict = judged(run)
    cases = len({record.case_id for record in run.records})
    boards = sorted({record.board for record in run.records})
    missing = sum(item.expected for item in verdict.not_run)
    got = f"exit {verdict.exit_code}, {verdict.outcome}: {cases} cases on {', '.join(boards) or 'no board'}"
    got += f", {missing} not measured" if missing else ""
    return bool(run.records) and verdict.exit_code == 0 and not missing, got + _faults(run)


def _unchanged(runs: Sequence[StoredRun]) -> Found:
    boots = boots_of(runs)
    compared = [one for run in runs for one in judged(run).compared if one.blocking and one.candidate_boots]
    blocked = sum(one.outcome == "regressed" for one in compared)
    undecided = sum(one.outcome == "undecided" for one in compared)
    seen = [one.smallest_effect for one in compared if one.relative and one.smallest_effect is not None]
    fewest = min(boots.values(), default=0)
    got = f"{fewest} boots a board, {len(compared)} judgements: {blocked} blocked, {undecided} undecided"
    got += f"; smallest change seen {statistics.median(seen):.1%} (median)" if seen else ""
    faults = "".join(map(_faults, runs))
    decided = len(compared) > undecided
    return fewest >= BOOTS and decided and not blocked and not faults, got + faults


def boots_of(runs: Sequence[StoredRun]) -> Counter[str]:
    """Return how often each board was booted and measured, over all runs."""
    return Counter(
        board for run in runs for board, _index in {(one.board, one.boot_index) for one in run.records}
    )


def _planted(runs: Sequence[StoredRun]) -> Found:
    verdict = judged(runs[-1])
    p50 = [one for one in verdict.compared if one.metric == _PUBLISH_P50 and one.blocking]
    words = [f"{one.target} {one.change or 0:+.1%} {one.outcome}" for one in p50]
    targets = {record.target for record in runs[-1].records}
    caught = {one.target for one in p50 if one.outcome == "regressed"}
    got = f"exit {verdict.exit_code}: {', '.join(words) or 'nothing compared'}{_faults(runs[-1])}"
    return bool(targets) and targets == caught and verdict.exit_code == 1, got


def _fault(runs: Sequence[StoredRun], *, by_messages: bool = False) -> Found:
    """Judge a run in which a fault was made; ``by_messages``: it may show in what was lost alone."""
    run, *after = runs
    faults = [entry for entry in run.journal.entries if isinstance(entry, Fault)]
    back = [entry for entry in run.journal.entries if isinstance(entry, Recovery) and entry.by]
    code = judged(run).exit_code
    owners = {fault.owner for fault in faults}
    lost = _lost(run.records) if by_messages else 0
    noticed = (owners == {"rig"} and code == 3) or (not faults and bool(back or lost) and code in (0, 4))
    got = f"exit {code}{_faults(run)}"
    got += "".join(f"; brought back by {one.by} after {one.took_s:g} s" for one in back)
    got += f"; {lost} messages lost or late" if lost else ""
    got += "" if faults or back or lost else "; nothing was noticed"
    if not after:
        return False, f"{got}; there is no next run"
    untouched, next_words = _untouched(after[-1])
    return noticed and untouched, f"{got}; next run: {next_words}"


def _access_point(runs: Sequence[StoredRun]) -> Found:
    return _fault(runs, by_messages=True)


def _lost(records: Sequence[RunRecord]) -> int:
    """Return how many messages were not acknowledged in time."""
    outcomes = [record.columns.get("outcome", ())[record.warmup_rows :] for record in records]
    return sum(outcome != 0 for rows in outcomes for outcome in rows)


def _untouched(run: StoredRun) -> Found:
    verdict = judged(run)
    missing = any(item.expected for item in verdict.not_run)
    whole = bool(run.records) and not verdict.faults and not missing
    return whole, "untouched" if whole else f"exit {verdict.exit_code}{_faults(run)}"


def _swap(runs: Sequence[StoredRun]) -> Found:
    run, *after = runs
    verdict = judged(run)
    refused = verdict.exit_code in (2, 3) and not run.records
    whole, words = _untouched(run)
    got = f"exit {verdict.exit_code}{_faults(run)}" if not whole else "nothing mixed up, all measured"
    if not after:
        return False, f"{got}; there is no next run"
    untouched, next_words = _untouched(after[-1])
    return (refused or whole) and untouched, f"{got or words}; next run: {next_words}"


def _faults(run: StoredRun) -> str:
    found = [entry for entry in run.journal.entries if isinstance(entry, Fault)]
    words = ((fault, visible(fault.sentence.removeprefix(fault.case_id), _SENTENCE)) for fault in found[:2])
    return "".join(f"; {fault.board or 'rack'}: {fault.owner}: {said}" for fault, said in words)


JUDGED: Mapping[str, Callable[[Sequence[StoredRun]], Found]] = {
    "quick": _quick,
    "unchanged": _unchanged,
    "planted": _planted,
    "unplug": _fault,
    "reset": _fault,
    "power": _fault,
    "access-point": _access_point,
    "swap": _swap,
}


def publish_p50_us(records: Sequence[RunRecord]) -> dict[str, float]:
    """Return what a publish over TCP with QoS 1 takes, by target: the median of boots of their p50, in us."""
    boots: dict[str, list[float]] = {}
    for record in records:
        wanted = {"transport": "tcp", "qos": 1, "api": "publish"}
        if record.bench != "publish" or any(record.parameters.get(key) != one for key, one in wanted.items()):
            continue
        columns = record.columns
        times = zip(columns["planned_us"], columns["done_us"], columns["outcome"], strict=True)
        done = [
            done - planned for planned, done, outcome in list(times)[record.warmup_rows :] if outcome == 0
        ]
        if done:
            boots.setdefault(record.target, []).append(statistics.median(done))
    return {target: statistics.median(values) for target, values in boots.items()}

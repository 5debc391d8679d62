# SPDX-License-Identifier: Apache-2.0
"""The gate: a pure function from records and thresholds to a verdict.

The same input gives the same bytes. ``alpha`` is shared out: with m blocking decisions in the run each may be
wrong with probability alpha/m, so that at most the share alpha of clean runs is blocked; where the run has
both comparisons and absolute limits, each kind has half. See
docs/explain/gate.md and docs/explain/comparisons.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hil.base.errors import ConfigError, ExitCode
from hil.gate.compare.comparison import NOTHING_MEASURED, advise, compare
from hil.gate.compare.drift import drifts_of
from hil.gate.compare.family import Family, discoveries, family_of
from hil.gate.compare.finding import Finding
from hil.gate.compare.result import compared_series, with_outcome
from hil.gate.compare.units import Unit, units_of
from hil.gate.limits.decision import IMPOSSIBLE, Decision, decide, prepare
from hil.gate.words.compared import Compared
from hil.gate.words.conclusion import conclude
from hil.gate.words.drifts import warnings_of, with_drifts
from hil.gate.words.ended import why_ended, why_not_compared, without_comparison
from hil.model import (
    ComparedSeries,
    Comparison,
    Entry,
    Fault,
    NotRun,
    Outcome,
    RunRecord,
    SeriesVerdict,
    Verdict,
    bench_of,
)
from hil.thresholds.types import Thresholds


def judge(
    entries: Sequence[Entry],
    thresholds: Mapping[str, Thresholds],
    planned: Mapping[tuple[str, str], int] | None = None,
) -> Verdict:
    """Judge the entries of one run's journal.

    ``planned`` says in how many boots each (board, case id) was to be measured: what is missing, the verdict
    says.

    Raises:
        ConfigError: a bench without thresholds, a column that a metric needs is absent, two limits match
            and neither is more specific, two records of one boot, records of several runs, a comparison that
            stands there twice.
    """
    run_id = check_entries(entries)
    said = [entry for entry in entries if isinstance(entry, NotRun)]
    not_run = (*said, *_unmeasured(run_id, entries, planned or {}))
    family = family_of(entries, thresholds)
    series = _judge_limits(entries, thresholds, family)
    compared = _judge_comparisons(entries, thresholds, family)
    faults = (*(entry for entry in entries if isinstance(entry, Fault)), *_faults_of_benches(run_id, series))
    strict = any(thresholds[bench].policy.on_inconclusive == "fail" for bench in _benches(series, compared))
    return conclude(run_id, series, faults, not_run, compared, fail_inconclusive=strict)


def check_entries(entries: Sequence[Entry]) -> str:
    """Return the id of the one run that the entries are of. Raises ConfigError as judge() does."""
    run_id = _only_run(entries)
    _reject_duplicates([entry for entry in entries if isinstance(entry, RunRecord)])
    compared = Counter(
        (entry.image, board) for entry in entries if isinstance(entry, Comparison) for board in entry.boards
    )
    for (image, board), times in compared.items():
        if times > 1:
            raise ConfigError(
                f"the journal holds {times} comparisons of {image} on board {board}; one was expected.",
                next_step="delete the line that does not belong there.",
            )
    return run_id


def _unmeasured(
    run_id: str, entries: Sequence[Entry], planned: Mapping[tuple[str, str], int]
) -> Iterator[NotRun]:
    """Yield what was planned and is neither measured nor said to be not: the run was killed before it."""
    said = {(entry.board, entry.case_id) for entry in entries if isinstance(entry, NotRun)}
    measured = Counter(
        (entry.board, entry.case_id)
        for entry in entries
        if isinstance(entry, RunRecord) and entry.role == "candidate"
    )
    for (board, case_id), boots in planned.items():
        missing = boots - measured[board, case_id]
        if missing > 0 and (board, case_id) not in said:
            counted = f"in {missing} of {boots} boots: " if missing < boots else ""
            yield NotRun(run_id, board, case_id, f"{counted}the run ended before it", "ended")


def _faults_of_benches(run_id: str, series: Sequence[SeriesVerdict]) -> Iterator[Fault]:
    """Yield a fault for each figure that no firmware can measure."""
    for item in series:
        if item.cause == IMPOSSIBLE:
            sentence = (
                f"{item.sentence} Next: correct what the bench measures, or give the metric "
                "'scale: identity' where it may be negative."
            )
            yield Fault(run_id, "firmware", int(ExitCode.FIRMWARE), sentence, item.board, item.case_id)


def find(unit: Unit, family: Family) -> Finding:
    """Return what a comparison comes to, with its share of alpha. Raises ConfigError as judge() does."""
    if not unit.blocking:
        return advise(unit)
    return compare(unit, unit.thresholds.policy.alpha * family.comparison)


def _judge_limits(
    entries: Sequence[Entry], thresholds: Mapping[str, Thresholds], family: Family
) -> tuple[SeriesVerdict, ...]:
    """Judge the candidate's series by absolute limits; comparisons leave them their share of alpha."""
    records = [entry for entry in entries if isinstance(entry, RunRecord) and entry.role == "candidate"]
    decisions = _decisions(records, thresholds)
    limited = Counter(decision.blocking for decision in decisions if decision.limit is not None)
    return tuple(
        decide(item, family=max(1, limited[item.blocking]) / (family.limits if item.blocking else 1.0))
        for item in decisions
    )


def _judge_comparisons(
    entries: Sequence[Entry], thresholds: Mapping[str, Thresholds], family: Family
) -> Compared:
    comparisons = sorted(
        (entry for entry in entries if isinstance(entry, Comparison)), key=lambda one: (one.image, one.boards)
    )
    units = [unit for comparison in comparisons for unit in units_of(comparison, entries, thresholds)]
    findings = [_with_reason(find(unit, family), entries) for unit in units]
    series, drifts = _with_advice(findings), drifts_of(units)
    boots = {
        (entry.board, entry.boot_index)
        for entry in entries
        if isinstance(entry, RunRecord) and any(entry.board in one.boards for one in comparisons)
    }
    return Compared(
        series=with_drifts(series, drifts),
        drifting=warnings_of(series, drifts),
        boots=len(boots),
        identical=tuple(one.image for one in comparisons if one.identical),
        images=len(comparisons),
        not_compared=without_comparison(entries),
    )


def _with_reason(found: Finding, entries: Sequence[Entry]) -> Finding:
    """Say what the journal knows: why the other has no boot, why an undecided comparison was left."""
    if found.outcome == "no-baseline" and (why := why_not_compared(found.unit, entries)):
        return replace(found, reason=why)
    if found.final or found.reason == NOTHING_MEASURED:
        return found
    return found.ending(why_ended(found.unit, entries, found.look))


def _with_advice(findings: Sequence[Finding]) -> tuple[ComparedSeries, ...]:
    """Judge all advice together by Benjamini and Hochberg's procedure, and write everything down."""
    judged = [found for found in findings if not found.unit.blocking and found.p is not None]
    seen = dict(zip(map(id, judged), discoveries([found.p or 0.0 for found in judged]), strict=True))
    items = []
    for found in findings:
        item = compared_series(found)
        if id(found) in seen and found.outcome not in ("no-baseline", "inconclusive"):
            outcome = _advice_outcome(found, is_seen=seen[id(found)])
            item = with_outcome(item, outcome, found.unit.comparison.run_id)
        items.append(item)
    return tuple(items)


def _advice_outcome(found: Finding, *, is_seen: bool) -> Outcome:
    if not is_seen or found.numbers is None:
        return "pass"
    return "regressed" if found.numbers.difference > 0 else "improved"


def _benches(series: Sequence[SeriesVerdict], compared: Compared) -> set[str]:
    case_ids = [*(item.case_id for item in series), *(item.case_id for item in compared.series)]
    return set(map(bench_of, case_ids))


def _only_run(entries: Sequence[Entry]) -> str:
    run_ids = sorted({entry.run_id for entry in entries})
    if len(run_ids) > 1:
        raise ConfigError(f"the journal holds entries of several runs: {', '.join(run_ids)}.")
    return run_ids[0] if run_ids else ""


def _reject_duplicates(records: Sequence[RunRecord]) -> None:
    counted = Counter((record.rack, record.board, record.boot_index, record.case_id) for record in records)
    for (_, board, boot, case_id), times in counted.items():
        if times > 1:
            raise ConfigError(
                f"the journal holds {times} records of {case_id} on {board}, boot {boot}; one was expected.",
                next_step="delete the line that does not belong there; records are never averaged.",
            )


def _decisions(records: Sequence[RunRecord], thresholds: Mapping[str, Thresholds]) -> list[Decision]:
    """Return one decision a (board, case, metric), in an order that does not depend on the journal's."""
    groups: dict[tuple[str, str, str], list[RunRecord]] = {}
    for record in sorted(records, key=lambda record: record.boot_index):
        groups.setdefault((record.rack, record.board, record.case_id), []).append(record)
    found = []
    for key in sorted(groups):
        bench = groups[key][0].bench
        if bench not in thresholds:
            raise ConfigError(
                f"bench {bench!r} has no thresholds.", next_step=f"write thresholds/{bench}.yaml."
            )
        own = thresholds[bench]
        found += [
            prepare(metric, tuple(groups[key]), own) for metric in own.metrics_of(groups[key][0].parameters)
        ]
    return found

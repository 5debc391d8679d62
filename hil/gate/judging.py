# SPDX-License-Identifier: Apache-2.0
"""The gate: a pure function from records and thresholds to a verdict.

The same input gives the same bytes. ``alpha`` is shared out: with m blocking decisions in the run each may be
wrong with probability alpha/m, so that at most the share alpha of clean runs is blocked; where the run has
both comparisons and absolute limits, each kind has half. See
docs/explain/gate.md and docs/explain/comparisons.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hil.base.errors import ConfigError, ExitCode
from hil.gate.comparing import NOTHING_MEASURED, compare
from hil.gate.limits import IMPOSSIBLE, Decision, decide, prepare
from hil.gate.pairs import ComparedPair, cases_of, may_be_limited, may_block, pairs_of, thresholds_of
from hil.gate.series import Found
from hil.gate.words.compared import Compared
from hil.gate.words.comparisons import describe
from hil.gate.words.conclusion import conclude
from hil.gate.words.undecided import why_ended, why_not_compared, without_comparison
from hil.model import (
    ComparedSeries,
    Comparison,
    Entry,
    Fault,
    NoBase,
    NotRun,
    RunRecord,
    SeriesVerdict,
    Verdict,
    format_product,
)
from hil.thresholds.types import Thresholds

FALSE_DISCOVERY_RATE = 0.05
_BOTH = 0.5  # of alpha, where a run has comparisons and absolute limits


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
            and neither is more specific, two records of one boot, records of several runs or products, a
            comparison that stands there twice.
    """
    run_id = check_entries(entries)
    said = [entry for entry in entries if isinstance(entry, NotRun)]
    not_run = (*said, *_unmeasured(run_id, said, entries, planned or {}))
    family = family_of(entries, thresholds)
    pairs = _pairs(entries, thresholds)
    series = _judge_limits(entries, thresholds, family, pairs)
    compared = _judge_comparisons(entries, pairs, family)
    faults = (*(entry for entry in entries if isinstance(entry, Fault)), *_faults_of_benches(run_id, series))
    strict = {bench for bench, own in thresholds.items() if own.policy.on_undecided == "fail"}
    return conclude(run_id, series, faults, not_run, compared, strict=strict)


def check_entries(entries: Sequence[Entry]) -> str:
    """Return the id of the one run that the entries are of. Raises ConfigError as judge() does."""
    run_id = _only_run(entries)
    _only_product(entries)
    _reject_duplicates([entry for entry in entries if isinstance(entry, RunRecord)])
    compared = Counter(
        (entry.image, board) for entry in entries if isinstance(entry, Comparison) for board in entry.boards
    )
    for (image, board), times in compared.items():
        if times > 1:
            raise ConfigError(
                f"the journal holds {times} comparisons of {image} on board {board}; one was expected.",
                next_step="delete the wrong line.",
            )
    return run_id


def _unmeasured(
    run_id: str, told: Sequence[NotRun], entries: Sequence[Entry], planned: Mapping[tuple[str, str], int]
) -> Iterator[NotRun]:
    """Yield what was planned and is neither measured nor said to be not: the run was killed before it.

    What was handed over is looked for on the board that has it last.
    """
    handed = {(entry.board, entry.case_id): entry.to for entry in told if entry.cause == "handed-over"}
    said = {(entry.board, entry.case_id) for entry in told if entry.cause != "handed-over"}
    measured = Counter(
        (entry.board, entry.case_id)
        for entry in entries
        if isinstance(entry, RunRecord) and entry.role == "candidate"
    )
    for (first, case_id), boots in planned.items():
        board = first
        while (board, case_id) in handed:
            board = handed.pop((board, case_id))
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


def _pairs(entries: Sequence[Entry], thresholds: Mapping[str, Thresholds]) -> list[ComparedPair]:
    """Return what is compared in a run, in an order that does not depend on the journal's."""
    found = [entry for entry in entries if isinstance(entry, Comparison)]
    ordered = sorted(found, key=lambda one: (one.image, one.boards))
    return [pair for comparison in ordered for pair in pairs_of(comparison, entries, thresholds)]


def _judge_limits(
    entries: Sequence[Entry],
    thresholds: Mapping[str, Thresholds],
    family: Family,
    pairs: Sequence[ComparedPair],
) -> tuple[SeriesVerdict, ...]:
    """Judge the candidate's series by absolute limits; comparisons leave them their share of alpha."""
    records = [entry for entry in entries if isinstance(entry, RunRecord) and entry.role == "candidate"]
    compared = {
        (board, pair.case.case_id, pair.metric.name)
        for pair in pairs
        if pair.blocking
        for board in pair.comparison.boards
    }
    decisions = _decisions(records, thresholds, compared)
    limited = Counter(
        decision.blocking
        for decision in decisions
        if decision.limit is not None and not decision.metric.exact
    )
    return tuple(
        decide(item, family=max(1, limited[item.blocking]) / (family.limits if item.blocking else 1.0))
        for item in decisions
    )


def _judge_comparisons(entries: Sequence[Entry], pairs: Sequence[ComparedPair], family: Family) -> Compared:
    comparisons = [entry for entry in entries if isinstance(entry, Comparison)]
    found = [_ended(find(pair, family), pair, entries) for pair in pairs]
    items = tuple(
        replace(item, sentence=describe(item, pair.comparison.run_id))
        for item, pair in zip(_with_advice(found), pairs, strict=True)
    )
    boots = {
        (entry.board, entry.boot_index)
        for entry in entries
        if isinstance(entry, RunRecord) and any(entry.board in one.boards for one in comparisons)
    }
    return Compared(
        series=items,
        boots=len(boots),
        identical=tuple(sorted(one.image for one in comparisons if one.identical)),
        images=len(comparisons),
        not_compared=without_comparison(entries),
        no_base=next((entry for entry in entries if isinstance(entry, NoBase)), None),
    )


def find(pair: ComparedPair, family: Family) -> Found:
    """Return what a comparison comes to, with its share of alpha. Raises ConfigError as judge() does."""
    return compare(pair, pair.thresholds.policy.alpha * family.comparison)


def _ended(found: Found, pair: ComparedPair, entries: Sequence[Entry]) -> Found:
    """Return the journal's reasons: why the other has no boot, why an undecided comparison was stopped."""
    item = found.series
    if item.outcome == "no-baseline" and (why := why_not_compared(pair, entries)):
        return found._replace(series=replace(item, reason=why))
    if item.outcome != "undecided" or item.reason == NOTHING_MEASURED:
        return found
    reason = why_ended(pair, entries, item, final=found.final)
    return found._replace(series=replace(item, reason=reason))


def _with_advice(found: Sequence[Found]) -> list[ComparedSeries]:
    """Judge all advice together by Benjamini and Hochberg's procedure."""
    advice = [number for number, one in enumerate(found) if not one.series.blocking and math.isfinite(one.p)]
    seen = dict(zip(advice, discoveries([found[number].p for number in advice]), strict=True))
    items = [one.series for one in found]
    for number, is_seen in seen.items():
        item = items[number]
        if item.outcome == "pass" and is_seen and item.change is not None:
            worse = (item.change > 0) == (item.direction == "lower")
            items[number] = replace(item, outcome="regressed" if worse else "improved")
    return items


@dataclass(frozen=True)
class Family:
    """The share of a policy's alpha that one blocking comparison has, and that all blocking limits have."""

    comparison: float = 1.0
    limits: float = 1.0


def family_of(entries: Sequence[Entry], thresholds: Mapping[str, Thresholds]) -> Family:
    """Share out alpha among the blocking decisions of a run.

    What it is divided by is known before anything is measured, so that a decision made early still stands at
    the end: every pair counts that a rule or a limit may make blocking. Raises ConfigError as pairs_of()
    does.
    """
    compared, limited = 0, False
    for comparison in (entry for entry in entries if isinstance(entry, Comparison)):
        if comparison.identical:
            continue
        for case in cases_of(comparison, entries, thresholds).values():
            own = thresholds[case.bench]
            for metric in own.metrics_of(case.parameters):
                if not metric.exact:  # a fact is not wrong by chance
                    compared += may_block(comparison, case, metric, own)
                    limited = limited or may_be_limited(comparison, case, metric, own)
    if not compared:
        return Family()
    share = _BOTH if limited else 1.0
    return Family(comparison=share / compared, limits=share)


def discoveries(p_values: Sequence[float]) -> list[bool]:
    """Return which p values are discoveries (Benjamini & Hochberg 1995): that share is false on average."""
    ordered = sorted(p_values)
    below = [p for rank, p in enumerate(ordered, start=1) if p <= FALSE_DISCOVERY_RATE * rank / len(ordered)]
    last = max(below, default=-1.0)
    return [p <= last for p in p_values]


def open_cases(
    comparison: Comparison, entries: Sequence[Entry], thresholds: Mapping[str, Thresholds]
) -> frozenset[str]:
    """Return the case ids of which a blocking comparison is undecided, as the boot loop asks after each look.

    ``entries`` are those of the run so far, all its comparisons among them. A case is asked again with what
    is known; decisions do not change any more. Raises ConfigError as judge() does.
    """
    entries = entries if comparison in entries else [comparison, *entries]
    check_entries(entries)
    if comparison.identical:
        return frozenset()
    family = family_of(entries, thresholds)
    return frozenset(
        pair.case.case_id
        for pair in pairs_of(comparison, entries, thresholds)
        if pair.blocking and not find(pair, family).final
    )


def _only_run(entries: Sequence[Entry]) -> str:
    run_ids = sorted({entry.run_id for entry in entries})
    if len(run_ids) > 1:
        raise ConfigError(f"the journal holds entries of several runs: {', '.join(run_ids)}.")
    return run_ids[0] if run_ids else ""


def _only_product(entries: Sequence[Entry]) -> None:
    found = sorted({entry.product for entry in entries if isinstance(entry, RunRecord | Comparison)})
    if len(found) > 1:
        raise ConfigError(
            f"the journal holds figures of {' and '.join(map(format_product, found))}, which "
            "cannot be compared with each other.",
            next_step="measure each product in its own run, with a base of the same product.",
        )


def _reject_duplicates(records: Sequence[RunRecord]) -> None:
    counted = Counter((record.rack, record.board, record.boot_index, record.case_id) for record in records)
    for (_, board, boot, case_id), times in counted.items():
        if times > 1:
            raise ConfigError(
                f"the journal holds {times} records of {case_id} on {board}, boot {boot}; one was expected.",
                next_step="delete the wrong line; records are never averaged.",
            )


def _decisions(
    records: Sequence[RunRecord],
    thresholds: Mapping[str, Thresholds],
    compared: Collection[tuple[str, str, str]],
) -> list[Decision]:
    """Return one decision a (board, case, metric), in an order that does not depend on the journal's."""
    groups: dict[tuple[str, str, str], list[RunRecord]] = {}
    for record in sorted(records, key=lambda record: record.boot_index):
        groups.setdefault((record.rack, record.board, record.case_id), []).append(record)
    found = []
    for key in sorted(groups):
        _rack, board, case_id = key
        own = thresholds_of(groups[key][0].bench, thresholds)
        found += [
            prepare(
                metric,
                tuple(filter(metric.is_in, groups[key])),
                own,
                is_compared=(board, case_id, metric.name) in compared,
            )
            for metric in own.metrics_of(groups[key][0].parameters, groups[key])
        ]
    return found

"""One series: what is decided about it, by which limit, whether it may block, and the decision.

A limit is broken when the interval of the metric, not merely its value, lies beyond it. A mean never blocks:
its interval takes samples for independent, which samples that follow one another are not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hil.gate import sentences
from hil.model import Outcome, RunRecord, Scalar, SeriesVerdict, format_series_id
from hil.stats import ratio_interval
from hil.thresholds import metrics
from hil.thresholds.limits import Limit, series_facts
from hil.thresholds.metrics import Estimate, Metric
from hil.thresholds.types import Thresholds
from hil.units import convert, find_unit

_SIGNIFICANT_DIGITS = 6
_NEVER_BLOCKING = ("mean", "max")
_REAL_TIME_SCHEDULERS = ("fifo", "freertos")


@dataclass(frozen=True)
class Decision:
    """One series before it is judged: what is decided, by which limit, and whether it may block."""

    metric: Metric
    records: tuple[RunRecord, ...]
    thresholds: Thresholds
    limit: Limit | None
    blocking: bool
    reason: str

    @property
    def first(self) -> RunRecord:
        return self.records[0]

    @property
    def series_id(self) -> str:
        return format_series_id(self.first.rack, self.first.board, self.first.case_id, self.metric.name)

    @property
    def case_label(self) -> str:
        return self.thresholds.case_label(self.first.parameters)

    @property
    def subject(self) -> str:
        return sentences.subject(self.metric, self.case_label, self.first.board, self.first.kind)


def prepare(metric: Metric, records: tuple[RunRecord, ...], thresholds: Thresholds) -> Decision:
    """Look up what applies to one metric of one case on one board; ``records`` hold one a boot."""
    first = records[0]
    facts = series_facts(
        metric.name,
        first.parameters,
        kind=first.kind,
        rack=first.rack,
        target=first.target,
        board=first.board,
    )
    reason = _why_advice(metric, records, thresholds, facts) if metric.blocking else ""
    return Decision(
        metric, records, thresholds, thresholds.limit_for(facts), metric.blocking and not reason, reason
    )


def _why_advice(
    metric: Metric, records: tuple[RunRecord, ...], thresholds: Thresholds, facts: Mapping[str, Scalar]
) -> str:
    """Say why a blocking metric does not block here; "" where it does."""
    advice = thresholds.advice_for(facts)
    if advice is not None:
        return f"advice: {advice.why} ({advice.source})"
    suppression = thresholds.suppression_for(facts)
    if suppression is not None:
        until = f"until {suppression.expires}, {suppression.issue}: {suppression.reason}"
        return f"suppressed {until} ({suppression.source})"
    if metric.statistic in _NEVER_BLOCKING:
        return f"advice: {metric.statistic} has no interval that one stall cannot move, so it does not block"
    schedulers = {str(record.environment.get("device", {}).get("sched", "")) for record in records}
    wrong = sorted(schedulers - {"", *_REAL_TIME_SCHEDULERS})
    if metric.unit.dimension == "time" and records[0].kind == "virtual" and wrong:
        return (
            f"advice: the virtual board had no real-time priority (sched={wrong[0]}), so times do not block"
        )
    return ""


def decide(decision: Decision, *, family: int) -> SeriesVerdict:
    """Judge one series; ``family`` is among how many decisions alpha is shared out."""
    samples = metrics.count_samples(decision.metric, decision.records)
    reason = _why_not_combined(decision) or ("nothing was measured" if samples == 0 else "")
    if reason:
        return _undecided(decision, None, reason)
    alpha = decision.thresholds.policy.alpha / family
    seed_text = f"{decision.first.run_id}/{decision.series_id}"
    estimate = metrics.estimate(decision.metric, decision.records, alpha=alpha, seed_text=seed_text)
    wanted = decision.thresholds.policy.min_samples
    if samples < wanted:
        reason = f"too few samples, {samples} of at least {wanted} ({decision.thresholds.source})"
        return _undecided(decision, estimate, reason)
    if decision.limit is None:
        return _without_limit(decision, estimate)
    return _judge_limit(decision, estimate, decision.limit, alpha)


def _why_not_combined(decision: Decision) -> str:
    """Say in what the boots differ that must be the same, or ""."""
    for name in ("firmware_sha256", "ruler_hash", "target"):
        values = sorted({str(getattr(record, name)) for record in decision.records})
        if len(values) > 1:
            return f"its boots differ in {name} ({values[0]:.12} and {values[1]:.12})"
    return ""


def _judge_limit(decision: Decision, estimate: Estimate, limit: Limit, alpha: float) -> SeriesVerdict:
    metric, boots = decision.metric, len(decision.records)
    bound = estimate.low if limit.bound == "max" else estimate.high
    if sentences.is_beyond(bound, limit):
        sentence = sentences.broken(decision.subject, metric, estimate, limit, boots)
        return _verdict(decision, estimate, "regressed", sentence, cause="limit")
    excess = _smallest_excess(metric, estimate, limit, alpha)
    sentence = sentences.kept(decision.subject, metric, estimate, limit, boots, excess)
    note = "marginal" if sentences.is_beyond(estimate.value, limit) else ""
    verdict = _verdict(decision, estimate, "pass", sentence, cause="limit")
    return replace(verdict, note=note, smallest_excess=_rounded(excess))


def _smallest_excess(metric: Metric, estimate: Estimate, limit: Limit, alpha: float) -> float | None:
    """Return how far beyond the limit a value like this one had to lie to be seen; None where unknown.

    For a ratio: the fewest failures, each by itself, in as many samples whose interval lies beyond the limit.
    Otherwise the same samples, stretched until the bound of their interval touches the limit.
    """
    if metric.statistic == "ratio":
        share = find_unit("ratio")
        hits = _fewest_hits(estimate.samples, convert(limit.value, metric.unit, share), alpha)
        return None if hits is None else convert(hits / estimate.samples, share, metric.unit) - limit.value
    bound = estimate.low if limit.bound == "max" else estimate.high
    if estimate.at_least or not math.isfinite(bound) or min(bound, estimate.value, limit.value) <= 0:
        return None
    return abs(limit.value * (estimate.value / bound - 1.0))


def _fewest_hits(samples: int, limit: float, alpha: float) -> int | None:
    first = math.floor(limit * samples)
    hits = range(max(first, 0), samples + 1)
    return next((count for count in hits if ratio_interval(count, samples, alpha).low > limit), None)


def _without_limit(decision: Decision, estimate: Estimate) -> SeriesVerdict:
    value = sentences.measured(decision.metric, estimate)
    counted = sentences.counted(estimate, len(decision.records))
    sentence = f"{decision.subject}: {value}, {counted}; no limit and no baseline to compare it with"
    return _verdict(decision, estimate, "no-baseline", sentence)


def _undecided(decision: Decision, estimate: Estimate | None, reason: str) -> SeriesVerdict:
    value = f"{sentences.measured(decision.metric, estimate)}, " if estimate else ""
    sentence = f"{decision.subject}: {value}no verdict, {reason}"
    return replace(_verdict(decision, estimate, "inconclusive", sentence), reason=reason)


def _verdict(
    decision: Decision, estimate: Estimate | None, outcome: Outcome, sentence: str, *, cause: str = ""
) -> SeriesVerdict:
    first, limit = decision.first, decision.limit
    advice = f"; {decision.reason}" if decision.reason else ""
    return SeriesVerdict(
        series_id=decision.series_id,
        board=first.board,
        kind=first.kind,
        target=first.target,
        case_id=first.case_id,
        metric=decision.metric.name,
        unit=decision.metric.unit.name,
        outcome=outcome,
        blocking=decision.blocking,
        sentence=f"{sentence}{advice}.",
        value=_rounded(estimate.value) if estimate else None,
        low=_rounded(estimate.low) if estimate else None,
        high=_rounded(estimate.high) if estimate else None,
        limit=_rounded(limit.value) if limit else None,
        limit_source=limit.source if limit else "",
        limit_why=limit.why if limit else "",
        cause=cause,
        samples=estimate.samples if estimate else 0,
        boots=len(decision.records),
        failed=estimate.failed if estimate else 0,
        case_label=decision.case_label,
        direction=decision.metric.direction,
        at_least=estimate.at_least if estimate else False,
        reason=decision.reason,
    )


def _rounded(value: float | None) -> float | None:
    """Return six significant digits, so that the last bits of a library do not change a verdict's bytes."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}")

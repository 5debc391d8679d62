# SPDX-License-Identifier: Apache-2.0
"""A series against its absolute limit: which limit holds, whether it may block, and the decision.

A limit is broken when the interval of the metric, not merely its value, lies beyond it. A mean never blocks:
its interval takes samples for independent, which samples that follow one another are not; the mean of batches
may. Nor does the largest or smallest of samples, unless they are exact figures, which are no samples.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hil.base.units import convert, find_unit
from hil.gate.surroundings import HARDLY_HEARD, hears_its_access_point, too_weak
from hil.gate.words import limits as sentences
from hil.gate.words.limits import rounded
from hil.metrics import evaluation as metrics
from hil.metrics.evaluation import Estimate
from hil.metrics.metric import Metric
from hil.metrics.stats import FEWEST_ROWS, ratio_interval
from hil.metrics.values import Voids, count_voids
from hil.model import Outcome, RunRecord, Scalar, SeriesVerdict, format_series_id
from hil.thresholds.limits import Limit, most_specific, series_facts
from hil.thresholds.types import Thresholds

IMPOSSIBLE = "impossible"  # the cause of what no firmware can measure: the bench is wrong
_IMPOSSIBLE = "the figure cannot be below zero, so the bench is wrong"
_SAME_IN_ALL_BOOTS = ("firmware_sha256", "ruler_hash", "target")
_NEVER_BLOCKING = ("mean", "max", "min")
_REAL_TIME_SCHEDULERS = ("fifo", "freertos")
_OF_A_CLOCK = ("time", "rate", "frequency", "cycles")  # which an emulated chip has of no chip


@dataclass(frozen=True)
class Decision:
    """One series before it is judged: what is decided, by which limit, and whether it may block.

    Where it has no limit and a comparison decides, its value has no interval: that of the change counts.
    """

    metric: Metric
    records: tuple[RunRecord, ...]
    thresholds: Thresholds
    limit: Limit | None
    blocking: bool
    reason: str
    is_compared: bool = False

    @property
    def first(self) -> RunRecord:
        return self.records[0]

    @property
    def series_id(self) -> str:
        first = self.first
        return format_series_id(first.rack, first.board, first.case_id, self.metric.name, first.product)

    @property
    def clock(self) -> str:
        """By what the metric's times were taken; the bench's own clock where the file does not say."""
        return self.metric.clock or (self.first.clock if self.metric.unit.dimension == "time" else "")

    @functools.cached_property
    def voids(self) -> Voids:
        return count_voids(self.metric, self.records)

    @property
    def case_label(self) -> str:
        return self.thresholds.case_label(self.first.parameters)

    @property
    def subject(self) -> str:
        first = self.first
        return sentences.subject(self.metric.name, first.bench, self.case_label, first.board, first.kind)


def prepare(
    metric: Metric, records: tuple[RunRecord, ...], thresholds: Thresholds, *, is_compared: bool = False
) -> Decision:
    """Look up what applies to one metric of one case on one board; ``records`` hold one a boot."""
    facts = facts_of(metric, records[0])
    limit = most_specific(thresholds.limits, facts)
    if limit is not None and limit.is_none:
        why = f"advice: {limit.why} ({limit.source})" if metric.blocking else ""
        return Decision(metric, records, thresholds, None, False, why, is_compared)
    may_block = metric.blocking and not (metric.is_metered and limit is None)
    metric = _extreme(metric) if limit and limit.each else metric
    reason = why_advice(metric, records, thresholds, facts) if may_block else ""
    return Decision(metric, records, thresholds, limit, may_block and not reason, reason, is_compared)


def _extreme(metric: Metric) -> Metric:
    """Return the metric's worst value as a fact: what a limit of each value is about."""
    return replace(metric, statistic="max" if metric.direction == "lower" else "min", scale="exact")


def decide(decision: Decision, *, family: float) -> SeriesVerdict:
    """Judge one series; ``family`` is among how many decisions alpha is shared out."""
    samples = metrics.count_samples(decision.metric, decision.records)
    nothing = "every sample is void" if decision.voids.rows else "nothing was measured"
    reason = _why_not_combined(decision) or (nothing if samples == 0 else "")
    if reason:
        return _undecided(decision, None, reason)
    alpha = decision.thresholds.policy.alpha / family
    seed_text = f"{decision.first.run_id}/{decision.series_id}"
    bounded = decision.limit is not None or decision.metric.exact or not decision.is_compared
    level = alpha if bounded else None
    estimate = metrics.estimate(decision.metric, decision.records, alpha=level, seed_text=seed_text)
    if _is_impossible(decision, estimate):
        return replace(_undecided(decision, estimate, _IMPOSSIBLE), cause=IMPOSSIBLE)
    reason = _why_too_few(decision, estimate, samples)
    if reason:
        return _undecided(decision, estimate, reason)
    if decision.limit is None:
        return _without_limit(decision, estimate)
    if _stood_still(decision.metric, estimate, decision.limit):
        reason = "the stream stood still for (nearly) the whole measured stretch, which is one observation"
        return _undecided(decision, estimate, reason)
    verdict = _judge_limit(decision, estimate, decision.limit, alpha)
    if verdict.outcome == "regressed" and decision.blocking and not decision.metric.exact:
        return _unless_hardly_heard(decision, verdict, family)
    return verdict


def _unless_hardly_heard(decision: Decision, verdict: SeriesVerdict, family: float) -> SeriesVerdict:
    """Return the verdict of a broken limit; undecided where only boots broke it that had hardly a link."""
    reason = too_weak(decision.records)
    if not reason:
        return verdict
    sound = tuple(filter(hears_its_access_point, decision.records))
    if sound and decide(replace(decision, records=sound), family=family).outcome == "regressed":
        return verdict
    sentence = f"{verdict.sentence[:-1]}; no verdict, {reason}."
    return replace(verdict, outcome="undecided", sentence=sentence, reason=reason, cause=HARDLY_HEARD)


def _is_impossible(decision: Decision, estimate: Estimate) -> bool:
    """Return whether a figure that may decide lies below zero, though its scale has nothing there."""
    if decision.limit and decision.limit.each:
        return False
    decides = decision.metric.blocking or decision.metric.compared or decision.limit is not None
    return decides and estimate.value < 0 and decision.metric.scale != "identity"


def _why_too_few(decision: Decision, estimate: Estimate, samples: int) -> str:
    """Explain why there are too few samples to judge, or return "".

    A failure where none is allowed is a fact, whatever else was void.
    """
    policy, source = decision.thresholds.policy, decision.thresholds.source
    if decision.voids.ratio > policy.max_void_ratio and not (_allows_none(decision) and estimate.failed):
        return f"more than {policy.max_void_ratio * 100:g} % of the samples are void ({source})"
    is_fact = _allows_none(decision) or decision.metric.is_metered or (decision.limit and decision.limit.each)
    if samples < policy.min_samples and not is_fact:
        return f"too few samples, {samples} of at least {policy.min_samples} ({source})"
    return ""


def _allows_none(decision: Decision) -> bool:
    """Return whether no failure at all is allowed: then each is a fact, however few rows there are."""
    return decision.metric.statistic == "ratio" and decision.limit is not None and decision.limit.value == 0


def _stood_still(metric: Metric, estimate: Estimate, limit: Limit) -> bool:
    """Return whether one stall alone leaves a mean below its limit without an upper bound."""
    return (
        metric.statistic == "batch_mean"
        and estimate.samples >= FEWEST_ROWS
        and math.isinf(estimate.high)
        and not estimate.at_least
        and sentences.is_beyond(estimate.value, limit)
    )


def _why_not_combined(decision: Decision) -> str:
    """Describe what differs between the boots but must be the same, or return ""."""
    facts = {name: [str(getattr(record, name)) for record in decision.records] for name in _SAME_IN_ALL_BOOTS}
    for name, found in {**facts, "air": [air_of(record) for record in decision.records]}.items():
        values = sorted(set(found))
        if len(values) > 1:
            return f"its boots differ in {name} ({values[0]:.12} and {values[1]:.12})"
    return ""


def _judge_limit(decision: Decision, estimate: Estimate, limit: Limit, alpha: float) -> SeriesVerdict:
    metric, count = decision.metric, _counted(decision, estimate)
    bound = estimate.low if limit.bound == "max" else estimate.high
    if sentences.is_beyond(bound, limit):
        sentence = sentences.broken(decision.subject, metric, estimate, limit, count)
        return _verdict(decision, estimate, "regressed", sentence, cause="limit")
    excess = _smallest_excess(metric, estimate, limit, alpha)
    sentence = sentences.kept(decision.subject, metric, estimate, limit, count, excess)
    note = "marginal" if sentences.is_beyond(estimate.value, limit) else ""
    verdict = _verdict(decision, estimate, "pass", sentence, cause="limit")
    return replace(verdict, note=note, smallest_excess=rounded(excess))


def _smallest_excess(metric: Metric, estimate: Estimate, limit: Limit, alpha: float) -> float | None:
    """Return how far beyond the limit a value like this one had to lie to be seen; None where unknown.

    For a share: the fewest failures in as many trials whose interval lies beyond the limit, each by itself
    where they are rows, else as unevenly spread as these. Otherwise the same samples, stretched until the
    bound of their interval touches the limit. Of an exact figure every excess is seen.
    """
    if metric.exact:
        return None
    if metric.statistic in ("ratio", "share"):
        effect = estimate.effect if metric.statistic == "share" else 1.0
        share = find_unit("ratio")
        hits = _fewest_hits(estimate.samples, convert(limit.value, metric.unit, share), alpha, effect)
        return None if hits is None else convert(hits / estimate.samples, share, metric.unit) - limit.value
    bound = estimate.low if limit.bound == "max" else estimate.high
    if estimate.at_least or not math.isfinite(bound) or min(bound, estimate.value, limit.value) <= 0:
        return None
    return abs(limit.value * (estimate.value / bound - 1.0))


def _fewest_hits(samples: int, limit: float, alpha: float, effect: float) -> int | None:
    """Return the fewest hits that prove a share above ``limit``. The bound grows with the hits."""

    def is_proven(hits: int) -> bool:
        return ratio_interval(hits, samples, alpha, effect).low > limit

    first = bisect.bisect_left(
        range(samples + 1), True, lo=max(0, math.floor(limit * samples)), key=is_proven
    )
    return first if first <= samples else None


def _without_limit(decision: Decision, estimate: Estimate) -> SeriesVerdict:
    value = sentences.measured(decision.metric, estimate)
    counted = _counted(decision, estimate)
    why = why_no_limit(decision.metric, decision.first, decision.thresholds)
    why = "no limit, but a comparison that may block" if decision.is_compared else why
    sentence = f"{decision.subject}: {value}, {counted}; {why}"
    return _verdict(decision, estimate, "no-baseline", sentence)


def _counted(decision: Decision, estimate: Estimate) -> str:
    return sentences.counted(decision.metric, estimate, len(decision.records), decision.clock)


def _undecided(decision: Decision, estimate: Estimate | None, reason: str) -> SeriesVerdict:
    value = f"{sentences.measured(decision.metric, estimate)}, " if estimate else ""
    sentence = f"{decision.subject}: {value}no verdict, {reason}"
    return replace(_verdict(decision, estimate, "undecided", sentence), reason=reason)


def _verdict(
    decision: Decision, estimate: Estimate | None, outcome: Outcome, sentence: str, *, cause: str = ""
) -> SeriesVerdict:
    first, limit = decision.first, decision.limit
    shown = float if decision.metric.exact else rounded  # of an exact figure each byte counts
    voids = decision.voids
    remarks = (sentences.void(voids.rows, voids.of, voids.host_late_us), decision.reason)
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
        sentence=f"{'; '.join(filter(None, (sentence, *remarks)))}.",
        value=shown(estimate.value) if estimate else None,
        low=shown(estimate.low) if estimate else None,
        high=shown(estimate.high) if estimate else None,
        limit=shown(limit.value) if limit else None,
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
        clock=decision.clock,
        void=voids.rows,
        host_late_us=voids.host_late_us,
    )


def facts_of(metric: Metric, record: RunRecord) -> dict[str, Scalar]:
    """Return what the conditions of limits, advice and suppressions are compared with."""
    return series_facts(
        metric.name,
        record.parameters,
        kind=record.kind,
        rack=record.rack,
        target=record.target,
        board=record.board,
        air=air_of(record),
        product=record.product,
    )


def air_of(record: RunRecord) -> str:
    """Return the profile of the virtual air that a record was measured on; "" where there was none."""
    return str(record.environment.get("access_point", {}).get("profile", ""))


def why_advice(
    metric: Metric, records: Sequence[RunRecord], thresholds: Thresholds, facts: Mapping[str, Scalar]
) -> str:
    """Explain why a blocking metric does not block here; "" if it does."""
    ruled = _why_ruled_out(thresholds, facts)
    if not ruled and metric.statistic in _NEVER_BLOCKING and not (metric.exact or metric.is_metered):
        return f"advice: {metric.statistic} has no interval that one stall cannot move, so it does not block"
    return ruled or _why_untimed(metric, records, thresholds)


def why_muted(
    metric: Metric, records: Sequence[RunRecord], thresholds: Thresholds, facts: Mapping[str, Scalar]
) -> str:
    """Explain why a board's boots do not block in a comparison; "" if they do.

    Boots are compared with boots, so that a stall moves one value of many: a mean may block here.
    """
    return _why_ruled_out(thresholds, facts) or (_why_untimed(metric, records, thresholds) if records else "")


def _why_ruled_out(thresholds: Thresholds, facts: Mapping[str, Scalar]) -> str:
    advice = most_specific(thresholds.advice, facts)
    if advice is not None:
        return f"advice: {advice.why} ({advice.source})"
    suppression = most_specific(thresholds.suppressions, facts)
    if suppression is None:
        return ""
    until = f"until {suppression.expires}, {suppression.issue}: {suppression.reason}"
    return f"suppressed {until} ({suppression.source})"


def _why_untimed(metric: Metric, records: Sequence[RunRecord], thresholds: Thresholds) -> str:
    if records[0].kind == "emulated" and metric.unit.dimension in _OF_A_CLOCK:
        return "advice: the time of an emulated chip is no chip's, so it does not block"
    schedulers = {str(record.environment.get("device", {}).get("sched", "")) for record in records}
    wrong = sorted(schedulers - {"", *_REAL_TIME_SCHEDULERS})
    scheduled = metric.unit.dimension == "time" or thresholds.alone  # what is alone asks the scheduler
    if scheduled and records[0].kind == "virtual" and wrong:
        what = "times do" if metric.unit.dimension == "time" else "what its scheduler did does"
        return f"advice: {sentences.NO_REAL_TIME} (sched={wrong[0]}), so {what} not block"
    return ""


def why_no_limit(metric: Metric, record: RunRecord, thresholds: Thresholds) -> str:
    """Report that there is no limit; name the air that has a limit, if any."""
    facts = facts_of(metric, record)
    airs = {
        str(air)
        for limit in thresholds.limits
        if (air := limit.where.conditions.get("air")) is not None and not limit.is_none
        if limit.where.matches({**facts, "air": air})
    }
    if not airs:
        return "no limit and no baseline to compare it with"
    here = facts["air"] or "(not recorded)"
    return f"no limit on air {here}, for its limits were set on air {' and '.join(sorted(airs))}"

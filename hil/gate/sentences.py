"""The sentences that a person reads of a verdict; every virtual figure says that it is virtual."""

from __future__ import annotations

import math

from hil.thresholds.limits import Limit
from hil.thresholds.metrics import Estimate, Metric
from hil.units import format_value, format_values


def subject(metric: Metric, case_label: str, board: str, kind: str) -> str:
    """Return "publish_latency_p95_us of transport=tls on virtual-2 (virtual)"."""
    case = "" if case_label == "defaults" else f" of {case_label}"
    return f"{metric.name}{case} on {board} ({kind})"


def measured(metric: Metric, estimate: Estimate) -> str:
    """Return "31.2 ms [30.4, 33.0]"; "≥ 5 s" where the value fell among timeouts."""
    finite = [bound for bound in (estimate.low, estimate.high) if math.isfinite(bound)]
    value, *bounds = format_values([estimate.value, *finite], metric.unit)
    texts = dict(zip(finite, bounds, strict=True))
    low = texts.get(estimate.low, "no lower bound")
    high = texts.get(estimate.high, "no upper bound")
    prefix = "≥ " if estimate.at_least else ""
    return f"{prefix}{value} [{low}, {high}]"


def counted(estimate: Estimate, boots: int) -> str:
    """Return "200 samples (3 of them failed), 1 boot"."""
    failed = f" ({estimate.failed} of them failed)" if estimate.failed else ""
    return f"{estimate.samples} samples{failed}, {boots} boot{'' if boots == 1 else 's'}"


def broken(who: str, metric: Metric, estimate: Estimate, limit: Limit, boots: int) -> str:
    """Return the sentence of a series whose interval lies beyond its limit."""
    excess = abs(estimate.value - limit.value)
    by = format_value(excess, metric.unit)
    at_least = "at least " if estimate.at_least else ""
    percent = (
        f" ({'+' if limit.bound == 'max' else '−'}{_percent(excess, limit.value)})" if limit.value else ""
    )
    return (
        f"{who}: {measured(metric, estimate)} breaks its limit of {format_value(limit.value, metric.unit)} "
        f"by {at_least}{by}{percent}, {counted(estimate, boots)}; {origin(limit)}"
    )


def kept(
    who: str, metric: Metric, estimate: Estimate, limit: Limit, boots: int, smallest_excess: float | None
) -> str:
    """Return the sentence of a series that keeps its limit, or cannot be shown to break it."""
    value = measured(metric, estimate)
    bound = format_value(limit.value, metric.unit)
    verb = "keeps" if not is_beyond(estimate.value, limit) else "lies beyond, but not provably,"
    seen = ""
    if smallest_excess is not None:
        percent = f" (+{_percent(smallest_excess, limit.value)})" if limit.value else ""
        seen = f"; an excess of {format_value(smallest_excess, metric.unit)}{percent} would have been seen"
    return f"{who}: {value} {verb} its limit of {bound}, {counted(estimate, boots)}{seen}; {origin(limit)}"


def origin(limit: Limit) -> str:
    """Return where a limit stands and why it is there."""
    return f"limit from {limit.source} ({limit.why})"


def is_beyond(value: float, limit: Limit) -> bool:
    return value > limit.value if limit.bound == "max" else value < limit.value


def _percent(part: float, whole: float) -> str:
    return f"{part / abs(whole) * 100:.0f} %"

"""The sentences that a person reads of a verdict; every virtual figure says that it is virtual."""

from __future__ import annotations

import math

from hil.thresholds.limits import Limit
from hil.thresholds.metrics import Estimate, Metric
from hil.units import format_difference, format_relative, format_value, format_values


def subject(metric: Metric, bench: str, case_label: str, board: str, kind: str) -> str:
    """Return "rtt_p95_us of http_gateway http=http on v1 (virtual)"; no bench that the metric names."""
    words = [
        "" if metric.name.startswith(f"{bench}_") else bench,
        "" if case_label == "defaults" else case_label,
    ]
    case = " ".join(filter(None, words))
    return f"{metric.name}{f' of {case}' if case else ''} on {board} ({kind})"


def measured(metric: Metric, estimate: Estimate) -> str:
    """Return "31.2 ms [30.4, 33.0]"; "≥ 5 s" where the value fell among timeouts; "640 B" where exact."""
    if metric.exact:
        return format_value(estimate.value, metric.unit)
    finite = [bound for bound in (estimate.low, estimate.high) if math.isfinite(bound)]
    value, *bounds = format_values([estimate.value, *finite], metric.unit)
    texts = dict(zip(finite, bounds, strict=True))
    low = texts.get(estimate.low, "no lower bound")
    high = texts.get(estimate.high, "no upper bound")
    prefix = "≥ " if estimate.at_least else ""
    return f"{prefix}{value} [{low}, {high}]"


def counted(metric: Metric, estimate: Estimate, boots: int) -> str:
    """Return "200 samples (3 of them failed), 1 boot"; of a share "3 of 200, 1 boot"."""
    times = f"{boots} boot{'' if boots == 1 else 's'}"
    if metric.statistic == "share":
        return f"{estimate.failed:,} of {estimate.samples:,}, {times}"
    failed = f" ({estimate.failed} of them failed)" if estimate.failed else ""
    return f"{estimate.samples} sample{'' if estimate.samples == 1 else 's'}{failed}, {times}"


def broken(who: str, metric: Metric, estimate: Estimate, limit: Limit, boots: int) -> str:
    """Return the sentence of a series whose interval lies beyond its limit."""
    by = format_difference(abs(estimate.value - limit.value), metric.unit)
    at_least = "at least " if estimate.at_least else ""
    relative = _relative(estimate.value, metric, limit)
    return (
        f"{who}: {measured(metric, estimate)} breaks its limit of {_bound(metric, limit)} "
        f"by {at_least}{by}{relative}, {counted(metric, estimate, boots)}; {origin(limit)}"
    )


def kept(
    who: str, metric: Metric, estimate: Estimate, limit: Limit, boots: int, smallest_excess: float | None
) -> str:
    """Return the sentence of a series that keeps its limit, or cannot be shown to break it."""
    value = measured(metric, estimate)
    verb = "keeps" if not is_beyond(estimate.value, limit) else "lies beyond, but not provably,"
    seen = ""
    if smallest_excess is not None:
        what, sign = ("an excess", 1) if limit.bound == "max" else ("a shortfall", -1)
        relative = _relative(limit.value + sign * smallest_excess, metric, limit)
        seen = f"; {what} of {format_difference(smallest_excess, metric.unit)}{relative} would have been seen"
    count = counted(metric, estimate, boots)
    return f"{who}: {value} {verb} its limit of {_bound(metric, limit)}, {count}{seen}; {origin(limit)}"


def origin(limit: Limit) -> str:
    """Return where a limit stands and why it is there."""
    return f"limit from {limit.source} ({limit.why})"


def is_beyond(value: float, limit: Limit) -> bool:
    return value > limit.value if limit.bound == "max" else value < limit.value


def _bound(metric: Metric, limit: Limit) -> str:
    return f"{'' if limit.bound == 'max' else 'at least '}{format_value(limit.value, metric.unit)}"


def _relative(value: float, metric: Metric, limit: Limit) -> str:
    """Return " (+47 %)", " (97 times the limit)", or ""."""
    text = format_relative(value, limit.value, metric.unit)
    sign = ("+" if limit.bound == "max" else "−") if text.endswith("%") else ""
    return f" ({sign}{text})" if text else ""

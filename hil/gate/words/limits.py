# SPDX-License-Identifier: Apache-2.0
"""The sentences that a person reads of a verdict; every virtual figure says that it is virtual."""

from __future__ import annotations

import math

from hil.base.units import find_unit, format_difference, format_relative, format_value, format_values
from hil.metrics.evaluation import Estimate
from hil.metrics.metric import Metric
from hil.metrics.words import in_words
from hil.model import DEFAULTS, SeriesVerdict, bench_of, short_case
from hil.thresholds.limits import Limit

NO_REAL_TIME = "the virtual board had no real-time priority"


def subject(metric: str, bench: str, case_label: str, place: str, kind: str) -> str:
    """Return "rtt_p95_us of http_gateway/http=http on v1 (virtual)".

    The defaults of a bench are called by its name, unless the metric names it.
    """
    case = bench if case_label == DEFAULTS else short_case(bench, case_label)
    named = case == bench and metric.startswith(f"{bench}_")
    return f"{metric}{'' if named else f' of {case}'} on {place} ({kind})"


def figure_in_words(metric: str, bench: str, case_label: str) -> str:
    """Return "http gateway rtt p95 of http_gateway/http=http": for who knows no exact names."""
    ratio = " ratio" if metric.endswith("_ratio") else ""
    case = "" if case_label == DEFAULTS else f" of {short_case(bench, case_label)}"
    return f"{in_words(metric, bench)}{ratio}{case}"


def measured(metric: Metric, estimate: Estimate) -> str:
    """Return "31.2 ms [30.4, 33.0]"; "≥ 5 s" where the value fell among timeouts; "640 B" without bounds.

    A bound that would take more samples says how many: "31.2 ms [30.4, no upper bound: n < 6,905]".
    """
    prefix = "≥ " if estimate.at_least else ""
    if metric.exact or math.isnan(estimate.low):
        return f"{prefix}{format_value(estimate.value, metric.unit)}"
    finite = [bound for bound in (estimate.low, estimate.high) if math.isfinite(bound)]
    value, *bounds = format_values([estimate.value, *finite], metric.unit)
    texts = dict(zip(finite, bounds, strict=True))
    too_few = f": n < {estimate.needed:,}" if estimate.needed and not estimate.at_least else ""
    low = texts.get(estimate.low, f"no lower bound{too_few}")
    high = texts.get(estimate.high, f"no upper bound{too_few}")
    return f"{prefix}{value} [{low}, {high}]"


def counted(metric: Metric, estimate: Estimate, boots: int, clock: str) -> str:
    """Return "200 samples (3 of them failed), 1 boot, timed by esp_timer"; of a share "3 of 200, 1 boot"."""
    times = f"{boots} boot{'' if boots == 1 else 's'}{f', timed by {clock}' if clock else ''}"
    if metric.statistic == "share":
        return f"{estimate.failed:,} of {estimate.samples:,}, {times}"
    failed = f" ({estimate.failed} of them failed)" if estimate.failed else ""
    return f"{estimate.samples} sample{'' if estimate.samples == 1 else 's'}{failed}, {times}"


def beside_limit(item: SeriesVerdict) -> str:
    """Return "publish latency p95 of publish/transport=tls on v1 31.2 ms, limit 25 ms"."""
    who = f"{figure_in_words(item.metric, bench_of(item.case_id), item.case_label)} on {item.board}"
    if item.value is None or item.limit is None:
        return who
    unit = find_unit(item.unit)
    at_least = "≥ " if item.at_least else ""
    return f"{who} {at_least}{format_value(item.value, unit)}, limit {format_value(item.limit, unit)}"


def void(rows: int, of: int, host_late_us: int) -> str:
    """Return "12 of 1,000 samples void: the host's scheduling was late, by up to 5.3 ms"; "" without any."""
    if not rows:
        return ""
    return f"{rows:,} of {of:,} samples void: {host_was_late(host_late_us)}"


def host_was_late(host_late_us: int) -> str:
    by = f", by up to {format_value(host_late_us, find_unit('us'))}" if host_late_us else ""
    return f"the host's scheduling was late{by}"


def broken(who: str, metric: Metric, estimate: Estimate, limit: Limit, count: str) -> str:
    """Return the sentence of a series whose interval lies beyond its limit; ``count`` is counted()'s."""
    by = format_difference(abs(estimate.value - limit.value), metric.unit)
    at_least = "at least " if estimate.at_least else ""
    relative = _relative(estimate.value, metric, limit)
    return (
        f"{who}: {measured(metric, estimate)} breaks its limit of {_bound(metric, limit)} "
        f"by {at_least}{by}{relative}, {count}; {origin(limit)}"
    )


def kept(
    who: str, metric: Metric, estimate: Estimate, limit: Limit, count: str, smallest_excess: float | None
) -> str:
    """Return the sentence of a series that keeps its limit, or cannot be shown to break it."""
    value = measured(metric, estimate)
    verb = "keeps" if not is_beyond(estimate.value, limit) else "lies beyond, but not provably,"
    seen = ""
    if smallest_excess is not None:
        what, sign = ("an excess", 1) if limit.bound == "max" else ("a shortfall", -1)
        relative = _relative(limit.value + sign * smallest_excess, metric, limit)
        seen = f"; {what} of {format_difference(smallest_excess, metric.unit)}{relative} would have been seen"
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


_SIGNIFICANT_DIGITS = 6


def rounded(value: float | None) -> float | None:
    """Return six significant digits, so that the last bits of a library do not change a verdict's bytes.

    None of what is not finite.
    """
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_SIGNIFICANT_DIGITS}g}") + 0.0  # no zero is negative


def whole(value: float | None) -> float | None:
    """Return every digit of an exact figure, None of what is not finite."""
    return None if value is None or not math.isfinite(value) else float(value) + 0.0

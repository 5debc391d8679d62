# SPDX-License-Identifier: Apache-2.0
"""How a metric is called where a person reads it: publish_latency_p95_us is the p95 of "publish latency"."""

from __future__ import annotations

from typing import NamedTuple

from hil.base.units import QuantityError, unit_of

STATISTICS = ("p50", "p90", "p95", "p99", "p99.9", "tail5", "mean", "max")  # as they are read


class MetricWords(NamedTuple):
    """``quantity`` is in words, without the others, which are "" where a name has none."""

    quantity: str
    stat: str
    unit: str

    def __str__(self) -> str:
        return f"{self.quantity} {self.stat}".strip()


def metric_words(name: str) -> MetricWords:
    """Take a metric's name apart: publish_latency_p99_us is ("publish latency", "p99", "us")."""
    try:
        unit = unit_of(name).name
    except QuantityError:
        unit = ""
    words = name.removesuffix(f"_{unit}").replace("_p99_9", "_p99.9").split("_")
    stat = words.pop() if len(words) > 1 and words[-1] in STATISTICS else ""
    return MetricWords(" ".join(words), stat, unit)


def in_words(metric: str, bench: str) -> str:
    """Return "publish latency p95", "hartstone sustained p50": no bench that the metric names itself."""
    words, own = str(metric_words(metric)), bench.replace("_", " ")
    return words if words.split(" ")[0] == own.split(" ")[0] else f"{own} {words}"

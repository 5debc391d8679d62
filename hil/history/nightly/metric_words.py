"""How metrics and their changes are called: "publish latency p99", "slower", "12 %"."""

from __future__ import annotations

from typing import Literal, NamedTuple

from hil.base.units import QuantityError, unit_of

STATS = ("p50", "p90", "p95", "p99_9", "p99", "tail5", "mean", "min", "max")
SHOWN_STATS = ("min", "mean", "p50", "p90", "p95", "p99", "p99.9", "tail5", "max")  # as they are read
_KNOWN = {  # of more, and of less
    ("time", "lower"): ("slower", "faster"),
    ("rate", "higher"): ("higher", "lower"),
    ("frequency", "higher"): ("higher", "lower"),
    ("size", "lower"): ("more", "less"),
    ("size", "higher"): ("more", "less"),
    ("count", "lower"): ("more", "less"),
    ("count", "higher"): ("more", "less"),
    ("cycles", "lower"): ("more", "less"),
}


class MetricWords(NamedTuple):
    """``quantity`` is in words, without statistic and unit; ``stat`` is "" where the name has none."""

    quantity: str
    stat: str

    def __str__(self) -> str:
        return f"{self.quantity} {self.stat}".strip()


def metric_words(metric: str) -> MetricWords:
    """Take a metric's name apart: publish_latency_p99_us is ("publish latency", "p99")."""
    name = metric.removesuffix(f"_{_unit(metric)}")
    stat = next((stat for stat in STATS if name.endswith(f"_{stat}")), "")
    return MetricWords(name.removesuffix(f"_{stat}").replace("_", " "), stat.replace("_", "."))


def change_word(metric: str, direction: Literal["lower", "higher", ""], change: float) -> str:
    """Return "slower", "lower", "more", "worse" …; ``direction`` is which way is better, "" if unknown."""
    dimension = unit_of(metric).dimension if _unit(metric) else ""
    more, less = _KNOWN.get((dimension, direction), ("", ""))
    if more:
        return more if change > 0 else less
    if not direction or dimension in ("rate", "frequency"):
        return "higher" if change > 0 else "lower"
    if dimension == "time":
        return "longer" if change > 0 else "shorter"
    return "worse" if (change > 0) == (direction == "lower") else "better"


def percent(change: float) -> str:
    """Return the size of a change without its sign: "12 %", "4.2 %", "1,150 %"."""
    size = abs(change) * 100
    return f"{size:,.{1 if size < 9.95 else 0}f} %".replace(".0 %", " %")


def _unit(metric: str) -> str:
    try:
        return unit_of(metric).name
    except QuantityError:
        return ""

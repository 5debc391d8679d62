"""Prometheus metrics by name: how a verdict's metric is called there, in which unit, with which labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hil.base.units import convert, find_unit
from hil.metrics.metric import STATISTICS, name_of
from hil.model import SeriesVerdict
from hil.reports.names import Named

# dimension → our base unit, how many of it are one of Prometheus', the ending of Prometheus' name
_BASE_UNITS = {
    "time": ("s", 1, "_seconds"),
    "size": ("bytes", 1, "_bytes"),
    "rate": ("bps", 8, "_bytes_per_second"),
    "ratio": ("ratio", 1, "_ratio"),
    "count": ("count", 1, ""),  # _count is what Prometheus calls a histogram's
    "cycles": ("cycles", 1, "_cycles"),
    "frequency": ("ops", 1, "_per_second"),
    "power": ("dbm", 1, "_dbm"),
}
_LIMIT = "_limit"


@dataclass(frozen=True)
class Name:
    """A verdict metric's name taken apart: ``publish_latency_p99_us`` → publish_latency, p99, _seconds."""

    stem: str
    statistic: str
    ending: str

    @property
    def value(self) -> str:
        return f"hil_{self.stem}{self.ending}"

    @property
    def limit(self) -> str:
        return f"hil_{self.stem}{_LIMIT}{self.ending}"

    @property
    def statistic_label(self) -> dict[str, str]:
        """``stat`` rather than ``quantile``, which Prometheus keeps for summaries; none for a plain ratio."""
        return {"stat": self.statistic} if self.statistic else {}


def parse_name(metric: str, unit: str) -> Name:
    """Take apart a metric's name, whose ``unit`` is that of its verdict. Raises QuantityError."""
    stem = metric.rpartition("_")[0]
    ending = _BASE_UNITS[find_unit(unit).dimension][2]
    found = [one for one in STATISTICS if stem.endswith(f"_{name_of(one)}")]
    statistic = found[0] if found else ""
    return Name(stem.removesuffix(f"_{name_of(statistic)}") if found else stem, statistic, ending)


def in_base_unit(value: float, unit: str) -> float:
    """Convert to Prometheus' base unit: seconds, bytes, bytes per second, ratios."""
    source = find_unit(unit)
    base, many, _ = _BASE_UNITS[source.dimension]
    return float(f"{convert(value, source, find_unit(base)) / many:.9g}")  # verdicts have six digits


def case_labels(item: Named) -> dict[str, str]:
    """Return the labels of a case: short ones for people, and a hash of its full name.

    The short label names what differs from the defaults, so it would stay the same for another case when a
    default changes; the hash tells the two apart.
    """
    return {
        "bench": item.case_id.partition("/")[0],
        "case": item.case_label or item.case_id,
        "case_hash": hashlib.sha256(item.case_id.encode()).hexdigest()[:8],
    }


@dataclass
class Families(Collector):
    """Gauges by name, each sample with the board's own labels besides its own.

    ``clashes`` names the verdict metrics that would have come to a sample that is there already.
    """

    common: Mapping[str, str]
    clashes: set[str] = field(default_factory=set)
    _families: dict[str, GaugeMetricFamily] = field(default_factory=dict)
    _measured: set[str] = field(default_factory=set)
    _seen: set[tuple[str, tuple[tuple[str, str], ...]]] = field(default_factory=set)

    def collect(self) -> Iterable[GaugeMetricFamily]:
        return self._families.values()

    def add(self, name: str, help_text: str, value: float, **labels: str) -> None:
        """Add a sample; the same name and labels must not be there already."""
        everything = {**labels, **self.common}
        self._seen.add((name, tuple(sorted(everything.items()))))
        family = self._families.setdefault(name, GaugeMetricFamily(name, help_text))
        family.add_sample(name, everything, value)

    def value_of(self, name: str) -> float | None:
        """Return the first sample of a metric, None where there is none."""
        family = self._families.get(name)
        return float(family.samples[0].value) if family else None

    def add_series(self, item: SeriesVerdict) -> None:
        """Add a verdict's value and limit, or note that their names are taken."""
        name = parse_name(item.metric, item.unit)
        labels = {**case_labels(item), **name.statistic_label}
        if self._is_taken(name, labels):
            self.clashes.add(item.metric)
            return
        self._measured |= {name.value, name.limit}
        if item.value is not None:
            text = f"{name.stem}: what the run measured, one sample a case and statistic."
            self.add(name.value, text, in_base_unit(item.value, item.unit), **labels)
        if item.limit is not None:
            text = f"{name.stem}: the limit in force, one sample a case and statistic."
            self.add(name.limit, text, in_base_unit(item.limit, item.unit), **labels)

    def _is_taken(self, name: Name, labels: Mapping[str, str]) -> bool:
        key = tuple(sorted({**labels, **self.common}.items()))
        own = {name.value, name.limit} & (self._families.keys() - self._measured)
        seen = any((one, key) in self._seen for one in (name.value, name.limit))
        return bool(own) or seen or name.stem.endswith(_LIMIT)

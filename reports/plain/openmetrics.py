"""``openmetrics.txt``: the families that the Pushgateway gets, as OpenMetrics text at the time of the run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from hil.model import Verdict
from hil.reports.allure.times import unix_ms
from hil.reports.metrics import Group, board_groups
from hil.reports.plain.facts import RunFacts

NAME = "openmetrics.txt"
# endings of names that are units; the rest are plain numbers
_UNITS = re.compile(r"_(seconds|bytes_per_second|bytes|ratio|cycles|dbm)$")


def openmetrics_text(facts: RunFacts, info: Mapping[str, Any], verdict: Verdict) -> bytes:
    """Return the text: ``# HELP``, ``# TYPE``, ``# UNIT`` and samples a family, ``# EOF`` at the end.

    Each sample has the labels of its Pushgateway group (job, rack, board), and the start of the run in
    whole Unix seconds where it is known.
    """
    started_ms = unix_ms(facts.started_utc)
    started_s = None if started_ms is None else started_ms // 1000
    registry = CollectorRegistry()
    registry.register(_Families(_merged(board_groups({**info, "rack": facts.rack}, verdict), started_s)))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text


class _Families(Collector):
    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _merged(groups: Iterable[Group], started_s: int | None) -> list[Metric]:
    """Return one family a name, by name: the format forbids the same family twice."""
    merged: dict[str, Metric] = {}
    for group in groups:
        own = {"job": group.job, "rack": group.rack, "board": group.board}
        for family in group.families.collect():
            found = merged.setdefault(family.name, _empty(family.name, family.documentation))
            for sample in family.samples:
                found.add_sample(sample.name, {**own, **sample.labels}, sample.value, started_s)
    return [merged[name] for name in sorted(merged)]


def _empty(name: str, text: str) -> Metric:
    unit = _UNITS.search(name)
    return GaugeMetricFamily(name, text, unit=unit.group(1) if unit else "")

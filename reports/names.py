# SPDX-License-Identifier: Apache-2.0
"""How a series is called where a person reads it: its metric, its case, its place."""

from __future__ import annotations

from typing import Protocol

from hil.metrics.words import in_words
from hil.model import RunRecord, Verdict, bench_of, short_case


class Named(Protocol):
    """A verdict's series, or a comparison of series."""

    @property
    def metric(self) -> str: ...

    @property
    def unit(self) -> str: ...

    @property
    def case_id(self) -> str: ...

    @property
    def case_label(self) -> str: ...


def short_metric(item: Named) -> str:
    """Return the metric's name without its unit, which stands beside every figure."""
    return item.metric.removesuffix(f"_{item.unit}")


def named_metric(item: Named) -> str:
    """Return "hartstone sustained_p50"; no bench that the metric names itself."""
    metric, bench = short_metric(item), _bench(item)
    return metric if metric.startswith(f"{bench}_") else f"{bench} {metric}"


def human_metric(item: Named) -> str:
    """Return "publish latency p95", "hartstone sustained p50": words, and no bench that the metric names."""
    return in_words(item.metric, _bench(item))


def place(record: RunRecord, verdict: Verdict) -> str:
    """Return "virtual-2 (virtual) publish/transport=tls"; the whole id of a case that was not judged."""
    case = (record.board, record.case_id)
    own = next((item for item in verdict.series if (item.board, item.case_id) == case), None)
    return f"{record.board} ({record.kind}) {case_name(own) if own else record.case_id}"


def case_name(item: Named) -> str:
    """Return "publish/transport=tls", "publish/defaults"; the whole id where a verdict holds no label."""
    return short_case(_bench(item), item.case_label) if item.case_label else item.case_id


def _bench(item: Named) -> str:
    return bench_of(item.case_id)

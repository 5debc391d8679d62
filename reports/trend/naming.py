# SPDX-License-Identifier: Apache-2.0
"""How the trend calls a series and its quantity, and its numbers: five significant digits, null for none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from hil.base.errors import ConfigError
from hil.metrics.metric import Metric
from hil.metrics.words import metric_words
from hil.model import bench_of, format_series_id
from hil.reports.allure.story import case_label
from hil.thresholds import Thresholds


class SeriesKey(NamedTuple):
    """What makes two points one line: kinds never share one, nor do products, nor profiles of the air.

    A tuple, because a year of nights looks it up some hundred thousand times.
    """

    rack: str
    board: str
    kind: str
    profile: str
    case_id: str
    metric: str
    product: str = ""

    @property
    def series_id(self) -> str:
        return format_series_id(self.rack, self.board, self.case_id, self.metric, self.product)

    @property
    def bench(self) -> str:
        return bench_of(self.case_id)

    @property
    def chart(self) -> str:
        """Return the key of the chart and of its detail: ``rack/board/case_id/quantity``, as of a series."""
        quantity = metric_words(self.metric).quantity
        return format_series_id(self.rack, self.board, self.case_id, quantity, self.product)


def label_of(case_id: str, thresholds: Mapping[str, Thresholds]) -> str:
    """Return the parameters that differ from their defaults, or "defaults"; all of an unknown bench."""
    with suppress(ConfigError):
        return case_label(case_id, thresholds) or "defaults"
    return case_id.partition("/")[2] or "defaults"


def metric_of(key: SeriesKey, thresholds: Mapping[str, Thresholds]) -> Metric | None:
    """Return what the thresholds say of a series; None where they do not know it (any more)."""
    own = thresholds.get(key.bench)
    return own.metrics.get(key.metric) if own else None


SIGNIFICANT_DIGITS = 5


_LARGEST_WHOLE = 2**53  # above it a float tells whole numbers apart no more


Number = int | float | None


def tidy(value: float | None) -> Number:
    """Return a value rounded, whole numbers as such; None of NaN and of what is infinite."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < _LARGEST_WHOLE else rounded


def tidy_all(values: Iterable[float | None]) -> list[Number]:
    return [tidy(value) for value in values]

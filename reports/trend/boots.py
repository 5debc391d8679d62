"""What the boots of each session come to: their median, and an interval of it."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from hil.metrics import stats
from hil.metrics.sessions import SeriesHistory

SIDE_ALPHA = 0.025  # either bound of the 95 % interval is wrong with this probability


@dataclass(frozen=True)
class BootsOf:
    """The boots of one session. ``median`` is +inf where it fell among timeouts; ``low`` and ``high`` are
    None where so few boots give no bound."""

    median: float
    low: float | None
    high: float | None
    boots: int


def by_session(series: SeriesHistory | None) -> dict[int, BootsOf]:
    """Return the boots of each session by its position, in the metric's unit.

    The interval is that of hil.metrics.stats.quantile_interval() for independent boots: order statistics,
    exact binomial ranks. Below 6 boots there is none.
    """
    if series is None or not len(series):
        return {}
    order = np.lexsort((series.value, series.session))
    values, sessions = series.value[order], series.session[order]
    starts = np.flatnonzero(np.diff(sessions, prepend=-1))
    ends = np.append(starts[1:], len(sessions))
    ordered = values.tolist()
    return {
        number: _boots(ordered[start:end])
        for number, start, end in zip(sessions[starts].tolist(), starts.tolist(), ends.tolist(), strict=True)
    }


def _boots(ordered: list[float]) -> BootsOf:
    count = len(ordered)
    low, high = ranks(count)
    return BootsOf(
        median=_middle(ordered),
        low=ordered[low - 1] if low >= 1 else None,
        high=ordered[high - 1] if high <= count and math.isfinite(ordered[high - 1]) else None,
        boots=count,
    )


def _middle(ordered: list[float]) -> float:
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return below if below == above else (below + above) / 2


@functools.cache
def ranks(boots: int) -> tuple[int, int]:
    """Return the ranks (from 1) of the median's bounds; 0 and ``boots + 1`` where there is none."""
    return stats.quantile_ranks(boots, 0.5, SIDE_ALPHA)

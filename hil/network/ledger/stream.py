"""The subscriber's stream of arrivals: gaps, spacing, order."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence

from hil.network.ledger.evidence import Arrival

GAP_US = 1_000_000
_INTERVALS_MIN = 2  # a deviation needs two


def stream_facts(arrivals: Sequence[Arrival]) -> Mapping[str, int | float | None]:
    """Return gaps_over_1s_count, gap_longest_us, interarrival_cv; None where fewer than two (three) arrived.

    The coefficient of variation is the intervals' sample deviation by their mean: 0 for a metronome, 1 for
    arrivals at random, more for bursts. Each copy of a message is an arrival.
    """
    times = sorted(arrival.time_us for arrival in arrivals)
    intervals = [after - before for before, after in itertools.pairwise(times)]
    if not intervals:
        return {"gaps_over_1s_count": None, "gap_longest_us": None, "interarrival_cv": None}
    return {
        "gaps_over_1s_count": sum(interval > GAP_US for interval in intervals),
        "gap_longest_us": max(intervals),
        "interarrival_cv": _variation(intervals),
    }


def _variation(intervals: Sequence[int]) -> float | None:
    mean = statistics.fmean(intervals)
    if len(intervals) < _INTERVALS_MIN or mean == 0:
        return None
    return statistics.stdev(intervals) / mean

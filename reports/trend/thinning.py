"""Fewer samples for a chart: the shape stays, and with it every extreme; failures are told apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hil.reports.allure.samples import Samples
from hil.reports.trend.numbers import tidy_all

MOST_SAMPLES = 600


def samples_json(samples: Samples, *, most: int = MOST_SAMPLES) -> dict[str, Any] | None:
    """Return the samples behind a chart, at most ``most`` done and as many failed; warm-up is left out.

    None where nothing tells when each was: those that the board only counted, or a bench without times.
    ``of`` is how many there are in all, the failed ones among them.
    """
    if not (samples.ordered and samples.timed):
        return None
    counted = [(boot, row) for boot, rows in samples.boots for row in rows if not row.warmup]
    done = [(boot, row) for boot, row in counted if not row.failed]
    failed = [row.at_s for _, row in counted if row.failed]
    kept = [done[n] for n in kept_of([row.value for _, row in done], most)]
    return {
        "boot": [boot for boot, _ in kept],
        "time_s": tidy_all(row.at_s for _, row in kept),
        "value": tidy_all(row.value for _, row in kept),
        "of": len(counted),
        "failed_time_s": tidy_all(_evenly(failed, most)),
    }


def kept_of(values: Sequence[float], most: int) -> list[int]:
    """Return the positions to keep, ascending: the smallest and the largest of each of most / 2 parts."""
    if len(values) <= most:
        return list(range(len(values)))
    array = np.asarray(values, dtype=float)
    edges = np.linspace(0, len(array), max(1, most // 2) + 1).astype(int)
    kept: set[int] = set()
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = array[start:end]
        kept |= {start + int(part.argmin()), start + int(part.argmax())}
    return sorted(kept)


def _evenly(values: Sequence[float], most: int) -> list[float]:
    if len(values) <= most:
        return list(values)
    return [values[n] for n in np.linspace(0, len(values) - 1, most).astype(int).tolist()]

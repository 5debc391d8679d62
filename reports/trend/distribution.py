"""How samples are distributed, in bins that candidate and other share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hil.reports.trend.numbers import tidy_all

BINS_FEWEST, BINS_MOST = 6, 60


def distribution(
    candidate: Sequence[float], other: Sequence[float] | None, *, role: str | None, log: bool
) -> dict[str, Any] | None:
    """Return edges and counts; None where the candidate has no value.

    All values are in one unit. Bins are of equal width on the scale, as wide as the rule of Freedman and
    Diaconis (1981) says of both together. The scale is logarithmic where ``log`` and all values are positive.
    """
    own = np.sort(np.asarray(candidate, dtype=float))
    beside = np.sort(np.asarray(other, dtype=float)) if other else None
    if not len(own):
        return None
    values = own if beside is None else np.sort(np.concatenate([own, beside]))
    scaled_log = bool(log and values[0] > 0)
    edges = _edges(values, log=scaled_log)
    return {
        "scale": "log" if scaled_log else "linear",
        "edges": tidy_all(edges.tolist()),
        "candidate": _counts(own, edges),
        "other": None if beside is None else _counts(beside, edges),
        "role": None if beside is None else role,
        "candidate_samples": len(own),
        "other_samples": None if beside is None else len(beside),
    }


def _edges(values: np.ndarray, *, log: bool) -> np.ndarray:
    """Return ascending edges; those of a single value lie a little apart round it."""
    low, high = float(values[0]), float(values[-1])
    if high - low <= abs(high) * 1e-4:  # closer than what trend.json's digits tell apart
        around = abs(high) * 0.01 or 0.5
        return np.array([low - around, high + around])
    scaled = np.log(values) if log else values
    edges = np.linspace(scaled[0], scaled[-1], _bins(scaled) + 1)
    edges = np.exp(edges) if log else edges
    edges[0], edges[-1] = low, high
    return edges


def _bins(scaled: np.ndarray) -> int:
    quarter, three = np.quantile(scaled, [0.25, 0.75])
    width = 2 * (three - quarter) / len(scaled) ** (1 / 3)
    wanted = int(np.ceil((scaled[-1] - scaled[0]) / width)) if width > 0 else BINS_FEWEST
    return int(np.clip(wanted, BINS_FEWEST, BINS_MOST))


def _counts(ordered: np.ndarray, edges: np.ndarray) -> list[int]:
    """Count the values of each bin; a value on an edge belongs to the bin below it."""
    places = np.searchsorted(ordered, edges[1:-1], side="right")
    ends = np.concatenate([[0], places, [len(ordered)]])
    return [int(count) for count in np.diff(ends)]

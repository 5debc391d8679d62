"""Statistics of rows that depend on one another, such as intervals of a stream: a mean, and a share of sums.

Rows are cut into equal consecutive batches (Law & Carson 1979). Means of batches depend on one another far
less than rows do, and Student's t of a few of them is wide: a stall that spoils one batch or two moves the
mean by no more than it widens the interval. A longer one makes batches that do not differ, so the longest run
of rows of 0 does not count towards the upper bound. So one stall proves nothing, however long.

From ten rows a batch on, a bound is wrong with probability at most alpha where rows are independent or their
autocorrelation falls off like 0.5 to the power of the lag. With fewer rows a batch it may be wrong up to
three times as often where rows are that dependent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.special

from hil.metrics.stats import Interval

FEWEST_BATCHES, MOST_BATCHES = 8, 20
BATCH_ROWS = 10
FEWEST_ROWS = 2 * FEWEST_BATCHES
_CORRELATION_MAX = 0.95


def batch_count(rows: int) -> int:
    """Return into how many batches to cut: of ten rows each, 8 at least and 20 at most."""
    return min(MOST_BATCHES, max(FEWEST_BATCHES, rows // BATCH_ROWS))


def batch_mean_interval(values: Sequence[float], alpha: float) -> Interval:
    """Bound the true mean of ``values``, in the order of time, by Student's t of the batches' means.

    Each side is at ``alpha``. Fewer than FEWEST_ROWS values give no bound. Batches differ by at most one
    value. The upper bound also holds for the values without their longest run of zeros: where too few are
    left there is none. The mean of what is never negative is not bounded below 0.
    """
    data = np.asarray(values, dtype=np.float64)
    if not np.isfinite(data).all():
        return Interval(-math.inf, math.inf)
    found, moving = _student_interval(data, alpha), _without_longest_stall(data)
    high = found.high if len(moving) == len(data) else max(found.high, _student_interval(moving, alpha).high)
    is_bounded = math.isfinite(found.low) and data.min() >= 0.0
    return Interval(max(0.0, found.low) if is_bounded else found.low, high)


def _without_longest_stall(data: np.ndarray) -> np.ndarray:
    """Return the rows but for the longest run of zeros."""
    edges = np.diff(np.concatenate(([False], data == 0.0, [False])).astype(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not len(starts):
        return data
    longest = int(np.argmax(ends - starts))
    return np.delete(data, slice(starts[longest], ends[longest]))


def _student_interval(data: np.ndarray, alpha: float) -> Interval:
    if len(data) < FEWEST_ROWS:
        return Interval(-math.inf, math.inf)
    batches = np.array_split(data, batch_count(len(data)))
    means = np.array([batch.mean() for batch in batches])
    error = math.sqrt(means.var(ddof=1) / len(means) * _neighbours(data, len(data) / len(means)))
    reach = -float(scipy.special.stdtrit(len(means) - 1, alpha)) * error
    centre = math.fsum(data) / len(data)
    return Interval(centre - reach, centre + reach)


def _neighbours(data: np.ndarray, batch_rows: float) -> float:
    """Return by how much the variance of the mean exceeds that of independent batches.

    Of rows that each follow from the one before (AR(1)), with the autocorrelation of neighbours taken two
    standard errors above its estimate, 0 at least.
    """
    deviations = data - data.mean()
    squares = float(np.sum(deviations**2))
    if squares == 0.0:
        return 1.0
    estimate = float(np.sum(deviations[1:] * deviations[:-1])) / squares
    rho = min(_CORRELATION_MAX, max(0.0, estimate + 2.0 / math.sqrt(len(data))))
    return float(1.0 / (1.0 - 2.0 * rho * (1.0 - rho**batch_rows) / (batch_rows * (1.0 - rho**2))))


def overdispersion(hits: Sequence[int], trials: Sequence[int]) -> float:
    """Return by how much more the share of hits varies than independent trials would let it; at least 1.

    Pearson's chi-square over its degrees of freedom, of rows or of batches of rows, whichever is larger: what
    comes in bursts varies from row to row, what comes for a while from batch to batch. Either is taken one
    standard error above its estimate. Rows without trials do not count. It is a design effect: that many
    trials count as one (hil.metrics.stats.ratio_interval).
    """
    counted = np.array(
        [(hit, trial) for hit, trial in zip(hits, trials, strict=True) if trial], dtype=np.float64
    )
    if len(counted) < FEWEST_BATCHES:
        return _dispersion(counted)
    batches = np.array_split(counted, batch_count(len(counted)))
    return max(_dispersion(counted), _dispersion(np.array([batch.sum(axis=0) for batch in batches])))


def _dispersion(pairs: np.ndarray) -> float:
    if len(pairs) < 2:
        return 1.0
    hits, trials = pairs[:, 0], pairs[:, 1]
    share = hits.sum() / trials.sum()
    if not 0.0 < share < 1.0:
        return 1.0
    chi_square = np.sum((hits - share * trials) ** 2 / (trials * share * (1.0 - share)))
    freedom = len(pairs) - 1
    return max(1.0, float(chi_square) / freedom * (1.0 + math.sqrt(2.0 / freedom)))

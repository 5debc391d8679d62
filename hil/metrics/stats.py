# SPDX-License-Identifier: Apache-2.0
"""Statistics of one series: point estimates for reports, intervals for decisions.

Quantile as reported: type 7 (Hyndman & Fan 1996), linear between order statistics.
Interval of a quantile: order statistics with exact binomial ranks, whatever the distribution.
Interval of a ratio: Clopper & Pearson 1934. Lower bound of tail5: from those of the quantiles it averages.
Interval of a mean, and upper bound of tail5: seeded percentile bootstrap of independent samples.

Of independent samples every bound but the bootstrap's is wrong with probability at most ``alpha``, each side
by itself. Samples that follow one another are not independent: one stall delays many messages. Where it is
known when each was done, samples count as episodes (see design_effect): a bound is only moved outward by
this. A value that was never seen (a timeout) is ``math.inf``: it counts as slower than everything seen.

Statistics of rows that depend on one another, such as intervals of a stream: a mean, and a share of sums.

Rows are cut into equal consecutive batches (Law & Carson 1979). Means of batches depend on one another far
less than rows do, and Student's t of a few of them is wide: a stall that spoils one batch or two moves the
mean by no more than it widens the interval. A longer one makes batches that do not differ, so the longest run
of rows of 0 does not count towards the upper bound. So one stall proves nothing, however long.

From ten rows a batch on, a bound is wrong with probability at most alpha where rows are independent or their
autocorrelation falls off like 0.5 to the power of the lag. With fewer rows a batch it may be wrong up to
three times as often where rows are that dependent.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from hil.base import special
from hil.base.numeric import np

TAIL_SHARE = 0.05
EPISODE_US = 500_000
_FEWEST_RESAMPLES = 2_000
_MOST_RESAMPLES = 20_000
_RESAMPLES_BEYOND_BOUND = 20
_CHUNK_VALUES = 2_000_000
_MOST_BOUNDS = 256
_TAIL_SHARES = (0.95, 0.96, 0.97, 0.98, 0.99)


@dataclass(frozen=True)
class Interval:
    """``low`` is -inf and ``high`` is +inf where the samples give no bound on that side."""

    low: float
    high: float


def quantile(values: Sequence[float], share: float) -> float:
    """Return the type 7 quantile; +inf where it touches a value that was never seen.

    Raises ValueError without values.
    """
    if not values:
        raise ValueError("a quantile needs at least one value")
    ordered = sorted(values)
    position = (len(ordered) - 1) * share
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    weight = position - below
    if weight == 0.0 or ordered[below] == ordered[above]:
        return float(ordered[below])
    if math.isinf(ordered[above]):
        return math.inf
    return ordered[below] + weight * (ordered[above] - ordered[below])


def tail5(values: Sequence[float]) -> float:
    """Return the mean of the slowest 5 % (rounded up to whole samples). Raises ValueError without values."""
    if not values:
        raise ValueError("tail5 needs at least one value")
    slowest = sorted(values)[-tail_size(len(values)) :]
    return math.fsum(slowest) / len(slowest)


def tail_size(samples: int) -> int:
    """Return how many samples the slowest 5 % are, at least one."""
    return max(1, math.ceil(samples * TAIL_SHARE))


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean. Raises ValueError without values."""
    if not values:
        raise ValueError("a mean needs at least one value")
    return math.fsum(values) / len(values)


def design_effect(beyond: np.ndarray, done_us: Sequence[int] | None, chance: float = 0.0) -> float:
    """Return the factor by which serial dependence shrinks the number of samples; 1 if they look independent.

    ``beyond`` marks the samples beyond a value, in the order in which they were planned. Consecutive ones are
    one episode: a sample that kept within the value ends it, and so does EPISODE_US between the ends of its
    first and its last, for what a stall held up is done soon after it, one after another, but what is slow
    each time takes its time. The effect is the size of the episode that a sample beyond the value finds
    itself in, on average (Kish 1965), over what independent samples come to that lie beyond with probability
    ``chance``. ``done_us`` of None says that the samples are independent.
    """
    return float(_design_effects(beyond[np.newaxis], done_us, chance)[0])


def _design_effects(beyond: np.ndarray, done_us: Sequence[int] | None, chance: float) -> np.ndarray:
    """Return design_effect() of each row of ``beyond``."""
    if done_us is None:
        return np.ones(len(beyond))
    rows = np.arange(beyond.shape[1])
    done = np.maximum.accumulate(np.asarray(done_us, dtype=np.int64))
    joined = np.zeros_like(beyond)
    joined[:, 1:] = beyond[:, 1:] & beyond[:, :-1]
    first = np.maximum.accumulate(np.where(joined, 0, rows), axis=1)
    part = (done - done[first]) // EPISODE_US
    joined[:, 1:] &= part[:, 1:] == part[:, :-1]
    position = rows - np.maximum.accumulate(np.where(joined, 0, rows), axis=1)
    squares = np.sum((2 * position + 1) * beyond, axis=1)  # 1 + 3 + 5 + … of an episode is its size squared
    sizes = squares / np.maximum(1, beyond.sum(axis=1))
    return np.asarray(np.maximum(1.0, sizes * (1.0 - chance) / (1.0 + chance)))


def quantile_interval(
    values: Sequence[float], share: float, alpha: float, done_us: Sequence[int] | None = None
) -> Interval:
    """Bound the true quantile by order statistics.

    The number of independent samples at or below the true quantile is binomial(n, share), so the l-th
    smallest sample lies above it with probability P(X < l) at most: take the largest l that keeps this within
    ``alpha``, and the mirror image for the upper bound. With ``done_us`` the test also has to hold when the
    samples and those beyond are divided by their design_effect(), for this bound and for every one further
    out: the slow samples of one episode must not pass for several because their values differ.
    """
    data = np.asarray(values, dtype=np.float64)
    _, high_rank = quantile_ranks(len(data), share, alpha)
    highs = _thinned(np.sort(data)[high_rank - 1 :][::-1])
    high = _last_proven(highs, data <= highs[:, np.newaxis], done_us, share, alpha)
    low = _quantile_low(data, share, alpha, done_us)
    return Interval(low, math.inf if high is None else high)


def _quantile_low(data: np.ndarray, share: float, alpha: float, done_us: Sequence[int] | None) -> float:
    low_rank, _ = quantile_ranks(len(data), share, alpha)
    lows = _thinned(np.sort(data)[:low_rank])
    low = _last_proven(lows, data >= lows[:, np.newaxis], done_us, 1.0 - share, alpha)
    return -math.inf if low is None else low


def _thinned(bounds: np.ndarray) -> np.ndarray:
    """Return _MOST_BOUNDS of them or fewer, evenly, the last one included."""
    step = math.ceil(len(bounds) / _MOST_BOUNDS) or 1
    return bounds[::-1][::step][::-1]


def _last_proven(
    bounds: np.ndarray, beyond: np.ndarray, done_us: Sequence[int] | None, chance: float, alpha: float
) -> float | None:
    """Return the last bound before the first at which the test does not hold."""
    effects = _design_effects(beyond, done_us, chance)
    hits, samples = beyond.sum(axis=1) / effects, beyond.shape[1] / effects
    proven = len(bounds)
    for place in np.flatnonzero(effects != 1.0):  # the ranks hold for independent samples
        # P(X >= hits) of the binomial, continued to fractions by the incomplete beta function
        seen, others = float(hits[place]), float(samples[place] - hits[place] + 1.0)
        if not special.betainc_within(seen, others, chance, alpha):
            proven = int(place)
            break
    return float(bounds[proven - 1]) if proven else None


@functools.lru_cache(maxsize=1024)  # boards and metrics have equally many samples
def quantile_ranks(samples: int, share: float, alpha: float) -> tuple[int, int]:
    """Return the ranks (from 1) of the bounds; 0 or ``samples + 1`` where there is no bound."""
    ranks = range(1, samples + 1)

    # the binomial's tails by the incomplete beta function: fewer than a rank's samples below, or that many
    def below(rank: int) -> float:
        return special.betaincc(rank, samples - rank + 1.0, share)

    def at_or_above(rank: int) -> float:
        return special.betainc(rank, samples - rank + 1.0, share)

    low = bisect.bisect_right(ranks, alpha, key=below)
    return low, 1 + bisect.bisect_left(ranks, -alpha, key=lambda rank: -at_or_above(rank))


def fewest_samples(share: float, alpha: float) -> int:
    """Return how many independent samples bound a quantile from both sides, each wrong with ``alpha``."""
    return math.ceil(math.log(alpha) / math.log(max(share, 1.0 - share)))


def ratio_interval(hits: int, samples: int, alpha: float, effect: float = 1.0) -> Interval:
    """Bound a true share, of which ``hits`` in ``samples`` were seen (Clopper-Pearson).

    Both are divided by the design ``effect``. One hit always proves a share above 0, whatever alpha: where
    none is possible, none is seen.
    """
    seen, of = hits / effect, samples / effect
    low = 0.0 if hits == 0 else special.betaincinv(seen, of - seen + 1.0, alpha)
    high = 1.0 if hits == samples else special.betainccinv(seen + 1.0, of - seen, alpha)
    return Interval(low, high)


def tail5_interval(
    values: Sequence[float], alpha: float, seed_text: str, done_us: Sequence[int] | None = None
) -> Interval:
    """Bound tail5: exactly from below, by a bootstrap seeded by ``seed_text`` from above.

    tail5 is the mean of the quantiles above 95 %, and those from 95 to 96 % are p95 at least, and so on: the
    mean of the lower bounds of p95 … p99, each at a fifth of ``alpha``, is a lower bound of tail5 at any
    alpha. The upper bound is a bootstrap's, see mean_interval(): do not rely on it.
    """
    each = alpha / len(_TAIL_SHARES)
    data = np.asarray(values, dtype=np.float64)
    low = mean([_quantile_low(data, share, each, done_us) for share in _TAIL_SHARES])
    return Interval(low, _tail5_high(values, alpha, seed_text))


def _tail5_high(values: Sequence[float], alpha: float, seed_text: str) -> float:
    """Return the quantile 1 - ``alpha`` of tail5 over resamples of single samples.

    Of a resample only its largest values count, and only these are drawn: minus the logarithms of the
    largest of n uniform numbers are sums of exponential ones over n, n - 1, … (Rényi 1953).
    """
    size = tail_size(len(values))
    data = np.sort(np.asarray(values, dtype=np.float64))
    random = np.random.RandomState(_seed(seed_text))
    parts = []
    for rows in _chunks(_resamples(alpha), size):
        steps = random.standard_exponential((rows, size)) / np.arange(len(data), len(data) - size, -1)
        places = np.ceil(len(data) * np.exp(-np.cumsum(steps, axis=1))).astype(np.intp) - 1
        parts.append(data[places].mean(axis=1))
    return float(np.quantile(np.concatenate(parts), 1.0 - alpha))


def mean_interval(values: Sequence[float], alpha: float, seed_text: str) -> Interval:
    """Bound the mean by its percentiles over resamples of single samples, seeded by ``seed_text``.

    It resolves an alpha down to _RESAMPLES_BEYOND_BOUND / _MOST_RESAMPLES = 0.001; below that the bounds are
    about the most extreme resamples and err more often than alpha says. It also takes the samples for
    independent. No bound from it may block.
    """
    data = np.sort(np.asarray(values, dtype=np.float64))
    # RandomState's streams are frozen for good; those of numpy's newer generators may change, and then a
    # replay would not give the same bytes.
    random = np.random.RandomState(_seed(seed_text))
    parts = [
        data[random.randint(0, len(data), size=(rows, len(data)))].mean(axis=1)
        for rows in _chunks(_resamples(alpha), len(data))
    ]
    low, high = np.quantile(np.concatenate(parts), [alpha, 1.0 - alpha])
    return Interval(float(low), float(high))


def _resamples(alpha: float) -> int:
    return min(max(math.ceil(_RESAMPLES_BEYOND_BOUND / alpha), _FEWEST_RESAMPLES), _MOST_RESAMPLES)


def _chunks(rows: int, columns: int) -> list[int]:
    """Return how many rows to draw at a time, so that _CHUNK_VALUES lie in memory."""
    chunk = max(1, _CHUNK_VALUES // columns)
    return [min(chunk, rows - start) for start in range(0, rows, chunk)]


def _seed(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


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
    reach = -special.stdtrit(len(means) - 1, alpha) * error
    centre = math.fsum(data) / len(data)
    return Interval(centre - reach, centre + reach)


def _neighbours(data: np.ndarray, batch_rows: float) -> float:
    """Return the ratio of the mean's variance to the variance of independent batches.

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
    """Return the factor by which the share of hits varies more than in independent trials; at least 1.

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

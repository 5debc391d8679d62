# SPDX-License-Identifier: Apache-2.0
"""Statistics of rows that follow one another: bounds hold as often as they say, one stall proves nothing.

Simulated with a seed; a rate of errors may lie above alpha by three standard errors of the simulation.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from hil.metrics import stats

RUNS = 4000
ALPHA = 0.02


def stream(random: np.random.RandomState, rows: int, rho: float) -> np.ndarray:
    """Return RUNS streams of normal rows with mean 0, each row leaning on the one before (AR(1))."""
    steps = random.standard_normal((RUNS, rows))
    values = np.empty_like(steps)
    values[:, 0] = steps[:, 0]
    for row in range(1, rows):
        values[:, row] = rho * values[:, row - 1] + math.sqrt(1.0 - rho**2) * steps[:, row]
    return values


def most_errors(runs: int, alpha: float) -> float:
    return runs * alpha + 3.0 * math.sqrt(runs * alpha)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [80, 200])
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_the_mean_of_a_stream_is_bounded_at_the_nominal_rate(rows: int, rho: float) -> None:
    """Batches of ten rows: either bound misses the mean at most as often as alpha says, not much less."""
    streams = stream(np.random.RandomState(1), rows, rho)
    found = [stats.batch_mean_interval(list(values), ALPHA) for values in streams]
    for errors in (sum(each.low > 0.0 for each in found), sum(each.high < 0.0 for each in found)):
        assert RUNS * ALPHA / 3 <= errors <= most_errors(RUNS, ALPHA)


@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("stalled", range(0, 80, 5))
def test_one_stall_in_a_stream_proves_nothing(stalled: int, alpha: float) -> None:
    """Ten rows in a row of nothing at all, wherever they lie, do not prove a mean below what it would be."""
    values = np.random.RandomState(2).normal(20.0, 0.2, 80)
    values[stalled : stalled + 10] = 0.0
    assert values.mean() < 19.0
    assert stats.batch_mean_interval(list(values), alpha).high > 20.0


@pytest.mark.parametrize("moving", [0, 1, 15, 16, 40])
def test_a_stall_until_the_end_proves_nothing(moving: int) -> None:
    """A stream that stands still from some row on is one observation, also where no row before it counts."""
    values = [*np.random.RandomState(2).normal(20.0, 0.2, moving), *[0.0] * (80 - moving)]
    found = stats.batch_mean_interval(values, 0.05)
    assert found.high > 20.0
    assert found.low >= 0.0


def test_the_mean_of_rates_is_not_bounded_below_nothing() -> None:
    """Rates are never negative, nor is their mean; what may be negative keeps its bound."""
    values = [0.0] * 12 + [20.0] * 4
    assert stats.batch_mean_interval(values, 0.001).low == 0.0
    assert stats.batch_mean_interval([value - 1.0 for value in values], 0.001).low < 0.0


def test_few_rows_give_no_bound() -> None:
    """Eight batches need two rows each; a row that never ended gives no bound either."""
    assert stats.batch_mean_interval([1.0] * 15, 0.05) == stats.Interval(-math.inf, math.inf)
    assert stats.batch_mean_interval([1.0] * 16, 0.05) == stats.Interval(1.0, 1.0)
    assert stats.batch_mean_interval([1.0] * 99 + [math.inf], 0.05).low == -math.inf


@pytest.mark.parametrize(("rows", "count"), [(16, 8), (89, 8), (90, 9), (155, 15), (5000, 20)])
def test_batches_have_ten_rows_and_are_8_to_20(rows: int, count: int) -> None:
    """More rows make more batches, then larger ones."""
    assert stats.batch_count(rows) == count


def test_a_stream_that_is_slower_throughout_is_proof() -> None:
    """A tenth less in every row is proven at the alpha of a hundred decisions, from 80 rows. That two steady
    boots differ widens the interval far beyond what their rows vary: they are few observations."""
    found = stats.batch_mean_interval(list(np.random.RandomState(3).normal(18.0, 0.5, 80)), 0.01 / 100)
    assert 17.0 < found.low < 18.0 < found.high < 20.0
    random = np.random.RandomState(4)
    found = stats.batch_mean_interval([*random.normal(20.0, 0.1, 80), *random.normal(18.0, 0.1, 80)], 0.01)
    assert found.low < 18.0 < 20.0 < found.high


def shares(hits: np.ndarray, trials: int, alpha: float) -> list[stats.Interval]:
    found = []
    for row in hits:
        effect = stats.overdispersion(list(row), [trials] * len(row))
        found.append(stats.ratio_interval(int(row.sum()), trials * len(row), alpha, effect))
    return found


@pytest.mark.parametrize("kind", ["alone", "bursts", "spells"])
def test_a_share_is_seldom_proven_too_large(kind: str) -> None:
    """Datagrams lost one by one, in bursts within a row, or over three rows: the lower bound keeps alpha."""
    random, runs, rows, trials = np.random.RandomState(5), 1500, 80, 80
    if kind == "alone":
        hits, share = random.binomial(trials, 0.01, (runs, rows)), 0.01
    elif kind == "bursts":
        hits, share = (random.random_sample((runs, rows)) < 0.05) * 40, 0.05 * 40 / trials
    else:
        starts = random.random_sample((runs, rows + 2)) < 0.03
        hits, share = (starts[:, 2:] | starts[:, 1:-1] | starts[:, :-2]) * 30, (1 - 0.97**3) * 30 / trials
    errors = sum(found.low > share for found in shares(hits, trials, ALPHA))
    assert errors <= most_errors(runs, ALPHA)


def test_one_burst_is_one_observation() -> None:
    """400 of 8000 lost in one go prove no more than a trace; spread over the stream they prove percents."""
    burst = [0] * 20
    burst[7] = 400
    trials = [400] * 20
    for lost, low, high in ((burst, 0.0, 0.0005), ([20] * 20, 0.03, 0.05)):
        effect = stats.overdispersion(lost, trials)
        assert low < stats.ratio_interval(400, 8000, 1e-4, effect).low < high


@pytest.mark.parametrize(
    ("hits", "trials"),
    [([0] * 30, [10] * 30), ([10] * 30, [10] * 30), ([3], [10]), ([], []), ([5, 0, 5], [10, 0, 10])],
)
def test_what_does_not_vary_more_than_chance_is_left_as_it_is(hits: list[int], trials: list[int]) -> None:
    """No hits, nothing but hits, a single row and rows without trials show no overdispersion."""
    assert stats.overdispersion(hits, trials) == 1.0

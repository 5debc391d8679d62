# SPDX-License-Identifier: Apache-2.0
"""Estimates and intervals: definitions, coverage at the nominal rate, values that were never seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from hil.base import special
from hil.metrics import stats

VALUES = st.lists(st.integers(0, 10**9).map(float), min_size=1, max_size=200)


@given(VALUES, st.floats(0.0, 1.0))
def test_the_reported_quantile_is_numpys_type_7(values: list[float], share: float) -> None:
    """Two independent implementations of the same definition agree."""
    assert stats.quantile(values, share) == pytest.approx(float(np.quantile(values, share)), abs=1e-3)


def test_a_quantile_among_timeouts_is_infinite() -> None:
    """With 6 % never seen, p95 is not a number but "slower than everything seen"; p90 still is one."""
    values = [7.0] * 94 + [math.inf] * 6
    assert stats.quantile(values, 0.95) == math.inf
    assert stats.quantile(values, 0.90) == 7.0


def test_tail5_is_the_mean_of_the_slowest_twentieth() -> None:
    """Of 1…100 the slowest five are 96…100; a part of a sample counts as a whole one."""
    assert stats.tail5([float(n) for n in range(1, 101)]) == 98.0
    assert stats.tail_size(101) == 6
    assert stats.tail5([3.0]) == 3.0


@pytest.mark.parametrize("function", [stats.tail5, stats.mean, lambda values: stats.quantile(values, 0.5)])
def test_no_values_are_an_error(function: object) -> None:
    """A statistic of nothing is refused, never zero."""
    with pytest.raises(ValueError, match="at least one value"):
        function([])  # type: ignore[operator]


@pytest.mark.parametrize(("share", "samples"), [(0.5, 40), (0.95, 200), (0.99, 200)])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_quantile_ranks_are_the_tightest_that_keep_alpha(share: float, samples: int, alpha: float) -> None:
    """Each bound errs with probability alpha at most, and the next rank inward would exceed it."""
    low, high = stats.quantile_ranks(samples, share, alpha)
    assert scipy.stats.binom.cdf(low - 1, samples, share) <= alpha
    assert scipy.stats.binom.cdf(low, samples, share) > alpha
    assert scipy.stats.binom.sf(high - 1, samples, share) <= alpha
    assert scipy.stats.binom.sf(high - 2, samples, share) > alpha


@pytest.mark.parametrize("share", [0.5, 0.95, 0.99])
def test_quantile_intervals_cover_at_the_nominal_rate(share: float) -> None:
    """Of 4,000 simulated series (log-normal, n = 200) each bound misses the truth in at most alpha = 5 %.

    The allowance is four standard errors of such a simulation.
    """
    random = np.random.RandomState(1)
    truth = math.exp(scipy.stats.norm.ppf(share))
    alpha, runs = 0.05, 4000
    low_rank, high_rank = stats.quantile_ranks(200, share, alpha)
    series = np.sort(np.exp(random.standard_normal((runs, 200))), axis=1)
    too_high = float(np.mean(series[:, low_rank - 1] > truth))
    too_low = float(np.mean(series[:, high_rank - 1] < truth)) if high_rank <= 200 else 0.0
    allowance = 4 * math.sqrt(alpha * (1 - alpha) / runs)
    assert too_high <= alpha + allowance
    assert too_low <= alpha + allowance
    assert too_high > alpha / 5, "a bound that never errs is wider than it needs to be"


@given(
    st.floats(1e-3, 400.0),
    st.floats(1.0, 400.0),
    st.floats(0.0, 1.0),
    st.floats(-12.0, 0.0).map(lambda n: 10**n),
)
def test_a_tail_that_is_bounded_is_compared_as_if_it_were_computed(
    a: float, b: float, x: float, most: float
) -> None:
    """The series' bound says of no incomplete beta function that it is smaller than it is."""
    assert special.betainc_within(a, b, x, most) == (special.betainc(a, b, x) <= most)


def test_a_bound_is_missing_where_the_samples_give_none() -> None:
    """Twenty samples say nothing about how large p99 may be."""
    interval = stats.quantile_interval([float(n) for n in range(20)], 0.99, 0.01)
    assert interval.high == math.inf
    assert interval.low > 0


@given(st.integers(1, 500), st.data(), st.sampled_from([0.05, 0.001]))
def test_ratio_intervals_invert_the_binomial_test(samples: int, data: st.DataObject, alpha: float) -> None:
    """At its lower bound the hits seen, or more, have probability alpha; at its upper, as few."""
    hits = data.draw(st.integers(0, samples))
    interval = stats.ratio_interval(hits, samples, alpha)
    assert 0.0 <= interval.low <= hits / samples <= interval.high <= 1.0
    if hits > 0:
        assert scipy.stats.binom.sf(hits - 1, samples, interval.low) == pytest.approx(alpha, rel=1e-6)
    if hits < samples:
        assert scipy.stats.binom.cdf(hits, samples, interval.high) == pytest.approx(alpha, rel=1e-6)


def test_bootstrap_intervals_depend_on_values_and_seed_alone() -> None:
    """The same seed gives the same bytes whatever the order of the samples; another seed gives others."""
    values = [math.exp(math.sin(n)) for n in range(200)]
    first = stats.tail5_interval(values, 0.01, "run/series")
    assert stats.tail5_interval(values[::-1], 0.01, "run/series") == first
    assert stats.tail5_interval(values, 0.01, "run/other") != first
    assert first.low <= stats.tail5(values) <= first.high


@pytest.mark.parametrize("samples", [1, 20, 60, 1000])
def test_the_bootstrap_of_a_tail_is_that_of_whole_resamples(samples: int) -> None:
    """Drawn by its largest values alone, tail5 has the upper bound of whole resamples, within 1.5 %."""
    random = np.random.RandomState(8)
    values = np.exp(0.4 * random.standard_normal(samples))
    size = stats.tail_size(samples)
    whole = np.sort(values[random.randint(0, samples, size=(4000, samples))], axis=1)[:, -size:].mean(axis=1)
    interval = stats.tail5_interval(list(values), 0.05, "run/series")
    assert interval.high == pytest.approx(np.quantile(whole, 0.95), rel=0.015)
    assert stats.tail5_interval(list(values[::-1]), 0.05, "run/series") == interval


@pytest.mark.slow
def test_the_bootstrap_of_a_mean_covers_about_as_often_as_it_says() -> None:
    """Of 200 simulated series (normal, n = 100) the 5 % bounds miss the mean in fewer than 20 %."""
    random = np.random.RandomState(2)
    misses = 0
    for run in range(200):
        interval = stats.mean_interval(list(random.standard_normal(100)), 0.05, str(run))
        misses += not interval.low <= 0.0 <= interval.high
    assert 4 <= misses <= 40


def queue(
    random: np.random.RandomState, count: int, interval_us: int, service_us: float, stall_us: int = 0
) -> tuple[list[float], list[int]]:
    """Send one message after another; for ``stall_us`` from a random moment none gets through.

    Returns latencies and when each was done; intervals and service times vary as on the virtual rack.
    """
    planned = np.cumsum(interval_us * random.uniform(0.5, 1.5, count))
    stall = random.uniform(0, planned[-1])
    latencies, free = [], 0.0
    for start in planned:
        begin = max(start, free)
        if stall <= begin < stall + stall_us:
            begin = stall + stall_us
        free = begin + random.normal(service_us, service_us / 10)
        latencies.append(float(free - start))
    return latencies, [round(start + late) for start, late in zip(planned, latencies, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [60, *(pytest.param(count, marks=pytest.mark.heavy) for count in (100, 200))]
)
@pytest.mark.parametrize("stall_us", [250_000, 350_000, 500_000])
def test_one_stall_proves_nothing(count: int, stall_us: int) -> None:
    """One stall of up to 500 ms in 2 s of messages is one episode, at the mildest alpha of a run with limits.

    Taken for independent, the same samples would be proof in most of the 100 runs.
    """
    random = np.random.RandomState(3)
    fooled = 0
    for _ in range(100):
        latencies, done_us = queue(random, count, 20_000, 6_500, stall_us)
        assert stats.quantile_interval(latencies, 0.95, 0.01 / 3, done_us).low < 25_000
        assert stats.tail5_interval(latencies, 0.01 / 3, "stall", done_us).low < 40_000
        fooled += stats.quantile_interval(latencies, 0.95, 0.01 / 76).low > 25_000
    assert count == 200 or fooled > 50


def test_a_slow_half_second_of_different_latencies_is_one_episode_too() -> None:
    """What takes 30 to 300 ms at random in one stretch does not become several episodes at higher values."""
    random = np.random.RandomState(7)
    done_us = list(range(0, 100 * 20_000, 20_000))
    for _ in range(100):
        latencies = random.normal(6_500, 650, 100)
        start = random.randint(0, 75)
        latencies[start : start + 25] = random.uniform(30_000, 300_000, 25)
        assert stats.quantile_interval(list(latencies), 0.95, 0.01 / 3, done_us).low < 25_000
        assert stats.quantile_interval(list(latencies), 0.95, 0.01 / 3).low > 25_000


@pytest.mark.parametrize(
    ("count", "interval_us", "decisions"), [(100, 20_000, 76), (200, 20_000, 76), (60, 5_000, 3)]
)
def test_a_delay_of_each_message_is_proof(count: int, interval_us: int, decisions: int) -> None:
    """20 ms more on every message is proof in each of 100 runs, also where they queue behind one another."""
    random = np.random.RandomState(4)
    for _ in range(100):
        latencies, done_us = queue(random, count, interval_us, 6_500)
        latencies = [late + 20_000 for late in latencies]
        if interval_us < 20_000:
            latencies, done_us = queue(random, count, interval_us, 26_500)
        else:
            done_us = [time + 20_000 for time in done_us]
        assert stats.quantile_interval(latencies, 0.95, 0.01 / decisions, done_us).low > 25_000


@pytest.mark.slow
def test_counting_episodes_keeps_the_nominal_rate_of_independent_samples() -> None:
    """Of 1,000 series (log-normal, n = 100) the bounds miss p95 in at most alpha = 5 %, and not never.

    Bounds are never inside those of independent samples. The allowance is four standard errors.
    """
    random = np.random.RandomState(5)
    truth, alpha, runs = math.exp(scipy.stats.norm.ppf(0.95)), 0.05, 1000
    done_us = list(range(0, 100 * 20_000, 20_000))
    too_high = 0
    for _ in range(runs):
        values = list(np.exp(random.standard_normal(100)))
        found = stats.quantile_interval(values, 0.95, alpha, done_us)
        independent = stats.quantile_interval(values, 0.95, alpha)
        assert found.low <= independent.low < independent.high <= found.high
        too_high += found.low > truth
    assert alpha / 10 < too_high / runs <= alpha + 4 * math.sqrt(alpha * (1 - alpha) / runs)


@pytest.mark.slow
def test_the_lower_bound_of_tail5_holds_at_any_alpha() -> None:
    """Of 150 series (log-normal, n = 200) it exceeds the true tail5 in at most alpha.

    A smaller alpha, which no bootstrap resolves, lowers it further.
    """
    random = np.random.RandomState(6)
    truth = 20 * math.exp(0.5) * scipy.stats.norm.sf(scipy.stats.norm.ppf(0.95) - 1)
    lows = []
    for _ in range(150):
        values = list(np.exp(random.standard_normal(200)))
        low = stats.tail5_interval(values, 0.05, "run").low
        assert low < stats.tail5(values)
        lows.append(low)
    assert sum(low > truth for low in lows) / len(lows) <= 0.05
    assert stats.tail5_interval(values, 1e-4, "run").low < lows[-1]


def test_the_design_effect_is_the_size_of_an_episode() -> None:
    """Ten in a row are one episode, five pairs are pairs; half a second between the ends parts an episode."""
    row, pairs = np.arange(30) < 10, np.arange(30) % 6 < 2
    quick, slow = list(range(0, 300_000, 10_000)), list(range(0, 3_000_000, 100_000))
    assert stats.design_effect(row, quick) == 10.0
    assert stats.design_effect(pairs, quick) == 2.0
    assert stats.design_effect(row, slow) == 5.0
    assert stats.design_effect(row, None) == 1.0
    assert stats.design_effect(row, quick, 0.5) == pytest.approx(10 / 3)

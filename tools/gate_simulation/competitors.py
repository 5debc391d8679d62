# SPDX-License-Identifier: Apache-2.0
"""The other rules, each as its documentation or source has it. Scores are (pull requests, metrics)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from otava.analysis import compute_change_points
from scipy import stats

from tools.gate_simulation.evidence import Evidence, summary
from tools.gate_simulation.samples import pooled_mann_whitney, pooled_t, welch_on_boots
from tools.gate_simulation.suite import INDEX, METRICS

ALL_METRICS = tuple(range(len(METRICS)))
# A test of samples judges a case once, whatever the number of metrics: fewer chances to be wrong.
ONE_A_CASE = tuple(
    INDEX[name]
    for name in ("publish/median", "request/median", "connect/median", "stream/throughput", "stream/loss")
)
ALPHA_A_DECISION = 0.001  # as our gate: 1 % over ten metrics

OTAVA_WINDOW = 50
OTAVA_LEVELS = (0.03, 0.01, 0.005, 0.002, 0.001, 5e-4, 2e-4, 1e-4, 5e-5, 1e-5, 1e-6, 1e-8)
OTAVA_MAGNITUDE = 0.03

Score = Callable[[Evidence, list[int]], np.ndarray]


@dataclass(frozen=True)
class Rule:
    """``family`` are the metrics by which it judges a pull request; a ``slow`` rule judges fewer of them."""

    name: str
    threshold: float
    score: Score
    family: tuple[int, ...] = ALL_METRICS
    slow: bool = False


def ratio(evidence: Evidence, metrics: list[int]) -> np.ndarray:
    """github-action-benchmark: the value over the previous run's."""
    return evidence.value(metrics) / evidence.history(metrics)[..., -1]


def prediction_interval(evidence: Evidence, metrics: list[int]) -> np.ndarray:
    """Bencher's t test: where a new value lies in the interval that the history predicts."""
    history = evidence.history(metrics)
    count = history.shape[-1]
    deviation = history.std(axis=-1, ddof=1) * np.sqrt(1 + 1 / count)
    return np.asarray(stats.t.cdf((evidence.value(metrics) - history.mean(axis=-1)) / deviation, count - 1))


def rolling_z(evidence: Evidence, metrics: list[int]) -> np.ndarray:
    """conbench: deviations from the mean of the last commits (at most 100; here 30 nights)."""
    history = evidence.history(metrics)
    return np.asarray((evidence.value(metrics) - history.mean(axis=-1)) / history.std(axis=-1, ddof=1))


def quartiles(evidence: Evidence, metrics: list[int]) -> np.ndarray:
    """rustc-perf: the change from the commit before, in interquartile ranges beyond Q3 of changes."""
    history = evidence.history(metrics)
    changes = np.abs(np.diff(history, axis=-1) / history[..., :-1])
    first, third = np.quantile(changes, (0.25, 0.75), axis=-1)
    return np.asarray((evidence.value(metrics) / history[..., -1] - 1 - third) / (third - first))


def change_score(nights: np.ndarray, points: np.ndarray, magnitude: float, after: int) -> float:
    """Return −log10 of the least p by which Otava sees a change for the worse in the pull request's points.

    At least ``after`` points lie behind the change. Otava's own code; it wants a list.
    """
    series = [float(value) for value in (*nights, *points)]
    score = 0.0
    for level in OTAVA_LEVELS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it divides by the deviation of a single point
            found, _ = compute_change_points(
                series, window_len=OTAVA_WINDOW, max_pvalue=level, min_magnitude=magnitude
            )
        worse = [
            point for point in found if point.index >= len(nights) and point.stats.mean_2 > point.stats.mean_1
        ]
        if not any(len(series) - point.index >= after for point in worse):
            break
        score = -np.log10(level)
    return score


def otava_defaults(evidence: Evidence, metrics: list[int]) -> np.ndarray:
    """Otava with its defaults: the pull request is one more point behind the nights."""
    history, value = evidence.history(metrics), evidence.value(metrics)
    return np.array(
        [
            [change_score(history[i, j], value[i, j : j + 1], 0.0, 1) for j in range(len(metrics))]
            for i in range(len(value))
        ]
    )


def otava_tuned(evidence: Evidence, metrics: list[int]) -> np.ndarray:
    """Otava on ratios to a reference measured in the same run; a pull request is two points."""
    candidate, other = evidence.pair()
    middle = evidence.half // 2
    points = np.stack(
        [
            summary(candidate[..., part]) - summary(other[..., part])
            for part in (slice(0, middle), slice(middle, None))
        ],
        axis=-1,
    )[:, metrics]
    nights = evidence.nights.ratio[:, metrics]
    points, nights = np.exp(points), np.exp(nights)
    return np.array(
        [
            [change_score(nights[i, j], points[i, j], OTAVA_MAGNITUDE, 2) for j in range(len(metrics))]
            for i in range(len(points))
        ]
    )


NORMAL_BOUND = float(stats.norm.isf(ALPHA_A_DECISION))

RULES = (
    Rule("Otava", 2.9, otava_defaults, slow=True),
    Rule("Otava tuned", 3.9, otava_tuned, slow=True),
    Rule("Bencher t", 0.99, prediction_interval),
    Rule("ratio 200 %", 2.0, ratio),
    Rule("conbench z", 5.0, rolling_z),
    Rule("rustc-perf IQR", 3.0, quartiles),
    Rule("pooled MWU", NORMAL_BOUND, pooled_mann_whitney, ONE_A_CASE),
    Rule("pooled t", NORMAL_BOUND, pooled_t, ONE_A_CASE),
    Rule("Welch boots", NORMAL_BOUND, welch_on_boots),
)

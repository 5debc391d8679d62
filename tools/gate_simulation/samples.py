# SPDX-License-Identifier: Apache-2.0
"""Rules that compare candidate and base of the same run: by pooled samples, and by boots."""

from __future__ import annotations

import numpy as np
from scipy import stats

from tools.gate_simulation.draws import Boots
from tools.gate_simulation.evidence import Evidence
from tools.gate_simulation.suite import (
    CASES,
    DATAGRAMS,
    INDEX,
    LATENCY_CASES,
    METRICS,
    THROUGHPUT_INTERVALS,
    THROUGHPUT_SIGMA,
    UNCHANGED,
    Effect,
)

BIN = 0.0025  # of log ms: samples closer than a quarter of a per cent are ties
LOWEST, BINS = np.log(0.5), 5200  # to 220 s


def pooled_t(evidence: Evidence, metrics: list[int]) -> np.ndarray:
    """Welch's t of all samples of the candidate against all of the base, as if they were independent."""
    return np.stack([_t_of(evidence, metric) for metric in metrics], axis=1)


def pooled_mann_whitney(evidence: Evidence, metrics: list[int]) -> np.ndarray:
    """Mann-Whitney's z of all samples, as benchstat; throughput and loss by t."""
    scores = [
        _rank_z(evidence, METRICS[metric].case)
        if METRICS[metric].case in LATENCY_CASES
        else _t_of(evidence, metric)
        for metric in metrics
    ]
    return np.stack(scores, axis=1)


def _t_of(evidence: Evidence, metric: int) -> np.ndarray:
    case = METRICS[metric].case
    if case in LATENCY_CASES:
        mine, base = evidence.draw.samples(((evidence.half, evidence.half),), evidence.effect)
        return two_sample_t(
            *_moments(evidence, mine, case, evidence.effect), *_moments(evidence, base, case, UNCHANGED)
        )
    mine_values, base_values = evidence.pair()
    return two_sample_t(*_stream_moments(mine_values, metric), *_stream_moments(base_values, metric))


def two_sample_t(
    mean: np.ndarray,
    variance: np.ndarray,
    count: int,
    other: np.ndarray,
    other_variance: np.ndarray,
    others: int,
) -> np.ndarray:
    """Return Welch's t; with thousands of samples it is normal."""
    return np.asarray((mean - other) / np.sqrt(variance / count + other_variance / others))


def _moments(
    evidence: Evidence, boots: Boots, case: str, effect: Effect
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return mean, variance and number of a case's samples, from the moments of the pool's boots."""
    pool = evidence.draw.pool(effect if case == "publish" else UNCHANGED)
    index = CASES.index(case)
    offset, pooled = boots.offset[:, index], boots.pooled[:, index]
    first = (np.exp(offset) * pool.mean[pooled]).mean(axis=(1, 2))
    second = (np.exp(2 * offset) * pool.mean_square[pooled]).mean(axis=(1, 2))
    return first, second - first**2, offset[0].size * pool.samples.shape[1]


def _stream_moments(values: np.ndarray, metric: int) -> tuple[np.ndarray, np.ndarray, int]:
    boots = values[:, metric].reshape(len(values), -1)
    if metric == INDEX["stream/loss"]:
        share = boots.mean(axis=1) / DATAGRAMS
        return share, share * (1 - share), boots.shape[1] * DATAGRAMS
    return boots.mean(axis=1), boots.var(axis=1) + THROUGHPUT_SIGMA**2, boots.shape[1] * THROUGHPUT_INTERVALS


def _rank_z(evidence: Evidence, case: str) -> np.ndarray:
    mine, base = evidence.draw.samples(((evidence.half, evidence.half),), evidence.effect)
    return rank_z(
        _histogram(evidence, mine, case, evidence.effect), _histogram(evidence, base, case, UNCHANGED)
    )


def _histogram(evidence: Evidence, boots: Boots, case: str, effect: Effect) -> np.ndarray:
    """Return the samples of each pull request counted in bins, (pull requests, BINS)."""
    pool = evidence.draw.pool(effect if case == "publish" else UNCHANGED)
    index = CASES.index(case)
    offset, pooled = boots.offset[:, index], boots.pooled[:, index]
    counts = np.empty((len(offset), BINS), dtype=np.int64)
    logs = pool.logs
    for number in range(len(offset)):
        values = logs[pooled[number].ravel()] + offset[number].ravel()[:, None]
        bins = ((values - LOWEST) / BIN).astype(np.int64).clip(0, BINS - 1)
        counts[number] = np.bincount(bins.ravel(), minlength=BINS)
    return counts


def rank_z(mine: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Return Mann-Whitney's z, ties corrected, of counts a bin; positive where ``mine`` is larger."""
    ours, theirs = mine.sum(axis=1), base.sum(axis=1)
    below = np.cumsum(base, axis=1) - base / 2
    statistic = (mine * below).sum(axis=1)
    both, total = (mine + base).astype(float), (ours + theirs).astype(float)
    ties = ((both**3 - both).sum(axis=1)) / (total * (total - 1))
    variance = ours * theirs / 12 * (total + 1 - ties)
    return np.asarray((statistic - ours * theirs / 2) / np.sqrt(variance))


def welch_on_boots(evidence: Evidence, metrics: list[int]) -> np.ndarray:
    """Welch's t of boot values, each board its own difference; as the normal deviate of its p."""
    candidate, other = evidence.pair()
    return stratified_welch(candidate[:, metrics], other[:, metrics])


def stratified_welch(candidate: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the deviate of (…, boards, boots) against (…, boards, boots)."""
    difference = (candidate.mean(axis=-1) - other.mean(axis=-1)).mean(axis=-1)
    boots, boards = candidate.shape[-1], candidate.shape[-2]
    parts = [values.var(axis=-1, ddof=1).mean(axis=-1) / (boots * boards) for values in (candidate, other)]
    variance = np.maximum(parts[0] + parts[1], 1e-12)
    freedom = variance**2 / ((parts[0] ** 2 + parts[1] ** 2) / (boards * (boots - 1)) + 1e-30)
    return np.asarray(-stats.norm.ppf(stats.t.sf(difference / np.sqrt(variance), freedom)))

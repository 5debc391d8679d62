# SPDX-License-Identifier: Apache-2.0
"""The simulated rack: how samples, boots and sessions scatter.

A sample is a Wi-Fi round trip, the body log-normal and a share of rows with a log-normal spike on top, fitted
to quantiles published for an ESP32's ping. Every boot shifts all its samples, every session all its boots.
Offsets are natural logarithms throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

QUANTILES = (0.5, 0.9, 0.95, 0.99)
PUBLISHED_MS = (13.3, 23.6, 30.6, 47.0)

SAMPLES = 100  # rows a boot and case
BOOTS_A_NIGHT = 6  # a board

# Fitted by least squares of log quantiles; tests/tools/test_gate_simulation.py checks the fit.
BODY_MS, BODY_SIGMA = 12.858, 0.3450
SPIKE_SHARE, SPIKE_MS, SPIKE_SIGMA = 0.0718, 19.67, 0.4418

# Spikes come and go: their share differs between boots by this (log-normal). An assumption.
SPIKE_SHARE_SIGMA = 0.3

BAD_BOOT_FACTOR = 3.5

# Half of a boot's variance is common to its cases; half of a session's to its boards, and half to its cases.
COMMON = 0.5


@dataclass(frozen=True)
class NoiseClass:
    """Standard deviations of boots and sessions; ``bad_share`` of boots have 3.5 times the former."""

    boot: float
    session: float
    bad_share: float = 0.05


QUIET = NoiseClass(0.02, 0.01)
TYPICAL = NoiseClass(0.04, 0.03)
NOISY = NoiseClass(0.08, 0.06)
TIGHT = NoiseClass(0.005, 0.03, bad_share=0.0)


def draw_samples(
    rng: np.random.Generator, boots: int, tail: float = 1.0, spikes: float = 1.0, count: int = SAMPLES
) -> np.ndarray:
    """Return round trips in ms, shape (boots, count), of boots without an offset.

    ``tail`` stretches the spikes, ``spikes`` multiplies how often they come.
    """
    shape = (boots, count)
    body = BODY_MS * np.exp(BODY_SIGMA * rng.standard_normal(shape, dtype=np.float32))
    sigma = SPIKE_SHARE_SIGMA
    share = SPIKE_SHARE * spikes * np.exp(sigma * rng.standard_normal((boots, 1)) - sigma**2 / 2)
    spike = SPIKE_MS * tail * np.exp(SPIKE_SIGMA * rng.standard_normal(shape, dtype=np.float32))
    return np.asarray(body + spike * (rng.random(shape) < share), dtype=np.float32)


@dataclass(frozen=True)
class Pool:
    """Boots without an offset; a simulated boot is one of these, shifted. Statistics are logarithms of ms.

    Drawing boots from a pool instead of their samples anew makes 10,000 pull requests a matter of seconds.
    """

    samples: np.ndarray  # (boots, samples), ms, ascending
    statistics: dict[str, np.ndarray]  # each (boots,)
    mean: np.ndarray
    mean_square: np.ndarray
    logs: np.ndarray  # of the samples


def tail_mean(ascending: np.ndarray) -> np.ndarray:
    """Return the mean of the slowest 5 % of each row."""
    first = round(0.95 * ascending.shape[-1])
    return np.asarray(ascending[..., first:].mean(axis=-1))


@cache
def pool(seed: int, boots: int, tail: float = 1.0, spikes: float = 1.0, count: int = SAMPLES) -> Pool:
    """Return boots drawn by ``seed``; the same random numbers whatever ``tail`` and ``spikes`` are."""
    samples = draw_samples(np.random.default_rng(seed), boots, tail, spikes, count)
    samples.sort(axis=1)
    statistics = {
        "median": np.log(np.median(samples, axis=1)),
        "p95": np.log(np.quantile(samples, 0.95, axis=1)),
        "tail5": np.log(tail_mean(samples)),
    }
    statistics = {name: values.astype(np.float32) for name, values in statistics.items()}
    square = (samples.astype(float) ** 2).mean(axis=1)
    return Pool(samples, statistics, samples.mean(axis=1), square, np.log(samples))

# SPDX-License-Identifier: Apache-2.0
"""The noise: what each boot of a simulated run measures.

A sample is the median times exp(0.40 T), T of Student's t with 5 degrees of freedom, at most 14 times the
median: p90, p95 and p99 of an ESP32's ping as published, within 9 %. With 4 % between boots and 100 samples
p50 of boots differs by 7 %, p95 by 14 % and tail5 by 26 %. Boots scatter by Student's t as well, half of the
variance common to all cases of a boot; in one boot of twenty 2.2 times as wide.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from hil.metrics.metric import Metric
from hil.model import Case
from tools.gate_simulation.racks import Effect, Rack

CENTRE = 13_300  # the median, in the unit of the column: 13.3 ms
FREEDOM, SPREAD, MOST = 5, 0.40, np.log(14.0)
LIGHT_SPREAD = 0.35
COARSE_CENTRE = 20_000  # where a clock is coarse
BAD_BOOTS, BAD_FACTOR = 0.05, 2.2
STALL = (1.2, 3.0)
RATE_SPREAD = 0.03  # of what a boot's throughput differs by itself
POOL = 4000
USUAL_SAMPLES = 50
SCALES = ("log", "identity")  # of what has noise

Statistics = Mapping[str, np.ndarray]  # (boards, boots) each


@dataclass(frozen=True)
class Turns:
    """Whose turn each boot is, (boards, boots): the candidate's or not, and the slot it runs from."""

    candidate: np.ndarray
    slot: np.ndarray


@functools.cache
def pool(samples: int, light: bool = False) -> np.ndarray:
    """Return boots of so many samples without an offset: logarithms over the median, ascending.

    A boot is one of these, shifted: to draw all samples anew would take most of the time.
    """
    rng = np.random.default_rng((samples, light))
    shape = (POOL, samples)
    drawn = LIGHT_SPREAD * rng.standard_normal(shape) if light else SPREAD * rng.standard_t(FREEDOM, shape)
    return np.sort(np.minimum(drawn, MOST), axis=1)


def shared_offsets(rack: Rack, turns: Turns, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return what all cases of a boot have in common, and how much each scatters by itself."""
    shape = turns.candidate.shape
    scale = np.sqrt(0.5) * rack.boot * np.where(rng.random(shape) < BAD_BOOTS, BAD_FACTOR, 1.0)
    share, slower = rack.modes
    offset = scale * _student(rng, shape) + np.log1p(slower) * (rng.random(shape) < share)
    offset += np.log(rng.uniform(*STALL, shape)) * (rng.random(shape) < rack.stalls)
    steps = np.log1p(rack.drift) * np.arange(shape[1]) + np.log1p(rack.slot) * turns.slot
    steps[1 if not rack.everywhere else shape[0] :] = 0.0
    return offset + steps, scale


def _student(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return values of Student's t with a variance of 1."""
    return np.asarray(rng.standard_t(FREEDOM, shape) * np.sqrt((FREEDOM - 2) / FREEDOM))


@dataclass(frozen=True)
class Boots:
    """The boots of one leg of one pull request, before a change is made: all cases have ``shared`` in common.

    ``scale`` is how much each scatters by itself.
    """

    rack: Rack
    turns: Turns
    seed: tuple[int, ...]
    shared: np.ndarray
    scale: np.ndarray

    @classmethod
    def drawn(cls, rack: Rack, turns: Turns, seed: tuple[int, ...]) -> Boots:
        return cls(rack, turns, seed, *shared_offsets(rack, turns, np.random.default_rng(seed)))

    def measured(self, case: Case, metrics: Iterable[Metric], effect: Effect) -> Mapping[str, Statistics]:
        """Return the statistics of a case, by column and name. An ``effect`` draws nothing anew."""
        seed = (*self.seed, zlib.crc32(case.case_id.encode()))
        rng, shape = np.random.default_rng(seed), self.turns.candidate.shape
        offset = self.shared + self.scale * _student(rng, shape)
        hit = np.random.default_rng((*seed, 1)).random(shape) < effect.boots
        offset = offset + np.log1p(effect.slower) * (hit & self.turns.candidate)
        columns: dict[str, list[Metric]] = {}
        for metric in metrics:
            if metric.scale in SCALES:
                columns.setdefault(metric.terms[0].column, []).append(metric)
        return {column: self._drawn(rng, offset, own, case, effect) for column, own in columns.items()}

    def _drawn(
        self, rng: np.random.Generator, offset: np.ndarray, metrics: list[Metric], case: Case, effect: Effect
    ) -> Statistics:
        """Return the statistics by which a column is compared."""
        names = [metric.statistic for metric in metrics]
        if metrics[0].direction == "higher":
            return dict.fromkeys(
                names, CENTRE * np.exp(RATE_SPREAD * rng.standard_normal(offset.shape) - offset)
            )
        table = pool(self.rack.samples or samples_of(case), self.rack.light)
        logs = table[rng.integers(POOL, size=offset.shape)] + offset[..., np.newaxis]
        found = statistics_of(_read(_with_tail(logs, self.turns.candidate, effect.tail), self.rack.quantum))
        return {name: found[name] for name in names}


def samples_of(case: Case) -> int:
    """Return how many samples a boot of a case has."""
    count = case.parameters.get("count")
    return count if isinstance(count, int) else USUAL_SAMPLES


def _with_tail(logs: np.ndarray, candidate: np.ndarray, tail: tuple[float, float]) -> np.ndarray:
    """Stretch the slowest share of the candidate's samples."""
    slow = round(tail[0] * logs.shape[-1])
    if slow:
        logs[..., -slow:] += np.log(tail[1]) * candidate[..., np.newaxis]
    return logs


def _read(logs: np.ndarray, quantum: float) -> np.ndarray:
    """Return what a clock reads."""
    if not quantum:
        return np.asarray(CENTRE * np.exp(logs))
    step = quantum * COARSE_CENTRE
    return np.asarray(np.maximum(np.rint(COARSE_CENTRE * np.exp(logs) / step), 1.0) * step)


def statistics_of(samples: np.ndarray) -> Statistics:
    """Return the statistics that suites compare by, of ascending samples."""
    count = samples.shape[-1]
    return {
        "p50": np.median(samples, axis=-1),
        "p95": np.quantile(samples, 0.95, axis=-1),
        "tail5": samples[..., -max(1, -(-count // 20)) :].mean(axis=-1),
    }

# SPDX-License-Identifier: Apache-2.0
"""Simulated pull requests: histories and boots of candidate and base, with everything that plagues a rack."""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import stats

from tests.tools.gate_simulation.model import (
    BAD_BOOT_FACTOR,
    BOOTS_A_NIGHT,
    COMMON,
    TYPICAL,
    NoiseClass,
    Pool,
    pool,
)
from tests.tools.gate_simulation.suite import (
    CASES,
    DATAGRAMS,
    LATENCY_CASES,
    LOSS_PER_OFFSET,
    LOSS_SHARE,
    LOSS_SIGMA,
    METRICS,
    THROUGHPUT_INTERVALS,
    THROUGHPUT_SIGMA,
    UNCHANGED,
    Effect,
)

CANDIDATE_BOOTS, OTHER_BOOTS = 24, 16  # a board; no rule gets more
CREEP_NIGHTS = 30
BISTABLE_SHARE = 0.3


@dataclass(frozen=True)
class Environment:
    """A rack and what befalls it. Offsets are natural logarithms.

    ``sessions`` nights are in the accepted epoch; main has then crept by ``creep`` over 30 nights. Boots are
    in one of two states ``bistable`` apart. The first board drifts by ``drift`` a boot, its level steps by
    ``step`` in the middle of the run, or the candidate's slot is slower by ``odd`` on it.
    """

    name: str
    noise: NoiseClass = TYPICAL
    sessions: int = 30
    boards: int = 4
    creep: float = 0.0
    bistable: float = 0.0
    drift: float = 0.0
    step: float = 0.0
    odd: float = 0.0


@dataclass(frozen=True)
class Boots:
    """Boots before an effect, (pull requests, cases, boards, …); of throughput and loss without the cases."""

    offset: np.ndarray
    pooled: np.ndarray
    loss_rate: np.ndarray
    loss_luck: np.ndarray
    throughput_noise: np.ndarray


def interleaved(candidates: int, others: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places in the run of candidate's and other's boots: CBC or CBBC, again and again."""
    turns = np.arange(candidates)
    mine = (turns + 0.5) / candidates + np.where(turns % 2, 1e-9, -1e-9)
    where = np.concatenate([mine, (np.arange(others) + 0.5) / max(others, 1)])
    rank = np.empty(len(where))
    rank[np.argsort(where)] = np.arange(len(where))
    return rank[:candidates], rank[candidates:]


def _first(boots: Boots, count: int) -> Boots:
    return Boots(*(getattr(boots, field.name)[:count] for field in fields(Boots)))


class Draw:
    """``count`` pull requests in an environment; effects are put upon the same random numbers."""

    def __init__(self, environment: Environment, count: int, seed: tuple[int, ...], pool_boots: int) -> None:
        self.environment = environment
        self.count = count
        self.seed, self.pool_boots = seed, pool_boots
        self.rng = np.random.default_rng(seed)
        nights = environment.sessions + (CREEP_NIGHTS if environment.creep and environment.sessions else 0)
        self.history = self._boots(nights, BOOTS_A_NIGHT)
        self._creep()
        session = self._boots(1, CANDIDATE_BOOTS + OTHER_BOOTS)
        self.session = replace(session, offset=session.offset + environment.creep)

    def forget_history(self) -> None:
        """Let go of the nights' boots, which are many."""
        self.history = _first(self.history, 0)

    def first(self, count: int) -> Draw:
        """Return the first pull requests of these."""
        if count >= self.count:
            return self
        part = copy.copy(self)
        part.count, part.session = count, _first(self.session, count)
        return part

    def _normal(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape, dtype=np.float32)

    def _boots(self, sessions: int, boots: int) -> Boots:
        environment, noise = self.environment, self.environment.noise
        count, cases, boards = self.count, len(CASES), environment.boards
        half = np.sqrt(COMMON)
        session = noise.session * (
            half * half * (self._normal(count, 1, 1, sessions) + self._normal(count, 1, boards, sessions))
            + half
            * half
            * (self._normal(count, cases, 1, sessions) + self._normal(count, cases, boards, sessions))
        )
        shape = (count, cases, boards, sessions, boots)
        shared = (count, 1, boards, sessions, boots)
        bad = self.rng.random(shared, dtype=np.float32) < noise.bad_share
        boot = noise.boot * half * (self._normal(*shared) + self._normal(*shape))
        offset = session[..., None] + boot * np.where(bad, np.float32(BAD_BOOT_FACTOR), np.float32(1))
        if environment.bistable:
            offset += environment.bistable * (self.rng.random(shared, dtype=np.float32) < BISTABLE_SHARE)
        stream = (count, boards, sessions, boots)
        return Boots(
            offset,
            self.rng.integers(0, self.pool_boots, (count, len(LATENCY_CASES), *shape[2:]), dtype=np.int32),
            np.exp(LOSS_SIGMA * self._normal(*stream)),
            self.rng.random(stream),
            THROUGHPUT_SIGMA / np.sqrt(THROUGHPUT_INTERVALS) * self._normal(*stream),
        )

    def _creep(self) -> None:
        if self.environment.creep and self.environment.sessions:
            steps = np.arange(1, CREEP_NIGHTS + 1) / CREEP_NIGHTS
            self.history.offset[..., -CREEP_NIGHTS:, :] += (self.environment.creep * steps)[:, None]

    def pool(self, effect: Effect = UNCHANGED) -> Pool:
        return pool(self.seed[0], self.pool_boots, effect.tail, effect.spikes)

    def history_values(self) -> np.ndarray:
        """Return (pull requests, metrics, boards, nights, boots): logarithms, larger is worse; losses."""
        return self._values(self.history, UNCHANGED)

    def run(self, candidates: int, others: int, effect: Effect) -> tuple[np.ndarray, np.ndarray]:
        """Return so many boots of candidate and base, each (pull requests, metrics, boards, boots)."""
        parts = self._part(0, candidates, others), self._part(CANDIDATE_BOOTS, candidates, others)
        return self._values(parts[0], effect)[..., 0, :], self._values(parts[1], UNCHANGED)[..., 0, :]

    def samples(self, candidates: int, others: int, effect: Effect) -> tuple[Boots, Boots]:
        """Return the boots themselves, their offsets with the effect, for rules that look at samples."""
        mine, base = self._part(0, candidates, others), self._part(CANDIDATE_BOOTS, candidates, others)
        mine.offset[:, CASES.index("publish")] += effect.offset
        return mine, base

    def _part(self, first: int, candidates: int, others: int) -> Boots:
        mine, base = interleaved(candidates, others)
        position = base if first else mine
        chosen = slice(first, first + len(position))
        part = Boots(*(getattr(self.session, field.name)[..., chosen].copy() for field in fields(Boots)))
        part.offset[:, :, 0, 0] += self.environment.drift * position
        part.offset[:, :, 0, 0] += self.environment.step * (position >= (candidates + others) / 2)
        part.offset[:, :, 0, 0] += 0.0 if first else self.environment.odd
        return part

    def _values(self, boots: Boots, effect: Effect) -> np.ndarray:
        shape = boots.offset.shape
        values = np.empty((shape[0], len(METRICS), *shape[2:]), dtype=np.float32)
        usual, changed = self.pool(), self.pool(effect)
        for index, metric in enumerate(METRICS):
            case = CASES.index(metric.case)
            offset = boots.offset[:, case]
            if metric.statistic == "loss":
                values[:, index] = self._lost(boots, offset, effect)
            elif metric.statistic == "throughput":
                values[:, index] = offset + boots.throughput_noise
            else:
                table = (changed if metric.case == "publish" else usual).statistics[metric.statistic]
                own = effect.offset if metric.case == "publish" else 0.0
                values[:, index] = offset + table[boots.pooled[:, case]] + np.float32(own)
        return values

    def _lost(self, boots: Boots, offset: np.ndarray, effect: Effect) -> np.ndarray:
        """Return datagrams lost: Poisson, by inversion, so that an effect keeps each boot's luck."""
        mean = DATAGRAMS * LOSS_SHARE * effect.loss * boots.loss_rate * np.exp(LOSS_PER_OFFSET * offset)
        if boots is self.history:  # many, and never under an effect: drawn outright, which is quick
            lost = np.random.default_rng((*self.seed, 1)).poisson(mean)
        else:
            lost = stats.poisson.ppf(boots.loss_luck, mean)
        return np.asarray(np.minimum(lost, DATAGRAMS))

# SPDX-License-Identifier: Apache-2.0
"""Simulated pull requests: nights, and boots of candidate and base, with everything that plagues a rack."""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy import stats

from tools.gate_simulation.environment import BURST, QUANTISED_MS, STALL, Environment
from tools.gate_simulation.model import (
    BAD_BOOT_FACTOR,
    BOOTS_A_NIGHT,
    COMMON,
    PUBLISHED_MS,
    Pool,
    pool,
)
from tools.gate_simulation.places import Looks, places_of
from tools.gate_simulation.suite import (
    CASES,
    DATAGRAMS,
    LATENCY_CASES,
    LOSS_PER_OFFSET,
    LOSS_SIGMA,
    METRICS,
    PUBLISH,
    THROUGHPUT_INTERVALS,
    THROUGHPUT_SIGMA,
    UNCHANGED,
    Effect,
)

CANDIDATE_BOOTS, OTHER_BOOTS = 20, 20  # a board; no rule gets more
NIGHTS = 30
FREEDOM = 3  # of boots with Student's tails
_HIGHER = np.log(QUANTISED_MS / PUBLISHED_MS[0])


@dataclass(frozen=True)
class Boots:
    """Boots before an effect, (pull requests, cases, boards, …); of throughput and loss without the cases."""

    offset: np.ndarray
    pooled: np.ndarray
    loss_rate: np.ndarray
    loss_luck: np.ndarray
    throughput_noise: np.ndarray


def _cut(boots: Boots, where: tuple[object, ...]) -> Boots:
    return Boots(*(getattr(boots, field.name)[where].copy() for field in fields(Boots)))


class Draw:
    """``count`` pull requests in an environment, after so many ``nights``.

    Effects are put upon the same random numbers.
    """

    def __init__(
        self, environment: Environment, count: int, seed: tuple[int, ...], pool_boots: int, nights: int = 0
    ) -> None:
        self.environment = environment
        self.count = count
        self.seed, self.pool_boots = seed, pool_boots
        self.rng = np.random.default_rng(seed)
        self.history = self._boots(nights, BOOTS_A_NIGHT, 1.0)
        steps = environment.creep * np.arange(1, nights + 1) / max(nights, 1)
        self.history = replace(self.history, offset=self.history.offset + steps[:, np.newaxis])
        session = self._boots(1, CANDIDATE_BOOTS + OTHER_BOOTS, environment.louder)
        self.session = replace(session, offset=session.offset + environment.creep)
        self.first_role = self.rng.random((count, environment.boards)) < 0.5
        self.moments = self.rng.random((count, CANDIDATE_BOOTS + OTHER_BOOTS)) < environment.bursts
        self.luck = self.rng.random((count, environment.boards, CANDIDATE_BOOTS))

    def forget_history(self) -> None:
        """Let go of the nights' boots, which are many."""
        self.history = _cut(self.history, (slice(0),))

    def first(self, count: int) -> Draw:
        """Return the first pull requests of these."""
        if count >= self.count:
            return self
        part = copy.copy(self)
        part.count, part.session = count, _cut(self.session, (slice(count),))
        part.first_role, part.moments, part.luck = (
            of[:count] for of in (self.first_role, self.moments, self.luck)
        )
        return part

    def pool(self, effect: Effect = UNCHANGED) -> Pool:
        return pool(self.seed[0], self.pool_boots, effect.tail, effect.spikes, self.environment.samples)

    def history_values(self) -> np.ndarray:
        """Return (pull requests, metrics, boards, nights, boots): logarithms, larger is worse; losses."""
        return self._values(self.history, UNCHANGED)

    def run(self, looks: Looks, effect: Effect) -> tuple[np.ndarray, np.ndarray]:
        """Return candidate and base up to the last look, (pull requests, metrics, boards, boots) each."""
        mine, base = self.samples(looks, effect)
        return self._values(mine, effect), self._values(base, UNCHANGED)

    def samples(self, looks: Looks, effect: Effect) -> tuple[Boots, Boots]:
        """Return the boots themselves, their offsets with the effect, for rules that look at samples."""
        mine, base = places_of(looks, self.first_role)
        return self._part(0, mine, effect), self._part(CANDIDATE_BOOTS, base, UNCHANGED)

    def _part(self, start: int, place: np.ndarray, effect: Effect) -> Boots:
        """Return the boots of a role at these places; the candidate's ``start`` at 0."""
        part = _cut(self.session, (..., 0, slice(start, start + place.shape[-1])))
        moved = self._of_the_run(place)
        if not start:
            moved[:, 0] += self.environment.odd
        part.offset[:] += moved[:, np.newaxis]
        part.offset[:, PUBLISH] += self._of_the_effect(effect, place.shape[-1])
        return part

    def _of_the_run(self, place: np.ndarray) -> np.ndarray:
        """Return by how much boots are slower for their place, (pull requests, boards, boots)."""
        environment = self.environment
        moved = np.log(BURST) * np.take_along_axis(self.moments[:, np.newaxis], place, axis=2)
        drifting = slice(None) if environment.all_drift else slice(1)
        moved[:, drifting] += environment.drift * place[:, drifting]
        return np.asarray(moved)

    def _of_the_effect(self, effect: Effect, boots: int) -> np.ndarray:
        moved = effect.offset * (self.luck[..., :boots] < effect.boots)
        return np.where(self._changed(effect), moved, 0.0)

    def _changed(self, effect: Effect) -> np.ndarray:
        """Say which boards the effect is on, (boards, 1)."""
        boards = self.environment.boards
        return np.arange(boards)[:, np.newaxis] < (boards if effect.boards is None else effect.boards)

    def _normal(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape, dtype=np.float32)

    def _tailed(self, *shape: int) -> np.ndarray:
        """Return deviations of boots, in units of the noise: heavier tails are on top of the same body."""
        if self.environment.tails == "t":
            return self.rng.standard_t(FREEDOM, shape).astype(np.float32)
        if self.environment.tails == "lognormal":
            return np.expm1(self._normal(*shape))
        return self._normal(*shape)

    def _boots(self, sessions: int, boots: int, louder: float) -> Boots:
        environment = self.environment
        count, boards = self.count, environment.boards
        one_draw = environment.common == 1.0
        cases = (count, 1 if one_draw else len(LATENCY_CASES), boards, sessions, boots)
        pooled = self.rng.integers(0, self.pool_boots, cases, dtype=np.int32)
        stream = (count, boards, sessions, boots)
        own = 0.0 if one_draw else environment.scatter * THROUGHPUT_SIGMA / np.sqrt(THROUGHPUT_INTERVALS)
        return Boots(
            self._sessions(sessions) + louder * self._boot_offsets(sessions, boots),
            np.broadcast_to(pooled, (count, len(LATENCY_CASES), *cases[2:])),
            np.exp(LOSS_SIGMA * self._normal(*stream)),
            self.rng.random(stream),
            own * self._normal(*stream),
        )

    def _sessions(self, sessions: int) -> np.ndarray:
        count, cases, boards = self.count, len(CASES), self.environment.boards
        parts = [
            self._normal(count, of_cases, of_boards, sessions)
            for of_cases in (1, cases)
            for of_boards in (1, boards)
        ]
        whole = parts[0] + parts[1] + parts[2] + parts[3]
        return np.asarray(self.environment.noise.session * COMMON * whole)[..., np.newaxis]

    def _boot_offsets(self, sessions: int, boots: int) -> np.ndarray:
        environment, noise = self.environment, self.environment.noise
        shared = (self.count, 1, environment.boards, sessions, boots)
        shape = (self.count, len(CASES), *shared[2:])
        bad = self.rng.random(shared, dtype=np.float32) < noise.bad_share
        factor = noise.boot * np.where(bad, np.float32(BAD_BOOT_FACTOR), np.float32(1))
        common, own = np.sqrt(environment.common), np.sqrt(1.0 - environment.common)
        offset = factor * (common * self._tailed(*shared) + own * self._tailed(*shape))
        share, height = environment.modes
        offset += height * (self.rng.random(shared, dtype=np.float32) < share)
        stalled = self.rng.random(shared, dtype=np.float32) < environment.stalls
        return np.asarray(offset + stalled * np.log(self.rng.uniform(*STALL, shared)))

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
                table = (changed if case == PUBLISH else usual).statistics[metric.statistic]
                centre = np.median(table)
                own = centre + self.environment.scatter * (table - centre)
                values[:, index] = self._read(offset + own[boots.pooled[:, case]], metric.statistic)
        return values

    def _read(self, values: np.ndarray, statistic: str) -> np.ndarray:
        """Return what a clock of the rack's quantum reads; a mean over the tail hides the steps."""
        quantum = self.environment.quantum_ms
        if not quantum:
            return values
        higher = values + _HIGHER
        if statistic == "tail5":
            return np.asarray(higher)
        return np.asarray(np.log(np.maximum(np.rint(np.exp(higher) / quantum), 1.0) * quantum))

    def _lost(self, boots: Boots, offset: np.ndarray, effect: Effect) -> np.ndarray:
        """Return datagrams lost: Poisson, by inversion, so that an effect keeps each boot's luck."""
        share = self._loss_share(boots, effect)
        mean = DATAGRAMS * share * effect.loss * boots.loss_rate * np.exp(LOSS_PER_OFFSET * offset)
        if boots is self.history:  # many, and never under an effect: drawn outright, which is quick
            lost = np.random.default_rng((*self.seed, 1)).poisson(mean)
        else:
            lost = stats.poisson.ppf(boots.loss_luck, mean)
        return np.where(share >= 1.0, DATAGRAMS, np.clip(lost, 0, DATAGRAMS))

    def _loss_share(self, boots: Boots, effect: Effect) -> np.ndarray | float:
        """Return the share of datagrams that a usual boot loses, by board where an effect is on some."""
        usual = self.environment.loss_share
        if boots is self.history or effect.loss_share is None:
            return usual
        return np.where(self._changed(effect), effect.loss_share, usual)

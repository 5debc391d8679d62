# SPDX-License-Identifier: Apache-2.0
"""Run the plans: our gate first, then every other rule on the same pull requests with as many boots."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np

from tools.gate_simulation.competitors import RULES, Rule
from tools.gate_simulation.coverage import Coverage, held_by
from tools.gate_simulation.draws import NIGHTS, Draw
from tools.gate_simulation.duel import Duel, duel
from tools.gate_simulation.evidence import Evidence, Nights
from tools.gate_simulation.ours import Gate
from tools.gate_simulation.results import Situation, Verdicts
from tools.gate_simulation.situations import Plan
from tools.gate_simulation.suite import INDEX, Effect

CHUNK = 500  # pull requests drawn together, for memory's sake
SLOW_SHARE = 0.1  # of the pull requests are judged by slow rules


@dataclass(frozen=True)
class Settings:
    pull_requests: int = 2000
    seed: int = 1
    pool_boots: int = 8000
    processes: int = 1
    rules: tuple[Rule, ...] = RULES


@dataclass(frozen=True)
class Found:
    """The situations by row and effect, the intervals of unchanged pull requests by row, the duels by row."""

    situations: Mapping[tuple[str, str], Situation]
    coverage: Mapping[str, Coverage] = field(default_factory=dict)
    duels: Mapping[str, Duel] = field(default_factory=dict)

    def and_(self, other: Found) -> Found:
        return Found(
            {**self.situations, **other.situations},
            {**self.coverage, **other.coverage},
            {**self.duels, **other.duels},
        )


@dataclass(frozen=True)
class Chunk:
    """Pull requests that are drawn together, and what is known of them from earlier nights."""

    draw: Draw
    nights: Nights | None


def simulate(plan: Plan, settings: Settings, gate: Gate) -> Found:
    """Judge the plan's pull requests under each of its effects, unchanged ones first.

    The other rules get as many boots as our gate takes for an unchanged pull request on this rack: they do
    not know beforehand which ones have changed.
    """
    chunks = _chunks(plan, settings)
    draws = [chunk.draw for chunk in chunks]
    situations: dict[tuple[str, str], Situation] = {}
    boots = 0
    for effect in plan.effects:
        verdicts = Verdicts.joined([gate(draw, effect) for draw in draws])
        boots = boots or int(np.ceil(verdicts.boots.mean()))
        scores = _all_scores(plan, chunks, effect, boots, settings)
        situations[plan.name, effect.name] = Situation(plan.name, effect, verdicts, boots, scores)
    held = Coverage.of(np.concatenate([held_by(draw) for draw in draws]))
    duels = {plan.name: duel(draws, plan.duel, gate)} if plan.duel else {}
    return Found(situations, {plan.name: held}, duels)


def simulate_all(plans: Sequence[Plan], settings: Settings, gate: Gate, tell: Callable[[str], None]) -> Found:
    """Return what all plans find, in their order, by as many processes as the settings say."""
    found = Found({})
    with ProcessPoolExecutor(settings.processes) if settings.processes > 1 else nullcontext() as pool:
        spread = pool.map if pool else map
        for plan, part in zip(plans, spread(simulate, plans, repeat(settings), repeat(gate)), strict=True):
            tell(plan.name)
            found = found.and_(part)
    return found


def _chunks(plan: Plan, settings: Settings) -> list[Chunk]:
    own = zlib.crc32(plan.name.encode())
    nights = NIGHTS if plan.rivals and settings.rules else 0
    chunks = []
    for number, start in enumerate(range(0, settings.pull_requests, CHUNK)):
        count = min(CHUNK, settings.pull_requests - start)
        draw = Draw(plan.environment, count, (settings.seed, own, number), settings.pool_boots, nights)
        chunks.append(Chunk(draw, Nights.of(draw.history_values()) if nights else None))
        draw.forget_history()
    return chunks


def _all_scores(
    plan: Plan, chunks: list[Chunk], effect: Effect, boots: int, settings: Settings
) -> dict[str, np.ndarray]:
    rules = settings.rules if plan.rivals else ()
    return {rule.name: _scores(rule, chunks, effect, boots, settings) for rule in rules}


def _scores(rule: Rule, chunks: list[Chunk], effect: Effect, boots: int, settings: Settings) -> np.ndarray:
    metrics = list(rule.family) if effect.unchanged else [INDEX[effect.metric]]
    left = round(settings.pull_requests * SLOW_SHARE) if rule.slow else settings.pull_requests
    parts = []
    for chunk in chunks:
        assert chunk.nights is not None
        draw = chunk.draw.first(min(left, chunk.draw.count))
        evidence = Evidence(draw, chunk.nights.first(left), effect, boots)
        parts.append(rule.score(evidence, metrics).max(axis=1))
        left -= len(parts[-1])
        if left <= 0:
            break
    return np.concatenate(parts)

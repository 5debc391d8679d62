# SPDX-License-Identifier: Apache-2.0
"""Run the plans: our gate first, then every other rule on the same pull requests with as many boots."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from tests.tools.gate_simulation.competitors import RULES, Rule
from tests.tools.gate_simulation.draws import Draw, Environment
from tests.tools.gate_simulation.evidence import Evidence, Nights
from tests.tools.gate_simulation.ours import Gate, coverage
from tests.tools.gate_simulation.results import Share, Situation, Verdicts
from tests.tools.gate_simulation.situations import Plan
from tests.tools.gate_simulation.suite import INDEX, UNCHANGED, Effect

CHUNK = 500  # pull requests drawn together, for memory's sake
SLOW_SHARE = 0.1  # of the pull requests are judged by slow rules


@dataclass(frozen=True)
class Settings:
    pull_requests: int = 3000
    seed: int = 1
    pool_boots: int = 8000
    processes: int = 1
    rules: tuple[Rule, ...] = RULES


@dataclass(frozen=True)
class Found:
    """The situations by environment and effect; ``coverage`` in typical noise, None where not asked."""

    situations: Mapping[tuple[str, str], Situation]
    coverage: Share | None


@dataclass(frozen=True)
class Chunk:
    """Pull requests that are drawn together, and what is known of them from earlier nights."""

    draw: Draw
    nights: Nights


def simulate(plan: Plan, settings: Settings, gate: Gate) -> Found:
    """Judge the plan's pull requests under each of its effects, unchanged ones first.

    The other rules get as many boots as our gate takes for an unchanged pull request on this rack: they do
    not know beforehand which ones have changed.
    """
    chunks = _chunks(plan.environment, settings)
    situations: dict[tuple[str, str], Situation] = {}
    boots = 0
    for effect in sorted(plan.effects, key=lambda effect: not effect.unchanged):
        verdicts = Verdicts.joined([gate(chunk.draw, effect) for chunk in chunks])
        boots = boots or int(np.ceil(verdicts.boots.mean()))
        scores = _all_scores(plan, chunks, effect, boots, settings)
        situations[plan.name, effect.name] = Situation(plan.name, effect, verdicts, boots, scores)
    if plan.name != "typical":
        return Found(situations, None)
    shares = [coverage(chunk.draw, UNCHANGED) for chunk in chunks]
    return Found(situations, Share(sum(share.hits for share in shares), sum(share.of for share in shares)))


def simulate_all(plans: Sequence[Plan], settings: Settings, gate: Gate, tell: Callable[[str], None]) -> Found:
    """Return what all plans find, in their order, by as many processes as the settings say."""
    situations: dict[tuple[str, str], Situation] = {}
    held: Share | None = None
    with ProcessPoolExecutor(settings.processes) if settings.processes > 1 else nullcontext() as pool:
        spread = pool.map if pool else map
        found = spread(simulate, plans, repeat(settings), repeat(gate))
        for plan, part in zip(plans, found, strict=True):
            tell(plan.name)
            situations |= part.situations
            held = held or part.coverage
    return Found(situations, held)


def _chunks(environment: Environment, settings: Settings) -> list[Chunk]:
    own = zlib.crc32(environment.name.encode())
    chunks = []
    for number, start in enumerate(range(0, settings.pull_requests, CHUNK)):
        count = min(CHUNK, settings.pull_requests - start)
        draw = Draw(environment, count, (settings.seed, own, number), settings.pool_boots)
        chunks.append(Chunk(draw, Nights.of(draw.history_values())))
        draw.forget_history()
    return chunks


def _all_scores(
    plan: Plan, chunks: list[Chunk], effect: Effect, boots: int, settings: Settings
) -> dict[str, np.ndarray]:
    return {
        rule.name: _scores(rule, chunks, effect, boots, settings)
        for rule in settings.rules
        if plan.environment.sessions or not rule.needs_history
    }


def _scores(rule: Rule, chunks: list[Chunk], effect: Effect, boots: int, settings: Settings) -> np.ndarray:
    metrics = list(rule.family) if effect.unchanged else [INDEX[effect.metric]]
    left = round(settings.pull_requests * SLOW_SHARE) if rule.slow else settings.pull_requests
    parts = []
    for chunk in chunks:
        evidence = Evidence(
            chunk.draw.first(min(left, chunk.draw.count)), chunk.nights.first(left), effect, boots
        )
        parts.append(rule.score(evidence, metrics).max(axis=1))
        left -= len(parts[-1])
        if left <= 0:
            break
    return np.concatenate(parts)

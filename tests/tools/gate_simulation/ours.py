# SPDX-License-Identifier: Apache-2.0
"""Our gate, by the product's own code: hil.gate decides every metric of every simulated pull request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from hil.gate.compare.counts import Counts, decide_counts
from hil.gate.compare.looks import schedule
from hil.gate.compare.scale import Scale
from hil.gate.compare.sequential import INCONCLUSIVE, UNDECIDED, Decisions, Design, decide
from hil.run.plan.deadline import affordable
from hil.thresholds.types import Policy
from tests.tools.gate_simulation.draws import Draw
from tests.tools.gate_simulation.environment import Environment
from tests.tools.gate_simulation.naming import drift_named
from tests.tools.gate_simulation.places import Looks
from tests.tools.gate_simulation.results import Verdicts
from tests.tools.gate_simulation.suite import DATAGRAMS, GROUPS, LATENCY_CASES, METRICS, Effect, Metric
from tests.tools.gate_simulation.walltime import BUDGET_S, SAMPLES_A_SECOND, spend

POLICY = Policy()

Gate = Callable[[Draw, Effect], Verdicts]


def looks_of(environment: Environment, budget_s: float = BUDGET_S) -> Looks:
    """Return the looks that the product plans for so many boards a chip, all groups of cases on each."""
    measuring = [len(GROUPS) * environment.samples / SAMPLES_A_SECOND] * environment.boards
    return affordable(schedule(POLICY.max_boots), measuring, budget_s)


def design_of(metric: Metric, environment: Environment, alpha: float) -> Design:
    """Return how a metric is decided at its own ``alpha``. Shares are in units of 1."""
    relative = metric.scale == "log"
    unit = 1.0 / DATAGRAMS
    return Design(
        looks=looks_of(environment),
        alpha=alpha,
        beta=POLICY.beta,
        tolerance=float(np.log1p(metric.tolerance)) if relative else metric.tolerance * unit,
        min_effect=float(np.log1p(metric.min_effect)) if relative else metric.min_effect * unit,
    )


def our_gate(draw: Draw, effect: Effect, share: float | None = None) -> Verdicts:
    """Judge pull requests until every metric is decided, or the next look would overrun the budget.

    Each decision has ``share`` of alpha; None: as the product shares it out, evenly among all of them.
    """
    environment = draw.environment
    looks = looks_of(environment)
    found = list(_decisions(draw, effect, share))
    state = np.stack([decisions.state for decisions in found], axis=1)
    last_look = np.stack([decisions.look for decisions in found], axis=1) - 1
    named = np.any([decisions.odd[:, 0] for decisions in found[: len(METRICS)]], axis=0)
    taken, boots, seconds = spend(last_look, looks, environment)
    late = (last_look >= taken[:, np.newaxis]) | (state == UNDECIDED)
    reached = np.minimum(last_look, taken[:, np.newaxis] - 1)
    candidate_boots = np.array(looks)[reached, 0] * environment.boards_a_chip
    drifting = drift_named(draw, effect, looks, reached)
    return Verdicts(np.where(late, INCONCLUSIVE, state), candidate_boots, boots, seconds, named, drifting)


def _decisions(draw: Draw, effect: Effect, share: float | None) -> Iterator[Decisions]:
    """Yield the decisions of every metric, chip by chip."""
    environment = draw.environment
    alpha = POLICY.alpha * (1.0 / (environment.chips * len(METRICS)) if share is None else share)
    for candidate, other in chips_of(draw, effect):
        for index, metric in enumerate(METRICS):
            design = design_of(metric, environment, alpha)
            yield _decide(candidate[:, index], other[:, index], metric, environment, design)


def chips_of(draw: Draw, effect: Effect) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return candidate and other of each chip, (pull requests, metrics, boards of the chip, boots)."""
    sides = draw.run(looks_of(draw.environment), effect)
    mine, base = (np.split(values.astype(float), draw.environment.chips, axis=2) for values in sides)
    return list(zip(mine, base, strict=True))


def _decide(
    candidate: np.ndarray, other: np.ndarray, metric: Metric, environment: Environment, design: Design
) -> Decisions:
    if metric.scale == "count":
        mine, base = (Counts(hits, np.full(hits.shape, float(DATAGRAMS))) for hits in (candidate, other))
        return decide_counts(mine, base, design)
    return decide(candidate, other, with_floor(design, metric, environment, other))


def with_floor(design: Design, metric: Metric, environment: Environment, other: np.ndarray) -> Design:
    """Return the design with the variance that a step of the clock makes, as the product reckons it."""
    if not environment.quantum_ms or metric.case not in LATENCY_CASES:
        return design
    typical = [float(np.exp(other.mean()))]
    floor = Scale(relative=True, sign=1).variance_floor(environment.quantum_ms, typical)
    return replace(design, variance_floor=floor)

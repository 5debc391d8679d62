# SPDX-License-Identifier: Apache-2.0
"""Our gate, by the product's own code: hil.gate decides every metric of every simulated pull request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hil.gate.compare.boots import Scale
from hil.gate.compare.counts import Count, Tallies, look_at_counts
from hil.gate.compare.values import Boots, Design, Seen, look_at
from hil.run.plan.looks import Pace, plan_looks
from hil.thresholds.types import Policy
from tools.gate_simulation.draws import Draw
from tools.gate_simulation.environment import Environment
from tools.gate_simulation.naming import drift_named
from tools.gate_simulation.places import Looks
from tools.gate_simulation.results import STATES, UNDECIDED, Verdicts
from tools.gate_simulation.suite import DATAGRAMS, GROUPS, LATENCY_CASES, METRICS, Effect, Metric
from tools.gate_simulation.walltime import BUDGET_S, SAMPLES_A_SECOND, spend

Values = Sequence[Sequence[float]]
POLICY = Policy()

Gate = Callable[[Draw, Effect], Verdicts]


def looks_of(environment: Environment, budget_s: float = BUDGET_S) -> Looks:
    """Return the looks that the product plans for so many boards a chip, all groups of cases on each."""
    measuring = (len(GROUPS) * environment.samples / SAMPLES_A_SECOND,) * environment.boards
    return plan_looks(Pace(measuring), max_boots=POLICY.max_boots, budget_s=budget_s)


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
    named = np.any([decisions.named for decisions in found[: len(METRICS)]], axis=0)
    taken, boots, seconds = spend(last_look, looks, environment)
    late = last_look >= taken[:, np.newaxis]
    reached = np.minimum(last_look, taken[:, np.newaxis] - 1)
    candidate_boots = np.array(looks)[reached, 0] * environment.boards_a_chip
    drifting = drift_named(draw, effect, looks, reached)
    return Verdicts(np.where(late, UNDECIDED, state), candidate_boots, boots, seconds, named, drifting)


@dataclass(frozen=True)
class Decisions:
    """Of one metric of each pull request (R,): the state, the look that it was decided at or the last one,
    and whether the first board was named then."""

    state: np.ndarray
    look: np.ndarray
    named: np.ndarray


def _decisions(draw: Draw, effect: Effect, share: float | None) -> Iterator[Decisions]:
    """Yield the decisions of every metric, chip by chip."""
    environment = draw.environment
    alpha = POLICY.alpha * (1.0 / (environment.chips * len(METRICS)) if share is None else share)
    for candidate, other in chips_of(draw, effect):
        for index, metric in enumerate(METRICS):
            design = with_floor(design_of(metric, environment, alpha), metric, environment, other[:, index])
            sides = (candidate[:, index].tolist(), other[:, index].tolist())
            found = [_decide(boards, metric, design) for boards in zip(*sides, strict=True)]
            states, looks, named = zip(*found, strict=True)
            yield Decisions(np.array(states), np.array(looks), np.array(named))


def _decide(boards: tuple[Values, Values], metric: Metric, design: Design) -> tuple[int, int, bool]:
    """Go through the looks of one comparison until it is decided.

    Return its state, the look, and whether the first board is named. ``boards`` are candidate's and other's
    boots, (boards, boots) each.
    """
    for number in range(1, len(design.looks) + 1):
        seen = see(boards, metric, design, number)
        if seen.state != "undecided":
            break
    return STATES.index(seen.state), number, seen.odd[0] or seen.apart == 0


def see(boards: tuple[Values, Values], metric: Metric, design: Design, number: int) -> Seen:
    """Return what the product sees at a look, numbered from 1."""
    mine, base = design.looks[number - 1]
    pairs = [Boots(one[:mine], two[:base]) for one, two in zip(*boards, strict=True)]
    if metric.scale != "count":
        return look_at(pairs, design, number)
    tallies = [
        Tallies(*([Count(hits, float(DATAGRAMS)) for hits in side] for side in pair)) for pair in pairs
    ]
    return look_at_counts(tallies, design, number)


def chips_of(draw: Draw, effect: Effect) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return candidate and other of each chip, (pull requests, metrics, boards of the chip, boots)."""
    sides = draw.run(looks_of(draw.environment), effect)
    mine, base = (np.split(values.astype(float), draw.environment.chips, axis=2) for values in sides)
    return list(zip(mine, base, strict=True))


def with_floor(design: Design, metric: Metric, environment: Environment, other: np.ndarray) -> Design:
    """Return the design with the variance that a step of the clock makes, as the product reckons it."""
    if not environment.quantum_ms or metric.case not in LATENCY_CASES:
        return design
    typical = [float(np.exp(other.mean()))]
    floor = Scale(relative=True, sign=1).variance_floor(environment.quantum_ms, typical)
    return replace(design, variance_floor=floor)

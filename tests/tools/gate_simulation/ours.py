# SPDX-License-Identifier: Apache-2.0
"""Our gate, by the product's own code: hil.gate decides every metric of every simulated pull request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hil.gate.compare import drift
from hil.gate.compare.counts import Counts, decide_counts
from hil.gate.compare.looks import schedule
from hil.gate.compare.sequential import INCONCLUSIVE, UNDECIDED, Decisions, Design, decide, trace
from hil.run.plan.deadline import affordable
from hil.thresholds.types import Policy
from tests.tools.gate_simulation.draws import Draw, Environment, interleaved
from tests.tools.gate_simulation.model import SAMPLES
from tests.tools.gate_simulation.results import Share, Verdicts
from tests.tools.gate_simulation.suite import DATAGRAMS, GROUPS, METRICS, Effect, Metric
from tests.tools.gate_simulation.walltime import BUDGET_S, SAMPLES_A_SECOND, spend

POLICY = Policy()
DRIFTS_ASKED = 100


Gate = Callable[[Draw, Effect], Verdicts]


def looks_of(boards: int, budget_s: float = BUDGET_S) -> tuple[tuple[int, int], ...]:
    """Return the looks that the product plans for so many boards, all groups of cases on each."""
    measuring_s = [len(GROUPS) * SAMPLES / SAMPLES_A_SECOND] * boards
    return affordable(schedule(POLICY.max_boots, boards), measuring_s, budget_s)


def design_of(metric: Metric, environment: Environment) -> Design:
    """Return how a metric is decided; alpha is shared out evenly. Shares are in units of 1."""
    relative = metric.scale == "log"
    unit = 1.0 / DATAGRAMS
    return Design(
        looks=looks_of(environment.boards),
        alpha=POLICY.alpha / len(METRICS),
        beta=POLICY.beta,
        tolerance=float(np.log1p(metric.tolerance)) if relative else metric.tolerance * unit,
        min_effect=float(np.log1p(metric.min_effect)) if relative else metric.min_effect * unit,
    )


def our_gate(draw: Draw, effect: Effect) -> Verdicts:
    """Judge pull requests until every metric is decided, or the next look would overrun the budget."""
    found = list(_decisions(draw, effect))
    state = np.stack([decisions.state for decisions in found], axis=1)
    last_look = np.stack([decisions.look for decisions in found], axis=1) - 1
    named = np.any([decisions.odd[:, 0] for decisions in found], axis=0)
    boards = draw.environment.boards
    taken, boots, seconds = spend(last_look, looks_of(boards), boards)
    late = (last_look >= taken[:, np.newaxis]) | (state == UNDECIDED)
    drifting = drift_named(draw, effect, np.minimum(last_look, taken[:, np.newaxis] - 1))
    return Verdicts(np.where(late, INCONCLUSIVE, state), last_look, boots, seconds, named, drifting)


def drift_named(draw: Draw, effect: Effect, last_look: np.ndarray) -> np.ndarray:
    """Say of which pull requests the first board is named as drifting; NaN if not asked.

    Only of the first DRIFTS_ASKED of those drawn together, for it takes its time; cases are measured until
    all metrics of their group are decided.
    """
    found = np.full(draw.count, np.nan)
    if not (draw.environment.drift or draw.environment.step or draw.environment == Environment("typical")):
        return found
    looks = looks_of(draw.environment.boards)
    candidate, other = draw.run(*looks[-1], effect)
    of_group = [
        [n for n, metric in enumerate(METRICS) if metric.case in cases and metric.scale == "log"]
        for cases in GROUPS
    ]
    level = drift.LEVEL / sum(map(len, of_group)) / draw.environment.boards
    for pull_request in range(min(draw.count, DRIFTS_ASKED)):
        found[pull_request] = any(
            _drifts(candidate[pull_request, metric], other[pull_request, metric], looks[last], level)
            > float(np.log1p(METRICS[metric].tolerance))
            for metrics in of_group
            for last in [int(last_look[pull_request, metrics].max())]
            for metric in metrics
        )
    return found


def _drifts(candidate: np.ndarray, other: np.ndarray, look: tuple[int, int], level: float) -> float:
    """Return by how much the first board drifts along the run, 0.0 where it is not named."""
    mine, base = interleaved(*(len(side[0]) for side in (candidate, other)))
    place = np.concatenate([mine[: look[0]], base[: look[1]]])
    order = np.argsort(place)
    is_candidate = np.repeat([True, False], look)[order]
    values = np.concatenate([candidate[:, : look[0]], other[:, : look[1]]], axis=1)[:, order].astype(float)
    boards = {str(n): drift.Boots(place[order], value, is_candidate) for n, value in enumerate(values)}
    named = drift.find_drifts(boards, level).get("0")
    return abs(named.total) if named else 0.0


def _decisions(draw: Draw, effect: Effect) -> list[Decisions]:
    candidate, other = draw.run(*looks_of(draw.environment.boards)[-1], effect)
    found = []
    for index, metric in enumerate(METRICS):
        design = design_of(metric, draw.environment)
        mine, base = (values[:, index].astype(float) for values in (candidate, other))
        if metric.scale == "count":
            counts = (Counts(hits, np.full(hits.shape, float(DATAGRAMS))) for hits in (mine, base))
            found.append(decide_counts(*counts, design))
        else:
            found.append(decide(mine, base, design))
    return found


def coverage(draw: Draw, effect: Effect, level: float = 0.95) -> Share:
    """Return how often the repeated intervals of all looks together hold the true change, over all medians.

    The gate's own intervals are of the level of its alpha, 99.8 %; here they are asked for at ``level``.
    """
    candidate, other = draw.run(*looks_of(draw.environment.boards)[-1], effect)
    held = []
    for index, metric in enumerate(METRICS):
        if metric.statistic == "median":
            design = replace(design_of(metric, draw.environment), alpha=(1 - level) / 2)
            mine, base = (values[:, index].astype(float) for values in (candidate, other))
            seen = trace(mine, base, design)
            truth = effect.offset if metric.case == "publish" else 0.0
            out = np.abs(seen.difference - truth) > seen.boundary * seen.error
            held.append(~out.any(axis=1))
    return Share.among(np.concatenate(held))

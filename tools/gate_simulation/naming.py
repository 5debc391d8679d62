# SPDX-License-Identifier: Apache-2.0
"""Whether a board that drifts is named, by the product's hil.gate.compare.drift."""

from __future__ import annotations

import numpy as np

from hil.gate.compare import drift
from tools.gate_simulation.draws import Draw
from tools.gate_simulation.environment import Environment
from tools.gate_simulation.places import Looks, places
from tools.gate_simulation.suite import GROUPS, METRICS, Effect

DRIFTS_ASKED = 100


def drift_named(draw: Draw, effect: Effect, looks: Looks, reached: np.ndarray) -> np.ndarray:
    """Say of which pull requests the first board is named as drifting; NaN where it is not asked.

    Only on racks that drift and the typical one, and of the first DRIFTS_ASKED of those drawn together, for
    it takes its time. ``reached`` (R, metrics) is the last look of each; cases are measured until all metrics
    of their group are decided.
    """
    found = np.full(draw.count, np.nan)
    if not draw.environment.drift and draw.environment != Environment("typical"):
        return found
    sides = draw.run(looks, effect)
    of_group = [
        [n for n, metric in enumerate(METRICS) if metric.case in cases and metric.scale == "log"]
        for cases in GROUPS
    ]
    level = drift.LEVEL / sum(map(len, of_group)) / draw.environment.boards
    for number in range(min(draw.count, DRIFTS_ASKED)):
        found[number] = any(
            _drifts([side[number, metric] for side in sides], looks, last, draw.first_role[number], level)
            > float(np.log1p(METRICS[metric].tolerance))
            for metrics in of_group
            for last in [int(reached[number, metrics].max())]
            for metric in metrics
        )
    return found


def _drifts(sides: list[np.ndarray], looks: Looks, last: int, first: np.ndarray, level: float) -> float:
    """Return by how much the first board drifts up to look ``last``, 0.0 where it is not named.

    ``sides`` are candidate and other, (boards, boots) each.
    """
    boards = {}
    for board, (mine, base) in enumerate(zip(*sides, strict=True)):
        place = np.concatenate(
            [of[:n] for of, n in zip(places(looks, bool(first[board])), looks[last], strict=True)]
        )
        values = np.concatenate([mine[: looks[last][0]], base[: looks[last][1]]]).astype(float)
        order = np.argsort(place)
        is_candidate = np.repeat([True, False], looks[last])[order]
        boards[str(board)] = drift.Boots(place[order], values[order], is_candidate)
    named = drift.find_drifts(boards, level).get("0")
    return abs(named.total) if named else 0.0

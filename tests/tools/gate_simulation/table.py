# SPDX-License-Identifier: Apache-2.0
"""The tables: false blocks, power, and what our gate spends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from tests.tools.gate_simulation.competitors import Rule
from tests.tools.gate_simulation.equal import EQUAL_RATE, Situations
from tests.tools.gate_simulation.results import Share, Situation
from tests.tools.gate_simulation.situations import Plan

Thresholds = Mapping[tuple[str, str], float]

CELLS = (
    "All figures are simulated, in % of pull requests, with the simulation's standard error. Of two figures\n"
    "the first is by the rule's own threshold, the second at an equal rate: by the threshold that blocks\n"
    f"{100 * EQUAL_RATE:.0f} % of unchanged pull requests in that noise."
)


def false_blocks(plans: Sequence[Plan], found: Situations, rules: Sequence[Rule], equal: Thresholds) -> Table:
    """Return how many unchanged pull requests are blocked."""
    return _shares("Unchanged pull requests blocked (simulated)", True, plans, found, rules, equal)


def power(plans: Sequence[Plan], found: Situations, rules: Sequence[Rule], equal: Thresholds) -> Table:
    """Return how many pull requests are caught by the metric that should tell."""
    return _shares("Changed pull requests caught (simulated)", False, plans, found, rules, equal)


def _shares(
    title: str,
    unchanged: bool,
    plans: Sequence[Plan],
    found: Situations,
    rules: Sequence[Rule],
    equal: Thresholds,
) -> Table:
    table = _table(
        title, ("simulated rack", *(() if unchanged else ("change",)), "ours", *(rule.name for rule in rules))
    )
    calibrations = {plan.name: plan.calibration for plan in plans}
    for situation in found.values():
        if situation.effect.unchanged == unchanged:
            label = (situation.name,) if unchanged else (situation.name, situation.effect.name)
            cells = [
                _cell(situation, rule, equal.get((calibrations[situation.name], rule.name))) for rule in rules
            ]
            table.add_row(*label, with_error(situation.our_share()), *cells)
    return table


def _cell(situation: Situation, rule: Rule, equal: float | None) -> str:
    own = situation.share(rule.name, rule.threshold)
    if not own.of:
        return "–"
    return f"{own}|{'–' if equal is None else situation.share(rule.name, equal)}"


def with_error(share: Share) -> str:
    """Return a share with its standard error."""
    return f"{share} ±{100 * share.error:.1f}" if share.of else "–"


def costs(found: Situations) -> Table:
    """Return what our gate spends on a pull request, and in how many it does not know."""
    head = (
        "simulated rack",
        "change",
        "blocked",
        "inconclusive",
        "boots a board",
        "minutes",
        "p95",
        "board odd",
        "board drifts",
    )
    table = _table("Our gate, per pull request of ten blocking metrics (simulated)", head)
    for situation in found.values():
        ours = situation.ours
        minutes = ours.seconds / 60
        table.add_row(
            situation.name,
            situation.effect.name,
            with_error(Share.among(ours.blocked)),
            with_error(Share.among(ours.inconclusive)),
            f"{ours.boots.mean():.1f}",
            f"{minutes.mean():.1f}",
            f"{np.quantile(minutes, 0.95):.1f}",
            str(Share.among(ours.named)),
            str(Share.among(ours.drifting[np.isfinite(ours.drifting)])),
        )
    return table


def _table(title: str, head: Sequence[str]) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1), pad_edge=False
    )
    for index, column in enumerate(head):
        label = index == 0 or column == "change"
        table.add_column(column, justify="left" if label else "right", no_wrap=True)
    return table


def show(console: Console, tables: Sequence[Table]) -> None:
    for table in tables:
        if table.row_count:
            console.print(table)
            console.print()

# SPDX-License-Identifier: Apache-2.0
"""The tables: false blocks and power of all rules, and what our gate does in every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from tools.gate_simulation.competitors import Rule
from tools.gate_simulation.coverage import Coverage
from tools.gate_simulation.dominance import Thresholds
from tools.gate_simulation.equal import EQUAL_RATE, Situations
from tools.gate_simulation.results import Share, Situation, Verdicts
from tools.gate_simulation.situations import Plan

CELLS = (
    "All figures are simulated, in % of pull requests, with the simulation's standard error. Of two figures\n"
    "the first is by the rule's own threshold, the second at an equal rate: by the threshold that blocks\n"
    f"{100 * EQUAL_RATE:.0f} % of unchanged pull requests in that noise."
)

OURS = (
    *("simulated rack", "change", "blocked", "by it", "passes", "improved", "undecided"),
    *("boots a board", "minutes", "p95", "board odd", "board drifts", "95 % interval holds"),
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
        if situation.scores and situation.effect.unchanged == unchanged:
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


def ours(found: Situations, coverage: Mapping[str, Coverage]) -> Table:
    """Return what our gate decides of every row, and what it spends."""
    table = _table("Our gate, per pull request of ten blocking metrics (simulated)", OURS)
    for situation in found.values():
        held = coverage.get(situation.name) if situation.effect.unchanged else None
        cells = [*_decided(situation), *_spent(situation.ours), str(held or "–")]
        table.add_row(situation.name, situation.effect.name, *cells)
    return table


def _decided(situation: Situation) -> list[str]:
    verdicts, metric = situation.ours, situation.effect.metric
    return [
        with_error(Share.among(verdicts.blocked)),
        with_error(situation.our_share()) if metric else "–",
        with_error(situation.our_passes()),
        str(Share.among(verdicts.improved(metric))) if metric else "–",
        with_error(Share.among(verdicts.undecided)),
    ]


def _spent(verdicts: Verdicts) -> list[str]:
    minutes = verdicts.seconds / 60
    return [
        f"{verdicts.boots.mean():.1f}",
        f"{minutes.mean():.1f}",
        f"{np.quantile(minutes, 0.95):.1f}",
        str(Share.among(verdicts.named)),
        str(Share.among(verdicts.drifting[np.isfinite(verdicts.drifting)])),
    ]


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

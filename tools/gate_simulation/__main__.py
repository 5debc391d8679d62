# SPDX-License-Identifier: Apache-2.0
"""``make bench-gate``: simulate, print the tables and the aims; exit 1 where an aim is missed.

With ``--short`` every row is simulated so seldom that its aims say nothing: none of them fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from tools.bench.figure import SHORT_PASS
from tools.gate_simulation import aims, table
from tools.gate_simulation.competitors import RULES
from tools.gate_simulation.equal import equal_thresholds
from tools.gate_simulation.ours import our_gate
from tools.gate_simulation.simulate import Settings, simulate_all
from tools.gate_simulation.situations import PLANS, Plan

FULL, QUICK, SHORT = 2000, 200, 20
SHORT_POOL_BOOTS = 400
PROCESSES = 2
WIDTH = 220  # columns of text, whatever the terminal has: the tables are read from files as well


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    settings = _settings(parsed)
    plans = _chosen(parsed.row)
    console = Console(width=WIDTH, highlight=False)
    progress = Console(stderr=True)
    found = simulate_all(plans, settings, our_gate, lambda name: progress.print(f"simulated: {name}"))
    equal = equal_thresholds(plans, found.situations, RULES)
    if parsed.short:
        console.print(SHORT_PASS + "\n")
    console.print(f"{settings.pull_requests} simulated pull requests a row, seed {settings.seed}\n")
    console.print(table.CELLS + "\n")
    shares = [make(plans, found.situations, RULES, equal) for make in (table.false_blocks, table.power)]
    table.show(console, [*shares, table.ours(found.situations, found.coverage)])
    status = _print_aims(console, aims.aims_of(found, RULES, equal, plans))
    return 0 if parsed.short else status


def _settings(parsed: argparse.Namespace) -> Settings:
    if parsed.short:
        return Settings(parsed.pull_requests or SHORT, parsed.seed, SHORT_POOL_BOOTS, parsed.processes)
    return Settings(
        pull_requests=parsed.pull_requests or (QUICK if parsed.quick else FULL),
        seed=parsed.seed,
        processes=parsed.processes,
    )


def _print_aims(console: Console, found: Sequence[aims.Aim]) -> int:
    for aim in found:
        console.print(f"{'kept  ' if aim.kept else 'MISSED'}  {aim.text}: {aim.said} (simulated)")
    return 0 if all(aim.kept for aim in found) else 1


def _chosen(row: str | None) -> tuple[Plan, ...]:
    """Return the plans whose name begins with ``row``, and those that calibrate the other rules for them."""
    if row is None:
        return PLANS
    chosen = [plan for plan in PLANS if plan.name.startswith(row)]
    if not chosen:
        raise SystemExit(
            f"--row {row!r} names no simulated rack. There are: {'; '.join(p.name for p in PLANS)}."
        )
    needed = {plan.calibration for plan in chosen} | {plan.name for plan in chosen}
    return tuple(plan for plan in PLANS if plan.name in needed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.gate_simulation", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK} pull requests a row, not {FULL}",
    )
    parser.add_argument("--short", action="store_true", help=f"{SHORT} a row: whether it works, not for docs")
    parser.add_argument("--row", metavar="NAME", help="only the simulated racks whose names begin so")
    parser.add_argument("--pull-requests", type=int, metavar="N", help="how many a row")
    parser.add_argument("--processes", type=int, default=PROCESSES, metavar="N", help="that share the rows")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all random numbers (default: 1)")
    return parser


if __name__ == "__main__":
    sys.exit(main())

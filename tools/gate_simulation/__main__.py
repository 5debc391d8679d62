# SPDX-License-Identifier: Apache-2.0
"""``make bench-gate``: simulate, print the tables and the aims; exit 1 where an aim is missed.

With ``--short`` every row is simulated so seldom that its aims say nothing: none of them fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat

from rich.console import Console

from tools.bench.figure import SHORT_PASS, Figure, show
from tools.gate_simulation.aims import Found, Share, kept, kept_by_attacks
from tools.gate_simulation.attacks import ATTACKS, answered_rightly
from tools.gate_simulation.judged import Tally, tally
from tools.gate_simulation.racks import (
    ALONE,
    CHIPS,
    NOISY,
    PAIR,
    RACKS,
    SLOWER,
    TYPICAL,
    UNCHANGED,
    Rack,
    effects_of,
)
from tools.gate_simulation.shipped import legs_of

PULL_REQUESTS, SHORT, CHUNK = 300, 4, 50
ATTEMPTS = 20
PROCESSES = 2
ROW_COLUMNS = (
    "rack", "blocked", "simple", "t-test", "undecided",
    "+10 %: caught", "simple", "t-test", "passes", "intervals hold",
)  # fmt: skip
NOTE = (
    "blocked, undecided: of unchanged pull requests, by any metric; caught, passes: by the median of the "
    "publish latency over TCP. simple: Student's t with the same looks; t-test: once, at the last look."
)
MONTH = 60 * 52 // 12  # pull requests of a team that makes 60 a week
WIDTH = 160  # columns of text, whatever the terminal has: the tables are read from files as well


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    count = SHORT if parsed.short else parsed.pull_requests
    attempts = min(ATTEMPTS, count)
    racks = _chosen(parsed.row)
    with ProcessPoolExecutor(PROCESSES) as pool:
        found = _simulate(pool.map, racks, count, parsed.seed)
        right = [*pool.map(answered_rightly, ATTACKS, repeat(range(attempts)), repeat(parsed.seed))]
    console = Console(width=WIDTH, highlight=False)
    if parsed.short:
        console.print(f"{SHORT_PASS}\n")
    console.print(f"{count} simulated pull requests a row, seed {parsed.seed}; ± is one standard error\n")
    for figure in (_plans(racks), _rows(found), _effects(found), _attacks(right, attempts), _month(found)):
        show(console, figure)
    aims = [*kept(found), *kept_by_attacks(right, attempts)]
    console.print(f"{sum(aim.beyond <= 0 for aim in aims)} of {len(aims)} aims are kept.")
    for aim in aims:
        if aim.beyond > 0:
            console.print(str(aim), markup=False)
    return int(not parsed.short and any(aim.missed for aim in aims))


def _simulate(spread: Callable[..., Iterable[Tally]], racks: Sequence[Rack], count: int, seed: int) -> Found:
    """Judge all rows, in chunks that processes share."""
    chunks = [range(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    work = [(rack, effect, chunk) for rack in racks for effect in effects_of(rack) for chunk in chunks]
    found = {(rack, effect): Tally() for rack, effect, _ in work}
    for (rack, effect, _), part in zip(
        work, spread(tally, *zip(*work, strict=True), repeat(seed)), strict=True
    ):
        found[rack, effect] += part
    return found


def _plans(racks: Sequence[Rack]) -> Figure:
    """Return what ships on each rack: one run a chip."""
    rows = []
    for boards in dict.fromkeys(rack.boards for rack in racks):
        leg, *_ = legs_of(boards)
        looks = ", ".join(f"{mine} + {base}" for mine, base in leg.comparison.looks)
        metrics = sum(map(len, leg.metrics.values()))
        alpha = max(own.policy.alpha for own in leg.thresholds.values())
        rows.append(
            (" + ".join(map(str, boards)), looks, str(len(leg.cases)), str(metrics), f"{100 * alpha:.2f} %")
        )
    columns = ("boards of each chip", "looks", "cases", "metrics", "alpha a run")
    return Figure("What ships: suite pr in 15 minutes", columns, rows)


def _rows(found: Found) -> Figure:
    rows = []
    for rack in dict.fromkeys(rack for rack, _effect in found):
        usual, slower = found[rack, UNCHANGED], found[rack, SLOWER]
        held = Share(usual.held + slower.held, usual.intervals + slower.intervals)
        of_usual = (usual.blocked, usual.simple, usual.plain, usual.undecided)
        of_slower = (slower.caught, slower.simple, slower.plain, slower.passed)
        shares = [Share(hits, usual.of) for hits in of_usual] + [Share(hits, slower.of) for hits in of_slower]
        rows.append((rack.name, *map(str, shares), f"{100 * held.value:.2f}"))
    return Figure("Pull requests on simulated racks, %", ROW_COLUMNS, rows, NOTE)


def _effects(found: Found) -> Figure:
    rows = [
        (effect.name, *(str(Share(hits, one.of)) for hits in (one.caught, one.simple, one.plain, one.passed)))
        for (rack, effect), one in found.items()
        if rack == TYPICAL and effect != UNCHANGED
    ]
    columns = ("typical rack, %", "caught", "simple", "t-test", "passes")
    return Figure("What a change is called", columns, rows)


def _attacks(right: Sequence[int], attempts: int) -> Figure:
    rows = [(attack.name, f"{hits} of {attempts}") for attack, hits in zip(ATTACKS, right, strict=True)]
    return Figure("Slow firmware that has got past a gate before", ("attack", "answered rightly"), rows)


def _month(found: Found) -> Figure:
    """Return what a team sees in a month, by its rack."""
    rows = []
    for rack in (TYPICAL, NOISY, ALONE, PAIR, CHIPS):
        if (rack, UNCHANGED) in found:
            usual, slower = found[rack, UNCHANGED], found[rack, SLOWER]
            of_month = [f"{MONTH * hits / usual.of:.1f}" for hits in (usual.blocked, usual.undecided)]
            rows.append((rack.name, *of_month, f"{100 * slower.caught / slower.of:.0f} of 100"))
    columns = ("rack", "blocked falsely", "undecided", f"{SLOWER.name} caught")
    return Figure(f"A month of {MONTH} pull requests that change nothing", columns, rows)


def _chosen(row: str) -> tuple[Rack, ...]:
    chosen = tuple(rack for rack in RACKS if rack.name.startswith(row))
    if not chosen:
        names = "; ".join(rack.name for rack in RACKS)
        raise SystemExit(f"--row {row!r} names no simulated rack. There are: {names}.")
    return chosen


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.gate_simulation", description=__doc__)
    parser.add_argument("--short", action="store_true", help=f"{SHORT} a row: whether it works, not for docs")
    parser.add_argument("--row", default="", metavar="NAME", help="only the racks whose names begin so")
    parser.add_argument(
        "--pull-requests",
        type=int,
        default=PULL_REQUESTS,
        metavar="N",
        help=f"a row (default: {PULL_REQUESTS})",
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all random numbers (default: 1)")
    return parser


if __name__ == "__main__":
    sys.exit(main())

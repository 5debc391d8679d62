# SPDX-License-Identifier: Apache-2.0
"""``make demo``: simulate nights with changes planted in them, and see whether the report finds them.

All figures are simulated and virtual. Exit 1 where a planted change is not named, or a false one is. With
``--seeds N`` only histories are made, and judged: how often that happens (tools/demo/accuracy.py); with
``--short`` one short one, whatever comes of it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hil.history import load
from hil.reports.finish import with_changes
from hil.reports.site import build_site, trend_for
from hil.store import read_judged_run
from hil.store.files import short_path
from tools.bench.figure import SHORT_PASS
from tools.demo.accuracy import measure, table
from tools.demo.making import Demo, make
from tools.demo.plan import Plan
from tools.demo.telling import compare, found, lines, planted

OUT = Path(__file__).resolve().parents[2] / "out" / "demo"
NIGHTS, FEWEST_NIGHTS = 120, 40


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.demo", description=__doc__)
    parser.add_argument("--nights", type=_nights, help=f"how many ({NIGHTS})")
    parser.add_argument("--seed", type=int, default=1, help="of commits and noise (1)")
    parser.add_argument("--out", type=Path, default=OUT, help="the folder that is made anew (out/demo)")
    parser.add_argument("--seeds", type=int, metavar="N", help="measure the accuracy over seeds 1 to N")
    parser.add_argument(
        "--short", action="store_true", help=f"the same over seed 1, {FEWEST_NIGHTS} nights: whether it works"
    )
    options = parser.parse_args(arguments)
    if options.short or options.seeds:
        return _accuracy(options)
    plan = Plan(nights=options.nights or NIGHTS, seed=options.seed)
    print(f"Simulating {plan.nights} nights of two virtual racks (simulated noise, seed {plan.seed})")
    begun = time.monotonic()
    demo = make(options.out, plan)
    print(f"Written in {time.monotonic() - begun:.0f} s; building the report", flush=True)
    runs = list(map(read_judged_run, demo.runs))
    trend = trend_for(runs, demo.history)
    index = build_site(demo.out, [with_changes(run, trend) for run in runs], trend=trend)
    comparison = compare(planted(plan), found(load(demo.history), demo.thresholds, plan.nights))
    print("\n".join(["", *lines(comparison), *_warnings(demo), "", f"Report: {short_path(index)}"]))
    return int(not comparison.holds)


def _accuracy(options: argparse.Namespace) -> int:
    nights = options.nights or (FEWEST_NIGHTS if options.short else NIGHTS)
    accuracy = measure(nights, range(1, (options.seeds or 1) + 1))
    heading = [SHORT_PASS] if options.short else []
    print("\n".join([*heading, *table(accuracy), *(accuracy.missed or ["all aims reached"])]))
    return int(bool(accuracy.missed) and not options.short)


def _nights(text: str) -> int:
    nights = int(text)
    if nights < FEWEST_NIGHTS:
        raise argparse.ArgumentTypeError(
            f"{nights} nights are too few for five changes; {FEWEST_NIGHTS} or more"
        )
    return nights


def _warnings(demo: Demo) -> list[str]:
    return [f"warning: {sentence}" for sentence in demo.warnings]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""How often the planted changes are named rightly: ``python -m tools.demo --seeds N`` builds no report.

Each seed is a history with the changes planted, and one of the same length without them. Exit 1 where an aim
is missed. All figures are simulated and virtual.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from hil.history import keep, load
from hil.metrics.sessions import History
from hil.thresholds import load as load_thresholds
from tools.demo.nights import Night, boots_of, measured
from tools.demo.plan import HAPPENINGS, NEWEST, RACKS, Plan
from tools.demo.samples import CASES, cases_of
from tools.demo.telling import compare, found, planted

LIMITS = Path(__file__).resolve().parents[2] / "thresholds"
FOUND_AIM, FALSE_AIM = 0.95, 0.05


@dataclass(frozen=True)
class Score:
    """What became of one history: whether each planted change was named, and what else was blamed."""

    seed: int
    planted: bool
    named: tuple[bool, ...]
    false_firmware: int
    false_other: int
    said: tuple[str, ...]


@dataclass(frozen=True)
class Accuracy:
    """The scores of several seeds."""

    nights: int
    scores: tuple[Score, ...]

    def named(self, position: int) -> float:
        """Return the share of histories that name one of the planted changes."""
        shares = [score.named[position] for score in self.scores if score.planted]
        return sum(shares) / len(shares)

    def false(self, *, planted: bool, firmware: bool) -> float:
        """Return the share of histories in which something is blamed that did nothing."""
        counts = [
            score.false_firmware if firmware else score.false_other
            for score in self.scores
            if score.planted is planted
        ]
        return sum(count > 0 for count in counts) / len(counts)

    @property
    def missed(self) -> list[str]:
        """Return the aims that are missed, a sentence each."""
        named = [self.named(position) for position in range(len(HAPPENINGS))]
        low = [name for name, share in zip(HAPPENINGS, named, strict=True) if share < FOUND_AIM]
        said = [f"{name}: named in less than {FOUND_AIM:.0%} of the histories" for name in low]
        for with_changes in (True, False):
            if self.false(planted=with_changes, firmware=True) > FALSE_AIM:
                words = "with changes planted" if with_changes else "in which nothing happens"
                said.append(
                    f"the firmware is blamed falsely in more than {FALSE_AIM:.0%} of histories {words}"
                )
        return said


def measure(nights: int, seeds: Sequence[int]) -> Accuracy:
    """Simulate and judge a history with and one without changes for each seed, on all processors."""
    tasks = list(product(seeds, (True, False)))
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        scores = list(pool.map(_score, [Plan(nights, seed, planted=wanted) for seed, wanted in tasks]))
    return Accuracy(nights, tuple(scores))


def table(accuracy: Accuracy) -> Iterator[str]:
    """Yield the histories of which something is to be said, then the shares."""
    for score in accuracy.scores:
        yield from (f"seed {score.seed}: {sentence}" for sentence in score.said)
    count = len(accuracy.scores) // 2
    yield f"simulated: {count} histories of {accuracy.nights} nights each with and without planted changes"
    for position, happening in enumerate(HAPPENINGS):
        yield f"  {happening + ' named rightly':44}{accuracy.named(position):>6.0%}"
    for firmware, name in ((True, "firmware"), (False, "rack or a board")):
        for wanted, words in ((True, "changes planted"), (False, "nothing planted")):
            share = accuracy.false(planted=wanted, firmware=firmware)
            yield f"  {f'{name} blamed falsely, {words}':44}{share:>6.0%}"


def history_of(plan: Plan) -> History:
    """Return the history of a plan as it would be read, without records, figures, health or report."""
    thresholds = {bench: load_thresholds(bench, LIMITS, today=NEWEST) for bench in CASES}
    cases = cases_of(thresholds)
    with tempfile.TemporaryDirectory() as folder:
        for rack in RACKS:
            for number in range(plan.nights):
                night = Night(plan, rack, number)
                keep(Path(folder), boots_of(night, list(measured(night, cases)), thresholds))
        return load(Path(folder))


def judge(plan: Plan, history: History) -> Score:
    """Return how a history is told."""
    thresholds = {bench: load_thresholds(bench, LIMITS, today=NEWEST) for bench in CASES}
    wanted = planted(plan) if plan.planted else ()
    comparison = compare(wanted, found(history, thresholds, plan.nights))
    firmware = sum(event["cause"] == "firmware" for event in comparison.false)
    said = [f"NOT FOUND {one.words}" for one, event in comparison.told if event is None]
    said += [f"FALSE {event['headline']}" for event in comparison.false]
    return Score(
        plan.seed,
        plan.planted,
        tuple(event is not None for _one, event in comparison.told),
        firmware,
        len(comparison.false) - firmware,
        tuple(said),
    )


def _score(plan: Plan) -> Score:
    return judge(plan, history_of(plan))

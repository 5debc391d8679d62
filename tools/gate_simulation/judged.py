# SPDX-License-Identifier: Apache-2.0
"""What the gate and the plain rules say of simulated pull requests, counted."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from hil.gate.judging import judge
from hil.metrics.metric import Metric
from hil.model import ComparedSeries, Entry
from tools.gate_simulation import rivals
from tools.gate_simulation.boots import SCALES, Boots, Statistics, Turns
from tools.gate_simulation.journal import records_of
from tools.gate_simulation.racks import Effect, Rack
from tools.gate_simulation.shipped import Leg, legs_of

PASSES = ("pass", "improved")


@dataclass(frozen=True)
class Tally:
    """Numbers of pull requests; ``held`` of ``intervals`` hold what is true.

    Of a changed pull request ``caught`` and ``passed`` are what the statistics say that should tell, and
    ``simple`` and ``plain`` how often the plain rules catch it by the same; ``lost`` is what the simple rule
    alone catches.
    """

    of: int = 0
    blocked: int = 0
    undecided: int = 0
    caught: int = 0
    passed: int = 0
    simple: int = 0
    plain: int = 0
    lost: int = 0
    held: int = 0
    intervals: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Tally)))


@dataclass(frozen=True)
class Run:
    """One leg of one pull request: its journal, and what the gate says of it."""

    leg: Leg
    turns: Turns
    measured: Mapping[str, Mapping[str, Statistics]]
    entries: Sequence[Entry]
    compared: Sequence[ComparedSeries] = ()

    def metric(self, item: ComparedSeries) -> Metric:
        """Return the metric that an item is about."""
        bench = item.case_id.partition("/")[0]
        return self.leg.thresholds[bench].metrics[item.metric]

    def tells(self, item: ComparedSeries, effect: Effect) -> bool:
        """Return whether an item should show a change."""
        own = item.case_id == self.leg.telling and self.metric(item).scale in SCALES
        return own and (effect.is_none or self.metric(item).statistic in effect.tells)

    def sides(self, item: ComparedSeries) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithms of candidate's and base's boots, worse above, (boards, boots) each."""
        metric = self.metric(item)
        logs = np.log(self.measured[item.case_id][metric.terms[0].column][metric.statistic])
        logs = -logs if metric.direction == "higher" else logs
        boards, candidate = len(logs), self.turns.candidate
        return logs[candidate].reshape(boards, -1), logs[~candidate].reshape(boards, -1)


def measure(leg: Leg, rack: Rack, effect: Effect, seed: tuple[int, ...], cases: Iterable[str]) -> Run:
    """Measure some cases of one leg; the seed draws noise, order and slots."""
    leg = leg.of_run("-".join(map(str, seed)))
    turns = leg.turns()
    boots = Boots.drawn(rack, turns, seed)
    measured = {one: boots.measured(leg.cases[one], leg.metrics[one], effect) for one in cases}
    entries: list[Entry] = [leg.comparison]
    for case_id, statistics in measured.items():
        entries += records_of(leg, turns, leg.cases[case_id], statistics)
    return Run(leg, turns, measured, entries)


def judged(run: Run) -> Run:
    """Return a run with what the gate says of all that may block."""
    compared = judge(run.entries, run.leg.thresholds).compared
    return replace(run, compared=[item for item in compared if item.blocking])


def run_of(leg: Leg, rack: Rack, effect: Effect, seed: tuple[int, ...]) -> Run:
    """Measure and judge one leg. Of a changed pull request only the case that is changed has records."""
    return judged(measure(leg, rack, effect, seed, leg.cases if effect.is_none else [leg.telling]))


def tally(rack: Rack, effect: Effect, numbers: range, seed: int) -> Tally:
    """Judge so many pull requests of a row; their numbers are a part of their seeds."""
    own = (seed, zlib.crc32(rack.name.encode()))
    found = [
        [run_of(leg, rack, effect, (*own, number, at)) for at, leg in enumerate(legs_of(rack.boards))]
        for number in numbers
    ]
    simple, plain = _of_rivals(found, effect)
    told = [[item for one in runs for item in one.compared if one.tells(item, effect)] for runs in found]
    caught = np.array([any(item.outcome == "regressed" for item in items) for items in told])
    outcomes = [{item.outcome for one in runs for item in one.compared} for runs in found]
    held = [one for runs in found for one in _intervals(runs, rack, effect)]
    return Tally(
        of=len(found),
        blocked=sum("regressed" in one for one in outcomes),
        undecided=sum("undecided" in one and "regressed" not in one for one in outcomes),
        caught=int(caught.sum()),
        passed=sum(all(item.outcome in PASSES for item in items) for items in told),
        simple=int(simple.sum()),
        plain=int(plain.sum()),
        lost=int((simple & ~caught).sum()),
        held=sum(held),
        intervals=len(held),
    )


def _of_rivals(found: Sequence[Sequence[Run]], effect: Effect) -> tuple[np.ndarray, np.ndarray]:
    """Return which pull requests the plain rules block, by any metric that counts."""
    simple, plain = np.zeros(len(found), dtype=bool), np.zeros(len(found), dtype=bool)
    for runs in zip(*found, strict=True):
        leg = runs[0].leg
        alpha = min(own.policy.alpha for own in leg.thresholds.values()) / len(runs[0].compared)
        for number, item in enumerate(runs[0].compared):
            if not _counts(runs[0], item, effect):
                continue
            pairs = [one.sides(one.compared[number]) for one in runs]
            sides = [np.stack(side) for side in zip(*pairs, strict=True)]
            simple |= rivals.simple(sides[0], sides[1], leg.comparison.looks, alpha)
            plain |= rivals.plain(sides[0], sides[1], leg.comparison.looks, alpha)
    return simple, plain


def _counts(one: Run, item: ComparedSeries, effect: Effect) -> bool:
    """Return whether an item is among those by which a pull request of this effect is blocked."""
    return one.metric(item).scale in SCALES if effect.is_none else one.tells(item, effect)


def _intervals(runs: Sequence[Run], rack: Rack, effect: Effect) -> Iterator[bool]:
    """Return for each printed interval whether it holds the truth: all boots equally slower, or unchanged."""
    if effect.tail[0] or effect.boots < 1.0 or (rack.quantum and not effect.is_none):
        return
    for one in runs:
        for item in one.compared:
            if _counts(one, item, effect) and item.low is not None and item.high is not None:
                yield item.low <= effect.slower <= item.high

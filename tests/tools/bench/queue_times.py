# SPDX-License-Identifier: Apache-2.0
"""How long a leg keeps its boards and its rack's air: the product's plan, its gate on simulated boots."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path

import numpy as np

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_THRESHOLDS
from hil.gate.compare.looks import MORE_BOOTS, Plan, schedule, with_more
from hil.run.plan.deadline import FLASH_S, affordable, expected_s, look_s
from hil.run.plan.selection import select_cases
from hil.store.judged import StoredRun, read_run
from hil.thresholds import load_project
from hil.thresholds.types import Policy
from tests.tools.gate_simulation import walltime
from tests.tools.gate_simulation.draws import Draw
from tests.tools.gate_simulation.environment import Environment
from tests.tools.gate_simulation.ours import chips_of, design_of, see
from tests.tools.gate_simulation.suite import GROUPS, MEDIAN_10, METRICS, UNCHANGED, Effect

SUITE = "pr"
DRAWN = 200  # simulated pull requests of each kind, of which a push is one
POOL_BOOTS = 2000
IMAGES = 2  # candidate and base, written side by side on all boards


@dataclass(frozen=True)
class Given:
    """What a leg takes beside what the gate asks for, in seconds.

    ``planned_s`` is what the plan expects a boot of a board to measure, ``measuring_s`` what it measures, all
    of it on the air; ``flash_s`` is what an image takes.
    """

    planned_s: float
    measuring_s: float
    flash_s: float = FLASH_S
    source: str = "planned"


@dataclass(frozen=True)
class Work:
    """What a leg does with its boards, in seconds; ``alone_s`` has the air to itself, for ``air_s`` of it."""

    flash_s: float
    alone_s: float
    air_s: float
    undecided: bool = False

    @property
    def air_share(self) -> float:
        return min(self.air_s / self.alone_s, 1.0) if self.alone_s else 0.0


@dataclass(frozen=True)
class Works:
    """Legs of so many boards, all as likely; ``more`` takes ``unchanged`` further, in order."""

    limits: Work
    unchanged: tuple[Work, ...]
    changed: tuple[Work, ...]
    more: tuple[Work, ...]
    more_changed: tuple[Work, ...]

    @property
    def expected_s(self) -> dict[str, float]:
        """By kind how long a leg of it holds its boards, on average and with the air to itself."""
        return {
            "limits": _held_s(self.limits),
            "compared": statistics.fmean(map(_held_s, self.unchanged)),
            "more": statistics.fmean(_held_s(one) for one in self.more if one.alone_s),
        }

    @property
    def undecided(self) -> float:
        return statistics.fmean(one.undecided for one in self.unchanged)


def _held_s(work: Work) -> float:
    return work.flash_s + work.alone_s


def planned() -> Given:
    """Return what the plan of a run says of the suite of pull requests."""
    cases = select_cases(load_project(PROJECT_THRESHOLDS), SUITE)
    planned_s = sum(map(expected_s, cases))
    return Given(planned_s, planned_s, source=f"as planned for the {len(cases)} cases of the suite {SUITE}")


def measured(folders: Sequence[Path]) -> Given:
    """Return what recorded runs took, the mean over them.

    Raises ConfigError: a folder holds no run, or one that does not say how long it measured.
    """
    runs = [read_run(folder) for folder in folders]
    found = [_of_run(run) for run in runs]
    kinds = sorted({record.kind for run in runs for record in run.records})
    return Given(
        planned().planned_s,
        statistics.fmean(measuring_s for measuring_s, _flash_s in found),
        statistics.fmean(flash_s for _measuring_s, flash_s in found),
        f"as {len(runs)} recorded run{'s' * (len(runs) > 1)} on {' and '.join(kinds)} boards took",
    )


def _of_run(run: StoredRun) -> tuple[float, float]:
    """Return what a boot of a board measured, and what an image took beside boots and measuring."""
    spans = [record.measured_s for record in run.records]
    known = [span for span in spans if span is not None]
    acquired, released = (str(run.info.get(f"lease_{what}_utc", "")) for what in ("acquired", "released"))
    if not known or len(known) < len(spans) or not acquired or not released:
        raise ConfigError(
            f"{run.path}: it does not say how long it measured and held its boards.",
            next_step="name runs that were measured to their end, such as out/latest.",
        )
    boards = {record.board for record in run.records}
    boots = len({(record.board, record.role, record.boot_index) for record in run.records}) / len(boards)
    each_s = sum(known) / len(boards) / boots
    held_s = (datetime.fromisoformat(released) - datetime.fromisoformat(acquired)).total_seconds()
    images = len({record.firmware_sha256 for record in run.records})
    beside_s = held_s - look_s(round(boots), [each_s] * len(boards))
    return each_s, max(beside_s, 0.0) / images


@cache
def works(given: Given, boards: int, legs: int, seed: int) -> Works:
    """Return what legs of ``boards`` take; ``legs`` of a pull request share alpha."""
    changed, more_changed = _compared(given, boards, legs, seed, MEDIAN_10)
    unchanged, more = _compared(given, boards, legs, seed, UNCHANGED)
    each_s = [given.measuring_s] * boards
    return Works(Work(given.flash_s, look_s(1, each_s), sum(each_s)), unchanged, changed, more, more_changed)


def looks_of(given: Given, boards: int) -> Plan:
    """Return the looks that a run plans within its time budget."""
    return affordable(schedule(Policy().max_boots), [given.planned_s] * boards, walltime.BUDGET_S)


def _compared(
    given: Given, boards: int, legs: int, seed: int, effect: Effect
) -> tuple[tuple[Work, ...], tuple[Work, ...]]:
    """Return legs that compare, and what more boots of each would take."""
    looks = looks_of(given, boards)
    # groups of cases take their share of what a boot measures; a group without an open metric is left out
    clock = Environment(
        "", boards=boards, samples=round(given.measuring_s / len(GROUPS) * walltime.SAMPLES_A_SECOND)
    )
    last, undecided = _decided(looks, boards, legs, seed, effect)
    taken, _boots, seconds = walltime.spend(last, looks, clock)
    air_s = np.zeros(len(last))
    before = 0
    for number, look in enumerate(looks):
        measuring = walltime.measuring_s(last >= number, clock).sum(axis=1)
        air_s += np.where(taken > number, (sum(look) - before) * measuring, 0.0)
        before = sum(look)
    flash_s = IMAGES * given.flash_s
    found = zip(seconds, air_s, np.asarray(undecided.any(axis=1)), strict=True)
    first = tuple(Work(flash_s, float(one), float(air), bool(open_)) for one, air, open_ in found)
    further = walltime.measuring_s(undecided, clock)
    alone_s = walltime.look_s(sum(MORE_BOOTS), further)
    on_air_s = sum(MORE_BOOTS) * further.sum(axis=1)
    more = zip(alone_s, on_air_s, strict=True)
    return first, tuple(Work(flash_s, float(one), float(air)) for one, air in more)


def _decided(looks: Plan, boards: int, legs: int, seed: int, effect: Effect) -> tuple[np.ndarray, np.ndarray]:
    """Return the look (from 0) at which metrics are decided, or the last, and whether they are undecided.

    Both are (pull requests, metrics). The product's gate judges boots with typical simulated noise.
    """
    environment = Environment("typical", boards=boards)
    draw = Draw(environment, DRAWN, (seed, boards), POOL_BOOTS)
    last = np.zeros((DRAWN, len(METRICS)), dtype=int)
    undecided = np.zeros((DRAWN, len(METRICS)), dtype=bool)
    ((candidate, other),) = chips_of(draw, effect)
    for index, metric in enumerate(METRICS):
        share = Policy().alpha / legs / len(METRICS)
        design = replace(design_of(metric, environment, share), looks=with_more(looks), unasked=len(looks))
        for row, sides in enumerate(zip(candidate[:, index].tolist(), other[:, index].tolist(), strict=True)):
            for number in range(len(looks)):
                state = see(sides, metric, design, number + 1).state
                if state != "undecided":
                    break
            last[row, index], undecided[row, index] = number, state == "undecided"
    return last, undecided

# SPDX-License-Identifier: Apache-2.0
"""How long a leg keeps its boards and its rack's air: the product's plan, its gate on simulated boots."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_THRESHOLDS
from hil.gate.compare.looks import MORE_BOOTS, Plan, schedule, with_more
from hil.model import Case, RunRecord
from hil.run.plan.deadline import AROUND_CASE_S, FLASH_S, affordable, expected_s, look_s
from hil.run.plan.selection import select_cases
from hil.store.judged import read_run
from hil.thresholds import load_project
from hil.thresholds.types import Policy
from tools.gate_simulation import walltime
from tools.gate_simulation.draws import Draw
from tools.gate_simulation.environment import Environment
from tools.gate_simulation.ours import chips_of, design_of, see
from tools.gate_simulation.suite import GROUPS, MEDIAN_10, METRICS, UNCHANGED, Effect

SUITE = "pr"
RECORDED = Path(__file__).with_name("queue_recorded.json")  # `--runs … --keep` writes it
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
    """Return what the plan of a run expects of the suite of pull requests."""
    cases = cases_of_suite()
    planned_s = sum(map(expected_s, cases))
    return Given(planned_s, planned_s, source=f"as planned for the {len(cases)} cases of the suite {SUITE}")


def recorded() -> Given:
    """Return what the cases of the suite took in a recorded run; one that is new since as planned."""
    stored = json.loads(RECORDED.read_text(encoding="utf-8"))
    cases = cases_of_suite()
    took_s = [stored["cases"].get(case.case_id, expected_s(case)) for case in cases]
    known = sum(case.case_id in stored["cases"] for case in cases)
    source = f"as {known} of {len(cases)} cases of the suite {SUITE} took on {stored['boards']} boards"
    others = ", the others as planned" if known < len(cases) else ""
    return Given(sum(map(expected_s, cases)), sum(took_s), source=f"{source} on {stored['day']}{others}")


def cases_of_suite() -> Sequence[Case]:
    return select_cases(load_project(PROJECT_THRESHOLDS), SUITE)


def measured(folders: Sequence[Path]) -> Given:
    """Return what cases took in runs of one's own, the mean over all of their boots.

    Raises ConfigError: a folder holds no run, or one that does not say how long it measured.
    """
    records = [record for folder in folders for record in _records(folder)]
    boots = {(record.run_id, record.board, record.role, record.boot_index) for record in records}
    total_s = sum(map(_took_s, records))
    runs = f"{len(folders)} recorded run{'s' * (len(folders) > 1)}"
    return Given(
        planned().planned_s, total_s / len(boots), source=f"as {runs} on {_kinds(records)} boards took"
    )


def keep(folders: Sequence[Path], path: Path) -> None:
    """Write what each case took in these runs: what recorded() reads. Raises ConfigError as measured()."""
    records = [record for folder in folders for record in _records(folder)]
    took: dict[str, list[float]] = {}
    for record in records:
        took.setdefault(record.case_id, []).append(_took_s(record))
    cases = {case_id: round(statistics.fmean(each), 3) for case_id, each in sorted(took.items())}
    stored = {"day": records[0].started_utc[:10], "boards": _kinds(records), "cases": cases}
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


def _records(folder: Path) -> Sequence[RunRecord]:
    run = read_run(folder)
    if not run.records or any(record.measured_s is None for record in run.records):
        raise ConfigError(
            f"{run.path}: it does not say how long it measured.",
            next_step="name runs that were measured to their end, such as out/latest.",
        )
    return run.records


def _took_s(record: RunRecord) -> float:
    """Return how long a case had the air: command, warm-up and transfer are in no record."""
    return (record.measured_s or 0.0) + AROUND_CASE_S


def _kinds(records: Sequence[RunRecord]) -> str:
    return " and ".join(sorted({record.kind for record in records}))


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

# SPDX-License-Identifier: Apache-2.0
"""What a rack's check is worth: how often it blocks unchanged firmware, and the smallest change it sees."""

from __future__ import annotations

import datetime
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from hil.history.files import paths_in, read_past
from hil.history.judgements import GATE, UnchangedRun, unchanged_runs
from hil.history.summary import Judgement
from hil.metrics.stats import quantile_ranks, ratio_interval
from hil.model import Kind
from hil.store.run_info import Standing

# Of 200 judgements without a false block the interval of their share ends below 2 %, of 100 below 4 %.
NEEDED = 200
# A rack ages, and so does its air. One chip's suite pr leaves eight judgements a night, 200 in 25 nights, so
# 90 days let a rack qualify that measures every third night only.
DAYS = 90
_SIDE = 0.025  # each side of a 95 % interval

State = Literal["qualified", "advisory", "not fit"]


@dataclass(frozen=True)
class Nature:
    """What judgements must have in common, or they are another rack's.

    ``noise`` is the profile that was simulated, "" where none was.
    """

    rack: str
    kind: Kind
    noise: str = ""


@dataclass(frozen=True)
class Share:
    """How many of how many, with the 95 % interval (Clopper-Pearson) of the true share."""

    hits: int
    of: int
    low: float
    high: float


def share(hits: int, of: int) -> Share:
    """Return ``hits`` in ``of`` with its interval; all is possible where there is none."""
    if not of:
        return Share(0, 0, 0.0, 1.0)
    found = ratio_interval(hits, of, _SIDE)
    return Share(hits, of, found.low, found.high)


@dataclass(frozen=True)
class Shares:
    """False blocks, and what was left undecided: of all judgements, and of all runs."""

    blocked: Share
    undecided: Share
    runs_blocked: Share
    runs_undecided: Share


@dataclass(frozen=True)
class SmallestSeen:
    """The smallest change that the comparisons of one metric would have seen: relative, else in its unit.

    ``low`` and ``high`` bound the median by order statistics, each side wrong in 2.5 % of cases at most; None
    where there are too few judgements for that.
    """

    metric: str
    relative: bool
    judgements: int
    median: float
    low: float | None
    high: float | None
    worst: float


@dataclass(frozen=True)
class Qualification:
    """What is known of one rack, whole and by target. ``per_night`` is what a run of each target adds."""

    nature: Nature
    days: int
    judgements: int
    runs: int
    alpha: float
    counts: Shares
    by_target: Mapping[str, Shares]
    seen: tuple[SmallestSeen, ...]
    per_night: float

    @property
    def state(self) -> State:
        """Whether the rack's check may be relied on. Too few judgements prove nothing, nor the contrary."""
        if self.judgements < NEEDED:
            return "advisory"
        return "not fit" if self.counts.runs_blocked.low > self.alpha else "qualified"

    def to_json(self) -> dict[str, Any]:
        return {"state": self.state, "needed": NEEDED, "gate": GATE, **asdict(self)}


def qualify(
    runs: Iterable[UnchangedRun], nature: Nature, *, now: datetime.datetime, days: int = DAYS
) -> Qualification:
    """Reckon with the runs of one nature, of today's gate and of the last ``days`` days."""
    judged = [run for run in counted(runs, now=now, days=days) if _of(run, nature)]
    pairs = [(run, item) for run in judged for item in _of(run, nature)]
    targets = sorted({item.target for _, item in pairs})
    by_target = {target: [pair for pair in pairs if pair[1].target == target] for target in targets}
    return Qualification(
        nature=nature,
        days=days,
        judgements=len(pairs),
        runs=len(judged),
        alpha=max((run.judged.alpha for run in judged), default=0.0),
        counts=_counts(pairs),
        by_target={target: _counts(own) for target, own in by_target.items()},
        seen=_seen([item for _, item in pairs]),
        per_night=sum(len(own) / len({run.run_id for run, _ in own}) for own in by_target.values()),
    )


def counted(runs: Iterable[UnchangedRun], *, now: datetime.datetime, days: int = DAYS) -> list[UnchangedRun]:
    """Return the runs that count: judged by today's gate, no more than ``days`` days ago."""
    since = now - datetime.timedelta(days=days)
    return [run for run in runs if run.judged.gate == GATE and run.started >= since]


def natures(runs: Iterable[UnchangedRun], rack: str) -> list[Nature]:
    """Return the natures of a rack's judgements, each once."""
    found = {Nature(run.rack, item.kind, run.judged.noise) for run in runs for item in run.judged.judgements}
    return sorted((one for one in found if one.rack == rack), key=lambda one: (one.kind, one.noise))


def _of(run: UnchangedRun, nature: Nature) -> list[Judgement]:
    if (run.rack, run.judged.noise) != (nature.rack, nature.noise):
        return []
    return [item for item in run.judged.judgements if item.kind == nature.kind]


def _counts(pairs: Sequence[tuple[UnchangedRun, Judgement]]) -> Shares:
    runs = {run.run_id for run, _ in pairs}

    def both(outcome: str) -> tuple[Share, Share]:
        hits = [run.run_id for run, item in pairs if item.outcome == outcome]
        return share(len(hits), len(pairs)), share(len(set(hits)), len(runs))

    blocked, runs_blocked = both("regressed")
    undecided, runs_undecided = both("undecided")
    return Shares(blocked, undecided, runs_blocked, runs_undecided)


def _seen(items: Sequence[Judgement]) -> tuple[SmallestSeen, ...]:
    by_metric: dict[tuple[str, bool], list[float]] = {}
    for item in items:
        if item.smallest_effect is not None and math.isfinite(item.smallest_effect):
            by_metric.setdefault((item.metric, item.relative), []).append(item.smallest_effect)
    return tuple(_seen_of(name, relative, by_metric[name, relative]) for name, relative in sorted(by_metric))


def _seen_of(metric: str, relative: bool, effects: Sequence[float]) -> SmallestSeen:
    ordered = sorted(effects)
    low, high = quantile_ranks(len(ordered), 0.5, _SIDE)
    return SmallestSeen(
        metric=metric,
        relative=relative,
        judgements=len(ordered),
        median=median(ordered),
        low=ordered[low - 1] if low else None,
        high=ordered[high - 1] if high <= len(ordered) else None,
        worst=ordered[-1],
    )


def standing(folder: Path, rack: str, kinds: Collection[Kind], noise: str) -> Standing:
    """Return what run.json says of the rack that a run is measured on, by the history in ``folder``.

    ``judgements`` is None where no history is at hand: the rack is advisory then, as an unknown one is.
    ``why`` tells which files are left out. Of boards of several kinds, the least known counts.
    """
    if not paths_in(folder):
        return Standing(state="advisory", judgements=None, needed=NEEDED)
    past = read_past(folder, racks=[rack])
    now, runs = datetime.datetime.now(tz=datetime.UTC), unchanged_runs(past.runs)
    found = [qualify(runs, Nature(rack, kind, noise), now=now) for kind in sorted(kinds)]
    least = min(found, key=lambda one: (one.state == "qualified", one.judgements))
    return Standing(least.state, least.judgements, NEEDED, " ".join(past.left_out))

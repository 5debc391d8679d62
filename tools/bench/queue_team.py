# SPDX-License-Identifier: Apache-2.0
"""A simulated team: when it pushes, and what a push asks of the boards.

All of it is assumed. The same seed gives the same pushes, whatever lab and policy they meet.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tools.bench.queue_simulation import Kind, Lab, Leg, Policy, Push
from tools.bench.queue_times import Given, Works, works

DAY_S = 86_400.0
WORKING_DAYS = 5  # of seven
# pull requests begin by these shares, hour by hour from BEGINS_H
BEGINS_H = 8
HOURLY = (4, 9, 13, 12, 6, 9, 13, 13, 11, 7, 3)


@dataclass(frozen=True)
class Team:
    """How a team works.

    The pause before a second push is log-normal and counts hours of work alone. ``hosted_s`` is what a push
    takes on GitHub's machines before its legs may begin: plan, build, narrow.
    """

    pull_requests: float = 60.0  # a working day, Poisson
    pushes: int = 2
    pause_s: float = 3600.0  # median
    pause_sigma: float = 1.0
    narrowed: float = 0.1  # of pull requests flash the same bytes: no board is asked for
    limits_only: float = 0.1  # change what measures alone: one boot, no comparison
    slower: float = 0.1  # of those that compare are 10 % slower
    asked_further: float = 0.5  # of undecided verdicts get the label hil:more
    asking_s: float = 900.0  # median until that is done; the same sigma
    hosted_s: float = 480.0


@dataclass(frozen=True)
class Draft:
    """A push before it meets a lab. ``luck`` chooses among what legs of its kind take, one for each chip."""

    arrives_s: float
    superseded_s: float
    kind: Kind
    slower: bool
    luck: tuple[float, ...]
    asks_after_s: float  # infinite where nobody asks for more boots


def drafts(team: Team, days: int, chips: int, seed: int) -> list[Draft]:
    """Return the pushes of so many working days that ask for boards, in their order."""
    found: list[Draft] = []
    for begins_s in _begins(team, days, random.Random(f"{seed} begins")):
        chance = random.Random(f"{seed} {begins_s}")
        luck = chance.random()
        if luck < team.narrowed:
            continue
        limits = luck < team.narrowed + team.limits_only
        slower = chance.random() < team.slower
        arrivals = [begins_s]
        for _ in range(team.pushes - 1):
            pause_s = chance.lognormvariate(math.log(team.pause_s), team.pause_sigma)
            arrivals.append(_after_work(arrivals[-1], pause_s))
        for arrives_s, next_s in zip(arrivals, (*arrivals[1:], math.inf), strict=True):
            asks_s = chance.lognormvariate(math.log(team.asking_s), team.pause_sigma)
            asks = chance.random() < team.asked_further
            lucks = tuple(chance.random() for _ in range(chips))
            kind: Kind = "limits" if limits else "compared"
            found.append(Draft(arrives_s, next_s, kind, slower, lucks, asks_s if asks else math.inf))
    return sorted(found, key=lambda draft: draft.arrives_s)


def _begins(team: Team, days: int, chance: random.Random) -> Iterator[float]:
    """Yield when pull requests begin: a Poisson process with an hourly profile."""
    total = sum(HOURLY)
    for day in range(days):
        for hour, share in enumerate(HOURLY):
            start_s = _day_s(day) + (BEGINS_H + hour) * 3600.0
            rate = team.pull_requests * share / total / 3600.0
            now_s = chance.expovariate(rate) if rate else math.inf
            while now_s < 3600.0:
                yield start_s + now_s
                now_s += chance.expovariate(rate)


def _day_s(working_day: int) -> float:
    weeks, day = divmod(working_day, WORKING_DAYS)
    return (7 * weeks + day) * DAY_S


def _after_work(start_s: float, pause_s: float) -> float:
    """Return the moment that is so much work later, nights and weekends left out."""
    day, time_s = divmod(start_s, DAY_S)
    left_s = pause_s
    ends_s = (BEGINS_H + len(HOURLY)) * 3600.0
    while left_s > ends_s - time_s:
        left_s -= ends_s - time_s
        day += 3 if day % 7 == WORKING_DAYS - 1 else 1
        time_s = BEGINS_H * 3600.0
    return day * DAY_S + time_s + left_s


class Asked:
    """Pushes as they meet a lab by a policy: what their legs take depends on how many boards these get."""

    def __init__(self, team: Team, given: Given, lab: Lab, policy: Policy, gate_seed: int) -> None:
        self._team = team
        self._works: Works = works(given, policy.boards_of(lab), 2 + lab.chips, gate_seed)
        self._drafts: dict[int, tuple[Draft, int]] = {}

    def pushes(self, found: Sequence[Draft]) -> list[Push]:
        return [self._push(draft) for draft in found]

    def _push(self, draft: Draft) -> Push:
        push = Push(draft.arrives_s, draft.superseded_s)
        for chip, luck in enumerate(draft.luck):
            number = min(int(luck * len(self._works.unchanged)), len(self._works.unchanged) - 1)
            drawn = (self._works.changed if draft.slower else self._works.unchanged)[number]
            work = self._works.limits if draft.kind == "limits" else drawn
            enters_s = draft.arrives_s + self._team.hosted_s
            leg = Leg(push, chip, draft.kind, work, self._works.expected_s[draft.kind], enters_s)
            push.legs.append(leg)
            self._drafts[id(leg)] = draft, number
        return push

    def more(self, leg: Leg, now_s: float) -> Leg | None:
        """Return the leg that takes an undecided one further, where somebody asks for it."""
        draft, number = self._drafts.get(id(leg), (None, 0))
        if draft is None or not leg.work.undecided or draft.asks_after_s == math.inf:
            return None
        enters_s = _after_work(now_s, draft.asks_after_s)
        if enters_s >= draft.superseded_s:
            return None
        work = (self._works.more_changed if draft.slower else self._works.more)[number]
        expected_s = self._works.expected_s["more"]
        return Leg(leg.push, leg.chip, "more", work, expected_s, enters_s, rack=leg.rack, boards=leg.boards)

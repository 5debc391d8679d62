# SPDX-License-Identifier: Apache-2.0
"""Pull requests that wait for the boards of a lab: a discrete-event simulation.

A push has a leg for each chip. A leg waits for a runner of a rack (GitHub's queue, first come, first served),
then, set up, for boards of its chip (the rack's queue); it flashes them and measures. Racks are alike. Legs
that measure on one rack at once share its air evenly, and none gets more of it than it can use. Where the
policy says so, a leg leaves that a newer push has superseded by when it is set up, as `hil ci wanted` has it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from tools.bench.queue_times import Work

Kind = Literal["compared", "limits", "more"]
State = Literal["waiting", "measuring", "done", "superseded"]


@dataclass(frozen=True)
class Lab:
    """``boards`` of each rack, in equal parts of ``chips``. A rack has one air."""

    racks: int
    boards: int
    chips: int = 1

    @property
    def boards_a_chip(self) -> int:
        return self.boards // self.chips

    @property
    def all_boards(self) -> int:
        return self.racks * self.boards


@dataclass(frozen=True)
class Policy:
    """How boards are given.

    ``boards_a_leg`` 0: a leg takes all boards of its chip. ``shortest`` says whether those that wait for
    boards get them the shortest first (else as they came), ``runners`` how many jobs of a chip a rack takes
    at once: 0 is one a board. Where there is one, all wait at GitHub, whose queue is taken to have that
    order.
    """

    name: str
    drops: bool = False
    shortest: bool = False
    runners: int = 1
    boards_a_leg: int = 0
    spared_s: float = 0.0  # of flashing, where a board has an image already

    def boards_of(self, lab: Lab) -> int:
        return min(self.boards_a_leg or lab.boards_a_chip, lab.boards_a_chip)


@dataclass(frozen=True)
class Around:
    """What a rack's job does before it waits for boards and after it had them, and the verdict's own job."""

    setup_s: float = 60.0
    report_s: float = 60.0
    verdict_s: float = 60.0


AROUND = Around()
AGEING = 1.0  # seconds that one may wait before another that takes so much less goes first


@dataclass
class Leg:
    """``enters_s`` is when GitHub's queue gets it; a leg that takes an earlier one further needs its rack."""

    push: Push
    chip: int
    kind: Kind
    work: Work
    expected_s: float
    enters_s: float
    rack: int = -1
    boards: tuple[int, ...] = ()
    state: State = "waiting"
    began_s: float = 0.0


@dataclass
class Push:
    """``superseded_s`` is infinite where no newer push of the pull request comes."""

    arrives_s: float
    superseded_s: float
    legs: list[Leg] = field(default_factory=list)
    verdict_s: float = math.inf

    @property
    def is_wanted(self) -> bool:
        """Whether its verdict came before a newer push."""
        return self.verdict_s <= self.superseded_s

    @property
    def wait_s(self) -> float:
        return self.verdict_s - self.arrives_s


class Air:
    """The air of a rack, shared by the legs that measure there; of each a share of its work is on the air."""

    def __init__(self) -> None:
        self._left_s: dict[int, float] = {}  # of each, with the air to itself
        self._legs: dict[int, Leg] = {}
        self._pace: dict[int, float] = {}
        self._now_s = 0.0
        self.used_s = 0.0

    def begin(self, leg: Leg, now_s: float) -> None:
        self._advance(now_s)
        self._legs[id(leg)], self._left_s[id(leg)] = leg, leg.work.alone_s
        self._share()

    def next(self) -> tuple[float, Leg] | None:
        """Return who is through first, and when; None where nothing is measured."""
        ends = {key: self._now_s + left_s / self._pace[key] for key, left_s in self._left_s.items()}
        first = min(ends, key=lambda key: ends[key], default=None)
        return None if first is None else (ends[first], self._legs[first])

    def end(self, leg: Leg, now_s: float) -> None:
        self._advance(now_s)
        for held in (self._legs, self._left_s, self._pace):
            del held[id(leg)]
        self._share()

    def _advance(self, now_s: float) -> None:
        for key, leg in self._legs.items():
            done_s = (now_s - self._now_s) * self._pace[key]
            self._left_s[key] = max(self._left_s[key] - done_s, 0.0)
            self.used_s += done_s * leg.work.air_share
        self._now_s = now_s

    def _share(self) -> None:
        """Give each the same share of the air, and what it cannot use to the others."""
        free = 1.0
        ordered = sorted(self._legs.items(), key=lambda item: item[1].work.air_share)
        for at, (key, leg) in enumerate(ordered):
            wanted = leg.work.air_share
            got = min(wanted, free / (len(ordered) - at))
            self._pace[key] = got / wanted if wanted else 1.0
            free -= got


@dataclass
class Outcome:
    """What came of the pushes: boards' and airs' seconds in use."""

    pushes: Sequence[Push]
    boards_s: float = 0.0
    air_s: float = 0.0

    def in_state(self, state: State) -> int:
        """Count pushes: each is measured, superseded before that, or still waits or measures."""
        return sum(_state_of(push) == state for push in self.pushes)


def _state_of(push: Push) -> State:
    states = {leg.state for leg in push.legs if leg.kind != "more"}
    order: tuple[State, ...] = ("superseded", "measuring", "waiting", "done")
    return next(state for state in order if state in states)


More = Callable[[Leg, float], Leg | None]


class Queue:
    """Legs as they come, or the shortest first, where each second of waiting makes a leg a second shorter."""

    def __init__(self, *, shortest: bool) -> None:
        self._shortest = shortest
        self._legs: list[tuple[float, int, Leg]] = []
        self._count = 0

    def put(self, leg: Leg, now_s: float) -> None:
        self._count += 1
        key = now_s + (AGEING * leg.expected_s if self._shortest else 0.0)
        heapq.heappush(self._legs, (key, self._count, leg))

    @property
    def first(self) -> Leg | None:
        return self._legs[0][2] if self._legs else None

    def pop(self) -> None:
        heapq.heappop(self._legs)


class Rack:
    """By chip: free boards, free runners, legs that wait for boards, and legs that need this rack."""

    def __init__(self, lab: Lab, policy: Policy) -> None:
        chips = range(lab.chips)
        self.free = {chip: list(range(lab.boards_a_chip)) for chip in chips}
        self.runners = dict.fromkeys(chips, policy.runners or lab.boards_a_chip)
        self.waiting = {chip: Queue(shortest=policy.shortest) for chip in chips}
        self.bound = {chip: Queue(shortest=False) for chip in chips}
        self.air = Air()
        self.version = 0  # of what is measured: an end that was planned by an earlier one is void


class Simulation:
    """Runs the legs of ``pushes`` through a lab. ``more`` says which leg takes one further that is done."""

    def __init__(
        self,
        lab: Lab,
        policy: Policy,
        pushes: Sequence[Push],
        *,
        around: Around = AROUND,
        more: More = lambda _leg, _now_s: None,
    ) -> None:
        self._lab, self._policy, self._around, self._more = lab, policy, around, more
        self._racks = [Rack(lab, policy) for _ in range(lab.racks)]
        one_runner = policy.runners == 1
        self._github = {chip: Queue(shortest=policy.shortest and one_runner) for chip in range(lab.chips)}
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._count = 0
        self._outcome = Outcome(pushes)
        for push in pushes:
            for leg in push.legs:
                self._at(leg.enters_s, partial(self._enter, leg))

    def run(self, until_s: float = math.inf) -> Outcome:
        """Return what came of it by then; without a time, when all is through."""
        while self._events and self._events[0][0] <= until_s:
            now_s, _number, event = heapq.heappop(self._events)
            event(now_s)
        self._outcome.air_s = sum(rack.air.used_s for rack in self._racks)
        return self._outcome

    def _at(self, when_s: float, event: Callable[[float], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (when_s, self._count, event))

    def _enter(self, leg: Leg, now_s: float) -> None:
        if self._leaves(leg, now_s):
            return
        (self._github[leg.chip] if leg.rack < 0 else self._racks[leg.rack].bound[leg.chip]).put(leg, now_s)
        self._give_runners(leg.chip, now_s)

    def _leaves(self, leg: Leg, now_s: float) -> bool:
        """Look whether a newer push is there: before GitHub's queue, and before boards are asked for."""
        if self._policy.drops and leg.push.superseded_s <= now_s:
            leg.state = "superseded"
        return leg.state == "superseded"

    def _give_runners(self, chip: int, now_s: float) -> None:
        """Give free runners to who waits at GitHub: the rack with most of them first."""
        while free := [number for number, rack in enumerate(self._racks) if rack.runners[chip] > 0]:
            for number in sorted(free, key=lambda n: -self._racks[n].runners[chip]):
                queues = (self._racks[number].bound[chip], self._github[chip])
                if queue := next((one for one in queues if one.first is not None), None):
                    self._give_runner(queue, number, now_s)
                    break
            else:
                return

    def _give_runner(self, queue: Queue, number: int, now_s: float) -> None:
        leg = queue.first
        assert leg
        queue.pop()
        self._racks[number].runners[leg.chip] -= 1
        leg.rack = number
        self._at(now_s + self._around.setup_s, partial(self._set_up, leg))

    def _set_up(self, leg: Leg, now_s: float) -> None:
        rack = self._racks[leg.rack]
        if self._leaves(leg, now_s):
            rack.runners[leg.chip] += 1
            self._give_runners(leg.chip, now_s)
            return
        rack.waiting[leg.chip].put(leg, now_s)
        self._give_boards(leg.rack, leg.chip, now_s)

    def _give_boards(self, number: int, chip: int, now_s: float) -> None:
        """Give free boards to the first in the rack's queue, as long as they do for it."""
        rack = self._racks[number]
        count = self._policy.boards_of(self._lab)
        while (leg := rack.waiting[chip].first) is not None:
            boards = leg.boards or tuple(rack.free[chip][:count])
            if len(boards) < count or not set(boards) <= set(rack.free[chip]):
                return
            rack.waiting[chip].pop()
            rack.free[chip] = [board for board in rack.free[chip] if board not in boards]
            leg.boards, leg.state, leg.began_s = boards, "measuring", now_s
            self._at(now_s + self._flash_s(leg), partial(self._measure, leg))

    def _flash_s(self, leg: Leg) -> float:
        return max(leg.work.flash_s - self._policy.spared_s, 0.0)

    def _measure(self, leg: Leg, now_s: float) -> None:
        self._racks[leg.rack].air.begin(leg, now_s)
        self._plan_end(leg.rack)

    def _plan_end(self, number: int) -> None:
        """Plan for the first of those that measure on a rack to be through."""
        rack = self._racks[number]
        rack.version += 1
        if (found := rack.air.next()) is not None:
            self._at(found[0], partial(self._end, number, rack.version, found[1]))

    def _end(self, number: int, version: int, leg: Leg, now_s: float) -> None:
        rack = self._racks[number]
        if version != rack.version:
            return
        rack.air.end(leg, now_s)
        self._plan_end(number)
        self._outcome.boards_s += len(leg.boards) * (now_s - leg.began_s)
        rack.free[leg.chip] = sorted((*rack.free[leg.chip], *leg.boards))
        self._at(now_s + self._around.report_s, partial(self._report, leg))
        self._give_boards(number, leg.chip, now_s)

    def _report(self, leg: Leg, now_s: float) -> None:
        leg.state = "done"
        first = [one for one in leg.push.legs if one.kind != "more"]
        if leg.kind != "more" and all(one.state == "done" for one in first):
            leg.push.verdict_s = now_s + self._around.verdict_s
        if (further := self._more(leg, now_s)) is not None:
            leg.push.legs.append(further)
            self._at(further.enters_s, partial(self._enter, further))
        self._racks[leg.rack].runners[leg.chip] += 1
        self._give_runners(leg.chip, now_s)

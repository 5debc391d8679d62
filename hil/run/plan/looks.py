# SPDX-License-Identifier: Apache-2.0
"""When a comparison is judged, in which order its boots run, and where its builds lie meanwhile.

All of it is fixed before anything is measured, because the looks share the comparison's alpha. So their times
are estimates; a rack keeps none of what its boots took.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hil.boards.flash.by_command import is_by_command
from hil.model import Comparison, Looks, Role
from hil.run.plan.deadline import BOOT_S, FLASH_S, expected_s
from hil.run.plan.planning import BoardPlan

FIRST = 3  # boots of each build; fewer say too little of how much boots differ
_GROWTH = 1.4  # of the last look over the one before: less is not worth its share of alpha
_EVEN = 3 / 8  # of all boots: the share of a way to lie below which the builds swap
_REMAINDERS = 4  # two drawn bits


@dataclass(frozen=True)
class BootPace:
    """How long boards take, in seconds: what each measures in a boot, to boot, to write both builds."""

    measuring_s: tuple[float, ...]
    boot_s: float = BOOT_S
    flash_s: float = 2 * FLASH_S

    def look_s(self, boots: int) -> float:
        """Return how long it takes until each board has booted so often.

        Boards boot side by side and take turns on the air: either a board is never waited for, or the air
        never is.
        """
        longest, air = max(self.measuring_s, default=0.0), sum(self.measuring_s)
        return max(boots * (self.boot_s + longest), self.boot_s + boots * air)

    def looks_s(self, looks: Looks) -> float:
        """Return how long all looks take, flashing included."""
        return sum(flashes(looks)) * self.flash_s + sum(map(self.look_s, boots_of(looks)))

    def more_boot_s(self) -> float:
        """Return how long one more boot of every board takes."""
        return max(self.boot_s + max(self.measuring_s, default=0.0), sum(self.measuring_s))


def pace_of(boards: Sequence[BoardPlan]) -> BootPace:
    """Return the pace of a plan's boards: one that a command flashes is flashed for each boot."""
    measuring_s = tuple(sum(map(expected_s, plan.cases)) for plan in boards)
    by_command = [is_by_command(plan.board) for plan in boards]
    boot_s = BOOT_S + FLASH_S * any(by_command)
    return BootPace(measuring_s, boot_s, 0.0 if all(by_command) else 2 * FLASH_S)


def plan_looks(pace: BootPace, *, max_boots: int, budget_s: float) -> Looks:
    """Return the looks: the first always, the last with as many boots as end within the budget.

    ``max_boots`` of a board, both builds together, are not exceeded.
    """
    fitting = steps(FIRST)
    for last in range(FIRST + 1, max_boots // 2 + 1):
        longer = steps(last)
        if pace.looks_s(longer) <= budget_s:
            fitting = longer
    return fitting


def describe(looks: Looks, pace: BootPace, budget_s: float) -> str:
    """Describe when a comparison is judged, and when it ends if nothing is decided earlier."""
    boots = [f"{candidate} + {other}" for candidate, other in looks]
    after = f"{', '.join(boots[:-1])} and {boots[-1]}" if boots[:-1] else boots[-1]
    return (
        f"look{'s' * bool(boots[:-1])} after {after} boots a board, {pace.looks_s(looks) / 60:.1f} of "
        f"{budget_s / 60:.3g} min as estimated from its cases"
    )


def steps(last: int) -> Looks:
    """Return looks from the first to ``last`` boots of each build; they grow as Fibonacci's numbers do."""
    found, now, after = [], FIRST, FIRST + 2
    while now < last and (now == FIRST or now * _GROWTH <= last):
        found.append(now)
        now, after = after, now + after
    return tuple((boots, boots) for boots in (*found, last))


def boots_of(looks: Looks) -> tuple[int, ...]:
    """Return how many boots of a board each look adds."""
    return tuple(now - before for before, now in itertools.pairwise((0, *map(sum, looks))))


def lying(looks: Looks) -> tuple[tuple[bool, ...], ...]:
    """Return for each boot of each look whether the builds have swapped their slots of the first boot.

    Both ways have about as many boots after the last look, and some after each look but the first of several,
    so that a slot is told from a build. A look swaps them once at most, and where that is worth its time:
    after the boots that go to the way they lie. Where the swap of the second look can make both ways equal
    in the end, it is the only one.
    """
    pairs, now, found = [0, 0], False, list[tuple[bool, ...]]()  # of candidate and other, each way
    for boots in boots_of(looks):
        added = boots // 2
        there, half = 0, min(looks[-1]) // 2
        if len(found) == 1 and pairs[now] < half < pairs[now] + added:
            there = pairs[now] + added - half
        elif (found or len(looks) == 1) and pairs[not now] < _EVEN * (sum(pairs) + added):
            there = min((sum(pairs) + added) // 2 - pairs[not now], added)
        pairs[now] += added - there
        pairs[not now] += there
        found.append((now,) * 2 * (added - there) + (not now,) * 2 * there)
        now = found[-1][-1]
    return tuple(found)


def flashes(looks: Looks) -> tuple[int, ...]:
    """Return how often both builds are written in each look: first of all, and where they swap."""
    ways = lying(looks)
    ends = (None, *(own[-1] for own in ways))
    changes = (itertools.pairwise((end, *own)) for end, own in zip(ends, ways, strict=False))
    return tuple(sum(now != before for before, now in own) for own in changes)


def order(looks: Looks, roles: tuple[Role, Role]) -> tuple[tuple[Role, ...], ...]:
    """Return the roles of the boots of each look, the first of ``roles`` first.

    They come in pairs, this way or that by the Thue-Morse sequence: over all boots, and over those of any
    look, both roles have nearly the same mean place, so that a drift is not taken for a difference.
    """
    places = range(sum(looks[-1]) if looks else 0)
    of_all = [roles[place.bit_count() % 2] for place in places]
    ends = [sum(look) for look in looks]
    return tuple(tuple(of_all[start:end]) for start, end in zip((0, *ends[:-1]), ends, strict=True))


@dataclass(frozen=True)
class Drawn:
    """What is drawn for a board: whether the candidate boots first, and its slot in the first look."""

    candidate_first: bool
    slot: int


def draw(comparison: Comparison, board: str) -> Drawn:
    """Draw a board's order and slot by run and image, half of the boards this way and half that way."""
    boards = sorted({*comparison.boards, board}, key=lambda one: _digest(comparison, one))
    place = (boards.index(board) + _digest(comparison, "")[0]) % _REMAINDERS
    return Drawn(candidate_first=place // 2 == 0, slot=place % 2)


def _digest(comparison: Comparison, board: str) -> bytes:
    return hashlib.sha256(f"{comparison.run_id}/{comparison.image}/{board}".encode()).digest()

# SPDX-License-Identifier: Apache-2.0
"""Shards: the cases of a plan shared out to several runs that last about alike.

Each run shares out by itself and comes to the same, as only suite, limits and boards count: the longest case
first, each to the shard with least to do so far (longest processing time first, Graham 1969). A case stays
whole: all its boards measure it in one shard. Which board is in quarantine changes nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from hil.base.errors import ConfigError
from hil.run.plan.deadline import BOOT_S, FLASH_S, expected_s
from hil.run.plan.planning import Plan, kept_plan

SHARD_MAX_S = 3600.0  # of a night by plan, so that a job is through in 90 minutes, installing included
_SHARD = re.compile(r"([1-9]\d{0,2})/([1-9]\d{0,2})")


@dataclass(frozen=True)
class Shard:
    """The run number ``number``, from 1, of ``of`` that measure a suite together."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def parse_shard(text: str) -> Shard:
    """Return the shard that ``2/4`` names. Raises ConfigError."""
    found = _SHARD.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        raise ConfigError(
            f"--shard {text}: not a shard, which is its number and how many there are.",
            next_step="write 1/4 to 4/4, one in each of four runs.",
        )
    return Shard(int(found[1]), int(found[2]))


def shares(plan: Plan, of: int) -> tuple[frozenset[str], ...]:
    """Return the case ids of each of ``of`` shards.

    ``plan`` is made without quarantine. Raises ConfigError where there are more shards than cases.
    """
    durations = _durations_ms(plan)
    if of > len(durations):
        cases = f"{len(durations)} case{'s' * (len(durations) != 1)}"
        raise ConfigError(
            f"{cases} of the suite {plan.selection!r} cannot be shared out to {of} shards.",
            next_step=f"name at most {len(durations)} shards, or more cases.",
        )
    load_ms = [0] * of
    found: list[set[str]] = [set() for _ in range(of)]
    for case_id in sorted(durations, key=lambda one: (-durations[one], one)):
        least = min(range(of), key=lambda shard: (load_ms[shard], len(found[shard]), shard))
        load_ms[least] += durations[case_id]
        found[least].add(case_id)
    return tuple(map(frozenset, found))


def shard_of(plan: Plan, share: Set[str]) -> Plan:
    """Return the plan of one share: what its cases are left out for stays with it."""
    pairs = {
        (board.board.id, case.case_id)
        for board in plan.boards
        for case in (*board.cases, *(one.case for one in board.omitted))
        if case.case_id in share
    }
    return kept_plan(plan, pairs)


def numbers_by_board(plan: Plan, parts: Sequence[Set[str]]) -> dict[str, dict[str, int]]:
    """Return by board which shard measures each of its cases, for whoever brings the shards together."""
    number_of = {case_id: number for number, part in enumerate(parts, start=1) for case_id in part}
    return {
        board.board.id: {case.case_id: number_of[case.case_id] for case in board.cases}
        for board in plan.boards
    }


def run_s(plan: Plan) -> float:
    """Return about how long a run takes, in seconds: bring-up, and then cases that take turns on the air.

    Either the air is never waited for once the first board has booted, or one board never is.
    """
    measuring_s = [
        sum(expected_s(case) for boot in board.boots for case in boot) for board in plan.boards if board.boots
    ]
    bringing_s = [
        FLASH_S * len(board.stages) + BOOT_S * len(board.boots) for board in plan.boards if board.boots
    ]
    if not measuring_s:
        return 0.0
    each_s = map(sum, zip(measuring_s, bringing_s, strict=True))
    return max(FLASH_S + BOOT_S + sum(measuring_s), *each_s)


def bound_s(plan: Plan, of: int) -> float:
    """Return what the longest of so many shards cannot be shorter than: bring-up, and the more of the longest
    case and an even share.
    """
    durations_s = [milliseconds / 1e3 for milliseconds in _durations_ms(plan).values()]
    return FLASH_S + BOOT_S + max(max(durations_s, default=0.0), sum(durations_s) / of)


def shards_within(plan: Plan, limit_s: float) -> int:
    """Return the least number of shards of which each is through within the limit; one a case at most."""
    most = max(1, len(_durations_ms(plan)))
    least = max(1, math.ceil((run_s(plan) - FLASH_S - BOOT_S) / limit_s))
    for of in range(least, most):
        if all(run_s(shard_of(plan, part)) <= limit_s for part in shares(plan, of)):
            return of
    return most


def _durations_ms(plan: Plan) -> Mapping[str, int]:
    """Return by case id how long its boards measure it, one after another; 0 where none can.

    Whole numbers, of which sums are alike whatever the order.
    """
    found: dict[str, int] = {}
    for board in plan.boards:
        for case in board.cases:
            each_ms = round(1e3 * expected_s(case)) * board.boots_of(case)
            found[case.case_id] = found.get(case.case_id, 0) + each_ms
        for one in board.omitted:
            found.setdefault(one.case.case_id, 0)
    return found

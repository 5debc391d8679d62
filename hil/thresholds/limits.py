# SPDX-License-Identifier: Apache-2.0
"""Limits and comparisons, and where they hold: the most specific match wins, and an ambiguity is an error.

A ``where`` is a set of conditions; it is more specific than another when it contains all of the other's
conditions and more. Two that both match, neither more specific, leave open which is meant.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from hil.base.errors import ConfigError
from hil.model import Scalar

PLACE_KEYS = ("kind", "rack", "target", "board", "air", "product")


@dataclass(frozen=True)
class Where:
    """Conditions: ``metric``, ``case.<parameter>``, and of PLACE_KEYS."""

    conditions: Mapping[str, Scalar]

    def matches(self, facts: Mapping[str, Scalar]) -> bool:
        return all(key in facts and facts[key] == wanted for key, wanted in self.conditions.items())

    def contradicts(self, facts: Mapping[str, Scalar]) -> bool:
        return any(key in facts and facts[key] != wanted for key, wanted in self.conditions.items())

    def is_more_specific(self, other: Where) -> bool:
        return self.conditions.items() > other.conditions.items()

    def __str__(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.conditions.items()) or "everything"


@dataclass(frozen=True)
class Since:
    """The origin of a limit: the commit, day, boards and number of samples of its measurement.

    ``n`` of 0 says that it was reckoned, not measured.
    """

    date: datetime.date
    commit: str = ""
    board: str = ""
    n: int = 0

    def __str__(self) -> str:
        samples = f"{self.n} samples" if self.n else ""
        return ", ".join(part for part in (str(self.date), self.commit, self.board, samples) if part)


@dataclass(frozen=True)
class Limit:
    """An absolute limit in the unit of its metric; ``source`` is file:line.

    An infinite ``value`` says that nothing is promised there: the figure is advice. Where it is of ``each``
    value, the one that is furthest beyond it decides, as a fact; else the interval of the metric does.
    """

    where: Where
    bound: Literal["max", "min"]
    value: float
    why: str
    since: Since | None
    expires: datetime.date | None
    source: str
    each: bool = False

    @property
    def is_none(self) -> bool:
        return math.isinf(self.value)


@dataclass(frozen=True)
class Advice:
    """Series that are reported but never block."""

    where: Where
    why: str
    source: str


@dataclass(frozen=True)
class Suppression:
    """Series whose regressions do not block until ``expires``, because ``issue`` is known."""

    where: Where
    reason: str
    issue: str
    expires: datetime.date
    source: str


class Rule(Protocol):
    """Anything with conditions and a line."""

    @property
    def where(self) -> Where: ...

    @property
    def source(self) -> str: ...


R = TypeVar("R", bound=Rule)

WARNED_DAYS = 60


def aging(limits: Sequence[Limit], today: datetime.date | None = None) -> str:
    """List the limits to be reviewed within WARNED_DAYS, or overdue; "" if there are none.

    It is a reminder: a limit counts whatever its age.
    """
    today = today or datetime.datetime.now(tz=datetime.UTC).date()
    due = [
        limit
        for limit in limits
        if limit.expires and limit.expires - today <= datetime.timedelta(WARNED_DAYS)
    ]
    if not due:
        return ""
    first = min(due, key=lambda limit: limit.expires or today)
    days = ((first.expires or today) - today).days
    when = "today" if not days else f"in {days} days" if days > 0 else f"{-days} days ago"
    others = f", and {len(due) - 1} more by {today + datetime.timedelta(WARNED_DAYS)}" if len(due) > 1 else ""
    return (
        f"a limit is to be looked at again: {first.source} was set until {first.expires} ({when}){others}; "
        "it still counts. Measure it anew, or give it a new day ('expires')."
    )


def series_facts(
    metric: str,
    parameters: Mapping[str, Scalar],
    *,
    kind: str,
    rack: str,
    target: str,
    board: str,
    air: str = "",
    product: str = "",
) -> dict[str, Scalar]:
    """Return what conditions are compared with; ``air`` is the virtual air's profile, "" without one."""
    place: dict[str, Scalar] = {
        "kind": kind, "rack": rack, "target": target, "board": board, "air": air, "product": product,
    }  # fmt: skip
    return {"metric": metric, **place, **{f"case.{key}": value for key, value in parameters.items()}}


def most_specific(rules: Iterable[R], facts: Mapping[str, Scalar]) -> R | None:
    """Return the most specific rule that matches, or None.

    Raises:
        ConfigError: two match and neither is more specific; names both lines.
    """
    matching = [rule for rule in rules if rule.where.matches(facts)]
    best = [rule for rule in matching if not any(one.where.is_more_specific(rule.where) for one in matching)]
    if len(best) > 1:
        first, second, *_ = best
        raise ConfigError(
            f"{first.source} ({first.where}) and {second.source} ({second.where}) both match, "
            "and neither is more specific.",
            next_step="add the other's condition to either, or write a third with both conditions.",
        )
    return best[0] if best else None


def check_ambiguities(rules: Sequence[R], facts: Mapping[str, Scalar]) -> None:
    """Look for two rules that would collide for some place (PLACE_KEYS).

    ``facts`` holds metric and case only. Raises ConfigError as most_specific() does.
    """
    possible = [rule for rule in rules if not rule.where.contradicts(facts)]
    for index, first in enumerate(possible):
        for second in possible[index + 1 :]:
            if not second.where.contradicts(first.where.conditions):
                together = {**facts, **first.where.conditions, **second.where.conditions}
                most_specific(possible, together)


@dataclass(frozen=True)
class CompareRule:
    """A comparison that blocks; ``source`` is file:line.

    ``tolerance`` and ``min_effect`` are relative on the scale ``log``, and on ``exact`` where ``relative``
    says so (to the base's largest value); else in the metric's unit.
    """

    where: Where
    tolerance: float
    min_effect: float
    why: str
    source: str
    relative: bool = False

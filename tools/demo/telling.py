# SPDX-License-Identifier: Apache-2.0
"""What was planted beside what was found: every planted change must be named, and nothing else blamed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hil.history.nightly.events import events_of
from hil.history.nightly.survey import survey
from hil.metrics.sessions import History
from hil.thresholds import Thresholds
from tools.demo.plan import (
    BAD_BOARD,
    CHANNEL,
    CHANNELS,
    FASTER,
    HAPPENINGS,
    LAB,
    RACKS,
    SLOWER,
    WORN,
    Plan,
)

Event = Mapping[str, Any]  # Event.to_json() of hil.history.nightly.events
NEAR_NIGHTS = 3


@dataclass(frozen=True)
class Planted:
    """A change as it was planted; ``change`` bounds the size that is to be found, relative."""

    words: str
    cause: str
    effect: str
    boards: frozenset[str]
    night: datetime.date
    change: tuple[float, float]
    commit: str = ""
    condition: str = ""

    def is_told_by(self, event: Event) -> bool:
        """Return whether an event names the change: cause, effect, boards, night, size, commit, condition."""
        low, high = self.change
        days = abs((datetime.date.fromisoformat(event["night"]) - self.night).days)
        return (
            (event["cause"], event["effect"]) == (self.cause, self.effect)
            and set(event["boards"]) == self.boards
            and days <= NEAR_NIGHTS
            and low <= abs(event["change"]) <= high
            and event["bad"] == self.commit
            and any(self.condition in condition for condition in ("", *event["conditions"]))
        )


@dataclass(frozen=True)
class Comparison:
    """``told`` pairs each planted change with the event that names it, None where none does."""

    told: tuple[tuple[Planted, Event | None], ...]
    false: tuple[Event, ...]
    undecided: tuple[Event, ...]

    @property
    def holds(self) -> bool:
        return not self.false and all(event for _planted, event in self.told)


def planted(plan: Plan) -> tuple[Planted, ...]:
    """Return what the plan plants, in order of time."""
    every = frozenset(f"{rack.name}/{board.id}" for rack in RACKS for board in rack.boards)
    lab = frozenset(f"{LAB.name}/{board.id}" for board in LAB.boards)
    changed, regressed, worn, improved, mended = map(plan.night_of, HAPPENINGS)
    first, second = CHANNELS
    sizes = sorted(BAD_BOARD.values())
    return (
        Planted(
            f"access point of {LAB.name}: channel {first} → {second}, network {_percent(CHANNEL)} slower",
            *("environment", "worse", lab, plan.date(changed), _about(CHANNEL)),
            condition=f"channel: {first} → {second}",
        ),
        Planted(
            f"firmware: slowest publishes {_percent(SLOWER)} slower since {plan.commit(regressed)[:7]}",
            *("firmware", "worse", every, plan.date(regressed), _about(SLOWER)),
            commit=plan.commit(regressed),
        ),
        Planted(
            f"board {'/'.join(WORN)}: {_percent(sizes[0])} to {_percent(sizes[-1])} worse",
            *("board", "worse", frozenset({"/".join(WORN)}), plan.date(worn)),
            (sizes[0] / 2, sizes[-1] * 1.5),
        ),
        Planted(
            f"firmware: throughput {_percent(FASTER)} higher since {plan.commit(improved)[:7]}",
            *("firmware", "better", every, plan.date(improved), _about(FASTER)),
            commit=plan.commit(improved),
        ),
        Planted(
            f"board {'/'.join(WORN)}: mended, as before it went bad",
            *("board", "better", frozenset({"/".join(WORN)}), plan.date(mended)),
            (sizes[0] / 2, sizes[-1] * 1.5),
        ),
    )


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.0f} %"


def _about(change: float) -> tuple[float, float]:
    return change / 2, change * 1.5


def found(history: History, thresholds: Mapping[str, Thresholds], nights: int) -> list[Event]:
    """Return the events of a history, as `hil changes` and the report tell them."""
    judged = survey(history, thresholds, last=nights)
    return [event.to_json() for event in events_of(judged, thresholds=thresholds)]


def compare(wanted: Sequence[Planted], events: Sequence[Event]) -> Comparison:
    """Pair what was planted with what was found. What is unclear blames nobody, so it is never false."""
    told = tuple((one, next(filter(one.is_told_by, events), None)) for one in wanted)
    named = [event for _planted, event in told if event is not None]
    others = [event for event in events if event not in named]
    return Comparison(
        told,
        tuple(event for event in others if event["cause"] != "unclear"),
        tuple(event for event in others if event["cause"] == "unclear"),
    )


def lines(comparison: Comparison) -> list[str]:
    """Return "planted … → found …", a line each, and what was found besides."""
    rows = [
        ("planted", one.words, event["headline"] if event else "NOT FOUND") for one, event in comparison.told
    ]
    rows += [("FALSE", "nothing was planted", event["headline"]) for event in comparison.false]
    rows += [("besides", "nobody is blamed", event["headline"]) for event in comparison.undecided]
    width = max(len(text) for _word, text, _what in rows)
    return [f"{word:8} {text:{width}}  → found  {what}" for word, text, what in rows]

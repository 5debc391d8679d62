# SPDX-License-Identifier: Apache-2.0
"""Join questions and answers of a console into rows.

No clock and no console: events in the order in which they came go in, rows come out. A row begins at its
question, and ends at its answer or at its timeout. docs/reference/probes.md states the rules.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

# Two tasks print question and answer, and the scheduler decides which prints first. Two lines of 80
# characters take 14 ms at 115200 baud.
EARLY_NS = 20_000_000
LATE_TIMEOUTS = 10  # an unanswered question's answer that comes even later is nobody's


@dataclass(frozen=True)
class LineEvent:
    """A line that asks, answers, or shows that the product began again. ``key`` is None without a key."""

    kind: Literal["ask", "answer", "restart"]
    time_ns: int
    key: str | None = None


@dataclass
class MatchedRow:
    """``done_ns`` is 0 without an answer in time; ``is_cut``: the product began again before it."""

    began_ns: int
    done_ns: int = 0
    is_cut: bool = False


@dataclass
class Tally:
    """What rows do not show. Each line that neither began nor ended a row is counted once."""

    asked_again: int = 0  # before the answer came
    answered_again: int = 0
    late: int = 0  # answers after the timeout
    early: int = 0  # answers before their question, which end their rows all the same
    unasked: int = 0  # answers to nothing
    overlapped: int = 0  # questions without a key, asked while the one before had time left

    def facts(self) -> Mapping[str, int]:
        return {f"{name}_count": count for name, count in asdict(self).items()}


@dataclass
class ByKey:
    """An answer ends the question with its key."""

    timeout_ns: int
    rows: list[MatchedRow] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    _last: dict[str | None, MatchedRow] = field(default_factory=dict)  # of each key
    _early: dict[str | None, int] = field(default_factory=dict)  # answers that wait for their question
    _again: dict[str | None, int] = field(default_factory=dict)  # second answers, or early ones of the next

    def take(self, event: LineEvent) -> None:
        match event.kind:
            case "ask":
                self._ask(event.time_ns, event.key)
            case "answer":
                self._answer(event.time_ns, event.key)
            case "restart":
                _cut(self.rows, event.time_ns, self.timeout_ns)
                self.close()
                self._last.clear()
                self._again.clear()

    def close(self) -> None:
        """Count the answers whose question did not come any more."""
        self.tally.unasked += len(self._early)
        self._early.clear()

    def _ask(self, time_ns: int, key: str | None) -> None:
        last = self._last.get(key)
        if last and not last.done_ns and time_ns - last.began_ns <= self.timeout_ns:
            self.tally.asked_again += 1
            return
        self._last[key] = row = MatchedRow(time_ns)
        self.rows.append(row)
        early_ns, again_ns = self._early.pop(key, None), self._again.pop(key, None)
        if early_ns is not None:
            self.tally.unasked += not self._came_early(row, early_ns)
        elif again_ns is not None:
            self.tally.answered_again -= self._came_early(row, again_ns)

    def _came_early(self, row: MatchedRow, came_ns: int) -> bool:
        """End a row by an answer that came before it; return whether it did."""
        if is_early := row.began_ns - came_ns <= EARLY_NS:
            row.done_ns = row.began_ns
            self.tally.early += 1
        return is_early

    def _answer(self, time_ns: int, key: str | None) -> None:
        last = self._last.get(key)
        age_ns = time_ns - last.began_ns if last else 0
        if last and not last.done_ns and age_ns <= self.timeout_ns:
            last.done_ns = time_ns
        elif last and last.done_ns and age_ns <= self.timeout_ns:
            self.tally.answered_again += 1
            if time_ns - last.done_ns > EARLY_NS:
                self._again[key] = time_ns
        elif last and not last.done_ns and age_ns <= LATE_TIMEOUTS * self.timeout_ns:
            self.tally.late += 1
        else:
            self._wait(time_ns, key)

    def _wait(self, time_ns: int, key: str | None) -> None:
        """Keep an answer for a question that may follow; the first of several."""
        came_ns = self._early.get(key)
        if came_ns is not None and time_ns - came_ns <= EARLY_NS:
            self.tally.answered_again += 1
            return
        self.tally.unasked += came_ns is not None
        self._early[key] = time_ns


@dataclass
class ByNewest:
    """Without a key an answer ends the newest question: the product gave up the ones before.

    ``is_ambiguous``: an answer came too many, and by order it would be the newest question's. Either several
    questions were open at once, or an answer was lost and another one came twice.
    """

    timeout_ns: int
    rows: list[MatchedRow] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    is_ambiguous: bool = False
    _open: MatchedRow | None = None
    _in_order: deque[int] = field(default_factory=deque)  # questions that wait, if answers keep their order

    def take(self, event: LineEvent) -> None:
        while self._in_order and event.time_ns - self._in_order[0] > self.timeout_ns:
            self._in_order.popleft()
        match event.kind:
            case "ask":
                self._ask(event.time_ns)
            case "answer":
                self._answer(event.time_ns)
            case "restart":
                _cut(self.rows, event.time_ns, self.timeout_ns)
                self._open = None
                self._in_order.clear()

    def _ask(self, time_ns: int) -> None:
        self.tally.overlapped += self._open is not None and time_ns - self._open.began_ns <= self.timeout_ns
        self._open = MatchedRow(time_ns)
        self.rows.append(self._open)
        self._in_order.append(time_ns)

    def _answer(self, time_ns: int) -> None:
        row, self._open = self._open, None
        if row and time_ns - row.began_ns <= self.timeout_ns:
            row.done_ns = time_ns
        elif row:
            self.tally.late += 1
        else:
            self.tally.unasked += 1
            self.is_ambiguous |= bool(self._in_order)
        if self._in_order:
            self._in_order.popleft()

    def close(self) -> None:
        """Do nothing: no answer waits for its question."""


def _cut(rows: Sequence[MatchedRow], time_ns: int, timeout_ns: int) -> None:
    for row in reversed(rows):
        if time_ns - row.began_ns > timeout_ns:
            return
        row.is_cut = not row.done_ns


@dataclass
class Matching:
    """Match a case's events as they come: ``wanted`` rows of them. Later questions are watched, too."""

    wanted: int
    timeout_ns: int
    has_key: bool

    def __post_init__(self) -> None:
        self._matcher: ByKey | ByNewest = (ByKey if self.has_key else ByNewest)(self.timeout_ns)

    def take(self, event: LineEvent) -> None:
        self._matcher.take(event)

    @property
    def rows(self) -> Sequence[MatchedRow]:
        return self._matcher.rows[: self.wanted]

    @property
    def ends_ns(self) -> int | None:
        """Return when the wanted rows are over: 0 where all have ended, None as long as questions lack."""
        if len(self._matcher.rows) < self.wanted:
            return None
        waiting = [row.began_ns for row in self.rows if not row.done_ns and not row.is_cut]
        if not waiting:
            return 0
        newest_ns = self.rows[-1].began_ns if self._matcher.tally.overlapped else waiting[-1]
        return newest_ns + self.timeout_ns

    def finish(self) -> tuple[Sequence[MatchedRow], Tally] | None:
        """Return the rows and what they do not show; None where nothing tells which answer ends which row."""
        self._matcher.close()
        if isinstance(self._matcher, ByNewest) and self._matcher.is_ambiguous:
            return None
        return self.rows, self._matcher.tally


def match(
    events: Sequence[LineEvent], wanted: int, timeout_ns: int, *, has_key: bool
) -> tuple[Sequence[MatchedRow], Tally] | None:
    """Return what Matching.finish() returns after ``events``."""
    matching = Matching(wanted, timeout_ns, has_key)
    for event in events:
        matching.take(event)
    return matching.finish()

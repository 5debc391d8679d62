# SPDX-License-Identifier: Apache-2.0
"""Rows against a model: any mix of loss, delay, reordering, duplication, restart and keys that wrap.

The model knows what became of each question, because it decided that; it joins nothing. Each planted fault of
the matcher has to be found by the same property.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from hil.probe import matching
from hil.probe.matching import LineEvent, MatchedRow, match

MS = 1_000_000
TIMEOUT_MS = 40
EARLY_MS = matching.EARLY_NS // MS
GAP_MS = EARLY_MS + 1  # between two questions at least
KEYS = 20  # they come again when ten timeouts are over


@dataclass(frozen=True)
class Question:
    """What becomes of a question: its answers, below 0 before it, a retry and a restart, ms from it on."""

    after_ms: int
    answers_ms: tuple[int, ...]
    again_ms: int | None = None
    restart_ms: int | None = None


Plan = Sequence[Question]
Model = tuple[list[LineEvent], list[float | None]]  # what comes, and how long each row took

ANSWERS = st.one_of(
    st.just(()),
    st.tuples(st.integers(1, 38)),
    st.tuples(st.integers(42, 70)),
    st.tuples(st.integers(-EARLY_MS, -1)),
    st.tuples(st.integers(1, 10), st.integers(11, 38)),
    st.tuples(st.integers(-EARLY_MS, -1), st.integers(1, 38)),
)
QUESTIONS = st.builds(
    Question,
    st.integers(GAP_MS, 60),
    ANSWERS,
    st.none() | st.integers(1, 35),
    st.none() | st.none() | st.integers(1, 60),
)
PLANS = st.builds(lambda some, times: some * times, st.lists(QUESTIONS, min_size=1), st.integers(1, 8))


def with_keys(plan: Plan) -> Model:
    """Play a product that has several questions open at once, and counts its keys from 0 at each start."""
    at_ms, number, timed, rows = 1000, 0, list[tuple[int, int, LineEvent]](), list[tuple[int, float | None]]()
    for one in plan:
        at_ms += one.after_ms
        key, number = str(number % KEYS), number + 1
        retry = [] if one.again_ms is None or one.again_ms >= min((*one.answers_ms, 36)) else [one.again_ms]
        timed += [(at_ms + ms, 1, LineEvent("ask", (at_ms + ms) * MS, key)) for ms in (0, *retry)]
        timed += [(at_ms + ms, 2, LineEvent("answer", (at_ms + ms) * MS, key)) for ms in one.answers_ms]
        rows.append((at_ms, _took(one)))
        if one.restart_ms is not None:  # what it had not done by then it does not do any more
            at_ms, number = at_ms + one.restart_ms, 0
            timed = [event for event in timed if event[0] < at_ms]
            rows = [(asked, None if took is None or asked + took >= at_ms else took) for asked, took in rows]
            timed.append((at_ms, 0, LineEvent("restart", at_ms * MS)))
    return [event for *_, event in sorted(timed, key=lambda one: one[:2])], [took for _, took in rows]


def _took(one: Question) -> float | None:
    first = one.answers_ms[0] if one.answers_ms else TIMEOUT_MS + 1
    return None if first > TIMEOUT_MS else float(max(first, 0))


def without_keys(plan: Plan) -> Model:
    """Play a product that asks one question at a time, and gives up what is not answered."""
    at_ms, events, truth = 1000, [], []
    for one in plan:
        at_ms += one.after_ms
        events.append(LineEvent("ask", at_ms * MS))
        answers = [ms for ms in one.answers_ms if 0 < ms <= TIMEOUT_MS][:1]
        events += [LineEvent("answer", (at_ms + ms) * MS) for ms in answers]
        truth.append(float(answers[0]) if answers else None)
        at_ms += answers[0] if answers else 0
        if one.restart_ms is not None:
            at_ms += one.restart_ms
            events.append(LineEvent("restart", at_ms * MS))
    return events, truth


def took_ms(rows: Sequence[MatchedRow]) -> list[float | None]:
    return [(row.done_ns - row.began_ns) / MS if row.done_ns else None for row in rows]


def is_right(model: Model, *, has_key: bool) -> bool:
    """Return whether the rows are those of the model, and each line is in a row or counted."""
    events, truth = model
    found = match(events, len(truth), TIMEOUT_MS * MS, has_key=has_key)
    if found is None:
        return False
    rows, tally = found
    facts = tally.facts()
    asked = len(rows) + facts["asked_again_count"]
    answered = sum(row.done_ns > 0 for row in rows) + sum(
        facts[name] for name in ("answered_again_count", "late_count", "unasked_count")
    )
    return (
        took_ms(rows) == truth
        and asked == sum(event.kind == "ask" for event in events)
        and answered == sum(event.kind == "answer" for event in events)
    )


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLANS)
def test_field_rows_with_keys_are_those_of_the_model(plan: Plan) -> None:
    """Whatever is lost, late, early, twice, asked again or cut off by a restart."""
    assert is_right(with_keys(plan), has_key=True)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(PLANS)
def test_field_rows_without_keys_are_those_of_the_model(plan: Plan) -> None:
    """One question at a time: a lost answer costs its own row alone."""
    assert is_right(without_keys(plan), has_key=False)


class Slipping(matching.ByNewest):
    """The oldest question takes the answer: one that is lost shifts all later ones."""

    def _answer(self, time_ns: int) -> None:
        self._open = next((row for row in self.rows if not row.done_ns), None)
        super()._answer(time_ns)


class OffByOne(matching.ByKey):
    """The answer with a key ends the question that was asked after it."""

    def _answer(self, time_ns: int, key: str | None) -> None:
        super()._answer(time_ns, str((int(key or 0) + 1) % KEYS))


class Twice(matching.ByKey):
    """A copy of an answer ends its row again."""

    def _answer(self, time_ns: int, key: str | None) -> None:
        if (last := self._last.get(key)) and last.done_ns:
            last.done_ns = time_ns
        super()._answer(time_ns, key)


class NewestFirst(matching.ByKey):
    """A question that is asked again begins its row anew."""

    def _ask(self, time_ns: int, key: str | None) -> None:
        last, before = self._last.get(key), self.tally.asked_again
        super()._ask(time_ns, key)
        if last and self.tally.asked_again > before:
            last.began_ns = time_ns


class Deaf(matching.ByKey):
    """An answer before its question is thrown away."""

    def _ask(self, time_ns: int, key: str | None) -> None:
        self.close()
        super()._ask(time_ns, key)


class Patient(matching.ByKey):
    """A question takes its answer a millisecond after its time is over, and later."""

    def __init__(self, timeout_ns: int) -> None:
        super().__init__(timeout_ns * 2)


class Across(matching.ByKey):
    """An answer crosses a restart: what was asked before still waits."""

    def take(self, event: LineEvent) -> None:
        if event.kind != "restart":
            super().take(event)


@pytest.mark.parametrize(
    ("name", "broken", "model"),
    [
        ("ByNewest", Slipping, without_keys),
        ("ByKey", OffByOne, with_keys),
        ("ByKey", Twice, with_keys),
        ("ByKey", NewestFirst, with_keys),
        ("ByKey", Deaf, with_keys),
        ("ByKey", Patient, with_keys),
        ("ByKey", Across, with_keys),
    ],
)
def test_field_a_planted_fault_is_found(
    name: str, broken: type, model: Callable[[Plan], Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The property rejects each broken matcher, so that it would reject ours."""
    monkeypatch.setattr(matching, name, broken)
    has_key = model is with_keys
    try:
        find(
            PLANS,
            lambda plan: not is_right(model(plan), has_key=has_key),
            settings=settings(max_examples=600, phases=[Phase.generate]),  # no need of the smallest
        )
    except NoSuchExample:
        pytest.fail(f"{broken.__name__} passes: {broken.__doc__}")

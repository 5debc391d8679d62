# SPDX-License-Identifier: Apache-2.0
"""Pairs as consoles in the field print them: an answer lost, early, late, twice; a question asked again.

The model of any mix of these knows what became of each question, because it decided that; it joins nothing.
Each planted fault of the matcher has to be found by the same property.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from hil.probe import matching
from hil.probe.matching import EARLY_NS, LineEvent, MatchedRow, Matching, Tally, match

MS = 1_000_000
PERIOD_MS, ANSWER_MS, ROWS = 23, 3, 62
KINDS = {"?": "ask", "!": "answer", "|": "restart"}


def lines(*written: str) -> list[LineEvent]:
    """Read events as "?10:a": ask (answer !, restart |) at 10 ms with the key a, or with none."""
    found = []
    for word in " ".join(written).split():
        at_ms, _, key = word[1:].partition(":")
        found.append(LineEvent(KINDS[word[0]], round(float(at_ms) * MS), key or None))  # type: ignore[arg-type]
    return found


def matched(
    events: Sequence[LineEvent], timeout_ms: int, wanted: int = ROWS
) -> tuple[Sequence[MatchedRow], Tally]:
    has_key = any(event.key is not None for event in events)
    found = match(events, wanted, timeout_ms * MS, has_key=has_key)
    assert found is not None
    return found


def delays_ms(rows: Sequence[MatchedRow]) -> list[float | None]:
    return [(row.done_ns - row.began_ns) / MS if row.done_ns else None for row in rows]


def asked(lost: set[int], has_key: bool, count: int = ROWS + 20) -> list[LineEvent]:
    """Ask every 23 ms and answer 3 ms later, as Modbus is polled; some answers never come."""
    found = []
    for number in range(count):
        key = str(number) if has_key else None
        found.append(LineEvent("ask", number * PERIOD_MS * MS, key))
        if number not in lost:
            found.append(LineEvent("answer", (number * PERIOD_MS + ANSWER_MS) * MS, key))
    return found


@pytest.mark.parametrize("has_key", [False, True])
@pytest.mark.parametrize("timeout_ms", [15, 24, 500, 5000])
@pytest.mark.parametrize("lost", [set(), {0}, {30}, {61}, {30, 31}, {5, 30, 60}, set(range(10, 50))])
def test_field_a_lost_answer_costs_one_row(lost: set[int], timeout_ms: int, has_key: bool) -> None:
    """All others keep their answers, however long the timeout is, with a key and without."""
    rows, tally = matched(asked(lost, has_key), timeout_ms)
    assert delays_ms(rows) == [None if number in lost else ANSWER_MS for number in range(ROWS)]
    overtaken = 0 if has_key or timeout_ms < PERIOD_MS else len(lost)
    assert tally == Tally(overlapped=overtaken)


@pytest.mark.parametrize(
    ("written", "timeout_ms", "delays", "tally"),
    [
        # Another task prints an answer first: it took no time that a console could tell, and it is counted,
        # also where a key of two digits comes again and again, or comes back before its timeout.
        *(
            (
                [f"!{40 * n}:{n} ?{40 * n + early_ms}:{n}" for n in range(ROWS)],
                500,
                [0] * ROWS,
                Tally(early=ROWS),
            )
            for early_ms in (0.5, 1, 19)
        ),
        (
            [f"!{23 * n}:{n % 100} ?{23 * n + 1}:{n % 100}" for n in range(300)],
            500,
            [0] * 300,
            Tally(early=300),
        ),
        ([f"!{100 * n}:t ?{100 * n + 1}:t" for n in range(6)], 500, [0] * 6, Tally(early=6)),
        # More than two lines' time before is not believed: an answer to nothing.
        (["!0:1", f"?{EARLY_NS / MS + 1}:1"], 500, [None], Tally(unasked=1)),
        # A copy comes within 20 ms of an answer, or alone; what comes 20 ms before a question is its answer.
        (["?0:t !3:t !4:t ?10:t !13:t"], 500, [3, 3], Tally(answered_again=1)),
        (["?0:t !3:t !495:t !505:t ?510:t"], 500, [3, 0], Tally(answered_again=1, early=1)),
        (["?0:t !3:t !60:t ?90:t"], 500, [3, None], Tally(answered_again=1)),
        # A retry makes its row slower and never better; the first question is where it begins.
        (["?0:1 ?3:1 !6:1"], 500, [6], Tally(asked_again=1)),
        # Answered or over: a device's address or a counter that wraps is asked for again.
        (["?0:5 !3:5 ?4:5 ?520:5 !522:5"], 500, [3, None, 2], Tally()),
        # What comes twice or late ends nothing: neither its own row again nor the next one's.
        (
            ["?0:1 !3:1 !4:1 ?23:2 ?46:3 !49:3 !50:2 !51:9"],
            15,
            [3, None, 3],
            Tally(answered_again=1, late=1, unasked=1),
        ),
        # Without a key, where each question had its answer, another one is nobody's.
        ([f"?{at} !{at + 3} !{at + 4}" for at in range(0, 1000, 20)], 500, [3] * 50, Tally(unasked=50)),
        # What was asked before a restart is lost with the product's memory; the same key is a new question.
        (["?0:1 |5 !8:1 ?100:1 !103:1"], 500, [None, 3], Tally(unasked=1)),
        (["?0 |5 !8 ?100 !103"], 500, [None, 3], Tally(unasked=1)),
    ],
)
def test_field_each_line_is_in_a_row_or_counted(
    written: list[str], timeout_ms: int, delays: list[float | None], tally: Tally
) -> None:
    """Answers early, late, twice and to nothing, questions asked again, and restarts."""
    rows, found = matched(lines(*written), timeout_ms, len(delays))
    assert (delays_ms(rows), found) == (delays, tally)


def test_field_slow_answers_of_one_key_are_late_and_not_early() -> None:
    """A poll that asks at once after each answer: all are late, and none is the next question's."""
    events = lines(*(f"?{at}:5 !{at + 40}:5" for at in range(0, 2000, 41)))
    rows, tally = matched(events, 15, 40)
    assert delays_ms(rows) == [None] * 40
    assert (tally.late, tally.early) == (49, 0)


def test_field_an_answer_too_many_without_a_key_is_refused() -> None:
    """It may be a copy, or several questions were open: nobody tells, so nothing is measured."""
    for written in ("?0 ?10 !12 !14", "?0 ?300 !400 !700"):
        assert match(lines(written), 2, 500 * MS, has_key=False) is None


@pytest.mark.parametrize(
    ("written", "ends_ms"),
    [
        ("?0:1 ?10:2 !20:2 !30:1", [None, None, 510, 500, 0]),
        # Where questions overlapped, one answer too many within the newest's time says: order tells nothing.
        ("?0 ?100 !110", [None, None, 600, 600]),
    ],
)
def test_field_a_case_waits_for_those_that_have_time_left(written: str, ends_ms: list[int | None]) -> None:
    """It is over when nothing more can come: at once, or at the timeout of the last that waits."""
    waiting = Matching(2, 500 * MS, has_key=":" in written)
    ends_ns = [waiting.ends_ns]
    for event in lines(written):
        waiting.take(event)
        ends_ns.append(waiting.ends_ns)
    assert ends_ns == [None if ms is None else ms * MS for ms in ends_ms]


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
        delays_ms(rows) == truth
        and asked == sum(event.kind == "ask" for event in events)
        and answered == sum(event.kind == "answer" for event in events)
    )


@pytest.mark.parametrize("model", [with_keys, without_keys])
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plan=PLANS)
def test_field_rows_are_those_of_the_model(model: Callable[[Plan], Model], plan: Plan) -> None:
    """Whatever is lost, late, early, twice, asked again or cut off by a restart; without keys, questions come
    one at a time, and a lost answer costs its own row alone."""
    assert is_right(model(plan), has_key=model is with_keys)


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


@pytest.mark.parametrize("broken", [Slipping, OffByOne, Twice, NewestFirst, Deaf, Patient, Across])
def test_field_a_planted_fault_is_found(broken: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """The property rejects each broken matcher, so that it would reject ours."""
    monkeypatch.setattr(matching, broken.__base__.__name__, broken)
    has_key = broken is not Slipping
    model = with_keys if has_key else without_keys
    try:
        find(
            PLANS,
            lambda plan: not is_right(model(plan), has_key=has_key),
            settings=settings(max_examples=600, phases=[Phase.generate]),  # no need of the smallest
        )
    except NoSuchExample:
        pytest.fail(f"{broken.__name__} passes: {broken.__doc__}")

# SPDX-License-Identifier: Apache-2.0
"""Pairs as consoles in the field print them: an answer lost, early, late, twice; a question asked again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hil.probe.matching import EARLY_NS, LineEvent, MatchedRow, Matching, Tally, match

MS = 1_000_000
PERIOD_MS, ANSWER_MS, ROWS = 23, 3, 62


def lines(*events: tuple[str, float, str | None] | tuple[str, float]) -> list[LineEvent]:
    """Write events as (kind, ms, key)."""
    return [LineEvent(one[0], round(one[1] * MS), one[2] if len(one) > 2 else None) for one in events]  # type: ignore[arg-type,misc]


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


@pytest.mark.parametrize("early_ms", [0.5, 1, 19])
def test_field_an_answer_before_its_question_is_an_answer(early_ms: float) -> None:
    """Another task prints it first: it took no time that a console could tell, and it is counted."""
    events = [
        event
        for number in range(ROWS)
        for event in lines(("answer", 40 * number, str(number)), ("ask", 40 * number + early_ms, str(number)))
    ]
    rows, tally = matched(events, 500)
    assert delays_ms(rows) == [0] * ROWS
    assert tally == Tally(early=ROWS)


def test_field_an_answer_long_before_a_question_is_not_its_answer() -> None:
    """More than two lines' time is not believed, and it is counted as an answer to nothing."""
    events = lines(("answer", 0, "1"), ("ask", EARLY_NS / MS + 1, "1"))
    rows, tally = matched(events, 500, 1)
    assert (delays_ms(rows), tally) == ([None], Tally(unasked=1))


def test_field_early_answers_of_keys_that_come_again() -> None:
    """A key of two digits comes again and again: its answer before is no copy of the last round's."""
    events = [
        event
        for number in range(300)
        for key in [str(number % 100)]
        for event in lines(("answer", 23 * number, key), ("ask", 23 * number + 1, key))
    ]
    rows, tally = matched(events, 500, 300)
    assert delays_ms(rows) == [0] * 300
    assert tally == Tally(early=300)


def test_field_early_answers_of_a_key_that_comes_back_before_its_timeout() -> None:
    """It answers the question that follows within 20 ms. A copy comes within 20 ms of an answer, or alone."""
    early = [event for at in range(6) for event in (("answer", 100 * at, "t"), ("ask", 100 * at + 1, "t"))]
    rows, tally = matched(lines(*early), 500, 6)
    assert (delays_ms(rows), tally) == ([0.0] * 6, Tally(early=6))
    copies = [("ask", 0, "t"), ("answer", 3, "t"), ("answer", 4, "t"), ("ask", 10, "t"), ("answer", 13, "t")]
    rows, tally = matched(lines(*copies), 500, 2)
    assert (delays_ms(rows), tally) == ([3.0, 3.0], Tally(answered_again=1))
    both = [
        ("ask", 0, "t"),
        ("answer", 3, "t"),
        ("answer", 495, "t"),
        ("answer", 505, "t"),
        ("ask", 510, "t"),
    ]
    rows, tally = matched(lines(*both), 500, 2)
    assert (delays_ms(rows), tally) == ([3.0, 0.0], Tally(answered_again=1, early=1))
    rows, tally = matched(
        lines(("ask", 0, "t"), ("answer", 3, "t"), ("answer", 60, "t"), ("ask", 90, "t")), 500, 2
    )
    assert (delays_ms(rows), tally) == ([3.0, None], Tally(answered_again=1))


def test_field_the_same_key_asked_again_is_one_row() -> None:
    """A retry makes its row slower and never better; the first question is where it begins."""
    rows, tally = matched(lines(("ask", 0, "1"), ("ask", 3, "1"), ("answer", 6, "1")), 500, 1)
    assert (delays_ms(rows), tally) == ([6], Tally(asked_again=1))


def test_field_a_key_asked_again_after_its_end_is_a_new_row() -> None:
    """Answered or over: a device's address or a counter that wraps is asked for again."""
    events = lines(
        ("ask", 0, "5"), ("answer", 3, "5"), ("ask", 4, "5"), ("ask", 520, "5"), ("answer", 522, "5")
    )
    rows, tally = matched(events, 500, 3)
    assert (delays_ms(rows), tally) == ([3, None, 2], Tally())


def test_field_answers_that_come_twice_or_late_are_counted() -> None:
    """They end nothing: neither their own row again nor the next one's."""
    events = lines(
        ("ask", 0, "1"), ("answer", 3, "1"), ("answer", 4, "1"),
        ("ask", 23, "2"), ("ask", 46, "3"), ("answer", 49, "3"), ("answer", 50, "2"), ("answer", 51, "9"),
    )  # fmt: skip
    rows, tally = matched(events, 15, 3)
    assert delays_ms(rows) == [3, None, 3]
    assert tally == Tally(answered_again=1, late=1, unasked=1)


def test_field_slow_answers_of_one_key_are_late_and_not_early() -> None:
    """A poll that asks at once after each answer: all are late, and none is the next question's."""
    events = [
        event for at in range(0, 2000, 41) for event in lines(("ask", at, "5"), ("answer", at + 40, "5"))
    ]
    rows, tally = matched(events, 15, 40)
    assert delays_ms(rows) == [None] * 40
    assert (tally.late, tally.early) == (49, 0)


def test_field_an_answer_too_many_without_a_key_is_refused() -> None:
    """It may be a copy, or several questions were open: nobody tells, so nothing is measured."""
    both = lines(("ask", 0), ("ask", 10), ("answer", 12), ("answer", 14))
    assert match(both, 2, 500 * MS, has_key=False) is None
    slow = lines(("ask", 0), ("ask", 300), ("answer", 400), ("answer", 700))
    assert match(slow, 2, 500 * MS, has_key=False) is None


def test_field_answers_that_come_twice_without_a_key_are_counted() -> None:
    """Where each question had its answer, another one is nobody's."""
    events = [
        event
        for at in range(0, 1000, 20)
        for event in lines(("ask", at), ("answer", at + 3), ("answer", at + 4))
    ]
    rows, tally = matched(events, 500, 50)
    assert (delays_ms(rows), tally) == ([3] * 50, Tally(unasked=50))


@pytest.mark.parametrize("key", ["1", None])
def test_field_no_answer_crosses_a_restart(key: str | None) -> None:
    """What was asked before is lost with the product's memory, and the same key is a new question."""
    events = lines(
        ("ask", 0, key), ("restart", 5), ("answer", 8, key), ("ask", 100, key), ("answer", 103, key)
    )
    rows, tally = matched(events, 500, 2)
    assert delays_ms(rows) == [None, 3]
    assert tally == Tally(unasked=1)


def test_field_a_case_waits_for_those_that_have_time_left() -> None:
    """It is over when nothing more can come: at once, or at the timeout of the last that waits."""
    matching = Matching(2, 500 * MS, has_key=True)
    for event in lines(("ask", 0, "1"), ("ask", 10, "2")):
        assert matching.ends_ns is None
        matching.take(event)
    assert matching.ends_ns == 510 * MS
    matching.take(LineEvent("answer", 20 * MS, "2"))
    assert matching.ends_ns == 500 * MS
    matching.take(LineEvent("answer", 30 * MS, "1"))
    assert matching.ends_ns == 0


def test_field_without_a_key_a_case_waits_as_long_as_the_newest_may_be_answered() -> None:
    """Where questions overlapped, one answer too many within that time says that order tells nothing."""
    matching = Matching(2, 500 * MS, has_key=False)
    for event in lines(("ask", 0), ("ask", 100), ("answer", 110)):
        matching.take(event)
    assert matching.ends_ns == 600 * MS

# SPDX-License-Identifier: Apache-2.0
"""Pairs as consoles in the field print them: an answer lost, early, late, twice; a question asked again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

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


def test_field_a_case_waits_for_those_that_have_time_left() -> None:
    """It is over when nothing more can come: at once, or at the timeout of the last that waits."""
    matching = Matching(2, 500 * MS, has_key=True)
    for event in lines("?0:1 ?10:2"):
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
    for event in lines("?0 ?100 !110"):
        matching.take(event)
    assert matching.ends_ns == 600 * MS

# SPDX-License-Identifier: Apache-2.0
"""The project grows only where somebody said what for: tools/size.yaml holds its lines, options and words."""

from __future__ import annotations

import pytest

from tools import size

pytestmark = pytest.mark.slow  # it loads every command, and reads every file


@pytest.fixture(scope="module")
def now() -> size.Sizes:
    return size.measured()


@pytest.fixture(scope="module")
def allowed() -> size.CommentedMap:
    return size.read_allowed((size.ROOT / size.ALLOWED).read_text(encoding="utf-8"))


def test_nothing_grew(now: size.Sizes, allowed: size.CommentedMap) -> None:
    """No size is larger than its number, and every size has a number."""
    assert size.grown(now, allowed) == []


def test_the_numbers_follow_shrinking(now: size.Sizes, allowed: size.CommentedMap) -> None:
    """No number leaves more than 1 % of room, and none outlives what it counted."""
    assert size.slack(now, allowed) == []


def test_the_last_raise_says_what_it_pays_for() -> None:
    """Each number that the last change of the file raised has a new comment behind it."""
    change = size.last_change()
    if change is None:
        pytest.skip("git knows no earlier state of the file: a shallow clone, or no repository")
    before, after = (size.read_allowed(text) for text in change)
    assert size.unpaid(before, after) == []


def test_growth_and_a_new_room_are_refused() -> None:
    """A size above its number, and a size without a number, are both named with what was measured."""
    said = size.grown({"docs words": 101, "hil/new": 1}, {"docs words": 100})
    assert [sentence.split(".")[0] for sentence in said] == [
        "docs words: 101, allowed 100",
        "hil/new: 1, allowed 0",
    ]


@pytest.mark.parametrize(
    ("number", "refused"), [(1000, False), (1009, False), (1011, True)], ids=["exact", "within", "beyond"]
)
def test_room_beyond_one_percent_is_refused(number: int, refused: bool) -> None:
    """Some words fewer need no new number; a deletion does."""
    assert bool(size.slack({"tests": 1000}, {"tests": number})) is refused


def test_lower_numbers_are_written_and_the_rest_stays() -> None:
    """A lower size lowers its number, a higher size does not raise it, and a size that is gone leaves."""
    allowed = size.read_allowed("a: 10 # paid for x\nb: 10\ngone: 5\n")
    assert size.tighten(allowed, {"a": 9, "b": 11})
    assert dict(allowed) == {"a": 9, "b": 10}
    assert size.reason(allowed, "a") == "paid for x"
    assert not size.tighten(allowed, {"a": 9, "b": 11})


@pytest.mark.parametrize(
    ("before", "after", "unpaid"),
    [
        ("a: 10\n", "a: 11\n", ["a"]),
        ("a: 10\n", "a: 11 # a door for one board\n", []),
        ("a: 10 # old\n", "a: 11 # old\n", ["a"]),
        ("a: 10 # old\n", "a: 9 # old\n", []),
        ("a: 10\n", "a: 10\nb: 1\n", ["b"]),
    ],
    ids=["silent", "told", "told before", "lowered", "new and silent"],
)
def test_a_raise_needs_a_new_reason(before: str, after: str, unpaid: list[str]) -> None:
    """A raised number without a comment, or with the comment of an earlier raise, is named."""
    assert size.unpaid(size.read_allowed(before), size.read_allowed(after)) == unpaid

# SPDX-License-Identifier: Apache-2.0
"""The first words of a verdict."""

from __future__ import annotations

from typing import Any

import pytest

from hil.base.errors import ExitCode
from hil.gate.words.banner import Banner, banner_of, title_without_verdict
from hil.history.nightly.event_lines import open_changes
from hil.model import Verdict


def _verdict(**changes: Any) -> Verdict:
    facts: dict[str, Any] = {
        "run_id": "r",
        "outcome": "pass",
        "exit_code": 0,
        "sentence": "All 40 limits kept.",
        "series": (),
        "faults": (),
        "not_run": (),
        "warnings": (),
    }
    return Verdict(**facts | changes)


def _event(**changes: Any) -> dict[str, Any]:
    facts = {
        "effect": "worse",
        "headline": "Firmware: p95 slower since 618e3a8",
        "bad": "618e3a8" + "0" * 33,
        "state": "open",
        "ended": "",
        "nights": 18,
        "open_nights": 59,
        "commit": {"title": "Send at once", "author": "A. Author", "count": 3, "diff": ""},
    }
    return facts | changes


def test_a_pass_is_green_only_where_nothing_is_open() -> None:
    """A run that passed is green; beside an open change it is amber and says both. What ended, or is for the
    better, is not open."""
    assert banner_of(_verdict()) == Banner("good", "PASS", "All 40 limits kept.")
    beside = banner_of(_verdict(), open_changes([_event()]))
    assert (beside.tone, beside.title) == ("open", "LIMITS KEPT, 1 CHANGE OPEN")
    for part in ("All 40 limits kept; firmware: p95 ", " 618e3a8 (Send at once, A. Author), open 59 nights."):
        assert part in beside.sentence
    over = [_event(state="ended", ended="2026-10-02"), _event(effect="better")]
    assert banner_of(_verdict(), open_changes(over)).tone == "good"


def test_a_regression_stays_red_beside_open_changes() -> None:
    """A regression is red whatever is open beside it, and its own words stand first."""
    found = banner_of(
        _verdict(exit_code=1, outcome="regressed", sentence="1 limit broken."), open_changes([_event()])
    )
    assert found.tone == "bad"
    assert found.text.startswith("FIRMWARE AT FAULT, 1 CHANGE OPEN: 1 limit broken; firmware: p95")


def test_many_changes_are_counted() -> None:
    """Two changes are named, and of the others stands how many there are."""
    found = banner_of(_verdict(), open_changes([_event()] * 5))
    assert found.title == "LIMITS KEPT, 5 CHANGES OPEN"
    assert found.sentence.endswith(" 59 nights; 3 more changes open.")


def test_the_line_says_a_word_once() -> None:
    """Where the sentence begins with the title, the one line of both has it once."""
    found = banner_of(_verdict(exit_code=4, outcome="undecided", sentence="Undecided: 1 of 4 comparisons."))
    assert (found.tone, found.text) == ("open", "UNDECIDED: 1 of 4 comparisons.")
    rig = banner_of(_verdict(exit_code=3, outcome="incomplete", sentence="The rig failed: no air."))
    assert rig.text == "NO VERDICT: THE RIG FAILED: No air."
    panic = _verdict(exit_code=1, outcome="regressed", sentence="The firmware is at fault: b1 panicked.")
    assert banner_of(panic).text == "FIRMWARE AT FAULT: B1 panicked."


def test_a_commit_that_nobody_can_name_is_its_digits() -> None:
    """Without title and author the words stay those of the event."""
    words = open_changes([_event(commit={"title": "", "author": "", "count": 0, "diff": ""})])
    assert words[0].endswith(" 618e3a8, open 59 nights")


def test_a_long_title_is_one_short_line() -> None:
    """A commit's title is foreign: its line breaks are spaces, and it is cut."""
    event = _event(commit={"title": "a\n::error::b" + "x" * 200, "author": "", "count": 0, "diff": ""})
    (words,) = open_changes([event])
    assert "\n" not in words
    assert len(words) < 200


@pytest.mark.parametrize(
    ("code", "owner", "title"),
    [
        (ExitCode.RIG, "", "NO VERDICT"),
        (ExitCode.RIG, "rig", "NO VERDICT: THE RIG FAILED"),
        (ExitCode.CONFIG, "configuration", "NOT MEASURED: CONFIGURATION"),
        (ExitCode.FIRMWARE, "firmware", "NOT MEASURED: THE FIRMWARE FAILED"),
    ],
)
def test_what_never_came_to_a_verdict_blames_whom_somebody_named(
    code: ExitCode, owner: str, title: str
) -> None:
    """The rig failed only where somebody said so."""
    assert title_without_verdict(code, owner) == title

# SPDX-License-Identifier: Apache-2.0
"""The words of a verdict: its first ones, and how an exact change reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hil.base.errors import ExitCode
from hil.gate.words.banner import Banner, banner_of, title_without_verdict
from hil.gate.words.compared import Compared, regressions, warnings
from hil.gate.words.comparisons import describe, exactly, share
from hil.history.nightly.event_lines import open_changes
from hil.model import ComparedSeries, Verdict


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


def test_a_commits_title_is_one_short_line() -> None:
    """It is foreign: its line breaks are spaces, and it is cut. Without title and author the words stay those
    of the event."""
    commit = {"title": "a\n::error::b" + "x" * 200, "author": "", "count": 0, "diff": ""}
    (words,) = open_changes([_event(commit=commit)])
    assert "\n" not in words
    assert len(words) < 200
    (words,) = open_changes([_event(commit={**commit, "title": ""})])
    assert words.endswith(" 618e3a8, open 59 nights")


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


ITEM = ComparedSeries(
    series_id="emulator/emulated-esp32c3/cost/part=publish_qos0/cost_least_instructions",
    rack="emulator",
    target="emulated-esp32c3",
    kind="emulated",
    boards=("esp32c3",),
    role="base",
    case_id="cost/part=publish_qos0",
    case_label="part=publish_qos0",
    metric="cost_least_instructions",
    unit="instructions",
    direction="lower",
    outcome="regressed",
    blocking=True,
    sentence="",
    relative=False,
    candidate_boots=2,
    other_boots=2,
    candidate_value=12_790.0,
    other_value=12_408.0,
    change=382.0,
    low=382.0,
    high=382.0,
    tolerance=248.0,
    min_effect=248.0,
    smallest_effect=248.0,
)


def changed(change: float, was: float) -> ComparedSeries:
    return replace(
        ITEM, change=change, low=change, high=change, other_value=was, candidate_value=was + change
    )


def test_a_regression_names_the_part_and_both_figures() -> None:
    """What it was and is, in words that promise no time."""
    words = "part=publish_qos0 on emulated-esp32c3 +3.1 % (12,408 → 12,790 instructions)"
    assert words in regressions(Compared(series=(ITEM,)))


@pytest.mark.parametrize(
    ("change", "was", "words"),
    [
        (100, 35_000_000, "+0.00029 %"),
        (-50, 800, "-6.2 %"),
        (125, 1000, "+12.5 %"),
        (2000, 800, "+250 %"),
        (12_000_000, 1000, "+1,200,000 %"),
        (0, 800, ""),
        (800, 0, ""),
    ],
)
def test_a_share_is_a_number_of_any_size(change: float, was: float, words: str) -> None:
    """No exponent, at either end; nothing where nothing changed, or where it was nothing before."""
    assert share(changed(change, was)) == words


def test_only_an_exact_figure_is_said_without_an_interval() -> None:
    """No smallest change is claimed for it, its unit stands once, as people write it; an estimate is none."""
    estimate = replace(ITEM, low=300.0, high=460.0)
    for item, claims in ((ITEM, False), (estimate, True)):
        assert ("would have been seen" in describe(item, "a-run")) is claims
    assert exactly(replace(ITEM, unit="bytes")) == "+3.1 % (12,408 → 12,790 B)"
    assert exactly(estimate) == ""


def test_one_reason_of_many_comparisons_is_said_once() -> None:
    """What keeps them from a decision stands once, with the first few; the others are counted."""
    open_ = replace(ITEM, outcome="undecided", change=None, reason="another ruler")
    items = tuple(replace(open_, metric=f"m{number}_bytes") for number in range(5))
    (said,) = warnings(Compared(items))
    assert "m0" in said
    assert said.endswith(" and 2 more: another ruler.")

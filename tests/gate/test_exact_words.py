# SPDX-License-Identifier: Apache-2.0
"""How an exact change reads: what it was, what it is, and its share, without the words of statistics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hil.gate.words.compared import Compared, regressions, warnings
from hil.gate.words.comparisons import describe, exactly, share
from hil.model import ComparedSeries

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
    assert "would have been seen" not in describe(ITEM, "a-run")
    assert exactly(replace(ITEM, unit="bytes")) == "+3.1 % (12,408 → 12,790 B)"
    assert exactly(replace(ITEM, low=300.0, high=460.0)) == ""


def test_one_reason_of_many_comparisons_is_said_once() -> None:
    """What keeps them from a decision stands once, with the first few; the others are counted."""
    open_ = replace(ITEM, outcome="undecided", change=None, reason="another ruler")
    items = tuple(replace(open_, metric=f"m{number}_bytes") for number in range(5))
    (said,) = warnings(Compared(items))
    assert "m0" in said
    assert said.endswith(" and 2 more: another ruler.")

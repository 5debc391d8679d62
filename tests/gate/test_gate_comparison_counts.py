# SPDX-License-Identifier: Apache-2.0
"""Failures, timeouts and exact figures compared with the base's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hil.base.errors import ExitCode
from hil.gate import judge
from hil.model import ComparedSeries, Entry, RunRecord, Verdict
from hil.thresholds.types import Thresholds
from tests.gate import compare_records as rig
from tests.gate.compare_records import BOARDS, FAILED, LOOKS, METRIC, ROWS, comparison, run, thresholds

P95 = "publish_latency_p95_us"
LOSSES = thresholds({FAILED: (0.02, 0.005)})
TIMES = {name: thresholds({name: (0.10, 0.03)}) for name in (P95, "publish_latency_tail5_us")}
Failed = Callable[[RunRecord], int]


def verdict(entries: Sequence[Entry], own: Thresholds) -> Verdict:
    return judge(entries, {"publish": own})


def compared(entries: Sequence[Entry], own: Thresholds) -> ComparedSeries:
    """Return the only comparison of these thresholds."""
    (item,) = verdict(entries, own).compared
    return item


def losses(failed: Failed, *, looks: rig.Looks = LOOKS, boards: tuple[str, ...] = BOARDS) -> list[Entry]:
    return rig.losing(run(looks=looks, entry=comparison(boards=boards), boards=boards), failed)


def of_candidate(failed: int) -> Failed:
    return lambda one: failed * (one.role == "candidate")


def of_base(failed: int) -> Failed:
    return lambda one: failed * (one.role == "base")


@pytest.mark.parametrize(("rows", "outcome"), [(10, "undecided"), (60, "pass")])
def test_no_failure_in_few_messages_is_no_pass(rows: int, outcome: str) -> None:
    """Twenty messages a board of which none was lost do not show that fewer than 2 % are."""
    item = compared(run(entry=comparison(looks=LOOKS[:1]), rows=rows), LOSSES)
    assert item.outcome == outcome
    assert ("80 + 80 trials" in item.reason) == (outcome == "undecided")


def test_failures_are_compared_as_counts() -> None:
    """A firmware that loses more messages regresses, in percentage points."""
    clean = compared(run(looks=LOOKS[:4], entry=comparison()), LOSSES)
    assert (clean.outcome, clean.relative, clean.unit) == ("pass", False, "ratio")
    found = verdict(losses(of_candidate(12), looks=LOOKS[:4]), LOSSES)
    assert found.compared[0].outcome == "regressed"
    assert found.compared[0].change == pytest.approx(0.2)
    assert "grew by 20 percentage" in found.sentence


@pytest.mark.parametrize("boards", [BOARDS[:1], BOARDS])
@pytest.mark.parametrize("failed", [ROWS, ROWS - 1])
def test_a_firmware_that_loses_everything_regresses(failed: int, boards: tuple[str, ...]) -> None:
    """From no message lost to all of them, or all but one in each boot: blocked, on one board too."""
    found = verdict(losses(of_candidate(failed), boards=boards), LOSSES)
    assert (found.compared[0].outcome, found.exit_code) == ("regressed", ExitCode.FIRMWARE)
    assert compared(losses(of_base(failed), boards=boards), LOSSES).outcome in ("pass", "improved")


def test_a_board_that_loses_everything_is_not_passed_over() -> None:
    """All messages of one board of four fail with the candidate, a few with the base: a regression."""

    def failed(one: RunRecord) -> int:
        is_dead = (one.board, one.role) == ("virtual-2", "candidate")
        return ROWS if is_dead else int(one.boot_index == 3)

    item = compared(rig.losing(run(entry=comparison(looks=LOOKS[:3])), failed), LOSSES)
    assert item.outcome == "regressed"


def test_among_timeouts_the_failures_decide() -> None:
    """p95 is "at least the timeout" in most of the candidate's boots: how often it was so is compared, and
    said where everything times out in both, so that nothing got worse."""
    found = verdict(losses(of_candidate(9), looks=LOOKS[:4]), TIMES[P95])
    (item,) = found.compared
    assert (item.outcome, found.exit_code, item.change) == ("regressed", ExitCode.FIRMWARE, None)
    assert "15.00% after 0.00%" in item.reason
    assert "timeouts more often" in found.sentence
    item = compared(losses(lambda _: ROWS), TIMES[P95])
    assert (item.change, "100.00% after 100.00%" in item.sentence) == (None, True)


def with_bad_boots(count: int, slower: float = 0.0, role: str = "candidate") -> list[Entry]:
    """Return a journal with 9 of 60 messages timed out in the first boots of a role.

    The candidate's other messages take exp(``slower``) times as long.
    """
    left = count

    def measured(one: RunRecord) -> RunRecord:
        nonlocal left
        is_bad = one.role == role and left > 0
        left -= is_bad
        offset = slower if one.role == "candidate" else 0.0
        return rig.boot(
            one.board, one.role, one.boot_index, offset=offset, failed=9 * is_bad, seed=one.boot_index
        )

    return rig.edited(run(), measured)


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize(
    ("role", "boots"), [("candidate", 0), *((role, n) for role in ("candidate", "base") for n in (1, 2, 4))]
)
def test_timeouts_in_some_boots_hide_no_slower_messages(name: str, role: str, boots: int) -> None:
    """A candidate that is 60 % slower regresses, whatever number of boots of either arm timed out."""
    assert compared(with_bad_boots(boots, math.log(1.6), role), TIMES[name]).outcome == "regressed"


def test_more_timeouts_make_no_verdict_better() -> None:
    """With each further boot among timeouts an unchanged candidate passes no more easily."""
    ranks = ["improved", "pass", "undecided", "regressed"]
    found = [ranks.index(compared(with_bad_boots(boots), TIMES[P95]).outcome) for boots in (0, 2, 6, 12)]
    assert found == sorted(found)


def exact() -> Thresholds:
    """Return a rule for an exact figure: 100 µs are tolerated."""
    metric = replace(
        thresholds().metrics[METRIC], statistic="max", scale="exact", outcome=None, not_ok="infinite"
    )
    return replace(thresholds({METRIC: (100.0, 100.0)}), metrics={METRIC: metric})


def grown_by(
    difference_us: int, own: Thresholds, looks: rig.Looks = LOOKS[:1], spread_us: int = 0
) -> ComparedSeries:
    """Return how a figure of 5000 µs compares that grew, and of which each second boot differs."""

    def measured(one: RunRecord) -> RunRecord:
        latency_us = 5000 + difference_us * (one.role == "candidate") + spread_us * (one.boot_index % 2)
        done = tuple(planned + latency_us for planned in one.columns["planned_us"])
        return replace(one, columns={**one.columns, "done_us": done})

    return compared(rig.edited(run(looks=looks), measured), own)


@pytest.mark.parametrize(
    ("difference_us", "outcome"), [(100, "pass"), (101, "regressed"), (-101, "improved")]
)
def test_an_exact_figure_is_compared_to_the_byte(difference_us: int, outcome: str) -> None:
    """One byte beyond the tolerance is a regression at the first look, also where that was broken off."""
    item = grown_by(difference_us, exact())
    assert (item.outcome, item.change) == (outcome, difference_us)
    assert grown_by(difference_us, exact(), ((1, 1),)).outcome == outcome
    if outcome == "regressed":
        assert "grew by 101 µs (+2.0 %) " in item.sentence


@pytest.mark.parametrize(
    ("difference_us", "outcome"),
    [(2000, "regressed"), (102, "regressed"), (101, "undecided"), (99, "pass"), (-102, "improved")],
)
def test_exact_figures_that_differ_by_a_unit_are_ranges(difference_us: int, outcome: str) -> None:
    """+40 % of which the boots differ by a unit has regressed; what the ranges leave open is undecided."""
    item = grown_by(difference_us, exact(), spread_us=1)
    assert (item.outcome, "boots of one firmware" in item.reason) == (outcome, outcome == "undecided")


def test_exact_figures_take_no_share_of_alpha() -> None:
    """A fact is not wrong by chance: beside five of them a time has the boundary that it has alone."""
    own = exact()
    facts = {f"fact_{n}_us": replace(own.metrics[METRIC], name=f"fact_{n}_us") for n in range(5)}
    beside = thresholds({P95: (0.10, 0.03), **dict.fromkeys(facts, (100.0, 100.0))})
    beside = replace(beside, metrics={**beside.metrics, **facts})
    entries = run(looks=LOOKS[:1])
    boundary = {item.metric: item.boundary for item in verdict(entries, beside).compared}[P95]
    assert boundary == compared(entries, TIMES[P95]).boundary


def test_an_exact_figure_may_tolerate_a_share_of_the_base() -> None:
    """Two per cent of 5,000 µs are 100 µs."""
    own = exact()
    rule = replace(own.compare[0], tolerance=0.02, min_effect=0.02, relative=True)
    shares = replace(own, compare=(rule,))
    assert [grown_by(size, shares).outcome for size in (100, 101)] == ["pass", "regressed"]

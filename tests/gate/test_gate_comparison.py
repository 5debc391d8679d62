# SPDX-License-Identifier: Apache-2.0
"""Comparisons with the base: what decides, what a person reads, and what the run comes to."""

from __future__ import annotations

import datetime
import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hil.base.errors import ConfigError, ExitCode
from hil.gate import judge
from hil.model import BaseCause, ComparedSeries, Entry, Fault, NoBase, NotRun, RunRecord, Verdict
from hil.thresholds.limits import Advice, Suppression, Where
from hil.thresholds.types import Thresholds
from tests.gate import compare_records as rig
from tests.gate.compare_records import BOARDS, CASE_ID, FAILED, LOOKS, METRIC, comparison, run, thresholds
from tests.make_records import RUN_ID, publish_record, publish_thresholds

FIRST = LOOKS[:1]


def verdict(entries: Sequence[Entry], own: Thresholds | None = None) -> Verdict:
    return judge(entries, {"publish": own or thresholds()})


def compared(found: Verdict, metric: str = METRIC) -> ComparedSeries:
    return next(item for item in found.compared if item.metric == metric)


def changed(entries: Sequence[Entry], role: str, **changes: object) -> list[Entry]:
    """Return the journal with all records of a role changed."""
    return [
        replace(entry, **changes) if isinstance(entry, RunRecord) and entry.role == role else entry  # type: ignore[arg-type]
        for entry in entries
    ]


def test_an_unchanged_firmware_passes() -> None:
    """One comparison for all boards of a target; the sentence of the run says how many boots it took."""
    found = verdict(run(entry=comparison(looks=FIRST)))
    item = compared(found)
    assert (found.outcome, found.exit_code, item.outcome, item.look) == ("pass", 0, "pass", 1)
    assert item.series_id == f"virtual/virtual-esp32/{CASE_ID}/{METRIC}"
    assert (item.candidate_boots, item.other_boots, item.boards) == (8, 8, BOARDS)
    assert found.sentence == "The comparison with the base passed in 16 boots."


def test_a_slower_firmware_is_a_regression() -> None:
    """The run's sentence names figure, target, change and interval; the comparison's what it rests on."""
    found = verdict(run(effect=0.2))
    item = compared(found)
    assert (found.outcome, found.exit_code) == ("regressed", ExitCode.FIRMWARE)
    assert found.sentence.startswith("Publish latency p50 on virtual-esp32 grew by 2")
    assert found.sentence.endswith(" against the base.")
    assert item.change is not None
    assert item.low is not None
    assert item.high is not None
    assert 0.03 < item.low < item.change < item.high
    assert item.change == pytest.approx(0.22, abs=0.05)
    for part in (
        "(virtual)",
        "a regression (more than 3 %)",
        f"z {item.z:.2f} against a boundary of {item.boundary:.2f} at look 2 of 5",
        "16 + 16 boots (candidate + base) on 4 boards, timed by esp_timer",
        "boots differ by",
        "would have been seen",
        "same air, real-time priority, clock in all boots",
        "decided early, so the change is biased away from zero",
        f"replay: hil gate out/{RUN_ID}",
    ):
        assert part in item.sentence


def test_a_night_beside_the_reference_never_blocks() -> None:
    """Main may have left the frozen reference behind on purpose: what is worse than it is advice."""
    looks = ((4, 4),)
    base = run(effect=0.2, looks=looks, entry=comparison(looks=looks))
    night = [
        replace(entry, role="reference") if getattr(entry, "role", "") == "base" else entry for entry in base
    ]
    (blocked,) = [item for item in verdict(base).compared if item.metric == METRIC]
    (told,) = [item for item in verdict(night).compared if item.metric == METRIC]
    assert (blocked.blocking, blocked.outcome) == (True, "regressed")
    assert (told.blocking, told.role) == (False, "reference")
    assert "blocks nothing" in told.reason
    assert verdict(night).exit_code == 0


def test_boots_that_are_slow_now_and_then_are_named() -> None:
    """A sixth of the boots twice as slow: neither a pass nor proven; the sentence says where to look."""
    looks = LOOKS[:3]
    entries = run(entry=comparison(looks=looks))
    slow = [
        rig.boot(entry.board, "candidate", entry.boot_index, offset=0.7)
        if isinstance(entry, RunRecord) and entry.role == "candidate" and entry.boot_index == 0
        else entry
        for entry in entries
    ]
    item = compared(verdict(slow))
    assert item.outcome == "undecided"
    assert "4 of its 24 boots lie far off, and 0 of the other's 24: see those" in item.reason


def test_no_failure_in_few_messages_is_no_pass() -> None:
    """Twenty messages a board of which none was lost do not show that fewer than 2 % are."""
    own = thresholds({FAILED: (0.02, 0.005)})
    few = compared(verdict(run(looks=FIRST, entry=comparison(looks=FIRST), rows=10), own), FAILED)
    assert few.outcome == "undecided"
    assert few.reason.startswith(
        "nothing failed in 80 + 80 trials, which are too few to exclude the tolerance"
    )
    assert (
        compared(verdict(run(looks=FIRST, entry=comparison(looks=FIRST), rows=60), own), FAILED).outcome
        == "pass"
    )


def test_a_faster_firmware_passes_as_improved() -> None:
    """An improvement never blocks, and is told."""
    found = verdict(run(effect=-0.2, entry=comparison(looks=LOOKS[-1:])))
    assert (found.outcome, found.exit_code, compared(found).outcome) == ("pass", 0, "improved")
    assert "1 of them improved (publish latency p50 on virtual-esp32)" in found.sentence
    assert "fell by" in compared(found).sentence


def test_a_pass_says_what_it_excluded() -> None:
    """The bound of its own test, within the tolerance, signed as a change for the worse; no interval."""
    item = compared(verdict(run(entry=comparison(looks=FIRST))))
    assert item.pass_bound is not None
    assert item.tolerance is not None
    assert item.change is not None
    assert item.change < item.pass_bound < item.tolerance
    assert f"within the tolerance of 10 % (at most {item.pass_bound * 100:+.1f} %)" in item.sentence
    assert "[" not in item.sentence
    own = thresholds()
    rate = replace(own.metrics[METRIC], direction="higher")
    higher = compared(verdict(run(entry=comparison(looks=FIRST)), replace(own, metrics={METRIC: rate})))
    assert higher.pass_bound is not None
    assert -0.10 < higher.pass_bound < higher.change  # type: ignore[operator]
    assert f"(at least {higher.pass_bound * 100:+.1f} %)" in higher.sentence
    assert compared(verdict(run(effect=0.2))).pass_bound is None


def test_where_higher_is_better_less_is_a_regression() -> None:
    """The sign is the metric's: a rate that falls is worse, and its change is negative."""
    own = thresholds()
    rate = replace(own.metrics[METRIC], direction="higher")
    found = verdict(run(effect=-0.2), replace(own, metrics={METRIC: rate}))
    item = compared(found)
    assert item.outcome == "regressed"
    assert item.change is not None
    assert item.low is not None
    assert item.high is not None
    assert item.low < item.change < item.high < -0.03
    assert "fell by" in found.sentence


def test_nothing_is_decided_before_six_boots_of_each() -> None:
    """However large the difference: fewer boots say too little of how much they differ."""
    looks = LOOKS
    early = compared(verdict(run(looks=((1, 1),), entry=comparison(looks=looks))))
    assert early.outcome == "undecided"
    assert "fewer than 6 boots of each" in early.reason
    found = compared(verdict(run(effect=0.2, entry=comparison(looks=looks))))
    assert (found.outcome, found.look) == ("regressed", 2)


def test_a_regression_goes_first_where_both_tests_hold() -> None:
    """A change between smallest effect and tolerance that is proven is a regression; both bounds are told."""
    own = thresholds({METRIC: (0.5, 0.03)})
    item = compared(verdict(run(effect=0.12, entry=comparison(looks=LOOKS[-1:])), own))
    assert item.outcome == "regressed"
    assert "a regression (more than 3 %, though less than the tolerance of 50 %)" in item.sentence


def test_a_change_below_the_smallest_effect_never_blocks() -> None:
    """However sure it is."""
    own = thresholds({METRIC: (0.10, 0.08)})
    item = compared(verdict(run(effect=0.05, deviation=0.001), own))
    assert item.outcome == "pass"


def test_the_boot_cap_is_undecided_and_says_so() -> None:
    """A firmware that lies between pass and regressed to the end is neither; the reason is the cap."""
    found = verdict(run(effect=0.07, deviation=0.25))
    item = compared(found)
    assert (item.outcome, found.outcome, found.exit_code) == ("undecided", "undecided", ExitCode.UNDECIDED)
    assert item.reason == "its boots differ too much to decide, after all 5 looks (12 + 12 boots a board)"
    assert item.sentence in found.warnings
    way = "it had all looks: add boards, or make them quieter"
    assert found.sentence == f"Undecided: 1 comparison ({way})."


def test_what_a_larger_budget_may_decide_says_so() -> None:
    """A plan that had no time for all looks: the way out is a run with more time."""
    looks = ((4, 4),)
    entries = [comparison(looks=looks), *rig.boots(looks, effect=0.07, deviation=0.25)[0]]
    assert "(more boots may decide it: run again with a larger --budget)" in verdict(entries).sentence


def test_an_undecided_comparison_fails_where_the_policy_says_so() -> None:
    """on_undecided: fail holds for comparisons too, where one of its bench is undecided."""
    own = thresholds()
    strict = replace(own, policy=replace(own.policy, on_undecided="fail"))
    found = verdict(run(effect=0.07, deviation=0.25), strict)
    assert (found.exit_code, found.on_undecided) == (ExitCode.UNDECIDED, "fail")
    assert verdict(run(entry=comparison(looks=FIRST)), strict).on_undecided == "neutral"


def test_the_budget_is_told_as_the_run_wrote_it_down() -> None:
    """Without time for another look the reason is the boot loop's own sentence."""
    why = "the time budget of 15 min ended after look 2 of 6"
    entries = run(effect=0.07, deviation=0.25, looks=LOOKS[:2], entry=comparison())
    entries += [NotRun(RUN_ID, board, CASE_ID, why, "cut-off") for board in BOARDS]
    item = compared(verdict(entries))
    assert item.outcome == "undecided"
    assert item.reason.endswith(f", and {why}")


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (Fault(RUN_ID, "rig", 130, "stopped."), "the run was stopped after look 1 of 5"),
        (Fault(RUN_ID, "rig", 3, "the disk is full."), "the run failed after look 1 of 5"),
        (None, "the run ended after look 1 of 5"),
    ],
)
def test_a_run_that_ended_early_says_why(fault: Fault | None, why: str) -> None:
    """An undecided comparison is never without a reason."""
    entries = run(effect=0.07, deviation=0.25, looks=FIRST, entry=comparison())
    item = compared(verdict([*entries, *([fault] if fault else [])]))
    assert item.reason.endswith(why)


def test_a_broken_limit_blocks_whatever_the_comparison_says() -> None:
    """A base that is as slow excuses nothing."""
    own = thresholds({"publish_latency_p95_us": (0.10, 0.03)}, limits=True)
    entries = [
        comparison(looks=LOOKS),
        *(record for look in rig.boots(LOOKS[:3], session=1.6) for record in look),
    ]
    found = verdict(entries, own)
    assert compared(found, "publish_latency_p95_us").outcome == "pass"
    assert found.exit_code == ExitCode.FIRMWARE
    assert found.sentence.startswith("4 of 4 limits broken")


def test_alpha_is_shared_by_comparisons_and_limits() -> None:
    """With limits beside it a comparison has half of alpha, with another comparison half of that."""
    alone = compared(verdict(run(looks=FIRST)))
    own = thresholds({METRIC: (0.10, 0.03), "publish_latency_p95_us": (0.10, 0.03)}, limits=True)
    shared = compared(verdict(run(looks=FIRST, entry=comparison()), own))
    assert alone.boundary is not None
    assert shared.boundary is not None
    assert shared.boundary > alone.boundary


def test_identical_images_pass_with_no_boot() -> None:
    """Nothing is measured, and that is no failure: it cannot have changed."""
    same = comparison(identical=True, other_sha256=rig.CANDIDATE, looks=())
    found = verdict([same, *(NotRun(RUN_ID, b, CASE_ID, "the same image", "identical") for b in BOARDS)])
    assert (found.outcome, found.exit_code, compared(found).outcome) == ("pass", 0, "pass")
    assert found.sentence == (
        "The comparison with the base passed; virtual-esp32: both images are the same bytes, so nothing can "
        "have changed."
    )
    assert "passed with no boot at all, both images are the same bytes" in compared(found).sentence


def test_another_ruler_is_undecided() -> None:
    """What was measured by other sources of agent and bench is not compared, and that is no pass."""
    found = verdict(changed(run(looks=FIRST, effect=0.5), "base", ruler_hash="99" * 32))
    assert (found.outcome, compared(found).outcome) == ("undecided", "undecided")
    assert compared(found).reason == "the base was measured by another ruler (sources of agent and bench)"


@pytest.mark.parametrize("boards", [BOARDS[:1], BOARDS])
def test_boots_after_a_decision_do_not_take_it_back(boards: tuple[str, ...]) -> None:
    """A boot without real-time priority, measured for another metric later on, makes no regression advice."""
    entries = run(entry=comparison(boards=boards), boards=boards, effect=0.3)
    (before,) = judge(entries, {"publish": thresholds()}).compared
    assert (before.outcome, before.blocking) == ("regressed", True)
    late = [
        replace(entry, environment={**entry.environment, "device": {"sched": "other"}})
        if isinstance(entry, RunRecord) and entry.boot_index >= sum(LOOKS[before.look - 1])
        else entry
        for entry in entries
    ]
    assert late != entries
    found = judge(late, {"publish": thresholds()})
    assert (found.exit_code, found.compared) == (1, (before,))


def test_a_base_without_the_case_is_no_baseline() -> None:
    """The boot loop's reason is told, each only once."""
    own = thresholds({METRIC: (0.10, 0.03), "publish_latency_p95_us": (0.10, 0.03)})
    entries = [
        entry for entry in run(looks=FIRST) if not (isinstance(entry, RunRecord) and entry.role == "base")
    ]
    why = "not compared: the base could not measure it: unknown bench 'publish'."
    found = verdict([*entries, *(NotRun(RUN_ID, b, CASE_ID, why, "not-compared") for b in BOARDS)], own)
    assert (found.outcome, found.exit_code) == ("no-baseline", 0)
    assert len([line for line in found.warnings if "unknown bench 'publish'" in line]) == 1
    bare = verdict(entries, own)
    assert "no boot of the base has it" in compared(bare).reason


@pytest.mark.parametrize("boards", [BOARDS[:1], BOARDS])
def test_a_run_that_was_killed_before_the_bases_turn_is_undecided(boards: tuple[str, ...]) -> None:
    """Its base may well have the case: that the run is not green says that it was never asked."""
    entries = run(entry=comparison(boards=boards), boards=boards)
    killed = [
        entry
        for entry in entries
        if not isinstance(entry, RunRecord) or (entry.role == "candidate" and not entry.boot_index)
    ]
    found = judge(killed, {"publish": thresholds()}, {(board, CASE_ID): 1 for board in boards})
    assert (found.outcome, found.exit_code) == ("undecided", 4)
    assert "no boot of the base was measured" in compared(found).reason


def test_an_image_that_the_base_lacks_is_told() -> None:
    """Its boards have no comparison at all: a warning, and the run is no plain pass."""
    why = "not compared: the base has no image for esp32+tick100"
    entries = [
        *run(entry=comparison(looks=FIRST)),
        NotRun(RUN_ID, "bench-9", "jitter/x", why, "not-compared"),
    ]
    found = verdict(entries)
    assert (found.outcome, found.exit_code) == ("no-baseline", 0)
    assert "bench-9: no-baseline, the base has no image for esp32+tick100." in found.warnings


@pytest.mark.parametrize(
    ("cause", "outcome", "exit_code", "first"),
    [
        ("sources", "no-baseline", 0, "Limits only, as the base does not build at its own commit; "),
        ("unknown", "undecided", 4, "Undecided: nothing was compared, as the base is missing ("),
    ],
)
def test_a_base_that_is_missing_is_no_pass(
    cause: BaseCause, outcome: str, exit_code: int, first: str
) -> None:
    """A commit that does not build leaves the limits, and says so; a base lost otherwise decides nothing."""
    own = publish_thresholds()
    strict = replace(own, policy=replace(own.policy, on_undecided="fail"))
    entries = [NoBase(RUN_ID, cause, "x.c:1: error"), publish_record()]
    found = judge(entries, {"publish": strict})
    assert (found.outcome, found.exit_code, found.no_base) == (outcome, exit_code, cause)
    assert found.on_undecided == ("fail" if exit_code else "neutral")
    assert found.sentence.startswith(first)
    assert found.sentence.endswith("3 limits kept.")
    assert "nothing was compared: x.c:1: error." in found.warnings


def test_a_base_of_the_same_bytes_leaves_the_limits_to_decide() -> None:
    """Nothing can have changed, so limits that are kept are a pass, which says that it is by them alone."""
    same = NoBase(RUN_ID, "identical", "the firmware of the base is the head's, byte for byte")
    found = judge([same, publish_record()], {"publish": publish_thresholds()})
    assert (found.outcome, found.exit_code, found.no_base, found.warnings) == ("pass", 0, "identical", ())
    assert found.sentence == "Limits only, as the firmware is the base's, byte for byte; all 3 limits kept."
    slow = judge([same, publish_record(latency_ms=60)], {"publish": publish_thresholds()})
    assert (slow.outcome, slow.exit_code) == ("regressed", ExitCode.FIRMWARE)


def test_a_comparison_of_which_nothing_was_measured_is_no_pass() -> None:
    """Also where nothing says why: exit code 4."""
    found = verdict([comparison()])
    assert (found.outcome, found.exit_code) == ("incomplete", ExitCode.UNDECIDED)
    assert found.sentence.startswith("Nothing was measured")
    two = comparison(cases=(CASE_ID, publish_record(overrides={"qos": 2}).case_id))
    half = verdict(run(looks=FIRST, entry=two))
    assert (half.outcome, half.exit_code) == ("incomplete", ExitCode.UNDECIDED)


def test_one_board_that_alone_is_worse_is_named_and_decides_nothing() -> None:
    """It does not fail the pull request, and the others do not pass for it: undecided, with its name."""
    found = verdict(run(effects={"virtual-3": 0.4}))
    item = compared(found)
    assert (item.outcome, item.odd_boards) == ("undecided", ("virtual-3",))
    assert "its boards contradict each other" in item.reason
    assert "(virtual-3 +" in item.reason
    assert "virtual-3 left out: contradicts the others" in item.sentence
    assert item.sentence in found.warnings


def test_one_board_that_alone_is_better_is_named_and_left_out() -> None:
    """Nothing is hidden by it: the others pass."""
    item = compared(verdict(run(effects={"virtual-3": -0.4})))
    assert (item.outcome, item.odd_boards) == ("pass", ("virtual-3",))


def test_a_board_that_loses_everything_is_not_passed_over() -> None:
    """All messages of one board of four fail with the candidate, a few with the base: no pass."""
    own = thresholds({FAILED: (0.02, 0.005)})
    entries = run(entry=comparison(looks=LOOKS[:3]))
    lossy = [
        rig.boot(
            e.board,
            e.role,
            e.boot_index,
            failed=rig.ROWS if (e.board, e.role) == ("virtual-2", "candidate") else int(e.boot_index == 3),
        )
        if isinstance(e, RunRecord)
        else e
        for e in entries
    ]
    item = compared(verdict(lossy, own), FAILED)
    assert item.outcome in ("undecided", "regressed")
    assert "virtual-2" in item.sentence


def test_two_boards_that_contradict_each_other_decide_nothing() -> None:
    """Nobody knows which is right: both are named, with what they say."""
    two = comparison(boards=BOARDS[:2])
    item = compared(verdict(run(effects={"virtual-1": 0.4}, boards=BOARDS[:2], entry=two)))
    assert item.outcome == "undecided"
    assert item.odd_boards == BOARDS[:2]
    assert "its boards contradict each other" in item.reason
    assert "virtual-1 +" in item.reason


def test_advice_is_judged_by_false_discoveries() -> None:
    """Without a rule a change is told and blocks nothing; chance alone is not told."""
    own = replace(thresholds(only=False), compare=())
    clean = verdict(run(looks=FIRST, entry=comparison(looks=FIRST)), own)
    worse = verdict(run(looks=FIRST, effect=0.3, entry=comparison(looks=FIRST)), own)
    assert {item.outcome for item in clean.compared if item.metric.startswith("publish_latency")} == {"pass"}
    item = compared(worse)
    assert (item.outcome, item.blocking, worse.exit_code) == ("regressed", False, 0)
    assert item.sentence in worse.warnings
    assert "advice: no rule under 'compare:' names it" in item.sentence


def test_a_suppressed_board_does_not_block_and_is_told() -> None:
    """One board's suppression leaves it out; that of all makes the comparison advice."""
    where = Where({"metric": METRIC, "board": "virtual-3"})
    day = datetime.date(2026, 12, 1)
    known = Suppression(where, "its link is bad", "#12", day, "thresholds/publish.yaml:1")
    own = replace(thresholds(), suppressions=(known,))
    item = compared(verdict(run(effects={"virtual-3": 0.4}), own))
    assert item.outcome == "pass"
    assert "virtual-3 left out: suppressed until 2026-12-01, #12: its link is bad" in item.sentence
    of_all = replace(own, suppressions=(replace(known, where=Where({"metric": METRIC})),))
    found = verdict(run(effect=0.4), of_all)
    assert (found.exit_code, compared(found).blocking) == (0, False)


def test_advice_in_the_file_does_not_block() -> None:
    """A rule under advice: outranks one under compare:."""
    advice = Advice(Where({"metric": METRIC}), "it is new", "thresholds/publish.yaml:1")
    found = verdict(run(effect=0.4), replace(thresholds(), advice=(advice,)))
    assert (found.exit_code, compared(found).outcome) == (0, "regressed")
    assert "advice: it is new" in compared(found).sentence


def test_failures_are_compared_as_counts() -> None:
    """A firmware that loses more messages regresses, in percentage points."""
    own = thresholds({FAILED: (0.02, 0.005)})
    entries = run(looks=LOOKS[:4], entry=comparison(looks=LOOKS))
    clean = compared(verdict(entries, own), FAILED)
    assert (clean.outcome, clean.relative, clean.unit) == ("pass", False, "ratio")
    lossy = [
        rig.boot(e.board, e.role, e.boot_index, failed=12 if e.role == "candidate" else 0)
        if isinstance(e, RunRecord)
        else e
        for e in entries
    ]
    found = verdict(lossy, own)
    item = compared(found, FAILED)
    assert item.outcome == "regressed"
    assert item.change == pytest.approx(0.2)
    assert "Publish failed ratio on virtual-esp32 grew by 20 percentage points" in found.sentence


@pytest.mark.parametrize("boards", [1, 4])
@pytest.mark.parametrize("failed", [rig.ROWS, rig.ROWS - 1])
def test_a_firmware_that_loses_everything_regresses(failed: int, boards: int) -> None:
    """From no message lost to all of them, or all but one in each boot: blocked, on one board too."""
    own = thresholds({FAILED: (0.02, 0.005)})
    entry = comparison(looks=LOOKS, boards=BOARDS[:boards])
    entries = [
        rig.boot(e.board, e.role, e.boot_index, failed=failed if e.role == "candidate" else 0)
        if isinstance(e, RunRecord)
        else e
        for e in run(looks=LOOKS, entry=entry, boards=BOARDS[:boards])
    ]
    found = verdict(entries, own)
    assert (compared(found, FAILED).outcome, found.exit_code) == ("regressed", ExitCode.FIRMWARE)
    assert compared(verdict(swapped(entries), own), FAILED).outcome in ("pass", "improved")


def swapped(entries: Sequence[Entry]) -> list[Entry]:
    """Return the journal with what was measured of candidate and base exchanged."""
    other = {"candidate": "base", "base": "candidate"}
    digest = {"candidate": rig.CANDIDATE, "base": rig.BASE}
    return [
        replace(e, role=other[e.role], firmware_sha256=digest[other[e.role]])
        if isinstance(e, RunRecord)
        else e  # type: ignore[arg-type]
        for e in entries
    ]


def test_among_timeouts_the_failures_decide() -> None:
    """p95 is "at least the timeout" in most of the candidate's boots: how often it was so is compared."""
    name = "publish_latency_p95_us"
    entries = [
        rig.boot(e.board, e.role, e.boot_index, failed=9 if e.role == "candidate" else 0)
        if isinstance(e, RunRecord)
        else e
        for e in run(looks=LOOKS[:4], entry=comparison(looks=LOOKS))
    ]
    found = verdict(entries, thresholds({name: (0.10, 0.03)}))
    item = compared(found, name)
    assert (item.outcome, found.exit_code, item.change) == ("regressed", ExitCode.FIRMWARE, None)
    assert "so the failures decide: 15.00% after 0.00%" in item.reason
    assert (
        "Publish latency p95 on virtual-esp32 fell among timeouts more often against the base"
        in found.sentence
    )


def with_bad_boots(
    entries: Sequence[Entry], boots: int, slower: float = 0.0, role: str = "candidate"
) -> list[Entry]:
    """Return the journal with 9 of 60 messages timed out in the first boots of a role.

    The candidate's other messages take exp(``slower``) times as long.
    """
    found: list[Entry] = []
    for entry in entries:
        if isinstance(entry, RunRecord):
            bad = entry.role == role and boots > 0
            boots -= bad
            offset = slower if entry.role == "candidate" else 0.0
            found.append(
                rig.boot(
                    entry.board,
                    entry.role,
                    entry.boot_index,
                    offset=offset,
                    failed=9 * bad,
                    seed=entry.boot_index,
                )
            )
        else:
            found.append(entry)
    return found


@pytest.mark.parametrize("name", ["publish_latency_p95_us", "publish_latency_tail5_us"])
@pytest.mark.parametrize("role", ["candidate", "base"])
@pytest.mark.parametrize("boots", [0, 1, 2, 4])
def test_timeouts_in_some_boots_hide_no_slower_messages(name: str, role: str, boots: int) -> None:
    """A candidate that is 60 % slower regresses, whatever number of boots of either arm timed out."""
    entries = with_bad_boots(run(looks=LOOKS, entry=comparison(looks=LOOKS)), boots, math.log(1.6), role)
    assert compared(verdict(entries, thresholds({name: (0.10, 0.03)})), name).outcome == "regressed"


def test_more_timeouts_make_no_verdict_better() -> None:
    """With each further boot among timeouts an unchanged candidate passes no more easily."""
    name, ranks = "publish_latency_p95_us", {"improved": 0, "pass": 1, "undecided": 2, "regressed": 3}
    entries = run(looks=LOOKS, entry=comparison(looks=LOOKS))
    found = [
        ranks[
            compared(verdict(with_bad_boots(entries, boots), thresholds({name: (0.10, 0.03)})), name).outcome
        ]
        for boots in (0, 2, 6, 12)
    ]
    assert found == sorted(found)


def test_all_timeouts_on_both_sides_are_no_pass_of_a_value() -> None:
    """Where everything times out in both, nothing got worse, and the sentence says what was compared."""
    name = "publish_latency_p95_us"
    entries = [
        rig.boot(e.board, e.role, e.boot_index, failed=rig.ROWS) if isinstance(e, RunRecord) else e
        for e in run(looks=LOOKS, entry=comparison(looks=LOOKS))
    ]
    item = compared(verdict(entries, thresholds({name: (0.10, 0.03)})), name)
    assert item.change is None
    assert "100.00% after 100.00%" in item.sentence


def test_an_exact_figure_is_compared_to_the_byte() -> None:
    """One byte beyond the tolerance is a regression at the first look, also where that was broken off."""
    own = thresholds()
    size = replace(own.metrics[METRIC], statistic="max", scale="exact", outcome=None, not_ok="infinite")
    exact = replace(thresholds({METRIC: (100.0, 100.0)}), metrics={METRIC: size})

    def grown_by(
        difference_us: int, looks: Sequence[tuple[int, int]] = FIRST, limits: Thresholds = exact
    ) -> ComparedSeries:
        entries: list[Entry] = [comparison()]
        for record in (record for look in rig.boots(looks) for record in look):
            latency = 5000 + difference_us * (record.role == "candidate")
            done = tuple(planned + latency for planned in record.columns["planned_us"])
            entries.append(replace(record, columns={**record.columns, "done_us": done}))
        return compared(verdict(entries, limits))

    assert (grown_by(100).outcome, grown_by(101).outcome) == ("pass", "regressed")
    assert [grown_by(size, ((1, 1),)).outcome for size in (100, 101)] == ["pass", "regressed"]
    assert grown_by(101).change == 101
    assert grown_by(-101).outcome == "improved"
    assert "grew by 101 µs (+2.0 %) against the base" in grown_by(101).sentence
    shares = replace(
        exact, compare=(replace(exact.compare[0], tolerance=0.02, min_effect=0.02, relative=True),)
    )
    assert (grown_by(100, limits=shares).outcome, grown_by(101, limits=shares).outcome) == (
        "pass",
        "regressed",
    )


def test_values_round_zero_need_another_scale() -> None:
    """What has no logarithm is named with the way out, and is no pass."""
    own = thresholds({"mutex_wait_p95_us": (0.10, 0.03)})
    below = replace(own.metrics["mutex_wait_p95_us"], terms=publish_thresholds().metrics[METRIC].terms[::-1])
    flipped = tuple(replace(term, sign=-term.sign) for term in below.terms)
    signed = replace(own, metrics={below.name: replace(below, terms=flipped, clocks=())})
    item = compared(verdict(run(looks=FIRST, entry=comparison(looks=FIRST)), signed), below.name)
    assert item.outcome == "undecided"
    assert "has no logarithm; give the metric 'scale: identity'" in item.reason
    identity = replace(signed, metrics={below.name: replace(signed.metrics[below.name], scale="identity")})
    rule = replace(own.compare[0], tolerance=500.0, min_effect=100.0)
    found = verdict(run(entry=comparison(looks=LOOKS)), replace(identity, compare=(rule,)))
    assert compared(found, below.name).outcome == "pass"
    assert not compared(found, below.name).relative


def test_the_order_of_the_journal_does_not_change_a_byte() -> None:
    """Boards finish in any order."""
    entries = run(effect=0.1)
    first = json.dumps(verdict(entries).to_json(), sort_keys=True)
    random.Random(1).shuffle(entries)
    assert json.dumps(verdict(entries).to_json(), sort_keys=True) == first


def test_two_comparisons_of_one_image_are_refused() -> None:
    """Nobody could say which is meant."""
    with pytest.raises(ConfigError, match="2 comparisons of virtual-esp32 on board virtual-1"):
        verdict([comparison(), comparison(role="reference")])


def test_a_case_that_the_thresholds_do_not_know_is_refused() -> None:
    """Judged by other thresholds than the run's, the sentence names the way out."""
    with pytest.raises(ConfigError, match=r"has no parameter 'colour'"):
        verdict([comparison(cases=("publish/colour=red",))])
    with pytest.raises(ConfigError, match=r"by the thresholds of its day"):
        verdict([comparison(cases=("publish/qos=1",))])

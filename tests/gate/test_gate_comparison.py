# SPDX-License-Identifier: Apache-2.0
"""Comparisons with the base: what decides, what a person reads, and what the run comes to."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import pytest

from hil.base.errors import ConfigError, ExitCode
from hil.gate import judge
from hil.gate.judging import open_cases
from hil.model import (
    BaseCause,
    ComparedSeries,
    Comparison,
    Entry,
    Fault,
    NoBase,
    NotRun,
    RunRecord,
    Scalar,
    Verdict,
)
from hil.thresholds.limits import Advice, Suppression, Where
from hil.thresholds.types import Thresholds
from tests.gate import compare_records as rig
from tests.gate.compare_records import (
    BOARDS,
    CASE_ID,
    FAILED,
    LOOKS,
    METRIC,
    comparison,
    figure,
    run,
    thresholds,
)
from tests.judging import told
from tests.make_records import RUN_ID, publish_record, publish_thresholds

FIRST, LAST = LOOKS[:1], LOOKS[-1:]
UNSURE: dict[str, Any] = {"effect": 0.12, "deviation": 0.35}  # between pass and regressed, in much noise
P95, TAIL5 = "publish_latency_p95_us", "publish_latency_tail5_us"
RULE = (0.10, 0.03)


def verdict(entries: Sequence[Entry], own: Thresholds | None = None) -> Verdict:
    return judge(entries, {"publish": own or thresholds()})


def compared(found: Verdict, metric: str = METRIC) -> ComparedSeries:
    return next(item for item in found.compared if item.metric == metric)


def unchanged() -> list[Entry]:
    return run(entry=comparison(looks=FIRST))


def directed(direction: Literal["lower", "higher"], rule: tuple[float, float] = RULE) -> Thresholds:
    own = thresholds({METRIC: rule})
    return replace(own, metrics={METRIC: replace(own.metrics[METRIC], direction=direction)})


@pytest.mark.parametrize(
    ("boots", "looks", "own", "outcome", "exit_code"),
    [
        ({}, FIRST, directed("lower"), "pass", 0),
        ({"effect": 0.2}, LOOKS, directed("lower"), "regressed", 1),
        ({"effect": -0.2}, LAST, directed("lower"), "improved", 0),
        ({"effect": -0.2}, LOOKS, directed("higher"), "regressed", 1),
        ({"effect": 0.12}, LAST, directed("lower", (0.5, 0.03)), "regressed", 1),
        ({"effect": 0.05, "deviation": 0.001}, LOOKS, directed("lower", (0.10, 0.08)), "pass", 0),
        (UNSURE, LOOKS, directed("lower"), "undecided", 4),
    ],
    ids=[
        "unchanged",
        "slower",
        "faster is told and never blocks",
        "a rate that falls",
        "a proven regression within the tolerance: both tests hold, the regression goes first",
        "below the smallest effect, however sure",
        "neither, to the end",
    ],
)
def test_what_decides(
    boots: dict[str, Any], looks: rig.Looks, own: Thresholds, outcome: str, exit_code: int
) -> None:
    """A comparison's outcome by its tolerance, its smallest effect and its direction; the run's follows."""
    found = verdict(run(**boots, entry=comparison(looks=looks)), own)
    assert (compared(found).outcome, found.exit_code) == (outcome, exit_code)
    assert found.outcome == ("pass" if exit_code == 0 else outcome)


def test_a_pass_says_what_it_rests_on_and_what_it_excluded() -> None:
    """One comparison for all boards of a target. The bound of its own test lies within the tolerance, signed
    as a change for the worse; a pass has no interval."""
    found = verdict(unchanged())
    item = compared(found)
    assert item.series_id == f"virtual/virtual-esp32/{CASE_ID}/{METRIC}"
    assert (item.look, item.candidate_boots, item.other_boots, item.boards) == (1, 8, 8, BOARDS)
    assert found.sentence.endswith(" in 16 boots.")
    assert figure(item.change) < (bound := figure(item.pass_bound)) < figure(item.tolerance)
    assert f" 10 % (at most {bound * 100:+.1f} %)" in item.sentence
    assert "[" not in item.sentence
    higher = compared(verdict(unchanged(), directed("higher")))
    assert -0.10 < (bound := figure(higher.pass_bound)) < figure(higher.change)
    assert f"(at least {bound * 100:+.1f} %)" in higher.sentence


def test_a_regression_says_what_it_rests_on() -> None:
    """The run's sentence names figure, target, change; the comparison's its test and its boots."""
    found = verdict(run(effect=0.2))
    item = compared(found)
    assert "p50 on virtual-esp32 grew by 2" in found.sentence
    assert 0 < figure(item.low) < figure(item.change) < figure(item.high)
    assert item.change == pytest.approx(0.22, abs=0.05)
    assert (item.look, item.pass_bound, item.early) == (1, None, True)
    for part in (
        "(more than 3 %)",
        f"z {item.z:.2f} against a boundary of {item.boundary:.2f} at look 1 of 5",
        "8 + 8 boots ",
        "on 4 boards, timed by esp_timer",
        "decided early",
        f"replay: hil gate out/{RUN_ID}",
        *item.checks,
    ):
        assert part in item.sentence
    within = compared(verdict(run(effect=0.12, entry=comparison(looks=LAST)), directed("lower", (0.5, 0.03))))
    assert "(more than 3 %, " in within.sentence
    assert " 50 %)" in within.sentence


def test_what_falls_is_said_to_fall() -> None:
    """An improvement is told beside the pass; the change of a rate that falls is negative."""
    better = verdict(run(effect=-0.2, entry=comparison(looks=LAST)))
    assert "p50 on virtual-esp32)" in better.sentence
    assert "fell by" in compared(better).sentence
    worse = verdict(run(effect=-0.2), directed("higher"))
    item = compared(worse)
    assert figure(item.low) < figure(item.change) < figure(item.high) < 0
    assert "fell by" in worse.sentence


def test_a_night_beside_the_reference_never_blocks() -> None:
    """Main may have left the frozen reference behind on purpose: what is worse than it is advice."""
    base = run(effect=0.2, entry=comparison(looks=((4, 4),)))
    night: list[Entry] = [
        replace(entry, role="reference")
        if isinstance(entry, RunRecord | Comparison) and entry.role == "base"
        else entry
        for entry in base
    ]
    assert (compared(verdict(base)).blocking, compared(verdict(base)).outcome) == (True, "regressed")
    told = verdict(night)
    assert (compared(told).blocking, compared(told).role, told.exit_code) == (False, "reference", 0)
    assert "blocks nothing" in compared(told).reason


def test_boots_that_are_slow_now_and_then_are_named() -> None:
    """A sixth of the boots twice as slow: neither a pass nor proven; the sentence says where to look."""

    def slow(one: RunRecord) -> RunRecord:
        first = one.role == "candidate" and one.boot_index == 0
        return rig.boot(one.board, "candidate", 0, offset=0.7) if first else one

    item = compared(verdict(rig.edited(run(entry=comparison(looks=LOOKS[:3])), slow)))
    assert item.outcome == "undecided"
    assert "4 of its 24 boots " in item.reason
    assert " 0 of the other's 24" in item.reason


def test_nothing_is_decided_before_six_boots_of_each() -> None:
    """However large the difference: fewer boots say too little of how much they differ."""
    early = compared(verdict(run(looks=((1, 1),), entry=comparison())))
    assert early.outcome == "undecided"
    assert "fewer than 6 boots" in early.reason


def test_what_is_undecided_says_why_and_what_may_help() -> None:
    """At the last look the plan is the reason; a run that had no time for all looks asks for more time. It
    fails in CI where one of its bench is undecided and the policy says so."""
    found = verdict(run(**UNSURE, entry=comparison(boot_s=60.0)))
    item = compared(found)
    why = r"some (\d+) \+ \1 boots .* (\d+) min more.* all 5 looks \(12 \+ 12 boots a board\)$"
    match = re.search(why, item.reason)
    assert match
    assert 12 < int(match[1]) < 100
    assert int(match[2]) == 2 * (int(match[1]) - 12)
    assert item.sentence in told(found)
    assert found.sentence.startswith("Undecided: 1 comparison (")
    assert "--budget" in found.sentence
    own = thresholds()
    strict = replace(own, policy=replace(own.policy, on_undecided="fail"))
    assert [verdict(each, strict).on_undecided for each in (run(**UNSURE), unchanged())] == [
        "fail",
        "neutral",
    ]


BUDGET = "the time budget of 15 min ended after look 2 of 6"


@pytest.mark.parametrize(
    ("looks", "ends", "why"),
    [
        (FIRST, [Fault(RUN_ID, "rig", 130, "stopped.")], "stopped after look 1 of 5"),
        (FIRST, [Fault(RUN_ID, "rig", 3, "the disk is full.")], "failed after look 1 of 5"),
        (FIRST, [], "ended after look 1 of 5"),
        (LOOKS[:2], [NotRun(RUN_ID, b, CASE_ID, BUDGET, "cut-off") for b in BOARDS], f", and {BUDGET}"),
    ],
    ids=["stopped", "failed", "killed", "budget, as the boot loop wrote it down"],
)
def test_a_run_that_ended_early_says_why(looks: rig.Looks, ends: list[Entry], why: str) -> None:
    """An undecided comparison is never without a reason."""
    item = compared(verdict([*run(**UNSURE, looks=looks, entry=comparison()), *ends]))
    assert (item.outcome, item.reason.endswith(why)) == ("undecided", True)


def test_a_figure_that_only_a_comparison_judges_has_no_interval_of_its_own() -> None:
    """What decides is the interval of the change; with a limit beside it the figure has one again."""
    (alone, *_), (limited, *_) = (
        verdict(run(looks=FIRST), own).series for own in (thresholds(), thresholds({P95: RULE}, limits=True))
    )
    assert (alone.low, alone.high, limited.low is None) == (None, None, False)
    assert "[" not in alone.sentence


def test_a_broken_limit_blocks_whatever_the_comparison_says() -> None:
    """A base that is as slow excuses nothing."""
    own = thresholds({P95: RULE}, limits=True)
    found = verdict(run(session=1.6, entry=comparison(looks=LOOKS[:3])), own)
    assert compared(found, P95).outcome == "pass"
    assert found.exit_code == ExitCode.FIRMWARE
    assert found.sentence.startswith("4 of 4 limits broken")


def test_alpha_is_shared_by_comparisons_and_limits() -> None:
    """With limits beside it a comparison has half of alpha, with another comparison half of that."""
    entries = run(looks=FIRST)
    alone = compared(verdict(entries))
    shared = compared(verdict(entries, thresholds({METRIC: RULE, P95: RULE}, limits=True)))
    assert figure(shared.boundary) > figure(alone.boundary)


def test_identical_images_pass_with_no_boot() -> None:
    """Nothing is measured, and that is no failure: it cannot have changed."""
    same = comparison(identical=True, other_sha256=rig.CANDIDATE, looks=())
    found = verdict([same, *(NotRun(RUN_ID, b, CASE_ID, "the same image", "identical") for b in BOARDS)])
    assert (found.outcome, found.exit_code, compared(found).outcome) == ("pass", 0, "pass")
    assert "virtual-esp32: both images " in found.sentence
    assert (compared(found).candidate_boots, compared(found).other_boots) == (0, 0)


def test_another_ruler_is_undecided() -> None:
    """What was measured by other sources of agent and bench is not compared, and that is no pass."""
    entries = rig.edited(
        run(looks=FIRST, effect=0.5),
        lambda one: replace(one, ruler_hash="99" * 32) if one.role == "base" else one,
    )
    found = verdict(entries)
    assert (found.outcome, compared(found).outcome) == ("undecided", "undecided")
    assert "another ruler" in compared(found).reason


@pytest.mark.parametrize(
    ("effect", "outcome", "early", "late"),
    [
        (0.3, "regressed", {"sched": "fifo"}, {"sched": "other"}),
        (0.0, "pass", {"channel": 6}, {"channel": 11}),
    ],
)
def test_boots_after_a_decision_do_not_take_it_back(
    effect: float, outcome: str, early: dict[str, Any], late: dict[str, Any]
) -> None:
    """A board that roams, or a boot without real-time priority, measured for another metric later on, leaves
    what was decided before as it was."""

    def on_device(one: RunRecord) -> RunRecord:
        return replace(
            one, environment={**one.environment, "device": late if one.boot_index >= 16 else early}
        )

    entries = rig.edited(run(entry=comparison(looks=((8, 8), (12, 12))), effect=effect), on_device)
    before = verdict(rig.without(entries, lambda one: one.boot_index >= 16))
    (decided,) = before.compared
    assert (decided.outcome, decided.blocking, decided.look) == (outcome, True, 1)
    found = verdict(entries)
    assert (found.exit_code, found.compared) == (before.exit_code, (decided,))


def test_a_base_without_the_case_is_no_baseline() -> None:
    """The boot loop's reason is told, each only once."""
    own = thresholds({METRIC: RULE, P95: RULE})
    entries = rig.without(run(looks=FIRST), lambda one: one.role == "base")
    why = "not compared: the base could not measure it: unknown bench 'publish'."
    found = verdict([*entries, *(NotRun(RUN_ID, b, CASE_ID, why, "not-compared") for b in BOARDS)], own)
    assert (found.outcome, found.exit_code) == ("no-baseline", 0)
    assert len([line for line in found.warnings if "unknown bench 'publish'" in line]) == 1
    assert "the base has it" in compared(verdict(entries, own)).reason


def test_a_run_that_was_killed_before_the_bases_turn_is_undecided() -> None:
    """Its base may well have the case: that the run is not green says that it was never asked."""
    killed = rig.without(run(entry=comparison()), lambda one: one.role == "base" or one.boot_index > 0)
    found = judge(killed, {"publish": thresholds()}, {(board, CASE_ID): 1 for board in BOARDS})
    assert (found.outcome, found.exit_code) == ("undecided", 4)
    assert "base was measured" in compared(found).reason


def test_an_image_that_the_base_lacks_is_told() -> None:
    """Its boards have no comparison at all: a warning, and the run is no plain pass."""
    why = "not compared: the base has no image for esp32+tick100"
    found = verdict([*unchanged(), NotRun(RUN_ID, "bench-9", "jitter/x", why, "not-compared")])
    assert (found.outcome, found.exit_code) == ("no-baseline", 0)
    assert [line[:9] for line in found.warnings if "esp32+tick100." in line] == ["bench-9: "]


@pytest.mark.parametrize(
    ("cause", "latency_ms", "outcome", "exit_code", "first"),
    [
        ("sources", 7, "no-baseline", 0, "Limits only, as the base "),
        ("unknown", 7, "undecided", 4, "Undecided: nothing was compared"),
        ("identical", 7, "pass", 0, "Limits only, as the firmware "),
        ("identical", 60, "regressed", 1, "2 of 3 limits broken"),
    ],
)
def test_a_base_that_is_missing(
    cause: BaseCause, latency_ms: float, outcome: str, exit_code: int, first: str
) -> None:
    """A commit that does not build leaves the limits, and says so; a base lost otherwise decides nothing. In
    the same bytes nothing can have changed, so limits that are kept are a pass by them alone."""
    own = publish_thresholds()
    strict = replace(own, policy=replace(own.policy, on_undecided="fail"))
    entries: list[Entry] = [NoBase(RUN_ID, cause, "x.c:1: error"), publish_record(latency_ms=latency_ms)]
    found = verdict(entries, strict)
    assert (found.outcome, found.exit_code, found.no_base) == (outcome, exit_code, cause)
    assert found.on_undecided == ("fail" if outcome == "undecided" else "neutral")
    assert found.sentence.startswith(first)
    assert found.sentence.endswith("3 limits kept.") == (outcome != "regressed")
    assert any("x.c:1: error." in line for line in found.warnings) == (cause != "identical")


def test_a_comparison_of_which_nothing_was_measured_is_no_pass() -> None:
    """Also where nothing says why, and where another case of it was measured: exit code 4."""
    two = comparison(cases=(CASE_ID, publish_record(overrides={"qos": 2}).case_id))
    for found in (verdict([comparison()]), verdict(run(looks=FIRST, entry=two))):
        assert (found.outcome, found.exit_code) == ("incomplete", ExitCode.UNDECIDED)


def test_a_board_that_alone_is_worse_is_not_passed_over() -> None:
    """One board of four is 12 % slower, and all of them less than the smallest effect: no pass either."""
    own = thresholds({METRIC: (0.10, 0.05)})
    item = compared(found := verdict(run(effects={"virtual-1": 0.105}, deviation=0.002), own))
    assert item.outcome == "undecided"
    assert "virtual-1 alone " in item.reason
    assert "(+1" in item.reason
    assert item.sentence in told(found)
    assert compared(verdict(run(effects={"virtual-1": -0.4}))).outcome in ("pass", "improved")


def test_boards_that_are_slower_by_different_amounts_have_regressed() -> None:
    """+13 % on one board and +50 % on the other is no contradiction: both are slower."""
    slower = {"virtual-1": 0.12, "virtual-2": 0.4}
    two = BOARDS[:2]
    found = verdict(run(effects=slower, boards=two, entry=comparison(boards=two)))
    assert compared(found).outcome == "regressed"


def test_a_pass_of_few_boots_says_what_share_of_slow_boots_it_excludes() -> None:
    """Eight boots without a slow one exclude 31 % and more of them; 29 would exclude a tenth."""
    few, many = compared(verdict(unchanged())), compared(verdict(run(entry=comparison())))
    assert "its 8 boots exclude (95 %) " in few.sentence
    assert " 31% " in few.sentence
    assert (many.outcome, many.look, "boots exclude" in many.sentence) == ("pass", 4, False)


def test_a_few_messages_that_became_much_slower_regress() -> None:
    """2 % of the messages twenty times slower leave p50 and p95 as they were; tail5 has regressed."""

    def delayed(one: RunRecord) -> RunRecord:
        if one.role == "base":
            return one
        planned, done = one.columns["planned_us"], list(one.columns["done_us"])
        for row in (one.warmup_rows + 20, one.warmup_rows + 70):
            done[row] = planned[row] + 20 * (done[row] - planned[row])
        return replace(one, columns={**one.columns, "done_us": tuple(done)})

    own = thresholds({METRIC: RULE, P95: (0.3, 0.1), TAIL5: (0.4, 0.15)})
    found = verdict(rig.edited(run(rows=100, entry=comparison(looks=LOOKS[:3])), delayed), own)
    assert {item.metric: item.outcome for item in found.compared} == {
        METRIC: "pass", P95: "pass", TAIL5: "regressed"
    }  # fmt: skip


def test_without_a_sign_of_a_change_a_pass_says_what_it_would_have_seen() -> None:
    """Boots too noisy to exclude 10 %, at the last look: 20 % would have been seen, so it passes."""
    noisy: dict[str, Any] = {"effect": 0.06, "deviation": 0.25}
    item = compared(verdict(run(**noisy)))
    assert item.outcome == "pass"
    assert figure(item.tolerance) < figure(item.smallest_effect) < 2 * figure(item.tolerance)
    assert figure(item.pass_bound) > figure(item.tolerance)
    assert "no sign of a change" in item.sentence
    own = thresholds()
    strict = replace(own, policy=replace(own.policy, blind_below=1.0))
    assert compared(verdict(run(**noisy), strict)).outcome == "undecided"


def test_advice_is_judged_by_false_discoveries() -> None:
    """Without a rule a change is told and blocks nothing, nor with one that a rule under advice: outranks;
    chance alone is not told."""
    own = replace(thresholds(only=False), compare=())
    clean = verdict(unchanged(), own)
    worse = verdict(run(effect=0.3, entry=comparison(looks=FIRST)), own)
    assert {item.outcome for item in clean.compared if item.metric.startswith("publish_latency")} == {"pass"}
    item = compared(worse)
    assert (item.outcome, item.blocking, worse.exit_code) == ("regressed", False, 0)
    assert item.sentence in told(worse)
    assert "'compare:'" in item.reason
    advice = Advice(Where({"metric": METRIC}), "it is new", "thresholds/publish.yaml:1")
    found = verdict(run(effect=0.4), replace(thresholds(), advice=(advice,)))
    assert (found.exit_code, compared(found).outcome) == (0, "regressed")
    assert compared(found).reason.startswith("advice: it is new")


def test_a_suppressed_board_does_not_block_and_is_told() -> None:
    """One board's suppression leaves it out; that of all makes the comparison advice."""
    where = Where({"metric": METRIC, "board": "virtual-3"})
    day = datetime.date(2026, 12, 1)
    known = Suppression(where, "its link is bad", "#12", day, "thresholds/publish.yaml:1")
    own = replace(thresholds(), suppressions=(known,))
    item = compared(verdict(run(effects={"virtual-3": 0.4}), own))
    assert item.outcome == "pass"
    assert "2026-12-01, #12: its link is bad" in item.sentence
    assert [one.board for one in item.effects if one.note] == ["virtual-3"]
    of_all = replace(own, suppressions=(replace(known, where=Where({"metric": METRIC})),))
    found = verdict(run(effect=0.4), of_all)
    assert (found.exit_code, compared(found).blocking) == (0, False)


def test_values_round_zero_need_another_scale() -> None:
    """What has no logarithm is named with the way out, and is no pass."""
    own = thresholds({"mutex_wait_p95_us": RULE})
    below = replace(own.metrics["mutex_wait_p95_us"], terms=publish_thresholds().metrics[METRIC].terms[::-1])
    flipped = tuple(replace(term, sign=-term.sign) for term in below.terms)
    signed = replace(own, metrics={below.name: replace(below, terms=flipped, clocks=())})
    item = compared(verdict(unchanged(), signed), below.name)
    assert item.outcome == "undecided"
    assert "'scale: identity'" in item.reason
    identity = replace(signed, metrics={below.name: replace(signed.metrics[below.name], scale="identity")})
    rule = replace(own.compare[0], tolerance=500.0, min_effect=100.0)
    item = compared(verdict(run(), replace(identity, compare=(rule,))), below.name)
    assert (item.outcome, item.relative) == ("pass", False)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([comparison(), comparison(role="reference")], "2 comparisons of virtual-esp32 on board virtual-1"),
        ([comparison(cases=("publish/colour=red",))], "has no parameter 'colour'"),
        ([comparison(cases=("publish/qos=1",))], "by the thresholds in its own folder"),
    ],
)
def test_what_cannot_be_compared_is_refused(entries: list[Entry], words: str) -> None:
    """Two comparisons of an image, and a case that these thresholds do not know: the way out is named."""
    with pytest.raises(ConfigError, match=words):
        verdict(entries)


Case = Mapping[str, Scalar]
CASES: tuple[Case, ...] = ({}, {"qos": 2}, {"transport": "tls"})
EFFECTS = (0.0, 0.07, 0.2)
METRICS = {METRIC: (0.10, 0.03), "publish_latency_p95_us": (0.10, 0.03), FAILED: (0.02, 0.005)}
LIMITS = {"publish": thresholds(METRICS)}
IDS = {publish_thresholds().case(case).case_id: number for number, case in enumerate(CASES)}


def look(
    number: int, looks: Sequence[tuple[int, int]], cases: Sequence[int], deviation: float
) -> list[RunRecord]:
    """Return the boots of one look, of these cases; the same whichever others are measured."""
    before = sum(looks[number - 2]) if number > 1 else 0
    roles = rig.order(looks)[number - 1][1]
    return [
        rig.boot(
            board,
            role,
            before + place,
            offset=EFFECTS[case] * (role == "candidate")
            + random.Random(f"{board}/{before + place}").gauss(0, deviation),
            overrides=CASES[case],
            rows=40,
        )
        for board in BOARDS
        for place, role in enumerate(roles)
        for case in cases
    ]


def decided(entries: Sequence[Entry]) -> dict[str, ComparedSeries]:
    return {item.series_id: item for item in judge(entries, LIMITS).compared}


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [0.03, 0.12])
def test_what_was_decided_at_a_look_stays_decided(deviation: float) -> None:
    """What is final after a look stands in the last verdict as it stood then, whatever was measured since."""
    looks, entry = LOOKS, comparison(cases=tuple(IDS))
    entries: list[Entry] = [entry]
    everything: list[Entry] = [entry]
    open_ids = frozenset(IDS)
    frozen: dict[str, ComparedSeries] = {}
    measured = []
    for number in range(1, len(looks) + 1):
        everything += look(number, looks, range(len(CASES)), deviation)
        if open_ids:
            entries += look(number, looks, sorted(IDS[case_id] for case_id in open_ids), deviation)
            open_ids = open_cases(entry, entries, LIMITS)
            measured.append(open_ids)
        now = decided(entries)
        frozen |= {
            series_id: item
            for series_id, item in now.items()
            if series_id not in frozen and item.outcome in ("pass", "regressed", "improved")
        }
        undecided = {item.case_id for item in now.values() if item.outcome == "undecided"}
        assert open_ids == (undecided if number < len(looks) else frozenset())
    final, complete = decided(entries), decided(everything)
    assert {series_id: final[series_id] for series_id in frozen} == frozen
    assert {series_id: complete[series_id] for series_id in frozen} == frozen
    assert frozen
    assert any(len(open_ids) < len(IDS) for open_ids in measured)


def test_what_is_open_before_anything_is_measured() -> None:
    """All that may block: not a case of advice, which is measured in the first look alone, nor a case of
    identical images, which need no boot. The comparison itself need not be among the entries."""
    entry, same = comparison(), comparison(identical=True, other_sha256=rig.CANDIDATE, looks=())
    assert open_cases(entry, [], {"publish": thresholds()}) == {rig.CASE_ID}
    assert open_cases(entry, [entry], {"publish": thresholds({})}) == frozenset()
    assert open_cases(same, [same], {"publish": thresholds()}) == frozenset()


def test_a_lost_board_does_not_keep_a_case_open() -> None:
    """It counts with what it has; the others decide, and the journal says the same."""
    entry = comparison()
    own = {"publish": thresholds()}
    first, second = rig.boots(LOOKS[:2], effect=0.2, deviation=0.06)
    lost = [record for record in second if record.board != "virtual-2"]
    fault = Fault(RUN_ID, "rig", 3, "the port is gone.", "virtual-2")
    entries = [entry, *first, fault, *lost]
    assert open_cases(entry, entries, own) == frozenset()
    found = judge(entries, own).compared[0]
    assert (found.outcome, found.look) == ("regressed", 2)
    assert open_cases(entry, [entry, *first], own) == {rig.CASE_ID}


@pytest.mark.parametrize("role", ["candidate", "base"])
def test_a_board_without_one_side_is_left_out(role: str) -> None:
    """The others decide; the sentence says of which role no boot was measured."""
    entries = rig.without(rig.run(effect=0.2), lambda one: (one.board, one.role) == ("virtual-2", role))
    item = judge(entries, {"publish": thresholds()}).compared[0]
    assert item.outcome == "regressed"
    assert f": no boot of the {role} " in item.sentence.partition("virtual-2 left out")[2]

# SPDX-License-Identifier: Apache-2.0
"""The gate: which samples break a limit, who may block, and what the run's exit code is."""

from __future__ import annotations

import datetime
import itertools
import json
import math
import random
from dataclasses import replace

import pytest

from hil.base.errors import ConfigError, ExitCode
from hil.gate import judge
from hil.model import Entry, Fault, NotRun, RunRecord, SeriesVerdict, Verdict
from hil.thresholds import among_legs
from hil.thresholds.limits import Advice, Limit, Since, Suppression, Where
from hil.thresholds.types import Policy, Thresholds
from tests.judging import told
from tests.make_records import (
    RUN_ID,
    publish_record,
    publish_thresholds,
    quick_run,
    void_record,
    void_thresholds,
)


def verdict(*entries: Entry, thresholds: Thresholds | None = None) -> Verdict:
    return judge(entries, {"publish": thresholds or publish_thresholds()})


def series(found: Verdict, metric: str = "publish_latency_p95_us") -> SeriesVerdict:
    return next(item for item in found.series if item.metric == metric)


def fault(exit_code: ExitCode, owner: str = "rig") -> Fault:
    return Fault(RUN_ID, owner, int(exit_code), f"a fault of the {owner}.", "virtual-1")


def test_a_healthy_quick_run_passes() -> None:
    """Every blocking metric of four boards has a limit and keeps it."""
    found = verdict(*quick_run())
    assert (found.outcome, found.exit_code) == ("pass", 0)
    assert found.sentence == "All 76 limits kept."
    assert found.warnings == ()


def test_a_broken_limit_blocks_and_says_by_how_much() -> None:
    """The sentence holds metric, case, board, kind, value, interval, limit, excess, samples and source."""
    record = publish_record(board="virtual-2", overrides={"transport": "tls"}, latency_ms=31)
    found = verdict(record)
    assert (found.outcome, found.exit_code) == ("regressed", ExitCode.FIRMWARE)
    broken = series(found)
    assert broken.outcome == "regressed"
    assert broken.cause == "limit"
    assert broken.sentence.startswith(
        "publish_latency_p95_us of publish/transport=tls on virtual-2 (virtual): 36."
    )
    for part in (" breaks its limit of 25 ms by 1", "(+4", "100 samples, 1 boot", "thresholds/publish.yaml:"):
        assert part in broken.sentence
    assert broken.low is not None
    assert broken.limit is not None
    assert broken.low > broken.limit == 25_000


def test_a_value_beyond_the_limit_blocks_not_while_its_interval_is_not() -> None:
    """Blocking needs proof, and so does passing: the run is undecided, and a warning says by what."""
    found = verdict(publish_record(latency_ms=21.4, overrides={"count": 100}))
    near = series(found)
    assert near.value is not None
    assert near.low is not None
    assert near.value > 25_000 > near.low
    assert (near.outcome, near.note, found.exit_code) == ("pass", "marginal", 4)
    assert found.outcome == "undecided"
    assert "lies beyond, but not provably, its limit of 25 ms" in near.sentence
    assert near.sentence in told(found)


def test_a_figure_below_zero_is_a_fault_of_the_bench() -> None:
    """A latency of -598 µs keeps every limit, and no firmware can measure it: the run fails, and says why."""
    record = publish_record()
    early = tuple(planned - 598 for planned in record.columns["planned_us"])
    found = verdict(replace(record, columns={**record.columns, "done_us": early}))
    assert (found.exit_code, found.outcome) == (ExitCode.FIRMWARE, "regressed")
    assert series(found).outcome == "undecided"
    first = found.faults[0]
    assert (first.owner, first.board, first.case_id) == ("firmware", record.board, record.case_id)
    assert "the figure cannot be below zero, so the bench is wrong" in first.sentence
    assert "-598 µs" in first.sentence or "-0.6 ms" in first.sentence


def test_the_smallest_excess_that_would_have_been_seen_is_seen() -> None:
    """The same samples, stretched until they exceed the limit by that much and a bit, break it."""
    record = publish_record(latency_ms=10)
    kept = series(verdict(record))
    assert kept.smallest_excess is not None
    assert kept.value is not None
    assert kept.limit is not None

    def outcome_of(value: float) -> str:
        factor = value / kept.value  # type: ignore[operator]
        planned = record.columns["planned_us"]
        late = [done - start for done, start in zip(record.columns["done_us"], planned, strict=True)]
        done = tuple(start + round(late_us * factor) for start, late_us in zip(planned, late, strict=True))
        return series(verdict(replace(record, columns={**record.columns, "done_us": done}))).outcome

    assert outcome_of(kept.limit + kept.smallest_excess * 1.02) == "regressed"
    assert outcome_of(kept.limit + kept.smallest_excess * 0.98) == "pass"


def test_the_share_of_failures_that_would_have_been_seen_is_seen() -> None:
    """One failure fewer than the smallest excess names is not proof; that many are."""
    kept = series(verdict(publish_record()), "publish_failed_ratio")
    assert kept.smallest_excess is not None
    assert kept.limit is not None
    failures = round((kept.limit + kept.smallest_excess) * 100)
    assert series(verdict(publish_record(failed=failures)), "publish_failed_ratio").outcome == "regressed"
    assert series(verdict(publish_record(failed=failures - 1)), "publish_failed_ratio").outcome == "pass"


WEAK = {"device": {"sched": "fifo", "rssi_dbm": -86}}


def test_a_limit_broken_with_hardly_a_link_is_undecided() -> None:
    """What a board measures at the edge of its radio is the room's: the sentence says that it broke the limit
    and why that decides nothing. A limit that is kept there is kept."""
    slow = publish_record(overrides={"transport": "tls"}, latency_ms=31, environment=WEAK)
    found = verdict(slow)
    assert (found.outcome, found.exit_code) == ("undecided", ExitCode.UNDECIDED)
    where = "where a board hardly heard its access point (see its antenna and where it stands)"
    assert found.sentence == f"Undecided: 1 limit broken {where}; 2 limits kept."
    assert " breaks its limit of 25 ms by 1" in series(found).sentence
    why = "no verdict, the RSSI was out of its band (-86 dBm in a boot, below -85 dBm)."
    assert series(found).sentence.endswith(why)
    assert series(found).cause == "hardly-heard"
    assert series(verdict(publish_record(environment=WEAK))).outcome == "pass"
    loud = replace(slow, environment={**slow.environment, "device": {"sched": "fifo", "rssi_dbm": -85}})
    assert series(verdict(loud)).outcome == "regressed"


def test_a_boot_with_hardly_a_link_excuses_no_other() -> None:
    """Where the boots that heard their access point break the limit by themselves, it is broken."""
    weak = publish_record(latency_ms=31, environment=WEAK)
    sound, slow = (publish_record(boot_index=1, latency_ms=ms) for ms in (7, 31))
    assert series(verdict(weak, sound)).outcome == "undecided"
    assert series(verdict(weak, slow)).outcome == "regressed"


def test_timeouts_break_the_limits_as_at_least_the_timeout() -> None:
    """Timeouts are never dropped: p95 reads "≥ 5 s", and the share of failures blocks by itself."""
    found = verdict(publish_record(failed=80))
    assert (
        "≥ 5.00 s [5.00, no upper bound] breaks its limit of 25 ms by at least 4.9" in series(found).sentence
    )
    assert series(found).at_least
    assert series(found, "publish_failed_ratio").outcome == "regressed"


def test_one_lost_message_breaks_the_limit_of_none() -> None:
    """The lab air loses nothing: one failure in a whole quick run is a fact, whatever alpha."""
    run = [record for record in quick_run() if record.parameters["qos"] != 0]
    one = publish_record(board="virtual-3", overrides={"qos": 0}, failed=1)
    found = verdict(*run, one)
    assert found.exit_code == ExitCode.FIRMWARE
    assert [item.metric for item in found.series if item.blocking and item.outcome == "regressed"] == [
        "publish_failed_ratio"
    ]


def stalled(record: RunRecord, first: int, messages: int) -> RunRecord:
    """Hold up so many consecutive messages until shortly after the last of them was planned."""
    done = list(record.columns["done_us"])
    end_us = record.columns["planned_us"][first + messages]
    for n in range(messages):
        done[first + n] = end_us + 2000 * n
    return replace(record, columns={**record.columns, "done_us": tuple(done)})


def test_one_stall_does_not_block_and_is_not_hidden() -> None:
    """Eighteen of 100 messages late in a row are one episode: marginal, counted in the run's sentence."""
    found = verdict(stalled(publish_record(), first=50, messages=18))
    assert (found.outcome, found.exit_code) == ("undecided", ExitCode.UNDECIDED)
    assert series(found).note == series(found, "publish_latency_tail5_us").note == "marginal"
    way = "more samples may decide them: hil run --boots 4"
    assert found.sentence == f"Undecided: 2 limits exceeded, but not provably ({way}); 1 limit kept."
    assert series(found).sentence in told(found)


def test_as_many_late_messages_in_separate_episodes_block() -> None:
    """Eighteen of 100 messages late one by one are eighteen episodes."""
    record = publish_record()
    late = range(12, 102, 5)
    done = tuple(time + 40_000 * (n in late) for n, time in enumerate(record.columns["done_us"]))
    found = series(verdict(replace(record, columns={**record.columns, "done_us": done})))
    assert (len(late), found.outcome) == (18, "regressed")


def test_what_is_exceeded_but_not_provably_is_told_beside_what_is_broken() -> None:
    """A broken limit does not hide the marginal ones."""
    marginal = stalled(publish_record(board="virtual-2"), first=50, messages=18)
    found = verdict(publish_record(latency_ms=31), marginal)
    assert found.sentence.startswith("1 of 6 limits broken, 2 more exceeded but not provably: ")
    assert found.sentence.endswith(": publish latency p95 on virtual-1 36.9 ms, limit 25 ms.")
    assert "2 of 3 limits exceeded but not provably" in verdict(marginal, fault(ExitCode.RIG)).sentence


def test_a_mean_never_blocks() -> None:
    """A mean moves with one stall, and its interval does not know: it is reported as advice."""
    base = publish_thresholds()
    p95 = base.metrics["publish_latency_p95_us"]
    metric = replace(p95, statistic="mean")
    found = verdict(publish_record(latency_ms=60), thresholds=replace(base, metrics={metric.name: metric}))
    assert (series(found).outcome, found.exit_code) == ("regressed", 0)
    assert "advice: mean has no interval that one stall cannot move" in series(found).sentence


def test_advice_is_judged_but_never_blocks() -> None:
    """The enqueue case's latency is advice by the thresholds file; a person still reads it."""
    overrides = {"api": "enqueue", "interval_us": 100_000, "count": 50}
    found = verdict(publish_record(overrides=overrides, latency_ms=4000))
    late = series(found)
    assert (late.outcome, late.blocking, found.exit_code) == ("regressed", False, 0)
    assert "advice: the outbox is looked into once a second" in late.sentence
    assert late.sentence in told(found)


def test_without_real_time_priority_times_are_advice() -> None:
    """A virtual board scheduled like any process says nothing of timing; losses still block."""
    found = verdict(publish_record(latency_ms=31, failed=0, environment={"device": {"sched": "other"}}))
    assert series(found).outcome == "regressed"
    assert found.exit_code == ExitCode.PASS
    assert "had no real-time priority (sched=other)" in series(found).sentence
    assert "only advice, as the virtual board had no real-time priority (virtual-1)" in found.warnings[0]
    assert "real-time" not in "".join(verdict(publish_record(latency_ms=31)).warnings)
    lossy = verdict(publish_record(failed=40, environment={"device": {"sched": "other"}}))
    assert lossy.exit_code == ExitCode.FIRMWARE


def test_an_emulated_chips_times_are_advice_and_what_is_repeatable_there_blocks() -> None:
    """Its clock is of no chip: a latency beyond its limit fails nothing, a loss does."""
    base = publish_thresholds()
    limits = tuple(
        replace(one, where=Where({**one.where.conditions, "kind": "emulated"}))
        for one in base.limits
        if one.where.conditions.get("kind") == "virtual"
    )
    any_kind = replace(base, limits=limits)

    def judged(record: RunRecord) -> Verdict:
        return verdict(replace(record, kind="emulated", target="emulated-esp32c3"), thresholds=any_kind)

    found = judged(publish_record(latency_ms=60))
    assert (series(found).outcome, series(found).blocking, found.exit_code) == ("regressed", False, 0)
    assert "advice: the time of an emulated chip is no chip's" in series(found).sentence
    assert judged(publish_record(failed=40)).exit_code == ExitCode.FIRMWARE


def test_without_real_time_priority_a_bench_of_the_scheduler_is_advice() -> None:
    """Of a bench that has the rack alone even a failure may be the host's, which promised it no order."""
    alone = replace(publish_thresholds(), alone=True)
    found = verdict(publish_record(failed=40, environment={"device": {"sched": "other"}}), thresholds=alone)
    assert found.exit_code == ExitCode.PASS
    assert "what its scheduler did does not block" in series(found, "publish_failed_ratio").sentence


def test_a_blocking_metric_without_a_limit_warns_and_passes() -> None:
    """Limits of virtual boards say nothing of physical ones; the warning names what to add."""
    found = verdict(replace(publish_record(latency_ms=900), kind="physical", target="esp32", board="bench-1"))
    assert (found.outcome, found.exit_code) == ("no-baseline", 0)
    assert series(found).outcome == "no-baseline"
    assert found.warnings[0].startswith("no limit for publish_failed_ratio 0 % (physical), ")
    assert "hil limit METRIC --max VALUE" in found.warnings[0]


def test_where_nothing_is_promised_a_figure_is_advice() -> None:
    """No limit is counted there, nothing asks for one, and the sentence says why; a narrower limit holds."""
    base = publish_thresholds()
    where = Where({"metric": "publish_latency_p95_us", "kind": "virtual"})
    none = Limit(where, "max", math.inf, "it takes what it takes", None, None, "thresholds/publish.yaml:1")
    own = tuple(
        limit for limit in base.limits if limit.where.conditions["metric"] != where.conditions["metric"]
    )
    found = verdict(publish_record(latency_ms=900), thresholds=replace(base, limits=(none, *own)))
    slow = series(found)
    assert (slow.outcome, slow.blocking, slow.limit) == ("no-baseline", False, None)
    assert slow.reason == "advice: it takes what it takes (thresholds/publish.yaml:1)"
    assert "without a limit" not in found.sentence
    narrow = replace(base, limits=(none, *base.limits))
    assert series(verdict(publish_record(latency_ms=900), thresholds=narrow)).outcome == "regressed"


@pytest.mark.parametrize("air", ["crowded", "lab, changed by hand"])
def test_limits_of_one_air_do_not_judge_another(air: str) -> None:
    """Limits of air lab say nothing of another: a slow run there breaks none, and the sentence says so."""
    found = verdict(publish_record(latency_ms=60, environment={"access_point": {"profile": air}}))
    assert (found.outcome, found.exit_code) == ("no-baseline", 0)
    assert f"no limit on air {air}, for its limits were set on air lab" in series(found).sentence
    assert found.sentence.startswith("Measured, but no limit was judged that can fail a run (")
    assert found.sentence.endswith("), 3 without a limit.")


def test_boots_on_different_airs_are_not_combined() -> None:
    """The air was changed between two boots: what they measured is no one series."""
    other = publish_record(boot_index=1, environment={"access_point": {"profile": "crowded"}})
    assert "its boots differ in air (crowded and lab)" in series(verdict(publish_record(), other)).sentence


def test_advice_alone_is_no_pass() -> None:
    """Where nothing was judged that can fail a run, no number of limits was kept."""
    base = publish_thresholds()
    rule = Advice(Where({}), "all of it", "thresholds/publish.yaml:1")
    found = verdict(publish_record(), thresholds=replace(base, advice=(rule,)))
    assert (found.outcome, found.exit_code) == ("no-baseline", 0)
    assert found.sentence.startswith("Measured, but no limit was judged that can fail a run (")


@pytest.mark.parametrize(("failed", "outcome"), [(0, "pass"), (1, "regressed"), (10, "regressed")])
def test_where_no_failure_is_allowed_few_rows_are_enough(failed: int, outcome: str) -> None:
    """A limit of no failures is a fact from the first row on; percentiles of as few are undecided."""
    strict = replace(publish_thresholds(), policy=Policy(min_samples=40))
    found = verdict(publish_record(rows=10, failed=failed), thresholds=strict)
    assert series(found, "publish_failed_ratio").outcome == outcome
    assert series(found).outcome == "undecided"
    assert found.exit_code == (ExitCode.FIRMWARE if failed else ExitCode.UNDECIDED)


@pytest.mark.parametrize("policy", ["neutral", "fail"])
def test_too_few_samples_are_undecided(policy: str) -> None:
    """The run ends with 4; what CI makes of it, the thresholds file's policy says. The reason is given."""
    strict = replace(publish_thresholds(), policy=Policy(min_samples=40, on_undecided=policy))  # type: ignore[arg-type]
    found = verdict(publish_record(rows=39), thresholds=strict)
    assert (found.outcome, found.exit_code) == ("undecided", ExitCode.UNDECIDED)
    assert found.on_undecided == policy
    assert verdict(publish_record(), thresholds=strict).on_undecided == "neutral"  # nothing is undecided
    assert "too few samples, 39 of at least 40" in series(found).reason


def test_void_samples_are_left_out_and_told() -> None:
    """Twelve of 100 that the host spoilt break no limit; sentence, numbers and a warning tell of them."""
    found = verdict(void_record(100, 12), thresholds=void_thresholds())
    kept = series(found)
    assert (kept.outcome, kept.samples, kept.failed) == ("pass", 88, 0)
    assert (kept.void, kept.host_late_us) == (12, 5300)
    assert "; 12 of 100 samples void: the host's scheduling was late, by up to 5.3 ms" in kept.sentence
    assert series(found, "publish_failed_ratio").outcome == "pass"
    warning = "12 samples were void: the host's scheduling was late, by up to 5.3 ms (virtual-1)."
    assert (found.exit_code, found.warnings) == (0, (warning,))


@pytest.mark.parametrize(
    ("void", "reason"),
    [
        (30, "more than 20 % of the samples are void (thresholds/publish.yaml)"),
        (20, "too few samples, 80 of at least 90 (thresholds/publish.yaml)"),
        (100, "every sample is void"),
    ],
)
def test_too_many_void_samples_are_undecided(void: int, reason: str) -> None:
    """What the host spoilt is neither a pass nor a regression, and the reason says which bound it missed."""
    own = void_thresholds()
    strict = replace(own, policy=replace(own.policy, min_samples=90))
    undecided = series(verdict(void_record(100, void), thresholds=strict))
    assert (undecided.outcome, undecided.reason) == ("undecided", reason)
    assert f"no verdict, {reason}; {void} of 100 samples void" in undecided.sentence


def test_no_failure_is_no_pass_where_too_much_is_void() -> None:
    """Where none is allowed, none among the good rows says nothing of the many that are void."""
    found = verdict(void_record(100, 60), thresholds=void_thresholds())
    assert series(found, "publish_failed_ratio").outcome == "undecided"


def test_a_failure_stands_however_much_is_void() -> None:
    """Where none is allowed, one failed row among the good ones is a fact; the void ones hide nothing."""
    found = verdict(void_record(100, 60, failed=1), thresholds=void_thresholds())
    assert series(found, "publish_failed_ratio").outcome == "regressed"
    assert series(found).outcome == "undecided"
    assert found.exit_code == ExitCode.FIRMWARE


def test_a_sentence_says_by_which_clock() -> None:
    """The metric's own where its file names one, else the bench's; what is no time has none."""
    base = publish_thresholds()
    bare = {name: replace(each, clocks=()) for name, each in base.metrics.items()}
    for own, clock in ((base, "esp_timer"), (replace(base, metrics=bare), "mcycle")):
        found = verdict(replace(publish_record(), clock="mcycle"), thresholds=own)
        assert f"100 samples, 1 boot, timed by {clock};" in series(found).sentence
        assert series(found).clock == clock
        assert series(found, "publish_failed_ratio").clock == ""


def test_boots_of_different_firmware_are_not_combined() -> None:
    """The verdict names what differs, and both values."""
    first = publish_record(boot_index=0)
    second = replace(publish_record(boot_index=1), firmware_sha256="ef" * 32)
    found = series(verdict(first, second))
    assert found.outcome == "undecided"
    assert "its boots differ in firmware_sha256 (abababababab and efefefefefef)" in found.sentence


def test_boots_of_one_firmware_are_combined() -> None:
    """Two boots of 100 samples are one series of 200."""
    found = series(verdict(publish_record(boot_index=0), publish_record(boot_index=1)))
    assert (found.samples, found.boots) == (200, 2)
    assert "200 samples, 2 boots" in found.sentence


def test_only_the_candidate_is_judged() -> None:
    """Samples of the base firmware in the same journal do not enter the candidate's series."""
    base = replace(publish_record(boot_index=1, latency_ms=90), role="base")
    assert verdict(publish_record(), base) == verdict(publish_record())


@pytest.mark.parametrize("entries", [(), (NotRun(RUN_ID, "virtual-1", "publish/x", "left out"),)])
def test_nothing_measured_is_never_a_pass(entries: tuple[Entry, ...]) -> None:
    """An empty journal, or one of left-out cases, is exit code 4."""
    found = verdict(*entries)
    assert (found.outcome, found.exit_code) == ("incomplete", ExitCode.UNDECIDED)
    assert found.sentence.startswith("Nothing was measured")


def test_a_part_never_passes_for_the_whole() -> None:
    """What was planned and has no record is in the verdict, its headline and its exit code."""
    record = publish_record()
    done, never = (record.board, record.case_id), ("virtual-2", record.case_id)

    def judged(planned: dict[tuple[str, str], int]) -> Verdict:
        return judge([record], {"publish": publish_thresholds()}, planned=planned)

    assert judged({done: 1}).exit_code == ExitCode.PASS
    found = judged({done: 1, never: 1})
    assert (found.outcome, found.exit_code) == ("incomplete", ExitCode.UNDECIDED)
    assert "1 planned case not measured" in found.sentence
    (missing,) = found.not_run
    assert (missing.board, missing.reason) == ("virtual-2", "the run ended before it")
    partly = judged({done: 3})
    assert partly.exit_code == ExitCode.UNDECIDED
    assert partly.not_run[0].reason == "in 2 of 3 boots: the run ended before it"


def test_what_the_journal_gives_a_reason_for_is_not_missing_twice() -> None:
    """A planned case that its board could not measure stands there once, as the run wrote it down."""
    why = NotRun(RUN_ID, "virtual-2", "publish/x", "board virtual-2 failed before", "failed")
    thresholds = {"publish": publish_thresholds()}
    assert judge([publish_record(), why], thresholds, planned={("virtual-2", "publish/x"): 1}).not_run == (
        why,
    )


def test_what_was_handed_over_is_missing_on_the_board_that_has_it() -> None:
    """A board that failed has no records of what another one measured for it, and owes none."""
    taken = publish_record(board="virtual-2")
    handed = NotRun(RUN_ID, "virtual-1", taken.case_id, "it failed", "handed-over", to="virtual-2")

    def missing(boots: int) -> list[tuple[str, str]]:
        planned = {("virtual-1", taken.case_id): boots}
        found = judge([handed, taken], {"publish": publish_thresholds()}, planned=planned)
        return [(one.board, one.reason) for one in found.not_run if one.cause == "ended"]

    assert missing(1) == []
    assert missing(3) == [("virtual-2", "in 2 of 3 boots: the run ended before it")]


def test_a_record_without_rows_is_nothing_measured() -> None:
    """A board that answered with an empty series has measured nothing."""
    assert verdict(publish_record(rows=0)).exit_code == ExitCode.UNDECIDED


def test_a_regression_outranks_a_rig_failure_and_both_are_told() -> None:
    """Exit codes rank 2, 1, 3, 4, 0; the sentence starts with what decided."""
    slow = publish_record(latency_ms=31)
    both = verdict(slow, fault(ExitCode.RIG))
    assert both.exit_code == ExitCode.FIRMWARE
    assert both.sentence == (
        "1 of 3 limits broken: publish latency p95 on virtual-1 36.9 ms, limit 25 ms; "
        "also 1 fault of the rig."
    )
    assert verdict(slow, fault(ExitCode.CONFIG, "configuration")).exit_code == ExitCode.CONFIG
    assert verdict(publish_record(), fault(ExitCode.RIG)).exit_code == ExitCode.RIG
    assert verdict(fault(ExitCode.RIG)).exit_code == ExitCode.RIG
    assert verdict(publish_record(), fault(ExitCode.FIRMWARE, "firmware")).exit_code == ExitCode.FIRMWARE
    assert verdict(slow, fault(ExitCode.INTERRUPTED)).exit_code == ExitCode.INTERRUPTED


def test_a_rig_failure_is_not_called_a_regression() -> None:
    """The run is incomplete and the sentence blames the rig."""
    found = verdict(publish_record(), fault(ExitCode.RIG))
    assert found.outcome == "incomplete"
    assert found.sentence == "The rig failed: a fault of the rig."


def test_a_panic_is_the_firmwares_fault() -> None:
    """Without any broken limit the sentence says what happened."""
    found = verdict(publish_record(), fault(ExitCode.FIRMWARE, "firmware"))
    assert found.outcome == "regressed"
    assert found.sentence == "The firmware is at fault: a fault of the firmware."


def test_the_order_of_the_journal_does_not_change_a_byte() -> None:
    """Boards finish in any order; the verdict is the same to the last byte."""
    entries: list[Entry] = [*quick_run(("virtual-1", "virtual-2"))]
    first = json.dumps(verdict(*entries).to_json(), sort_keys=True)
    random.Random(1).shuffle(entries)
    assert json.dumps(verdict(*entries).to_json(), sort_keys=True) == first


def test_alpha_is_shared_out_among_all_blocking_decisions() -> None:
    """The more decisions, the more proof each needs: with four boards the interval is wider than alone."""
    alone = series(verdict(publish_record()))
    many = series(verdict(*(publish_record(board=f"virtual-{n}") for n in range(1, 5))))
    assert alone.low is not None
    assert many.low is not None
    assert many.low < alone.low


def test_legs_of_one_pull_request_share_alpha() -> None:
    """Of four runs that judge one change each needs the proof of a family four times as large."""
    own = {"publish": publish_thresholds()}
    alone, one_of_four = (judge([publish_record()], among_legs(own, legs)) for legs in (1, 4))
    assert among_legs(own, 4)["publish"].policy.alpha * 4 == own["publish"].policy.alpha
    low, lower = series(alone).low, series(one_of_four).low
    assert low is not None
    assert lower is not None
    assert lower < low


def test_clean_runs_at_the_limit_are_blocked_no_more_often_than_alpha() -> None:
    """Of 300 single-case runs whose true p95 is exactly the limit, at most alpha = 1 % and noise block.

    More than 9 of 300 would be a rate above 1 % at four standard errors; 300 without the interval's care
    would block half of them.
    """
    thresholds = publish_thresholds()
    only = {"publish_latency_p95_us": thresholds.metrics["publish_latency_p95_us"]}
    single = replace(thresholds, metrics=only)
    mean_ms = 25 / (1 + 0.1 * 1.6449)
    runs = (publish_record(latency_ms=mean_ms, seed=seed) for seed in range(300))
    blocked = sum(judge([record], {"publish": single}).exit_code == ExitCode.FIRMWARE for record in runs)
    assert blocked <= 9


def test_two_records_of_one_boot_are_refused() -> None:
    """Records are never averaged."""
    with pytest.raises(ConfigError, match=r"2 records of publish/.* on virtual-1, boot 0"):
        verdict(publish_record(), publish_record())


def test_entries_of_two_runs_are_refused() -> None:
    """A journal is of one run."""
    with pytest.raises(ConfigError, match="several runs: "):
        verdict(publish_record(), replace(publish_record(boot_index=1), run_id="other"))


def test_a_bench_without_thresholds_is_named() -> None:
    """The way out is the file to write."""
    with pytest.raises(ConfigError, match=r"bench 'publish' has no thresholds.*thresholds/publish\.yaml"):
        judge([publish_record()], {})


def test_a_suppressed_series_does_not_block_and_says_until_when() -> None:
    """Reason, issue and day stand in the sentence."""
    where = Where({"metric": "publish_latency_p95_us", "board": "virtual-1"})
    known = Suppression(
        where, "its link is bad", "#12", datetime.date(2026, 11, 30), "thresholds/publish.yaml:1"
    )
    muted = replace(publish_thresholds(), suppressions=(known,))
    found = verdict(publish_record(latency_ms=28), thresholds=muted)
    assert found.exit_code == ExitCode.PASS
    assert "suppressed until 2026-11-30, #12: its link is bad" in series(found).sentence


def test_every_combination_of_faults_gives_a_sentence() -> None:
    """No combination of owners and measurements fails to be told."""
    owners = [fault(code) for code in ExitCode if code is not ExitCode.PASS]
    for count in range(3):
        for faults in itertools.combinations(owners, count):
            for records in ((), (publish_record(rows=30),), (publish_record(rows=30, latency_ms=31),)):
                assert verdict(*records, *faults).sentence.endswith(".")


def test_a_run_in_which_every_message_failed_is_a_regression() -> None:
    """The latencies read "at least the timeout"; what leaves failed rows out has nothing to say."""
    found = verdict(publish_record(failed=100))
    assert found.exit_code == ExitCode.FIRMWARE
    assert series(found, "publish_failed_ratio").value == 1.0
    assert series(found, "mutex_wait_p95_us").outcome == "undecided"
    assert "no verdict, nothing was measured" in series(found, "mutex_wait_p95_us").sentence


@pytest.mark.parametrize(("at_least_us", "outcome"), [(10, "pass"), (40, "regressed")])
def test_where_higher_is_better_the_upper_bound_decides(at_least_us: float, outcome: str) -> None:
    """A lower limit is broken only if the whole interval lies below it; its sentences speak of less."""
    where = Where({"metric": "serialise_p50_us"})
    since = Since(datetime.date(2026, 11, 20))
    limit = Limit(where, "min", at_least_us, "for the test", since, None, "thresholds/publish.yaml:1")
    base = publish_thresholds()
    rising = replace(
        base.metrics["serialise_p95_us"],
        name="serialise_p50_us",
        statistic="p50",
        direction="higher",
        blocking=True,
    )
    found = series(
        verdict(publish_record(), thresholds=replace(base, metrics={rising.name: rising}, limits=(limit,))),
        rising.name,
    )
    assert found.outcome == outcome
    assert f"its limit of at least {at_least_us} µs" in found.sentence
    assert ("a shortfall of" in found.sentence) == (outcome == "pass")
    assert "(−" in found.sentence
    assert (found.smallest_excess is not None) == (outcome == "pass")


def test_void_needs_to_know_how_late_the_host_was() -> None:
    """Without the witness's column "void" would be a way to hide failures."""
    record = publish_record()
    with pytest.raises(ConfigError, match=r"publish\.yaml:\d+: .*needs the column 'host_late_us'"):
        verdict(record, thresholds=void_thresholds())

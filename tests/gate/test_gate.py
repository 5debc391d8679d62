# SPDX-License-Identifier: Apache-2.0
"""The gate: which samples break a limit, who may block, and what the run's exit code is."""

from __future__ import annotations

import datetime
import itertools
import json
import math
import random
from dataclasses import replace
from typing import Any

import pytest

from hil.base.errors import ConfigError, ExitCode
from hil.gate import judge
from hil.model import Entry, Fault, NotRun, RunRecord, SeriesVerdict, Verdict
from hil.thresholds import among_legs
from hil.thresholds.limits import Advice, Limit, Since, Suppression, Where
from hil.thresholds.types import Policy, Thresholds
from tests.gate.compare_records import figure
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
    """The sentence holds case, board, kind, value, limit, excess, samples and source."""
    found = verdict(publish_record(board="virtual-2", overrides={"transport": "tls"}, latency_ms=31))
    broken = series(found)
    assert (found.outcome, found.exit_code) == ("regressed", ExitCode.FIRMWARE)
    assert (broken.outcome, broken.cause, broken.limit) == ("regressed", "limit", 25_000)
    for part in ("virtual-2 (virtual): 36.", "25 ms by 1", "(+4", "100 samples, 1 boot", "publish.yaml:"):
        assert part in broken.sentence
    assert figure(broken.low) > 25_000


def test_a_value_beyond_the_limit_blocks_not_while_its_interval_is_not() -> None:
    """Blocking needs proof, and so does passing: the run is undecided, and a warning says by what."""
    found = verdict(publish_record(latency_ms=21.4, overrides={"count": 100}))
    near = series(found)
    assert figure(near.value) > 25_000 > figure(near.low)
    assert (near.outcome, near.note, found.exit_code) == ("pass", "marginal", 4)
    assert found.outcome == "undecided"
    assert "25 ms" in near.sentence
    assert near.sentence in told(found)


def test_a_figure_below_zero_is_a_fault_of_the_bench() -> None:
    """A latency of -598 µs keeps every limit, and no firmware can measure it: the run fails, and says why."""
    record = publish_record()
    early = tuple(planned - 598 for planned in record.columns["planned_us"])
    found = verdict(replace(record, columns={**record.columns, "done_us": early}))
    assert (found.exit_code, found.outcome) == (ExitCode.FIRMWARE, "regressed")
    assert (series(found).outcome, series(found).cause) == ("undecided", "impossible")
    first = found.faults[0]
    assert (first.owner, first.board, first.case_id) == ("firmware", record.board, record.case_id)
    assert "-598 µs" in first.sentence or "-0.6 ms" in first.sentence


def test_the_smallest_excess_that_would_have_been_seen_is_seen() -> None:
    """The same samples, stretched until they exceed the limit by that much and a bit, break it."""
    record = publish_record(latency_ms=10)
    kept = series(verdict(record))
    planned = record.columns["planned_us"]
    for part, outcome in ((1.02, "regressed"), (0.98, "pass")):
        factor = (figure(kept.limit) + figure(kept.smallest_excess) * part) / figure(kept.value)
        pairs = zip(planned, record.columns["done_us"], strict=True)
        done = tuple(start + round((end - start) * factor) for start, end in pairs)
        found = verdict(replace(record, columns={**record.columns, "done_us": done}))
        assert series(found).outcome == outcome


def test_the_share_of_failures_that_would_have_been_seen_is_seen() -> None:
    """One failure fewer than the smallest excess names is not proof; that many are."""
    kept = series(verdict(publish_record()), "publish_failed_ratio")
    failures = round((figure(kept.limit) + figure(kept.smallest_excess)) * 100)
    for failed, outcome in ((failures, "regressed"), (failures - 1, "pass")):
        assert series(verdict(publish_record(failed=failed)), "publish_failed_ratio").outcome == outcome


WEAK = {"device": {"sched": "fifo", "rssi_dbm": -86}}


def test_a_limit_broken_with_hardly_a_link_is_undecided() -> None:
    """What a board measures at the edge of its radio is the room's: the sentence says that it broke the limit
    and why that decides nothing. A limit that is kept there is kept."""
    slow = publish_record(overrides={"transport": "tls"}, latency_ms=31, environment=WEAK)
    found = verdict(slow)
    assert (found.outcome, found.exit_code) == ("undecided", ExitCode.UNDECIDED)
    assert "1 limit broken where " in found.sentence
    assert "; 2 limits kept." in found.sentence
    assert (series(found).outcome, series(found).cause) == ("undecided", "hardly-heard")
    assert " 25 ms by 1" in series(found).sentence
    assert "(-86 dBm in a boot, " in series(found).sentence
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
    assert "≥ 5.00 s [5.00, no upper bound]" in series(found).sentence
    assert "by at least 4.9" in series(found).sentence
    assert series(found).at_least
    assert series(found, "publish_failed_ratio").outcome == "regressed"


def test_one_lost_message_breaks_the_limit_of_none() -> None:
    """The lab air loses nothing: one failure in a whole quick run is a fact, whatever alpha."""
    run = [record for record in quick_run() if record.parameters["qos"] != 0]
    found = verdict(*run, publish_record(board="virtual-3", overrides={"qos": 0}, failed=1))
    assert found.exit_code == ExitCode.FIRMWARE
    broken = [item.metric for item in found.series if item.blocking and item.outcome == "regressed"]
    assert broken == ["publish_failed_ratio"]


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
    for part in ("2 limits exceeded", "hil run --boots 4)", "; 1 limit kept."):
        assert part in found.sentence
    assert series(found).sentence in told(found)


def test_as_many_late_messages_in_separate_episodes_block() -> None:
    """Eighteen of 100 messages late one by one are eighteen episodes."""
    record = publish_record()
    late = range(12, 102, 5)
    done = tuple(time + 40_000 * (n in late) for n, time in enumerate(record.columns["done_us"]))
    found = series(verdict(replace(record, columns={**record.columns, "done_us": done})))
    assert (len(late), found.outcome) == (18, "regressed")


def test_what_is_exceeded_but_not_provably_is_told_beside_what_is_broken() -> None:
    """A broken limit does not hide the marginal ones, nor does a fault of the rig."""
    marginal = stalled(publish_record(board="virtual-2"), first=50, messages=18)
    found = verdict(publish_record(latency_ms=31), marginal)
    for part in ("1 of 6 limits broken, 2 more exceeded", " on virtual-1 36.9 ms, limit 25 ms."):
        assert part in found.sentence
    assert "2 of 3 limits exceeded" in verdict(marginal, fault(ExitCode.RIG)).sentence


def test_advice_is_judged_but_never_blocks() -> None:
    """The enqueue case's latency is advice by the thresholds file; a person still reads it. So is a mean,
    which moves with one stall, and its interval does not know."""
    overrides = {"api": "enqueue", "interval_us": 100_000, "count": 50}
    base = publish_thresholds()
    mean = replace(base.metrics["publish_latency_p95_us"], statistic="mean")
    for found, reason in (
        (verdict(publish_record(overrides=overrides, latency_ms=4000)), "advice: the outbox "),
        (
            verdict(publish_record(latency_ms=60), thresholds=replace(base, metrics={mean.name: mean})),
            "advice: mean ",
        ),
    ):
        late = series(found)
        assert (late.outcome, late.blocking, found.exit_code) == ("regressed", False, 0)
        assert late.reason.startswith(reason)
        assert late.sentence in told(found)


def test_without_real_time_priority_times_are_advice() -> None:
    """A virtual board scheduled like any process says nothing of timing; losses still block, but of a bench
    that has the rack alone: there even a failure may be the host's, which promised it no order."""
    other: dict[str, Any] = {"environment": {"device": {"sched": "other"}}}
    found = verdict(publish_record(latency_ms=31, **other))
    assert (series(found).outcome, found.exit_code) == ("regressed", ExitCode.PASS)
    assert "(sched=other)" in series(found).sentence
    assert "real-time priority (virtual-1)" in found.warnings[0]
    assert "real-time" not in "".join(verdict(publish_record(latency_ms=31)).warnings)
    assert verdict(publish_record(failed=40, **other)).exit_code == ExitCode.FIRMWARE
    alone = replace(publish_thresholds(), alone=True)
    found = verdict(publish_record(failed=40, **other), thresholds=alone)
    assert found.exit_code == ExitCode.PASS
    assert "its scheduler" in series(found, "publish_failed_ratio").reason


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
    assert "emulated chip" in series(found).reason
    assert judged(publish_record(failed=40)).exit_code == ExitCode.FIRMWARE


def test_a_blocking_metric_without_a_limit_warns_and_passes() -> None:
    """Limits of virtual boards say nothing of physical ones; the warning names what to add."""
    found = verdict(replace(publish_record(latency_ms=900), kind="physical", target="esp32", board="bench-1"))
    assert (found.outcome, found.exit_code) == ("no-baseline", 0)
    assert series(found).outcome == "no-baseline"
    assert "publish_failed_ratio 0 % (physical), " in found.warnings[0]
    assert "hil limit METRIC --max VALUE" in found.warnings[0]


def test_where_nothing_is_promised_a_figure_is_advice() -> None:
    """No limit is counted there, nothing asks for one, and the sentence says why; a narrower limit holds."""
    base = publish_thresholds()
    where = Where({"metric": "publish_latency_p95_us", "kind": "virtual"})
    none = Limit(where, "max", math.inf, "as it comes", None, None, "thresholds/publish.yaml:1")
    own = tuple(
        limit for limit in base.limits if limit.where.conditions["metric"] != where.conditions["metric"]
    )
    found = verdict(publish_record(latency_ms=900), thresholds=replace(base, limits=(none, *own)))
    slow = series(found)
    assert (slow.outcome, slow.blocking, slow.limit) == ("no-baseline", False, None)
    assert slow.reason.startswith("advice: as it comes (thresholds")
    assert "without a limit" not in found.sentence
    narrow = replace(base, limits=(none, *base.limits))
    assert series(verdict(publish_record(latency_ms=900), thresholds=narrow)).outcome == "regressed"


@pytest.mark.parametrize("air", ["crowded", "lab, changed by hand"])
def test_limits_of_one_air_do_not_judge_another(air: str) -> None:
    """Limits of air lab say nothing of another: a slow run there breaks none, and the sentence says so."""
    found = verdict(publish_record(latency_ms=60, environment={"access_point": {"profile": air}}))
    assert (found.outcome, found.exit_code) == ("no-baseline", 0)
    assert f"on air {air}, " in series(found).sentence
    assert "on air lab" in series(found).sentence
    assert found.sentence.endswith("), 3 without a limit.")


def test_advice_alone_is_no_pass() -> None:
    """Where nothing was judged that can fail a run, no number of limits was kept."""
    base = publish_thresholds()
    rule = Advice(Where({}), "all of it", "thresholds/publish.yaml:1")
    found = verdict(publish_record(), thresholds=replace(base, advice=(rule,)))
    assert (found.outcome, found.exit_code) == ("no-baseline", 0)
    assert "kept" not in found.sentence


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
    assert "39 of at least 40" in series(found).reason


def test_void_samples_are_left_out_and_told() -> None:
    """Twelve of 100 that the host spoilt break no limit; sentence, numbers and a warning tell of them."""
    found = verdict(void_record(100, 12), thresholds=void_thresholds())
    kept = series(found)
    assert (kept.outcome, kept.samples, kept.failed) == ("pass", 88, 0)
    assert (kept.void, kept.host_late_us) == (12, 5300)
    assert "; 12 of 100 samples void: " in kept.sentence
    assert series(found, "publish_failed_ratio").outcome == "pass"
    (warning,) = found.warnings
    assert found.exit_code == 0
    assert warning.startswith("12 ")
    assert warning.endswith(" 5.3 ms (virtual-1).")


@pytest.mark.parametrize(
    ("void", "reason"),
    [(30, "more than 20 % "), (20, "80 of at least 90 (thresholds/publish.yaml)"), (100, "every sample")],
)
def test_too_many_void_samples_are_undecided(void: int, reason: str) -> None:
    """What the host spoilt is neither a pass nor a regression, and the reason says which bound it missed."""
    own = void_thresholds()
    strict = replace(own, policy=replace(own.policy, min_samples=90))
    undecided = series(verdict(void_record(100, void), thresholds=strict))
    assert undecided.outcome == "undecided"
    assert reason in undecided.reason
    assert f"no verdict, {undecided.reason}; {void} of 100 samples void" in undecided.sentence


@pytest.mark.parametrize(
    ("failed", "outcome", "exit_code"),
    [(0, "undecided", ExitCode.UNDECIDED), (1, "regressed", ExitCode.FIRMWARE)],
)
def test_where_too_much_is_void_a_failure_stands(failed: int, outcome: str, exit_code: int) -> None:
    """Where none is allowed, one failed row among the good ones is a fact; none among them says nothing of
    the many that are void."""
    found = verdict(void_record(100, 60, failed=failed), thresholds=void_thresholds())
    assert (series(found, "publish_failed_ratio").outcome, found.exit_code) == (outcome, exit_code)
    assert series(found).outcome == "undecided"


def test_a_sentence_says_by_which_clock() -> None:
    """The metric's own where its file names one, else the bench's; what is no time has none."""
    base = publish_thresholds()
    bare = {name: replace(each, clocks=()) for name, each in base.metrics.items()}
    for own, clock in ((base, "esp_timer"), (replace(base, metrics=bare), "mcycle")):
        found = verdict(replace(publish_record(), clock="mcycle"), thresholds=own)
        assert f"100 samples, 1 boot, timed by {clock};" in series(found).sentence
        assert series(found).clock == clock
        assert series(found, "publish_failed_ratio").clock == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"firmware_sha256": "ef" * 32}, "firmware_sha256 (abababababab and efefefefefef)"),
        ({"environment": {"access_point": {"profile": "crowded"}}}, "air (crowded and lab)"),
    ],
    ids=["another firmware", "another air"],
)
def test_boots_that_are_not_alike_are_not_combined(changes: dict[str, Any], words: str) -> None:
    """The verdict names what differs, and both values."""
    found = series(verdict(publish_record(), replace(publish_record(boot_index=1), **changes)))
    assert found.outcome == "undecided"
    assert words in found.sentence


def test_boots_of_one_firmware_are_combined() -> None:
    """Two boots of 100 samples are one series of 200. Samples of the base in the same journal do not
    enter."""
    found = series(verdict(publish_record(boot_index=0), publish_record(boot_index=1)))
    assert (found.samples, found.boots) == (200, 2)
    base = replace(publish_record(boot_index=1, latency_ms=90), role="base")
    assert verdict(publish_record(), base) == verdict(publish_record())


@pytest.mark.parametrize(
    "entries", [(), (NotRun(RUN_ID, "virtual-1", "publish/x", "left out"),), (publish_record(rows=0),)]
)
def test_nothing_measured_is_never_a_pass(entries: tuple[Entry, ...]) -> None:
    """An empty journal, one of left-out cases, or of records without a row, is exit code 4."""
    found = verdict(*entries)
    assert (found.outcome, found.exit_code) == ("incomplete", ExitCode.UNDECIDED)


def test_a_part_never_passes_for_the_whole() -> None:
    """What was planned and has no record is in the verdict, its headline and its exit code; once, where the
    run wrote down why its board could not measure it."""
    record = publish_record()
    done, never = (record.board, record.case_id), ("virtual-2", record.case_id)

    def judged(planned: dict[tuple[str, str], int], *more: Entry) -> Verdict:
        return judge([record, *more], {"publish": publish_thresholds()}, planned=planned)

    assert judged({done: 1}).exit_code == ExitCode.PASS
    found = judged({done: 1, never: 1})
    assert (found.outcome, found.exit_code) == ("incomplete", ExitCode.UNDECIDED)
    assert "1 planned case " in found.sentence
    (missing,) = found.not_run
    assert (missing.board, missing.cause) == ("virtual-2", "ended")
    partly = judged({done: 3})
    assert partly.exit_code == ExitCode.UNDECIDED
    assert partly.not_run[0].reason.startswith("in 2 of 3 boots: ")
    why = NotRun(RUN_ID, *never, "board virtual-2 failed before", "failed")
    assert judged({never: 1}, why).not_run == (why,)


def test_what_was_handed_over_is_missing_on_the_board_that_has_it() -> None:
    """A board that failed has no records of what another one measured for it, and owes none."""
    taken = publish_record(board="virtual-2")
    handed = NotRun(RUN_ID, "virtual-1", taken.case_id, "it failed", "handed-over", to="virtual-2")

    def missing(boots: int) -> list[tuple[str, str]]:
        planned = {("virtual-1", taken.case_id): boots}
        found = judge([handed, taken], {"publish": publish_thresholds()}, planned=planned)
        return [(one.board, one.reason.partition(":")[0]) for one in found.not_run if one.cause == "ended"]

    assert missing(1) == []
    assert missing(3) == [("virtual-2", "in 2 of 3 boots")]


@pytest.mark.parametrize(
    ("latency_ms", "code", "owner", "exit_code", "outcome", "first"),
    [
        (31, ExitCode.RIG, "rig", 1, "regressed", "1 of 3 limits "),
        (31, ExitCode.CONFIG, "configuration", 2, "incomplete", "1 of 3 limits "),
        (31, ExitCode.INTERRUPTED, "rig", 130, "incomplete", "1 of 3 limits "),
        (7, ExitCode.RIG, "rig", 3, "incomplete", "The rig "),
        (None, ExitCode.RIG, "rig", 3, "incomplete", "Nothing "),
        (7, ExitCode.FIRMWARE, "firmware", 1, "regressed", "The firmware "),
    ],
)
def test_the_gravest_decides_and_a_fault_is_its_owners(
    latency_ms: int | None, code: ExitCode, owner: str, exit_code: int, outcome: str, first: str
) -> None:
    """Exit codes rank 2, 1, 3, 4, 0; a failure of the rig is no regression, a panic is one without any broken
    limit. The sentence starts with what decided, and tells of the fault."""
    records = [] if latency_ms is None else [publish_record(latency_ms=latency_ms)]
    found = verdict(*records, fault(code, owner))
    assert (found.exit_code, found.outcome) == (exit_code, outcome)
    assert found.sentence.startswith(first)
    assert found.sentence.endswith(f" fault of the {owner}.")


def test_the_order_of_the_journal_does_not_change_a_byte() -> None:
    """Boards finish in any order; the verdict is the same to the last byte."""
    entries: list[Entry] = [*quick_run(("virtual-1", "virtual-2"))]
    first = json.dumps(verdict(*entries).to_json(), sort_keys=True)
    random.Random(1).shuffle(entries)
    assert json.dumps(verdict(*entries).to_json(), sort_keys=True) == first


def test_alpha_is_shared_out_among_all_blocking_decisions() -> None:
    """The more decisions, the more proof each needs: with four boards the interval is wider than alone, and
    of four runs that judge one change each needs the proof of a family four times as large."""
    own = {"publish": publish_thresholds()}
    alone = figure(series(verdict(publish_record())).low)
    assert figure(series(verdict(*(publish_record(board=f"virtual-{n}") for n in range(1, 5)))).low) < alone
    assert among_legs(own, 4)["publish"].policy.alpha * 4 == own["publish"].policy.alpha
    one_of_four = series(judge([publish_record()], among_legs(own, 4)))
    assert figure(one_of_four.low) < alone


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


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (publish_record(), r"2 records of publish/.* on virtual-1, boot 0"),
        (replace(publish_record(boot_index=1), run_id="other"), "several runs: "),
        (replace(publish_record(boot_index=1), bench="own"), r"bench 'own' .*thresholds/own\.yaml"),
    ],
    ids=["of one boot", "of two runs", "of a bench without thresholds"],
)
def test_records_that_cannot_be_judged_together_are_refused(second: RunRecord, words: str) -> None:
    """Records are never averaged, a journal is of one run, and the way out is the file to write."""
    with pytest.raises(ConfigError, match=words):
        verdict(publish_record(), second)


def test_a_suppressed_series_does_not_block_and_says_until_when() -> None:
    """Reason, issue and day stand in the sentence."""
    where = Where({"metric": "publish_latency_p95_us", "board": "virtual-1"})
    known = Suppression(
        where, "its link is bad", "#12", datetime.date(2026, 11, 30), "thresholds/publish.yaml:1"
    )
    muted = replace(publish_thresholds(), suppressions=(known,))
    found = verdict(publish_record(latency_ms=28), thresholds=muted)
    assert found.exit_code == ExitCode.PASS
    assert "2026-11-30, #12: its link is bad" in series(found).sentence


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
    waits = series(found, "mutex_wait_p95_us")
    assert (waits.outcome, waits.reason) == ("undecided", "nothing was measured")


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
    assert f" at least {at_least_us} µs" in found.sentence
    assert ("a shortfall of" in found.sentence) == (outcome == "pass")
    assert "(−" in found.sentence
    assert (found.smallest_excess is not None) == (outcome == "pass")


def test_void_needs_to_know_how_late_the_host_was() -> None:
    """Without the witness's column "void" would be a way to hide failures."""
    record = publish_record()
    with pytest.raises(ConfigError, match=r"publish\.yaml:\d+: .*needs the column 'host_late_us'"):
        verdict(record, thresholds=void_thresholds())

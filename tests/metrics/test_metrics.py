# SPDX-License-Identifier: Apache-2.0
"""Metrics: what a record's columns come to, with failures counted and warm-up rows left out."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from hil.base.errors import ConfigError
from hil.base.units import find_unit
from hil.metrics import evaluation as metrics
from hil.metrics.evaluation import Estimate
from hil.metrics.metric import Metric, Term, parse_terms
from hil.metrics.values import count_voids, row_values
from hil.model import RunRecord
from tests.make_records import publish_record, publish_thresholds, void_record, void_thresholds


def metric(name: str) -> Metric:
    return publish_thresholds().metrics[name]


def estimate(name: str, *records: RunRecord) -> Estimate:
    return metrics.estimate(metric(name), records, alpha=0.01, seed_text="run/series")


def test_terms_are_columns_joined_by_signs() -> None:
    """A difference of two columns is read with its signs; anything else is refused."""
    assert parse_terms("done_us - planned_us") == (Term(1, "done_us"), Term(-1, "planned_us"))
    assert parse_terms("a_us+b_us - c_us")[2] == Term(-1, "c_us")
    assert parse_terms("device.stack_tiT_bytes") == (Term(1, "device.stack_tiT_bytes"),)
    for wrong in ("", "done_us *2", "done_us planned_us", "a - ", "DONE"):
        with pytest.raises(ValueError, match="is not a column"):
            parse_terms(wrong)


def test_latency_counts_from_the_planned_send_without_warm_up() -> None:
    """Ten cold rows of a second each do not move the median; the unit is that of the name."""
    record = publish_record(overrides={"count": 101}, latency_ms=7.0)
    cold = tuple(value + (1_000_000 if n < 10 else 0) for n, value in enumerate(record.columns["done_us"]))
    warm = estimate("publish_latency_p50_us", replace(record, columns={**record.columns, "done_us": cold}))
    assert warm.samples == 101
    assert 6500 < warm.value < 7500
    assert warm.low < warm.value < warm.high


def test_a_metric_of_some_rows_counts_no_others() -> None:
    """What happens in some rows only is of those rows: value, number and failures; without any, of none."""
    record = publish_record(overrides={"count": 100}, failed=2)
    marks = tuple(int(n % 4 == 0) for n in range(record.rows))
    marked = replace(record, columns={**record.columns, "reused": marks})
    some = replace(metric("publish_latency_p50_us"), rows={"reused": 1})
    found = metrics.estimate(some, [marked], alpha=0.01, seed_text="run/series")
    counted = [n for n in range(record.warmup_rows, record.rows) if marks[n]]
    lost = sum(record.columns["outcome"][n] != 0 for n in counted)
    assert (found.samples, found.failed) == (len(counted), lost)
    assert metrics.count_samples(some, [marked]) == len(counted) < 100
    assert metrics.count_samples(replace(some, rows={"reused": 7}), [marked]) == 0
    with pytest.raises(ConfigError, match="needs the column 'reused'"):
        metrics.count_samples(some, [record])


def value_of(one: Metric, record: RunRecord) -> float:
    return metrics.estimate(one, [record], alpha=0.01, seed_text="run/series").value


def test_a_figure_of_the_board_is_one_value_a_boot() -> None:
    """What it tells of itself stands in the environment; where that is none, or no number, it says so."""
    heap = replace(
        metric("publish_latency_p50_us"),
        terms=parse_terms("device.heap_min_bytes"),
        statistic="min",
        scale="exact",
        unit=find_unit("kib"),
        outcome=None,
    )
    record = publish_record()
    told = replace(record, environment={**record.environment, "device": {"heap_min_bytes": 90 * 1024}})
    assert value_of(heap, told) == 90
    for wrong in ({}, {"heap_min_bytes": "much"}, {"heap_min_bytes": True}):
        with pytest.raises(
            ConfigError, match=r"needs the whole number 'heap_min_bytes' .* has (None|'much'|True)"
        ):
            value_of(heap, replace(record, environment={"device": wrong}))


@pytest.mark.parametrize("name", ["publish_latency_p95_us", "publish_failed_ratio", "mutex_wait_p95_us"])
def test_a_void_row_is_in_no_figure_and_is_counted(name: str) -> None:
    """60 rows of 100 that the host spoilt leave the figure of the other 40, and say how late the host was."""
    spoilt = void_record(100, 60)
    rest = {key: column[:10] + column[70:] for key, column in spoilt.columns.items()}
    whole = replace(spoilt, columns=rest)
    void = void_thresholds().metrics[name]
    found = metrics.estimate(void, [spoilt], alpha=0.01, seed_text="run/series")
    assert found == metrics.estimate(void, [whole], alpha=0.01, seed_text="run/series")
    assert (found.samples, found.failed) == (40, 0)
    assert metrics.count_samples(void, [spoilt]) == 40
    counted = count_voids(void, [spoilt, whole])
    assert (counted.rows, counted.of, counted.host_late_us) == (60, 140, 5300)
    if void.statistic != "ratio":
        assert len(row_values(void, spoilt)) == 40


def test_p99_9_says_how_many_samples_would_bound_it() -> None:
    """At 1 % of error a bound from above takes 4,603 independent samples; with them there is one."""
    tail = replace(metric("publish_latency_p99_us"), statistic="p99.9")
    few = metrics.estimate(tail, [publish_record(overrides={"count": 4000})], alpha=0.01, seed_text="s")
    assert (few.high, few.needed) == (math.inf, 4603)
    assert few.low < few.value
    many = publish_record(overrides={"count": 4603})
    undated = replace(many, columns={**many.columns, "planned_us": many.columns["sent_us"]})
    found = metrics.estimate(tail, [undated], alpha=0.01, seed_text="s")
    assert found.needed == 0
    assert math.isfinite(found.high)


@pytest.mark.parametrize(
    ("name", "record", "failed", "at_least", "low", "high"),
    [
        ("publish_latency_p95_us", publish_record(rows=100, failed=4), 4, False, 0, 20_000),
        ("publish_latency_p95_us", publish_record(rows=100, failed=6), 6, True, 5_000_000, 5_000_000),
        ("publish_latency_tail5_us", publish_record(rows=100, failed=1), 1, True, 1_000_000, 5_000_000),
        ("publish_latency_p95_us", void_record(100, 60), 60, True, 5_000_000, 5_000_000),
    ],
    ids=["few", "many", "in a tail", "void, which the file does not know"],
)
def test_a_failed_row_is_slower_than_everything_seen(
    name: str, record: RunRecord, failed: int, at_least: bool, low: float, high: float
) -> None:
    """With 4 of 100 failed p95 is still a number; with 6 of 100 it reads "at least the timeout", which tail5
    does from one on. A bound from above it has none then."""
    found = estimate(name, record)
    assert (found.samples, found.failed, found.at_least) == (100, failed, at_least)
    assert low <= found.value <= high
    assert not at_least or found.high == math.inf


def test_the_ratio_is_the_share_of_rows_that_failed() -> None:
    """Three failures in 150 rows are 2 %; in a row they are one episode, and prove no more than one does."""
    found = estimate("publish_failed_ratio", publish_record(overrides={"count": 150}, failed=3))
    once = estimate("publish_failed_ratio", publish_record(overrides={"count": 50}, failed=1))
    assert found.value == pytest.approx(0.02)
    assert 0.0 < found.low < 0.02 < found.high < 0.15
    assert (found.low, found.high) == pytest.approx((once.low, once.high))


def test_what_says_nothing_of_success_leaves_failed_rows_out() -> None:
    """A row that never got as far as the mutex has no waiting time, rather than one of 0 or for ever."""
    broken = publish_record(overrides={"count": 100}, failed=40)
    found = estimate("mutex_wait_p95_us", broken)
    assert (found.samples, found.failed, found.at_least) == (60, 40, False)
    assert metrics.count_samples(metric("mutex_wait_p95_us"), [broken]) == 60
    assert metrics.count_samples(metric("publish_latency_p95_us"), [broken]) == 100


def test_where_higher_is_better_a_failed_row_is_nothing_got_through() -> None:
    """A failed transfer counts as 0, not as infinitely fast."""
    better = replace(metric("mutex_wait_p95_us"), direction="higher", not_ok="infinite")
    values = row_values(better, publish_record(overrides={"count": 50}, failed=2))
    assert values[:2] == [0.0, 0.0]
    assert min(values[2:]) > 0.0


def test_no_episode_reaches_from_one_boot_into_the_next() -> None:
    """Eight slow boots of one episode each are eight episodes, which prove what one of them does not; their
    rows are taken together."""
    slow = [publish_record(rows=10, latency_ms=30.0, boot_index=boot) for boot in range(8)]
    assert estimate("publish_latency_p95_us", slow[0]).low == -math.inf
    together = estimate("publish_latency_p95_us", *slow)
    assert (together.samples, together.low > 25_000) == (80, True)


def test_rows_that_do_not_say_when_they_were_done_count_one_by_one() -> None:
    """Without the column there are no episodes to find, and the interval is that of independent rows."""
    record = publish_record(overrides={"count": 100})
    known = estimate("mutex_wait_p95_us", record)
    columns = {name: values for name, values in record.columns.items() if name != "done_us"}
    assert estimate("mutex_wait_p95_us", replace(record, columns=columns)).low >= known.low


def test_a_column_that_was_not_sent_is_named() -> None:
    """Firmware and thresholds that disagree are a configuration error naming line and columns."""
    record = publish_record()
    columns = {name: values for name, values in record.columns.items() if name != "done_us"}
    with pytest.raises(ConfigError, match=r"publish\.yaml:\d+: .*needs the column 'done_us'.*planned_us"):
        estimate("publish_latency_p95_us", replace(record, columns=columns))

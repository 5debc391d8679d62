# SPDX-License-Identifier: Apache-2.0
"""One boot's value of a metric: the statistic that reports and limits show, without its interval."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil import thresholds
from hil.base.errors import ConfigError
from hil.base.units import unit_of
from hil.metrics import evaluation as metrics
from hil.metrics.boot_value import BootValue, boot_value
from hil.metrics.metric import Metric, Term
from hil.model import RunRecord
from tests.make_records import (
    THRESHOLDS_ROOT,
    publish_record,
    publish_thresholds,
    void_record,
    void_thresholds,
)


def metric(name: str) -> Metric:
    return publish_thresholds().metrics[name]


def value_of(name: str, record: RunRecord) -> BootValue:
    found = boot_value(metric(name), record)
    assert found is not None
    return found


@given(
    seed=st.integers(0, 999),
    rows=st.integers(1, 120),
    lost=st.floats(0.0, 1.0),
    latency_ms=st.floats(0.2, 900.0),
)
def test_it_is_the_estimate_without_interval(seed: int, rows: int, lost: float, latency_ms: float) -> None:
    """Over random records, for every metric of the bench: value, samples and failures are estimate()'s.

    +inf only where that says "at least the timeout".
    """
    failed = round(lost * rows)
    record = publish_record(rows=rows, failed=failed, seed=seed, latency_ms=latency_ms)
    for each in publish_thresholds().metrics_of(record.parameters):
        found = boot_value(each, record)
        if found is None:
            assert each.not_ok == "left-out"
            assert failed == rows
            continue
        shown = metrics.estimate(each, [record], alpha=0.01, seed_text="run/series")
        assert found.samples == shown.samples == metrics.count_samples(each, [record])
        assert found.hits == (0 if each.not_ok == "left-out" else shown.failed)
        if math.isinf(found.value):
            assert shown.at_least
        else:
            assert found.value == shown.value


def test_more_than_5_percent_timeouts_are_infinite() -> None:
    """p95 and tail5 say +inf where they fell among timeouts; the count of these says how many."""
    for failed, infinite in ((0, False), (4, False), (6, True), (100, True)):
        record = publish_record(rows=100, failed=failed)
        for name in ("publish_latency_p95_us", "publish_latency_tail5_us"):
            found = value_of(name, record)
            assert math.isinf(found.value) is infinite, (name, failed)
            assert (found.samples, found.hits) == (100, failed)
    assert value_of("publish_failed_ratio", publish_record(rows=100, failed=6)) == BootValue(0.06, 100, 6)


def test_a_few_timeouts_enter_the_tail_as_the_least_they_took() -> None:
    """Two of a hundred were given up after 5 s: the slowest 5 % average them with it, and no less."""
    clean = value_of("publish_latency_tail5_us", publish_record(rows=100))
    found = value_of("publish_latency_tail5_us", publish_record(rows=100, failed=2))
    assert clean.value < 20_000 < found.value < 5_000_000
    assert found.value > 2 / 5 * 5_000_000


def test_nothing_that_counts_is_no_value() -> None:
    """No rows, nothing but warm-up, or nothing but void rows: None, not 0."""
    void = void_thresholds().metrics["publish_latency_p50_us"]
    assert boot_value(void, void_record(40, 40)) is None
    assert boot_value(void, void_record(40, 39)) is not None
    none = publish_record(rows=0)
    assert [each.name for each in publish_thresholds().metrics.values() if boot_value(each, none)] == []


def test_a_share_counts_trials_and_hits() -> None:
    """Of a share, samples are trials; more hits than trials are no share; no trial is no value."""
    share = replace(metric("publish_failed_ratio"), statistic="share", outcome=None, per="trials_count")
    share = replace(share, terms=(Term(1, "lost_count"),))
    record = publish_record(rows=2)
    sums = {"lost_count": (0,) * 10 + (1, 2), "trials_count": (0,) * 10 + (50, 10)}
    assert boot_value(share, replace(record, columns=sums)) == BootValue(0.05, 60, 3)
    with pytest.raises(ConfigError, match="which is not a share"):
        boot_value(share, replace(record, columns={**sums, "trials_count": (0,) * 12}))
    nothing = dict.fromkeys(sums, (0,) * 12)
    assert boot_value(share, replace(record, columns=nothing)) is None


def test_the_quantum_is_the_clocks_tick_in_the_metrics_unit() -> None:
    """1 µs of esp_timer, a cycle of the chip's clock, one unit of what is counted, 0 of counts and facts."""
    record = publish_record(rows=20)
    assert value_of("publish_latency_p50_us", record).quantum == 1.0
    in_ms = replace(metric("publish_latency_p50_us"), unit=unit_of("x_ms"))
    found = boot_value(in_ms, record)
    assert found is not None
    assert found.quantum == 0.001
    assert value_of("publish_failed_ratio", record).quantum == 0.0
    fast = replace(record, environment={"device": {"cpu_mhz": 160}})
    by_cycles = replace(in_ms, clocks=("cycle_counter",), terms=(Term(1, "took_ns"),), outcome=None)
    by_cycles = replace(by_cycles, unit=unit_of("x_ns"))
    timed = {"took_ns": tuple(range(30))}
    for measured, tick_ns in ((fast, 6.25), (record, 12.5)):
        seen = boot_value(by_cycles, replace(measured, columns=timed))
        assert seen is not None
        assert seen.quantum == pytest.approx(tick_ns)
    size = thresholds.load("footprint", THRESHOLDS_ROOT).metrics["image_bytes"]
    image = replace(record, columns={"image_bytes": (313_000,)}, warmup_rows=0)
    assert boot_value(size, image) == BootValue(313_000.0, 1)


def test_a_column_that_is_missing_is_named() -> None:
    """A record of another firmware is no value of 0."""
    record = publish_record(rows=5)
    columns = {name: column for name, column in record.columns.items() if name != "done_us"}
    with pytest.raises(ConfigError, match="needs the column 'done_us'"):
        boot_value(metric("publish_latency_p50_us"), replace(record, columns=columns))

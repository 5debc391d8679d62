# SPDX-License-Identifier: Apache-2.0
"""Metrics of a histogram: rows that stand for several samples each (`weight:`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hil import thresholds
from hil.base.errors import ConfigError
from hil.metrics import evaluation as metrics
from hil.metrics.values import count_voids, row_values
from hil.model import RunRecord
from hil.thresholds import Thresholds
from tests.make_records import publish_record

METRIC = "  wake_{name}_us: {{of: latency_us, weight: loops_count, statistic: {statistic}, {rest}}}\n"
REST = "direction: lower, blocking: false"
FILE = """\
schema: 1
bench: cyclic
parameters:
  timeout_ms: {default: 1000, min: 1, max: 60000}
outcome: {column: outcome, ok: 0, timeout: timeout_ms, void: 2}
suites: {quick: [{timeout_ms: 1000}]}
metrics:
  failed_ratio:
    {of: outcome, weight: loops_count, statistic: ratio, scale: count, direction: lower, blocking: true}
"""
LATENCIES_US, LOOPS, CORES = (10, 20, 30, 900, 0), (50, 30, 19, 4, 1), (0, 0, 1, 1, 1)
OUTCOMES, HOST_LATE_US = (0, 0, 0, 2, 1), (0, 0, 0, 900, 0)


def load(folder: Path, **changes: str) -> Thresholds:
    text = FILE + "".join(
        METRIC.format(name=name, statistic=statistic, rest=REST)
        for name, statistic in (("p50", "p50"), ("p99", "p99"), ("mean", "mean"), ("min", "min"))
    )
    text += METRIC.format(
        name="core1_max", statistic="max", rest=REST + ", not_ok: left-out, rows: {core: 1}"
    )
    for old, new in changes.items():
        text = text.replace(old, new)
    (folder / "cyclic.yaml").write_text(text)
    return thresholds.load("cyclic", folder)


@pytest.fixture
def record() -> RunRecord:
    names = ("latency_us", "loops_count", "core", "outcome", "host_late_us")
    columns = dict(zip(names, (LATENCIES_US, LOOPS, CORES, OUTCOMES, HOST_LATE_US), strict=True))
    return replace(publish_record(), parameters={"timeout_ms": 1000}, columns=columns, warmup_rows=0)


def written_out(record: RunRecord) -> RunRecord:
    """Return the same samples, one a row."""
    columns = {
        name: tuple(value for value, count in zip(column, LOOPS, strict=True) for _ in range(count))
        for name, column in record.columns.items()
    }
    return replace(record, columns={**columns, "loops_count": (1,) * sum(LOOPS)})


def test_a_histogram_is_what_its_samples_are(tmp_path: Path, record: RunRecord) -> None:
    """Each metric, its interval and its counts are those of the same samples written out one a row."""
    for metric in load(tmp_path).metrics_of({}):
        found = metrics.estimate(metric, [record], alpha=0.01, seed_text="run/series")
        assert found == metrics.estimate(metric, [written_out(record)], alpha=0.01, seed_text="run/series")
        assert metrics.count_samples(metric, [record]) == metrics.count_samples(metric, [written_out(record)])


def test_values_are_the_latencies_as_often_as_they_were_seen(tmp_path: Path, record: RunRecord) -> None:
    """50 of 10 us, 30 of 20 us, 19 of 30 us; one was never done, and four void loops in one row are four of
    104, not one row of five."""
    read = load(tmp_path).metrics
    values = [10.0] * 50 + [20.0] * 30 + [30.0] * 19
    assert sorted(row_values(read["wake_p50_us"], record)) == [*values, float("inf")]
    assert row_values(read["wake_core1_max_us"], record) == [30.0] * 19
    voids = count_voids(read["wake_p50_us"], [record])
    assert (voids.rows, voids.of) == (4, 104)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("weight: loops_count, statistic: min", "weight: core, statistic: min", "does not end in _count"),
        (
            "of: outcome, weight: loops_count, statistic: ratio",
            "of: loops_count, per: loops_count, weight: loops_count, statistic: share",
            "have no weight",
        ),
    ],
)
def test_a_weight_that_is_none_is_named_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    """A weight is a column of counts, and a share has none."""
    with pytest.raises(ConfigError, match=rf"cyclic\.yaml:\d+: .*{said}"):
        load(tmp_path, **{old: new})

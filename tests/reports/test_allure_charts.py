# SPDX-License-Identifier: Apache-2.0
"""Charts: what a mark claims is where the axis says, and every row of the record is accounted for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil import thresholds
from hil.metrics import stats
from hil.metrics.metric import parse_terms
from hil.model import RunRecord
from hil.reports.allure.charts import draw_distribution, draw_timeline, rows_of_labels, subtitle
from hil.reports.allure.samples import CaseSamples, samples_of
from hil.reports.allure.story import story_of
from hil.reports.svg import Axis, linear_ticks, log_ticks, pushed_apart, wrapped
from hil.store import read_judged_run
from tests.make_records import (
    THRESHOLDS_ROOT,
    publish_record,
    publish_thresholds,
    void_record,
    void_thresholds,
)
from tests.reports.allure_runs import attached, completed, judged, results_of

SVG = "{http://www.w3.org/2000/svg}"


class Chart:
    """An SVG file read back. Ticks give the scale by which marks are checked."""

    def __init__(self, data: bytes) -> None:
        self.root = ET.fromstring(data.decode())  # noqa: S314 - our own
        self.elements = list(self.root.iter())

    @property
    def text(self) -> str:
        return "\n".join(element.text or "" for element in self.elements if element.tag == f"{SVG}text")

    def with_data(self, name: str) -> list[ET.Element]:
        return [element for element in self.elements if f"data-{name}" in element.attrib]

    def value_at(self, px: float, axis: str, *, log: bool) -> float:
        """Return the value at a pixel, from the axis' outermost ticks."""
        end = f"{axis}1"
        ticks = [(float(tick.attrib[f"data-tick-{axis}"]), float(tick.attrib[end])) for tick in
                 self.with_data(f"tick-{axis}")]  # fmt: skip
        (low, low_px), (high, high_px) = min(ticks), max(ticks)
        share = (px - low_px) / (high_px - low_px)
        return low * (high / low) ** share if log else low + (high - low) * share

    def dots(self, kind: str) -> list[tuple[float, float]]:
        """Return the places of the dots or crosses of some kind of row."""
        paths = [
            element.attrib["d"] for element in self.with_data("rows") if element.get("data-rows") == kind
        ]
        pairs = [re.findall(r"M(-?[\d.]+) (-?[\d.]+)", path) for path in paths]
        return [(float(x), float(y)) for found in pairs for x, y in found]


def samples(tmp_path: Path, *records: RunRecord) -> CaseSamples:
    (story,) = story_of(read_judged_run(judged(tmp_path, records))).stories
    (found,) = samples_of(story)
    return found


def latencies_ms(record: RunRecord) -> list[float]:
    """Return what was measured, with what failed as infinite, reckoned apart from the code under test."""
    rows = range(record.warmup_rows, record.rows)
    columns: Mapping[str, tuple[int, ...]] = record.columns
    return [
        math.inf if columns["outcome"][row] else (columns["done_us"][row] - columns["planned_us"][row]) / 1000
        for row in rows
    ]


def test_void_rows_are_counted_and_not_drawn(tmp_path: Path) -> None:
    """Neither among the values nor among what failed; the subtitle says how many, and names the clock."""
    record = void_record(100, 12, failed=1)
    (story,) = story_of(read_judged_run(judged(tmp_path, [record]))).stories
    (found,) = samples_of(replace(story, thresholds=void_thresholds()))
    assert (found.counted, found.failed, found.void, len(found.values)) == (88, 1, 12, 87)
    told = subtitle(found)
    assert re.match("done_us − planned_us .* esp_timer, 88 .*12 void", told)


@pytest.mark.parametrize(
    ("latency_ms", "drawn"),
    [(7.0, {}), (13.0, {"p95 limit": 25.0}), (60.0, {"p95 limit": 25.0, "tail5 limit": 40.0})],
)
def test_quantiles_and_limits_stand_where_the_axis_says(
    tmp_path: Path, latency_ms: float, drawn: dict[str, float]
) -> None:
    """p50, p95, p99 and the limits: the line's place, label and verdict agree; log or linear axis.

    A limit of more than twice the largest sample would leave a gap, and is a word below the chart.
    """
    record = publish_record(latency_ms=latency_ms)
    found = samples(tmp_path, record)
    chart = Chart(draw_distribution(found))
    marks = {mark.attrib["data-mark"]: mark for mark in chart.with_data("mark")}
    wanted = {f"p{share}": stats.quantile(latencies_ms(record), share / 100) for share in (50, 95, 99)}
    wanted |= drawn
    assert set(marks) == set(wanted)
    assert ("off the chart" in chart.text) == (len(drawn) < 2)
    for name, value in wanted.items():
        assert float(marks[name].attrib["data-value"]) == pytest.approx(value, rel=1e-5)
        place = chart.value_at(float(marks[name].attrib["x1"]), "x", log=found.log)
        assert place == pytest.approx(value, rel=5e-3), name
    assert "p95 limit 25 ms" in chart.text
    assert "(virtual)" in chart.text
    assert found.log == (latency_ms < 60)


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [(19, {"p50"}), (20, {"p50", "p95"}), (99, {"p50", "p95"}), (100, {"p50", "p95", "p99"})],
)
def test_a_percentile_is_marked_where_so_many_samples_give_one(
    tmp_path: Path, rows: int, wanted: set[str]
) -> None:
    """Of fewer than 20 samples p95 is the largest, of fewer than 100 p99 is: that is no percentile."""
    found = samples(tmp_path, publish_record(rows=rows))
    assert {mark.name for mark in found.statistics} == wanted


def test_a_rate_is_marked_at_its_worse_end_and_at_what_is_judged(tmp_path: Path) -> None:
    """Where higher is better p5 is what matters, and the mean of batches is what the verdict is about."""
    read = thresholds.load("throughput", THRESHOLDS_ROOT)
    rates = tuple(1_000_000 * (20 + n % 10) for n in range(100))
    record = replace(
        publish_record(),
        bench="throughput",
        parameters=read.case({}).parameters,
        warmup_rows=0,
        columns={"interval_us": (100_000,) * 100, "received_bps": rates},
    )
    run = completed(tmp_path, [record], benches={"throughput": read})
    (story,) = story_of(read_judged_run(run)).stories
    (found,) = samples_of(story)
    assert {mark.name for mark in found.statistics} == {"p5", "p50", "batch_mean"}
    marks = {mark.attrib["data-mark"]: mark for mark in Chart(draw_distribution(found)).with_data("mark")}
    assert float(marks["batch_mean"].attrib["data-value"]) == pytest.approx(24.5)
    assert float(marks["p5"].attrib["data-value"]) == pytest.approx(20.0)
    (result,) = results_of(run).values()
    assert result["stop"] - result["start"] == 10_000


def test_the_distribution_counts_every_sample(tmp_path: Path) -> None:
    """The bars hold all that was measured; the line ends at the share that did not fail."""
    record = publish_record(failed=20)
    found = samples(tmp_path, record)
    chart = Chart(draw_distribution(found))
    values = sorted(value for value in latencies_ms(record) if math.isfinite(value))
    bars = [(float(bar.attrib["data-low"]), bar) for bar in chart.with_data("count")]
    for number, (low, bar) in enumerate(bars):
        beyond = bars[number + 1][0] if number + 1 < len(bars) else math.inf
        assert int(bar.attrib["data-count"]) == sum(low <= value < beyond for value in values)
        assert chart.value_at(float(bar.attrib["x"]), "x", log=found.log) == pytest.approx(low, rel=5e-3)
    assert sum(int(bar.attrib["data-count"]) for _, bar in bars) == 80
    (line,) = chart.with_data("share")
    assert float(line.attrib["data-share"]) == 0.8
    end = float(re.findall(r"V([\d.]+)", line.attrib["d"])[-1])
    assert chart.value_at(end, "y", log=False) == pytest.approx(0.8, abs=0.01)
    assert "20 failed or timed out" in chart.text
    assert "p95 and p99 among them" in chart.text
    assert not {"p95", "p99"} & {mark.attrib["data-mark"] for mark in chart.with_data("mark")}


def test_the_course_shows_every_row(tmp_path: Path) -> None:
    """Measured and warm-up rows at their time and value, failed ones in a lane above the plot."""
    record = publish_record(failed=3)
    found = samples(tmp_path, record)
    chart = Chart(draw_timeline(found))
    assert [len(chart.dots(kind)) for kind in ("measured", "warm-up", "failed")] == [97, 10, 3]
    expected = [value for value in latencies_ms(record) if math.isfinite(value)]
    planned = record.columns["planned_us"][record.warmup_rows + 3 :]
    for (x, y), value, planned_us in zip(chart.dots("measured"), expected, planned, strict=True):
        assert chart.value_at(y, "y", log=found.log) == pytest.approx(value, rel=0.02)
        assert chart.value_at(x, "x", log=False) == pytest.approx(planned_us / 1e6, abs=0.005)
    lines = [float(line.attrib["y1"]) for line in chart.with_data("tick-y")]
    assert all(y < min(lines) for _, y in chart.dots("failed"))


def test_each_boot_has_a_line_of_its_own(tmp_path: Path) -> None:
    """Three boots: three lines in three colours, named in both charts."""
    found = samples(tmp_path, *(publish_record(boot_index=boot, latency_ms=7 + boot) for boot in range(3)))
    lines = Chart(draw_distribution(found)).with_data("share")
    assert [line.attrib["data-boot"] for line in lines] == ["0", "1", "2"]
    assert len({line.attrib["stroke"] for line in lines}) == 3
    for draw in (draw_distribution, draw_timeline):
        assert re.findall(r"boot \d", Chart(draw(found)).text) == ["boot 2", "boot 1", "boot 0"]


def test_what_another_bench_measures_is_charted_too(tmp_path: Path) -> None:
    """The quantity comes from the metric's ``of``: one column, values round zero, no time known, no limit."""
    base = publish_record()
    values = tuple((row * 37) % 101 - 50 for row in range(base.rows))
    record = replace(base, columns={"jitter_us": values, "outcome": (0,) * base.rows})
    (story,) = story_of(read_judged_run(judged(tmp_path, [base]))).stories
    metric = publish_thresholds().metrics["publish_latency_p95_us"]
    jitter = replace(metric, name="jitter_p95_us", terms=parse_terms("jitter_us"), scale="identity")
    limits = replace(publish_thresholds(), metrics={"jitter_p95_us": jitter})
    (found,) = samples_of(replace(story, records=(record,), series=(), thresholds=limits))
    assert (found.quantity, found.formula, found.unit.name, found.log) == ("jitter", "jitter_us", "us", False)
    chart = Chart(draw_timeline(found))
    assert "jitter (µs)" in chart.text
    assert chart.text.splitlines()[-2] == "sample"
    assert (
        sum(int(bar.attrib["data-count"]) for bar in Chart(draw_distribution(found)).with_data("count"))
        == 100
    )


def test_one_value_again_and_again_is_drawn(tmp_path: Path) -> None:
    """Samples without any spread make charts like others. Rows of other metrics of the same columns are drawn
    too: one of them may be zero. Where everything failed there is no chart; the samples are attached."""
    base = publish_record()
    done = tuple(planned + 7000 for planned in base.columns["planned_us"])
    found = samples(tmp_path, replace(base, columns={**base.columns, "done_us": done}))
    chart = Chart(draw_distribution(found))
    assert [bar.attrib["data-count"] for bar in chart.with_data("count")] == ["100"]
    assert len(Chart(draw_timeline(found)).dots("measured")) == 100
    ((boot, rows),) = found.boots
    zero = replace(found, log=True, boots=((boot, (*rows[:-1], replace(rows[-1], value=0.0))),))
    assert min(zero.values) == 0.0
    assert draw_distribution(zero).startswith(b"<")
    run = completed(tmp_path / "failed", [publish_record(failed=100)])
    (result,) = results_of(run).values()
    assert not attached(run, result, "svg")
    assert attached(run, result, "csv")


def test_texts_are_large_enough_and_none_lies_on_another(tmp_path: Path) -> None:
    """Eleven pixels or more; and no two labels of a chart overlap, close as the numbers may lie."""
    records = [publish_record(boot_index=boot, failed=2) for boot in range(8)]
    found = samples(tmp_path, *records)
    long = replace(found, title=f"{found.title}, {'and so on, ' * 12}".strip())
    for data in (draw_distribution(long), draw_timeline(long)):
        root = Chart(data).root
        boxes = []
        for text in root.iter(f"{SVG}text"):
            size = float(text.attrib["font-size"])
            assert size >= 11
            if "transform" in text.attrib:
                continue
            width = len(text.text or "") * size * 0.53
            x = float(text.attrib["x"]) - {"end": width, "middle": width / 2}.get(
                text.attrib["text-anchor"], 0
            )
            assert x + width <= float(root.attrib["width"]) + 1, text.text
            boxes.append(
                (x, float(text.attrib["y"]) - size * 0.75, x + width, float(text.attrib["y"]), text.text)
            )
        for number, one in enumerate(boxes):
            for other in boxes[number + 1 :]:
                apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
                assert apart, (one, other)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 12))
def test_linear_ticks_are_round_and_within(low: float, span: float, count: int) -> None:
    """Evenly spaced, at most a few more than asked for, none outside."""
    ticks = linear_ticks(low, low + span, count)
    assert len(ticks) <= count + 1
    assert all(low - span * 1e-6 <= tick <= low + span * (1 + 1e-6) for tick in ticks)


@given(st.floats(1e-3, 1e5), st.floats(4, 1e5), st.integers(3, 12))
def test_log_ticks_are_within_and_few(low: float, ratio: float, count: int) -> None:
    """At least two, at most as many as asked for, or those of a linear axis; none outside."""
    ticks = log_ticks(low, low * ratio, count)
    assert 2 <= len(ticks) <= count + 1
    axis = Axis(low, low * ratio, 0, 100, log=True)
    assert all(-0.01 <= axis.px(tick) <= 100.01 for tick in ticks)


@given(st.lists(st.floats(0, 300), max_size=6))
def test_labels_are_pushed_apart_in_their_order(positions: list[float]) -> None:
    """Fifteen pixels between any two, none above or below the plot, the order as it was."""
    placed = pushed_apart(positions, 15, 0, 300)
    order = sorted(range(len(positions)), key=lambda index: (positions[index], index))
    in_order = [placed[index] for index in order]
    assert all(later - earlier >= 15 - 1e-9 for earlier, later in pairwise(in_order))
    assert all(-1e-9 <= place <= 300 + 1e-9 for place in placed)


@given(st.lists(st.tuples(st.floats(0, 500), st.floats(1, 200)), max_size=8))
def test_labels_of_one_row_do_not_touch(starts: list[tuple[float, float]]) -> None:
    """Each label has a row; two in one row lie apart, and no line down from one crosses another's text."""
    spans = [(left, left + width) for left, width in starts]
    rows = rows_of_labels(spans)
    for one, (left, right) in enumerate(spans):
        for other, (other_left, other_right) in enumerate(spans[:one]):
            assert rows[one] != rows[other] or right <= other_left or other_right <= left
            assert not (left < other_left < right and rows[other] < rows[one])
            assert not (other_left < left < other_right and rows[one] < rows[other])


@given(st.lists(st.text("abc=_1", min_size=1, max_size=30), min_size=1, max_size=12))
def test_a_broken_text_loses_nothing(words: list[str]) -> None:
    """All words come back, whatever the lines; a line is longer than allowed only if one word is."""
    lines = wrapped(", ".join(words), 120)
    assert re.findall(r"[^ ,]+", " ".join(lines)) == words

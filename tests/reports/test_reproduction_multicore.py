# SPDX-License-Identifier: Apache-2.0
"""The study freertos-multicore: a planted artefact is found, explained and kept off the other clocks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.model import Entry, RunRecord
from hil.reports.studies.build import documents_of
from hil.reports.studies.claims import NOTHING
from hil.reports.studies.document import Document
from hil.reports.studies.freertos_multicore.cycles import (
    BY_CONSTRUCTION,
    TURN_CYCLES,
    Counter,
    Stretch,
    shares,
    signed,
    standard_error,
    stretches_of,
)
from hil.reports.studies.loader import load_study
from hil.reports.studies.page import render_chart
from tests.reports import study_pages
from tests.reports.study_pages import claim, data
from tests.reports.study_records import BEHIND_US, MHZ, RUN_ID, period_record, switch_record

STUDY = load_study("freertos-multicore")
TURN_MS = 2**32 / MHZ / 1000
MOVED = [9_990.0, 10_010.0] * 150  # each direction has both lengths
MOVED = [MOVED[n // 2] for n in range(len(MOVED))]


def document(*records: Entry) -> Document:
    return documents_of(STUDY, list(records), RUN_ID)[0]


def table(shown: Document, table_id: str) -> Sequence[Mapping[str, Any]]:
    return study_pages.table(shown, table_id).data


def everything(kind: Any = "virtual", behind_us: float = BEHIND_US) -> list[RunRecord]:
    """Return one boot of each case that the study looks at."""
    return [
        switch_record([12.0, 12.2] * 100, kind=kind, behind_us=behind_us),
        switch_record([16.0, 16.4] * 100, placement="cross", kind=kind, behind_us=behind_us),
        period_record([9_999.0, 10_001.0] * 50, kind=kind, behind_us=behind_us),
        period_record(MOVED, load="migrate", kind=kind, behind_us=behind_us),
    ]


def words(shown: Document) -> Iterable[str]:
    """Return every text of a document but the remarks, which say once what the mark means."""
    for part in shown.sections:
        yield from (*part.answers, *part.warnings)
        for one in part.tables:
            yield from (one.title, *one.notes, *one.columns, *(cell for row in one.rows for cell in row))
            yield from (each.name for each in one.picture.lines) if one.picture else ()


def test_the_studys_estimator_is_the_standard_error() -> None:
    """sqrt(S / (N (N - 1))) by numpy's standard deviation; nothing can be said of a single value."""
    values = [3.0, 4.5, 9.0, 1.25]
    assert standard_error(values) == pytest.approx(np.std(values, ddof=1) / 2)
    assert standard_error([7.0]) == 0.0


def test_the_published_table_comes_out_of_an_offset_alone() -> None:
    """A steady period of 10 ms and counters 204.2 ms apart give the paper's whole table."""
    shown = document(period_record([10_000.0] * 1000, load="migrate", behind_us=204_185, kind="physical"))
    rows = {row["label"]: row for row in table(shown, "period-loaded")}
    wanted = {"Average": 0.01, '"Variance"': 0.1, "Minimum": 1.3, "Maximum": 1.3}
    for label, within in wanted.items():
        assert rows[label]["ours"]["raw"] == pytest.approx(rows[label]["published"], abs=within), label
    assert rows["Average"]["ours"]["raw"] == pytest.approx(10 + TURN_MS / 2)
    assert rows["Average"]["ours"]["signed"] == pytest.approx(10)
    assert rows["Maximum"]["ours"]["esp_timer"] == 10


def test_the_offset_reaches_no_other_clock() -> None:
    """With and without it all figures are the same but those of the raw counter across the cores."""
    with_it, without = (document(*everything(behind_us=behind)) for behind in (BEHIND_US, 0.0))
    for name in ("switch-same-core", "switch-cross-core", "period", "period-loaded"):
        for one, other in zip(table(with_it, name), table(without, name), strict=True):
            single = name == "switch-cross-core" and one["label"] == '"Variance"'  # one offset has no spread
            crosses = name in ("switch-cross-core", "period-loaded") and not single
            assert (abs(one["ours"]["raw"] - other["ours"]["raw"]) > 1) == crosses
            assert one["ours"]["corrected"] == other["ours"]["corrected"]
        clocks = (table(with_it, f"{name}-clocks"), table(without, f"{name}-clocks"))
        assert clocks[0][1:] == clocks[1][1:]
    found = data(with_it, "switch-cross-core-clocks", clock="raw")
    assert found["p50"]["value"] == pytest.approx(BEHIND_US + 16.2)


def test_the_arithmetic_is_of_the_published_figures() -> None:
    """Half of a turn and half of the range are what the study's average and "variance" come to."""
    (table,) = [one for one in STUDY.background if one.id == "arithmetic"]
    turn, average, deviation = (
        [float(str(one)) for one in row.values if one is not None] for row in table.rows
    )
    of = {row.statistic: row.published or 0.0 for row in STUDY.table("period-loaded").rows}
    assert turn == [pytest.approx(TURN_MS, abs=0.001)]
    assert average == pytest.approx([10 + TURN_MS / 2, of["mean"]], abs=0.001)
    assert deviation == pytest.approx(
        [(of["max"] - of["min"]) / 2, of["standard-error"] * 999**0.5], abs=0.001
    )


def test_the_lumps_are_told_by_their_direction() -> None:
    """Intervals from core 0 to 1 lie at the period plus the offset, the others at the period minus it."""
    rows = {row["near"]: row for row in table(document(*everything()), "lumps")}
    plus, minus = rows["period + offset"], rows["period − offset"]
    assert (plus["samples"], plus["from_0_to_1"], plus["from_1_to_0"]) == (150, 150, 0)
    assert (minus["samples"], minus["from_0_to_1"], minus["from_1_to_0"]) == (150, 0, 150)
    assert plus["at_ms"] == pytest.approx(10 - BEHIND_US / 1000 + TURN_MS)
    assert rows["period"]["samples"] == rows["elsewhere"]["samples"] == 0


def test_an_offset_that_was_told_wrong_explains_nothing() -> None:
    """The counters are 1 ms further apart than the handshake said: no sample agrees, no claim falls by it."""
    record = period_record(MOVED, load="migrate")
    device = record.environment["device"]
    wrong = {**device, "core1_offset_cycles": int(str(device["core1_offset_cycles"])) + 1000 * MHZ}
    shown = document(replace(record, environment={"device": wrong}))
    (boot,) = table(shown, "offsets")
    assert (boot["agree"], boot["moved"]) == (0, 300)
    assert claim(shown, "load-explains")[0] == "undecided"


@given(
    took_us=st.floats(0, 8_900_000),
    offset=st.integers(-(2**31), 2**31 - 1),
    cores=st.sampled_from([(0, 0), (0, 1), (1, 0), (1, 1)]),
)
def test_less_the_offset_the_raw_counter_is_esp_timer(
    took_us: float, offset: int, cores: tuple[int, int]
) -> None:
    """For any offset, either direction, and any stretch of less than half a turn."""
    start, end = cores
    raw = (round(took_us * MHZ) + (end - start) * offset) % TURN_CYCLES
    one = Stretch(0, Counter(MHZ, offset, 0, 0), raw, took_us, math.floor(took_us), start, end, done=True)
    assert one.agrees
    assert one.unshifted_us == pytest.approx(took_us, abs=1 / MHZ)
    assert -(2**31) <= signed(raw) < 2**31
    assert (signed(raw) - raw) % TURN_CYCLES == 0


def test_void_samples_are_counted_and_in_no_figure() -> None:
    """Two spoilt by the host; one that never ended counts as slower than all."""
    took = [12.0] * 97 + [900.0, 900.0, 1.0]
    spoilt = switch_record(took, outcomes={97: 2, 98: 2, 99: 1})
    for found in table(document(spoilt), "switch-same-core-clocks"):
        assert (found["n"], found["void"], found["boots"]) == (98, 2, 1)
        assert found["p50"]["value"] == pytest.approx(12)
        assert math.isinf(found["max"])
    assert [row["n"] for row in table(document(spoilt), "switch-same-core")] == [97] * 4


def test_a_case_that_the_host_spoilt_is_not_shown() -> None:
    """Of 100 samples 21 are void: no figure, no verdict, and both say why."""
    shown = document(switch_record([12.0] * 100, placement="cross", outcomes=dict.fromkeys(range(21), 2)))
    raw = study_pages.table(shown, "switch-cross-core")
    assert all(row[3] == "not measured" for row in raw.rows)
    assert any(note.startswith("Not shown: 21 of 100 ") for note in raw.notes)
    assert not any("was not measured: " in note for note in raw.notes)
    verdict, reason = claim(shown, "switch-190-ms")
    assert (verdict, ": 21 of 100 " in reason) == ("undecided", True)


def test_what_was_planted_is_marked_and_only_on_a_virtual_board() -> None:
    """Table, picture, answer and claim say it of the virtual board; of a physical one nothing does."""
    virtual, physical = (document(*everything(kind)) for kind in ("virtual", "physical"))
    marked = [text for text in words(virtual) if BY_CONSTRUCTION in text.lower()]
    for part in ("raw counter (", "Raw intervals under load", "agrees with esp_timer"):
        assert any(part in text for text in marked), part
    assert BY_CONSTRUCTION in claim(virtual, "load-explains")[1]
    assert data(virtual, "switch-cross-core-clocks", clock="raw")["by_construction"]
    assert not data(virtual, "switch-same-core-clocks", clock="raw")["by_construction"]
    everywhere = [*words(physical), *(remark for part in physical.sections for remark in part.remarks)]
    assert not [text for text in everywhere if "by construction" in text.lower()]
    assert not data(physical, "switch-cross-core-clocks", clock="raw")["by_construction"]


def test_the_claims_fall_with_the_artefact() -> None:
    """On esp_timer neither a switch takes 190 ms nor does a moved task's period become seconds."""
    shown = document(*everything())
    assert claim(shown, "cross-core-costs-more")[0] == "supported"
    for name in ("switch-190-ms", "period-seconds", "load-explains"):
        assert claim(shown, name)[0] == "contradicted", name


def test_a_switch_that_really_takes_190_ms_is_believed() -> None:
    """So is a period that is off on esp_timer: the clock decides, not the study; what is missing says why."""
    shown = document(
        switch_record([190_400.0] * 100, placement="cross"),
        period_record([400_000.0, 420_000.0] * 50, load="migrate"),
    )
    for name in ("switch-190-ms", "period-seconds", "load-explains"):
        assert claim(shown, name)[0] == "supported", name
    assert claim(shown, "cross-core-costs-more") == (NOTHING.verdict, NOTHING.reason)
    assert any("no such case" in note for note in study_pages.table(shown, "period").notes)


def test_a_task_that_never_moved_says_nothing_of_moving() -> None:
    """The load is there and the task stays: neither lumps nor a verdict."""
    resting = replace(
        period_record([10_000.0] * 60), parameters={**period_record([1.0]).parameters, "load": "migrate"}
    )
    shown = document(resting)
    assert "lumps" not in {one.id for part in shown.sections for one in part.tables}
    for name in ("period-seconds", "load-explains"):
        verdict, reason = claim(shown, name)
        assert (verdict, "never moved" in reason) == ("undecided", True)


@pytest.mark.parametrize(
    ("took_us", "verdict"),
    [([12.0] * 400, "supported"), ([12.0] * 350 + [14.0] * 50, "contradicted"), ([12.0] * 60, "undecided")],
)
def test_whether_all_values_are_equal_takes_enough_of_them(took_us: Sequence[float], verdict: str) -> None:
    """Sixty equal ones do not show that 99 of 100 are."""
    assert claim(document(switch_record(took_us)), "minimum-variance")[0] == verdict


def test_a_record_without_a_calibration_is_not_taken_for_one_with_none() -> None:
    """Where the firmware did not tell the offset nothing is said of the clocks."""
    bare = replace(switch_record([12.0] * 10), environment={"device": {"cpu_mhz": 240}})
    assert stretches_of([bare]).stretches == ()


def test_the_picture_shows_both_lumps() -> None:
    """Half of the samples at the period minus the offset, the others at the period plus it, as steps."""
    shown = document(*everything())
    picture = study_pages.table(shown, "period-loaded-clocks").picture
    assert picture is not None
    raw, corrected = picture.lines
    steps = {round(x, -2): y for x, y, *_ in raw.points}
    assert steps == {200: 50.0, 17_700: 100.0}
    assert all(x < 11 for x, *_ in corrected.points)
    drawn = render_chart(picture, "caption")
    (stairs, _) = re.findall(r'class="line [^"]*" d="M46 192\.0((?:H[\d.]+V[\d.]+)+)H448"', drawn)
    heights = {float(y) for y in re.findall(r"V([\d.]+)", stairs)}
    assert {192.0 - 90.0, 192.0 - 180.0} <= heights
    assert "circle" not in drawn
    many = shares([float(n % 977) for n in range(10_000)])
    assert len(many) <= 601
    assert many[-1][1] == 100.0
    assert all(re.match(r"\d", str(x)) for x, *_ in many)

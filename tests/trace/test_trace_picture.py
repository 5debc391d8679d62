# SPDX-License-Identifier: Apache-2.0
"""The picture of a trace: its bars are where the axis says, and it names what it shows."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from hil.reports.allure.trace.picture import BAD_BAND, BAND, draw_trace
from hil.trace.files import StoredTrace
from hil.trace.finding import explain
from hil.trace.reconstruction import reconstruct
from tests.trace.trace_events import IDLE, Row, inherited, inverted, on_a_host, trace_of

SVG = "{http://www.w3.org/2000/svg}"


def stored(rows: list[Row], *, kind: str = "binary", exact: bool = True) -> StoredTrace:
    trace = trace_of(rows, kind=kind, exact=exact)
    timeline = reconstruct(trace)
    return StoredTrace("v1 (virtual)", "jitter/trace=outlier", 0, trace, timeline, explain(trace, timeline))


def drawn(found: StoredTrace) -> list[ET.Element]:
    return list(ET.fromstring(draw_trace(found).decode()).iter())  # noqa: S314 - our own


def text_of(elements: list[ET.Element]) -> str:
    return " ".join(element.text or "" for element in elements if element.tag == f"{SVG}text")


@pytest.mark.parametrize("exact", [True, False])
def test_it_says_what_happened_where(exact: bool) -> None:
    """The finding stands above, with board, kind, and whether who ran is inferred."""
    text = text_of(drawn(stored(inverted() if exact else on_a_host(inverted()), exact=exact)))
    assert ("inferred" in text) is not exact
    for said in (
        "jitter (20) waited 3.1 ms",
        "jitter on v1 (virtual), boot 0",
        "planned",
        "outlier +3.13 ms",
    ):
        assert said in text


def test_bars_lie_where_the_axis_says() -> None:
    """Each bar's pixels are its microseconds, counted from the planned wake."""
    elements = drawn(stored(inverted()))
    ticks = [
        (float(one.attrib["data-tick-x"]), float(one.attrib["x1"]))
        for one in elements
        if "data-tick-x" in one.attrib
    ]
    (low, low_px), (high, high_px) = min(ticks), max(ticks)
    bars = [one for one in elements if "data-start" in one.attrib]
    assert len(bars) > 10
    for bar in bars:
        for key, px in (
            ("start", float(bar.attrib["x"])),
            ("end", float(bar.attrib["x"]) + float(bar.attrib["width"])),
        ):
            us = int(bar.attrib[f"data-{key}"]) - 1000
            expected = low_px + (us - low) / (high - low) * (high_px - low_px)
            assert px == pytest.approx(expected, abs=1.1)  # nothing is thinner than a pixel


def test_an_inversion_is_red_and_a_held_lock_is_not() -> None:
    """Only a fault is highlighted as one."""
    fills = {
        name: next(one.attrib["fill"] for one in drawn(found) if "data-band" in one.attrib)
        for name, found in {"inverted": stored(inverted()), "held": stored(inherited(), kind="mutex")}.items()
    }
    assert fills == {"inverted": BAD_BAND, "held": BAND}


def test_who_holds_is_shown() -> None:
    """A line under the owner's lane shows what it holds, and the legend explains it."""
    elements = drawn(stored(inverted()))
    assert {one.attrib.get("data-holds") for one in elements} - {None} == {"binary semaphore 1"}
    assert "holds a mutex" in text_of(elements)


def test_idle_tasks_have_no_lane() -> None:
    """A core that idles is empty; its idle task is no news."""
    assert any(row[3] == IDLE for row in inverted())
    assert "IDLE1" not in text_of(drawn(stored([row for row in inverted() if row[2] < 32])))


def test_no_text_leaves_the_picture() -> None:
    """Labels of marks at the right edge stand left of it."""
    elements = drawn(stored(inverted()))
    width = float(elements[0].attrib["width"])
    for one in elements:
        if one.tag == f"{SVG}text":
            start = float(one.attrib["x"]) - (0 if one.attrib.get("text-anchor", "start") == "start" else 500)
            assert start < width
            assert not re.search(r"\d{4,} µs", one.text or "")


def test_an_empty_trace_is_drawn() -> None:
    """A ring that holds nothing gives a picture that says so."""
    assert "no outlier" in text_of(drawn(stored([]))).lower()

# SPDX-License-Identifier: Apache-2.0
"""What is made of a trace: the picture, and the file for ui.perfetto.dev, read back."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

from hil.reports.allure.trace.picture import BAD_BAND, BAND, draw_trace
from hil.trace.events import Trace
from hil.trace.files import StoredTrace
from hil.trace.finding import explain
from hil.trace.perfetto import write_perfetto
from hil.trace.reconstruction import reconstruct
from tests.trace.trace_events import IDLE, JITTER, MIDDLE, Row, inherited, inverted, on_a_host, trace_of

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
        "priority inversion, 3 ms",
    ):
        assert said in text


def test_bars_and_texts_lie_where_the_axis_says() -> None:
    """Each bar's pixels are its microseconds, counted from the planned wake. A line under the owner's lane
    shows what it holds, and the legend explains it. Labels of marks at the right edge stand left of it."""
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
    assert {one.attrib.get("data-holds") for one in elements} - {None} == {"binary semaphore 1"}
    assert "holds a mutex" in text_of(elements)
    width = float(elements[0].attrib["width"])
    for one in elements:
        if one.tag == f"{SVG}text":
            start = float(one.attrib["x"]) - (0 if one.attrib.get("text-anchor", "start") == "start" else 500)
            assert start < width
            assert not re.search(r"\d{4,} µs", one.text or "")


def test_an_inversion_is_red_and_a_held_lock_is_not() -> None:
    """Only a fault is highlighted as one."""
    fills = {
        name: next(one.attrib["fill"] for one in drawn(found) if "data-band" in one.attrib)
        for name, found in {"inverted": stored(inverted()), "held": stored(inherited(), kind="mutex")}.items()
    }
    assert fills == {"inverted": BAD_BAND, "held": BAND}


def test_idle_tasks_have_no_lane() -> None:
    """A core that idles is empty; its idle task is no news."""
    assert any(row[3] == IDLE for row in inverted())
    assert "IDLE1" not in text_of(drawn(stored([row for row in inverted() if row[2] < 32])))


BEGIN, END = proto.TrackEvent.TYPE_SLICE_BEGIN, proto.TrackEvent.TYPE_SLICE_END


def written(trace: Trace) -> bytes:
    timeline = reconstruct(trace)
    return write_perfetto(trace, timeline, explain(trace, timeline), title="v1 (virtual)")


def packets_of(trace: Trace) -> list[Any]:
    return list(proto.Trace.FromString(written(trace)).packet)


def tracks(packets: list[Any]) -> dict[str, int]:
    return {
        packet.track_descriptor.name
        or packet.track_descriptor.process.process_name: packet.track_descriptor.uuid
        for packet in packets
        if packet.HasField("track_descriptor")
    }


def slices(packets: list[Any], track: int) -> list[tuple[int, int, str]]:
    """Return a track's slices as (start, end in ns, name); they must neither nest nor stay open."""
    found: list[tuple[int, int, str]] = []
    opened: tuple[int, str] | None = None
    for packet in packets:
        if packet.track_event.track_uuid != track or packet.track_event.type not in (BEGIN, END):
            continue
        if packet.track_event.type == BEGIN:
            assert opened is None
            opened = (packet.timestamp, packet.track_event.name)
        else:
            assert opened is not None
            found.append((opened[0], packet.timestamp, opened[1]))
            opened = None
    assert opened is None
    return found


def test_a_file_has_a_track_a_core_a_task_and_the_finding() -> None:
    """The process is the board with its kind; below it lie its cores, then its tasks by priority, in
    nanoseconds.

    Of slices, who ran and what a task did, none nests and none stays open; what the bench marked, who took
    and gave, are instants; the sentence stands over the stretch that it is about.
    """
    packets = packets_of(trace_of(inverted()))
    names = tracks(packets)
    assert list(names)[:3] == ["v1 (virtual)", "core 0", "core 1"]
    described = [packet.track_descriptor for packet in packets if packet.HasField("track_descriptor")]
    assert all(one.parent_uuid == names["v1 (virtual)"] for one in described[1:])
    ranks = {one.name: one.sibling_order_rank for one in described[1:]}
    assert ranks["core 1"] < ranks["esp_timer (22)"] < ranks["jitter (20)"] < ranks["low (6)"]
    by_name = {name: slices(packets, track) for name, track in names.items()}
    assert (1_025_000, 4_025_000, "middle (10)") in by_name["core 1"]
    assert (1_020_000, 4_120_000, "waits for binary semaphore 1") in by_name["jitter (20)"]
    assert all(found == sorted(found) for found in by_name.values())
    instants = defaultdict(set)
    for packet in packets:
        if packet.track_event.type == proto.TrackEvent.TYPE_INSTANT:
            instants[packet.track_event.track_uuid].add((packet.timestamp, packet.track_event.name))
    assert (4_127_000, "outlier 3.13 ms") in instants[names["jitter (20)"]]
    assert (100_000, "takes binary semaphore 1") in instants[names["low (6)"]]
    ((began_ns, ended_ns, sentence),) = by_name["finding"]
    assert (began_ns, ended_ns) == (1_020_000, 4_120_000)
    assert sentence.startswith("priority inversion: jitter (20)")


def test_inferred_slices_say_so() -> None:
    """What a core ran on a host is inferred, and each slice has that category."""
    packets = packets_of(trace_of(on_a_host(inverted()), exact=False))
    core = tracks(packets)["core 1"]
    events = [packet.track_event for packet in packets if packet.track_event.track_uuid == core]
    assert {word for event in events for word in event.categories} == {"inferred from priorities"}


def test_the_same_trace_gives_the_same_bytes() -> None:
    """A file written again is the same, whichever order the board named its tasks in."""
    trace = trace_of(inverted())
    backwards = Trace(trace.events, dict(reversed(trace.tasks.items())), trace.objects)
    assert written(trace) == written(backwards)
    assert {JITTER, MIDDLE} <= set(trace.tasks)


def test_an_empty_trace_is_drawn_and_written() -> None:
    """A ring that holds nothing gives a picture that says so, and a file with a board and no track."""
    assert "no outlier" in text_of(drawn(stored([]))).lower()
    assert tracks(packets_of(trace_of([]))).keys() == {"v1 (virtual)", "finding"}

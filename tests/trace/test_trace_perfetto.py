# SPDX-License-Identifier: Apache-2.0
"""The file for ui.perfetto.dev, read back with Perfetto's own protocol buffers."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

from hil.trace.events import Trace
from hil.trace.finding import explain
from hil.trace.perfetto import write_perfetto
from hil.trace.reconstruction import reconstruct
from tests.trace.trace_events import JITTER, MIDDLE, inverted, on_a_host, trace_of

BEGIN, END = proto.TrackEvent.TYPE_SLICE_BEGIN, proto.TrackEvent.TYPE_SLICE_END


def written(trace: Trace) -> bytes:
    timeline = reconstruct(trace)
    return write_perfetto(trace, timeline, explain(trace, timeline), title="v1 (virtual)")


@pytest.fixture(scope="module")
def packets() -> list[Any]:
    return list(proto.Trace.FromString(written(trace_of(inverted()))).packet)


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


def test_a_track_a_core_and_a_task(packets: list[Any]) -> None:
    """The process is the board with its kind; below it lie its cores, then its tasks by priority."""
    names = tracks(packets)
    assert list(names)[:3] == ["v1 (virtual)", "core 0", "core 1"]
    described = [packet.track_descriptor for packet in packets if packet.HasField("track_descriptor")]
    assert all(one.parent_uuid == names["v1 (virtual)"] for one in described[1:])
    ranks = {one.name: one.sibling_order_rank for one in described[1:]}
    assert ranks["core 1"] < ranks["esp_timer (22)"] < ranks["jitter (20)"] < ranks["low (6)"]


def test_slices_are_the_timeline(packets: list[Any]) -> None:
    """A core's slices say who ran, a task's what it did, in nanoseconds; none nests, none stays open."""
    names = tracks(packets)
    assert (1_025_000, 4_025_000, "middle (10)") in slices(packets, names["core 1"])
    jitter = slices(packets, names["jitter (20)"])
    assert (1_020_000, 4_120_000, "waits for binary semaphore 1") in jitter
    for track in names.values():
        assert slices(packets, track) == sorted(slices(packets, track))


def test_marks_and_locks_are_instants(packets: list[Any]) -> None:
    """What the bench marked, and who took and gave, stands on its task's track."""
    instants = defaultdict(set)
    for packet in packets:
        if packet.track_event.type == proto.TrackEvent.TYPE_INSTANT:
            instants[packet.track_event.track_uuid].add((packet.timestamp, packet.track_event.name))
    names = tracks(packets)
    assert (4_127_000, "outlier 3.13 ms") in instants[names["jitter (20)"]]
    assert (100_000, "takes binary semaphore 1") in instants[names["low (6)"]]


def test_the_finding_has_a_track(packets: list[Any]) -> None:
    """The sentence stands over the stretch that it is about."""
    (found,) = slices(packets, tracks(packets)["finding"])
    assert found[:2] == (1_020_000, 4_120_000)
    assert found[2].startswith("priority inversion: jitter (20)")


def test_inferred_slices_say_so() -> None:
    """What a core ran on a host is inferred, and each slice has that category."""
    trace = trace_of(on_a_host(inverted()), exact=False)
    found = proto.Trace.FromString(written(trace)).packet
    core = tracks(list(found))["core 1"]
    events = [packet.track_event for packet in found if packet.track_event.track_uuid == core]
    assert {word for event in events for word in event.categories} == {"inferred from priorities"}


def test_the_same_trace_gives_the_same_bytes() -> None:
    """A file written again is the same, whichever order the board named its tasks in."""
    trace = trace_of(inverted())
    backwards = Trace(trace.events, dict(reversed(trace.tasks.items())), trace.objects)
    assert written(trace) == written(backwards)
    assert {JITTER, MIDDLE} <= set(trace.tasks)


def test_an_empty_trace_is_a_file() -> None:
    """A ring that holds nothing gives a file with a board and no track."""
    packets = list(proto.Trace.FromString(written(trace_of([]))).packet)
    assert tracks(packets).keys() == {"v1 (virtual)", "finding"}

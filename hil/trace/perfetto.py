# SPDX-License-Identifier: Apache-2.0
"""A trace as Perfetto's own protocol buffers: open the .pftrace in https://ui.perfetto.dev.

One process, the board; in it a track a core (who ran), a track a task (what it did), and the bench's marks on
the track of the task that they are about. The same trace gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

from hil.trace.events import EventKind, Trace, TraceEvent
from hil.trace.finding import TraceFinding, duration, marks_of
from hil.trace.timeline import Segment, State, Timeline

_SEQUENCE = 1
_PID = 1
_BOARD_UUID = 1
_CORE_UUID = 100
_TASK_UUID = 1000
_FINDING_UUID = 2
_NS_PER_US = 1000
_POINTS = {
    EventKind.TAKEN: "takes",
    EventKind.GIVEN: "gives",
    EventKind.INHERITS: "inherits priority",
    EventKind.DISINHERITS: "back to priority",
}


def write_perfetto(trace: Trace, timeline: Timeline, finding: TraceFinding, *, title: str) -> bytes:
    """Return the file. ``title`` names the process: board and kind, such as "v1 (virtual)"."""
    file = proto.Trace()
    _describe(file, _BOARD_UUID, title)
    for rank, core in enumerate(timeline.cores(), start=1):
        _describe(file, _CORE_UUID + core, f"core {core}", rank=rank)
    ranked = sorted(timeline.segments, key=lambda number: (-trace.task(number).priority, number))
    for rank, task in enumerate(ranked, start=10):
        _describe(file, _TASK_UUID + task, trace.task(task).label, rank=rank)
    _describe(file, _FINDING_UUID, "finding", rank=5)
    packets = [*_core_slices(trace, timeline), *_task_slices(trace, timeline), *_points(trace)]
    packets += _finding_slices(timeline, finding)
    packets.sort(key=lambda packet: int(packet.timestamp))  # stable: on a track what ends stays first
    for packet in packets:
        file.packet.append(packet)
    file.packet[0].sequence_flags = proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    for packet in file.packet:
        packet.trusted_packet_sequence_id = _SEQUENCE
    return bytes(file.SerializeToString(deterministic=True))


_BEGIN = proto.TrackEvent.TYPE_SLICE_BEGIN
_END = proto.TrackEvent.TYPE_SLICE_END
_INSTANT = proto.TrackEvent.TYPE_INSTANT


def _describe(file: proto.Trace, uuid: int, name: str, *, rank: int = 0) -> None:
    descriptor = file.packet.add().track_descriptor
    descriptor.uuid = uuid
    if uuid == _BOARD_UUID:
        descriptor.process.pid = _PID
        descriptor.process.process_name = name
        descriptor.child_ordering = proto.TrackDescriptor.EXPLICIT
        return
    descriptor.name = name
    descriptor.parent_uuid = _BOARD_UUID
    descriptor.sibling_order_rank = rank


def _packet(time_us: int, track: int, kind: proto.TrackEvent.Type.ValueType) -> proto.TracePacket:
    packet = proto.TracePacket()
    packet.timestamp = time_us * _NS_PER_US
    packet.track_event.type = kind
    packet.track_event.track_uuid = track
    return packet


def _slice(track: int, start_us: int, end_us: int, name: str, category: str) -> Iterator[proto.TracePacket]:
    begin = _packet(start_us, track, _BEGIN)
    begin.track_event.name = name
    begin.track_event.categories.append(category)
    yield begin
    yield _packet(end_us, track, _END)


def _core_slices(trace: Trace, timeline: Timeline) -> Iterator[proto.TracePacket]:
    category = "exact" if trace.exact else "inferred from priorities"
    for core in timeline.cores():
        for one in timeline.running(core, timeline.start_us, timeline.end_us):
            name = trace.task(one.task).label
            yield from _slice(_CORE_UUID + core, one.start_us, one.end_us, name, category)


def _task_slices(trace: Trace, timeline: Timeline) -> Iterator[proto.TracePacket]:
    for task, segments in timeline.segments.items():
        for one in segments:
            name = state_text(trace, one)
            yield from _slice(_TASK_UUID + task, one.start_us, one.end_us, name, one.state.value)


def state_text(trace: Trace, segment: Segment) -> str:
    """Return what a person calls the state: "waits for mutex 1"."""
    if segment.state is State.WAITING:
        return f"waits for {trace.object(segment.object).label}" if segment.object else "waits"
    if segment.state is State.READY:
        return "ready, does not run"
    return "runs" if segment.state is State.RUNNING else segment.state.value


def _points(trace: Trace) -> Iterator[proto.TracePacket]:
    for event in trace.events:
        if event.kind in _POINTS:
            lock = event.kind in (EventKind.TAKEN, EventKind.GIVEN)
            what = trace.object(event.argument).label if lock else str(event.argument)
            yield _instant(event, f"{_POINTS[event.kind]} {what}", "lock")
    for event in marks_of(trace):
        assert event.mark is not None
        yield _instant(event, f"{event.mark.name.lower()} {duration(event.argument)}", "mark")


def _instant(event: TraceEvent, name: str, category: str) -> proto.TracePacket:
    packet = _packet(event.time_us, _TASK_UUID + event.task, _INSTANT)
    packet.track_event.name = name
    packet.track_event.categories.append(category)
    return packet


def _finding_slices(timeline: Timeline, finding: TraceFinding) -> Iterator[proto.TracePacket]:
    if finding.wait:
        start_us, end_us = finding.wait.start_us, finding.wait.end_us
    elif finding.planned_us is not None and finding.late_us is not None:
        start_us, end_us = max(finding.planned_us, timeline.start_us), finding.late_us
    else:
        return
    yield from _slice(_FINDING_UUID, start_us, end_us, finding.sentence, finding.kind)

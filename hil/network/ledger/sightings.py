# SPDX-License-Identifier: Apache-2.0
"""From a capture's segments to the numbers of the messages that were seen there.

The subscriber's stream of arrivals: gaps, spacing, order.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from hil.network.dissect.segments import MqttSegment
from hil.network.dissect.tcp import unwrapped
from hil.network.ledger.evidence import Arrival, Sighting

_ANSWERS = frozenset({"PUBACK", "PUBREC"})


def number_of(payload: bytes, run: int) -> int | None:
    """Return the number of a message of the bench ``delivery`` with this run nonce; None for any other."""
    try:
        message = json.loads(payload)
    except (ValueError, RecursionError):  # UnicodeDecodeError is one too
        return None
    if not isinstance(message, dict) or message.get("run") != run:
        return None
    number = message.get("n")
    return number if type(number) is int else None


def sighting_of(
    segments: Sequence[MqttSegment],
    *,
    run: int,
    towards: Sequence[int] = (),
    leaving: Sequence[int] = (),
    complete: bool,
) -> Sighting:
    """Collect PUBLISH packets that go to broker ports ``towards``, or come from broker ports ``leaving``.

    What lies behind a hole in a connection's bytes cannot be dissected, whether or not it was captured, nor
    frames that are unreadable: such a sighting is not complete, whatever ``complete`` says of the capture.
    """
    to_broker, from_broker = frozenset(towards), frozenset(leaving)
    seen: dict[int, int] = {}
    empty_count = 0
    acknowledged: set[int] = set()
    sent: dict[tuple[int, int], int] = {}  # connection and packet id → number of the message sent last by it
    ours: list[MqttSegment] = []
    for segment in segments:
        goes_by = segment.destination_port in to_broker or segment.source_port in from_broker
        answers = segment.source_port in to_broker
        if goes_by:
            ours.append(segment)
        for pdu in segment.pdus:
            if goes_by and pdu.kind == "PUBLISH":
                empty_count += not pdu.payload
                number = number_of(pdu.payload, run)
                if number is None:
                    sent.pop((segment.stream, pdu.id), None)
                    continue
                seen[number] = min(segment.time_us, seen.get(number, segment.time_us))
                if pdu.qos:
                    sent[segment.stream, pdu.id] = number
            elif answers and pdu.kind in _ANSWERS and (segment.stream, pdu.id) in sent:
                acknowledged.add(sent[segment.stream, pdu.id])
    whole = complete and not has_holes(ours) and not any(segment.unreadable for segment in ours)
    return Sighting(seen, whole, empty_count, frozenset(acknowledged))


def has_holes(segments: Iterable[MqttSegment]) -> bool:
    """Return whether bytes of a connection were seen behind others that never were, in one direction each."""
    streams: defaultdict[tuple[int, str, int], list[MqttSegment]] = defaultdict(list)
    for segment in segments:
        if segment.payload_bytes or segment.syn:
            streams[segment.stream, segment.source, segment.source_port].append(segment)
    return any(_has_hole(stream) for stream in streams.values())


def _has_hole(stream: Sequence[MqttSegment]) -> bool:
    """Follow one direction of a connection; sequence numbers wrap, so each is taken near the one before."""
    spans: list[tuple[int, int]] = []
    near = stream[0].sequence
    for segment in stream:
        near = unwrapped(segment.sequence, near)
        spans.append((near, near + segment.payload_bytes + segment.syn))
    spans.sort()
    end = spans[0][1]
    for start, stop in spans:
        if start > end:
            return True
        end = max(end, stop)
    return False


GAP_US = 1_000_000
_INTERVALS_MIN = 2  # a deviation needs two


def stream_facts(arrivals: Sequence[Arrival]) -> Mapping[str, int | float | None]:
    """Return gaps_over_1s_count, gap_longest_us, interarrival_cv; None where fewer than two (three) arrived.

    The coefficient of variation is the intervals' sample deviation by their mean: 0 for a metronome, 1 for
    arrivals at random, more for bursts. Each copy of a message is an arrival.
    """
    times = sorted(arrival.time_us for arrival in arrivals)
    intervals = [after - before for before, after in itertools.pairwise(times)]
    if not intervals:
        return {"gaps_over_1s_count": None, "gap_longest_us": None, "interarrival_cv": None}
    return {
        "gaps_over_1s_count": sum(interval > GAP_US for interval in intervals),
        "gap_longest_us": max(intervals),
        "interarrival_cv": _variation(intervals),
    }


def _variation(intervals: Sequence[int]) -> float | None:
    mean = statistics.fmean(intervals)
    if len(intervals) < _INTERVALS_MIN or mean == 0:
        return None
    return statistics.stdev(intervals) / mean

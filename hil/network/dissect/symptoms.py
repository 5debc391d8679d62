# SPDX-License-Identifier: Apache-2.0
"""The symptoms that people look for in Wireshark, each with the display filter that counts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hil.network.dissect.segments import FRAMES_FILTER, MqttSegment

_COMPLETE = frozenset(7 | end | data for end in (16, 32, 48) for data in (0, 8))
_LISTS = "-o tcp.reassemble_out_of_order:TRUE -T fields -E occurrence=a -E aggregator=,"


@dataclass(frozen=True)
class Symptom:
    """``name`` is the fact's (``duplicate_ack_count``), ``label`` Wireshark's, ``display_filter`` what gives
    the same count in tshark; ``meaning`` says what it tells and what it does not.

    Where no filter counts it, ``display_filter`` is a command of the shell that prints the count: FILE stands
    for the capture, and a broker's port other than 1883 needs ``-d tcp.port==PORT,mqtt`` beside it.
    """

    name: str
    label: str
    display_filter: str
    meaning: str


SYMPTOMS: tuple[Symptom, ...] = (
    Symptom(
        "duplicate_ack_count",
        "Dup ACK",
        "tcp.analysis.duplicate_ack",
        "The receiver got something beyond what it waits for: a segment before that was lost or overtaken. "
        "Not whose fault that is; a duplicated ACK looks the same.",
    ),
    Symptom(
        "retransmission_count",
        "Retransmission",
        "tcp.analysis.retransmission",
        "The sender sent again, after a timeout or duplicate ACKs. Not that the first one was lost: its ACK "
        "may have been. Fast and spurious ones are among them.",
    ),
    Symptom(
        "fast_retransmission_count",
        "Fast Retransmission",
        "tcp.analysis.fast_retransmission",
        "Sent again within 20 ms of the second duplicate ACK or later ones. A guess from times.",
    ),
    Symptom(
        "spurious_retransmission_count",
        "Spurious Retransmission",
        "tcp.analysis.spurious_retransmission",
        "Sent again although the capture had seen it acknowledged: the ACK was lost behind the capture, or "
        "the sender's timer was shorter than the round trip.",
    ),
    Symptom(
        "out_of_order_count",
        "Out-Of-Order",
        "tcp.analysis.out_of_order",
        "Came after what follows it, soon enough not to be called a retransmission. On a fast path a "
        "retransmission is easily called so.",
    ),
    Symptom(
        "lost_segment_count",
        "Previous segment not captured",
        "tcp.analysis.lost_segment",
        "A hole in the sequence numbers: lost before the capture, still to come, or dropped by the capture "
        "itself. Only the capture's own count of drops tells the last one.",
    ),
    Symptom(
        "empty_publish_count",
        "Empty publish payload",
        f"tshark -r FILE {_LISTS} -Y mqtt -e mqtt.msg | tr , '\\n' | grep '<MISSING>' | wc -l",
        "A PUBLISH whose length is used up by topic and id: somebody sent no payload. In Wireshark's packet "
        "list most that look empty are segments captured without their start, which are none.",
    ),
    Symptom(
        "reassembled_pdu_count",
        "Several publishes in one segment",
        f"tshark -r FILE {_LISTS} -Y mqtt -e mqtt.msgtype"
        " | awk -F, '{n = 0; for (i = 1; i <= NF; i++) n += $i == 3; c += n > 1} END {print c + 0}'",
        "Segments with which more than one PUBLISH is complete: the sender gathered them (Nagle's algorithm, "
        "one write of several), or one of them waited for a lost segment. Not a fault.",
    ),
    Symptom(
        "incomplete_conversation_count",
        "Conversation incomplete",
        f"tshark -2 -r FILE -Y '{FRAMES_FILTER} && !(tcp.completeness in {{"
        + ", ".join(str(value) for value in sorted(_COMPLETE))
        + "})' -T fields -e tcp.stream | sort -u | wc -l",
        "Connections of which the handshake or the end is not in the capture. One that was open when the "
        "capture began or stopped is incomplete and sound.",
    ),
)


def count_symptoms(segments: Sequence[MqttSegment]) -> Mapping[str, int]:
    """Return each symptom's count by name: as many as tshark shows frames with the filter."""
    return {symptom.name: _counter(symptom)(segments) for symptom in SYMPTOMS}


def _counter(symptom: Symptom) -> Callable[[Sequence[MqttSegment]], int]:
    own = {
        "empty_publish_count": _empty_publishes,
        "reassembled_pdu_count": _several_publishes,
        "incomplete_conversation_count": _incomplete,
    }
    return own.get(symptom.name) or _flagged(symptom.name.removesuffix("_count"))


def _flagged(flag: str) -> Callable[[Sequence[MqttSegment]], int]:
    return lambda segments: sum(1 for one in segments if flag in one.analysis)


def _empty_publishes(segments: Sequence[MqttSegment]) -> int:
    return sum(pdu.kind == "PUBLISH" and not pdu.payload for one in segments for pdu in one.pdus)


def _several_publishes(segments: Sequence[MqttSegment]) -> int:
    return sum(sum(pdu.kind == "PUBLISH" for pdu in one.pdus) > 1 for one in segments if len(one.pdus) > 1)


def _incomplete(segments: Sequence[MqttSegment]) -> int:
    return len({one.stream for one in segments if one.completeness not in _COMPLETE})

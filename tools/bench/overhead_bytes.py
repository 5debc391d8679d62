# SPDX-License-Identifier: Apache-2.0
"""What isolated publishes cost by formula, and what was captured."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.network.dissect import Overhead, Segment, expected_overhead, overhead_of
from hil.network.dissect.overhead import LWIP_SYN_OPTIONS_BYTES, PARTS
from tests.network.dissect_rig import CLIENT_ID, TOPIC, DissectLab, dissect_lab
from tools.bench.figure import Figure

COUNT = 3
PAYLOADS_BYTES = (1, 100, 1500, 10_240)
CASES = [(qos, payload) for qos in (0, 1, 2) for payload in PAYLOADS_BYTES]


@dataclass(frozen=True)
class Compared:
    """One connection: COUNT isolated publishes as captured, and what they must cost."""

    qos: int
    payload_bytes: int
    timestamps: bool
    frames_bytes: int
    captured: Overhead
    expected: Overhead

    @property
    def differences(self) -> list[str]:
        found = [
            f"{name} {self.captured.parts[name]} B instead of {self.expected.parts[name]} B"
            for name in PARTS
            if self.captured.parts[name] != self.expected.parts[name]
        ]
        total = sum(self.captured.parts.values())
        return found + (
            [f"parts add up to {total}, frames to {self.frames_bytes}"] * (total != self.frames_bytes)
        )

    @property
    def label(self) -> str:
        return f"QoS {self.qos}, {self.payload_bytes} B{', timestamps' if self.timestamps else ''}"


def compare(lab: DissectLab, *, timestamps: bool) -> list[Compared]:
    """Capture all cases and set each beside its formula.

    How many ACKs a receiver sends for parts of a message, and whether for DISCONNECT, is up to its TCP: these
    two counts are taken from the capture.
    """
    lab.linux_options(timestamps)
    with lab.capture() as path:
        lab.isolated(CASES, count=COUNT)
    streams: dict[int, list[Segment]] = {}
    for segment in lab.segments(path):
        streams.setdefault(segment.stream, []).append(segment)
    return [
        _compared(lab, case, segments, timestamps)
        for case, segments in zip(CASES, streams.values(), strict=True)
    ]


def _compared(
    lab: DissectLab, case: tuple[int, int], segments: Sequence[Segment], timestamps: bool
) -> Compared:
    qos, payload_bytes = case
    captured = overhead_of(segments, board=lab.board_address)
    expected = expected_overhead(
        qos=qos,
        payload_bytes=payload_bytes,
        topic=TOPIC,
        client_id=CLIENT_ID,
        count=COUNT,
        timestamps=timestamps,
        syn_options_bytes=None if timestamps else LWIP_SYN_OPTIONS_BYTES,
        partial_acks=captured.counts["tcp_ack_only"] - COUNT,
        connection_acks=captured.counts["connection_ack"],
    )
    frames_bytes = sum(one.frame_bytes for one in segments)
    return Compared(qos, payload_bytes, timestamps, frames_bytes, captured, expected)


def figure(rows: Sequence[Compared]) -> Figure:
    return Figure(
        title=f"Bytes of {COUNT} isolated publishes: by formula, as captured",
        columns=[
            "QoS, payload",
            "SYN options",
            "ACKs alone",
            "connection",
            "captured",
            "messages",
            "captured",
        ],
        rows=[
            [
                f"{one.qos}, {one.payload_bytes} B",
                "Linux" if one.timestamps else "lwIP",
                str(one.captured.counts["tcp_ack_only"]),
                str(one.expected.connection_bytes),
                str(one.captured.connection_bytes),
                str(one.expected.message_bytes),
                str(one.captured.message_bytes),
            ]
            for one in rows
        ],
        note=f"Frames of Ethernet without FCS; topic {TOPIC!r}, client {CLIENT_ID!r}; Linux's options have "
        "timestamps. Connection: handshake, CONNECT, CONNACK, DISCONNECT, FIN. Each part is compared.",
        missed=[f"{one.label}: {difference}" for one in rows for difference in one.differences],
        exact=True,
    )


def overhead_bytes(*, short: bool) -> Figure:
    """Compare the bytes of isolated publishes in a capture, part by part, with the formula.

    A short pass is the whole, which takes five seconds.
    """
    with tempfile.TemporaryDirectory(prefix="hil-overhead-") as folder, dissect_lab(Path(folder)) as lab:
        rows = [*compare(lab, timestamps=True), *compare(lab, timestamps=False)]
    return figure(rows)

# SPDX-License-Identifier: Apache-2.0
"""The truth that the ledger is measured against, and that the measurement can fail."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from pathlib import Path

import dpkt
import pytest

from hil.network.ledger.points import POINTS, Owner
from tools.bench.loss_compared import MESSAGES_MIN, Compared, figure_of
from tools.bench.loss_scenarios import SCENARIOS
from tools.bench.loss_truth import Truth, numbers_at, numbers_in, places_plain, reached_from

BOARD, HOST, PORT, OWN_PORT, RUN = "10.77.0.2", "10.77.0.1", 1883, 50_000, 7
FIRST = (1 << 32) - 100  # sequence numbers wrap
SYN, ACK, RST = dpkt.tcp.TH_SYN, dpkt.tcp.TH_ACK, dpkt.tcp.TH_RST


def publish(number: int, *, run: int = RUN, qos: int = 0) -> bytes:
    payload = json.dumps({"n": number, "run": run, "pad": "x" * 120}).encode()
    body = b"\x00\x01t" + (b"\x00\x05" if qos else b"") + payload
    return bytes([0x30 | qos << 1, len(body) & 0x7F | 0x80, len(body) >> 7]) + body


def frame(at: int, data: bytes = b"", *, flags: int = ACK, down: bool = False, ack: int = 0) -> bytes:
    """Return a frame from the board with its position in the stream, or one to it that acknowledges."""
    ends = (PORT, OWN_PORT) if down else (OWN_PORT, PORT)
    sequence = 0 if down else (FIRST + at) % (1 << 32)
    tcp = dpkt.tcp.TCP(
        sport=ends[0], dport=ends[1], seq=sequence, ack=(FIRST + ack) % (1 << 32), flags=flags, data=data
    )
    source, destination = (HOST, BOARD) if down else (BOARD, HOST)
    ip = dpkt.ip.IP(src=socket.inet_aton(source), dst=socket.inet_aton(destination), p=6, data=tcp)
    ip.len = len(ip)
    return bytes(dpkt.ethernet.Ethernet(src=b"\x02" * 6, dst=b"\x04" * 6, data=ip))


def capture(path: Path, frames: Iterable[tuple[int, bytes]]) -> Path:
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file, nano=False)
        for time_us, content in frames:
            writer.writepkt(content, ts=1000 + time_us / 1e6)
    return path


def test_a_message_is_transmitted_when_every_byte_of_it_was_sent(tmp_path: Path) -> None:
    """Put together from segments in any order, sent twice or cut differently; the last one is cut off."""
    stream = publish(1) + publish(2, run=9) + publish(3, qos=1) + publish(4)
    cut = len(stream) - 1
    frames = [
        (0, frame(-1, flags=SYN)),
        (1, frame(0, stream[:50])),
        (2, frame(150, stream[150:cut])),
        (3, frame(40, stream[40:160])),
    ]
    path = capture(tmp_path / "a.pcap", frames)
    assert [place.number for place in places_plain(path, PORT, RUN)] == [1, 3]
    assert places_plain(path, PORT + 1, RUN) == []


def test_a_message_reached_the_host_that_acknowledged_or_reset_it(tmp_path: Path) -> None:
    """An acknowledgement of its last byte, or a reset in answer to a segment with it; nothing else."""
    size = len(publish(1))
    stream = b"".join(publish(number) for number in range(1, 5))
    frames = [
        (0, frame(-1, flags=SYN)),
        (1, frame(0, stream)),
        (2, frame(0, down=True, ack=size)),
        (900_000, frame(size, stream[size : 2 * size])),
        (901_000, frame(0, down=True, flags=RST | ACK, ack=size)),
    ]
    path = capture(tmp_path / "a.pcap", frames)
    places = places_plain(path, PORT, RUN)
    assert reached_from(path, PORT, places) == {1, 2}
    further = capture(tmp_path / "b.pcap", [frames[0], (1, frame(size + 9, stream[size + 9 : 3 * size]))])
    assert numbers_at(further, PORT, places) == {3}  # behind a hole, and yet there


@pytest.mark.parametrize(
    ("number", "takes", "owner"),
    [
        (0, Owner.ACCESS_POINT, Owner.DEVICE_CALL),
        (1, Owner.ACCESS_POINT, Owner.DEVICE_TCP),
        (2, Owner.ACCESS_POINT, Owner.ACCESS_POINT),
        (3, Owner.BROKER_IN, Owner.BROKER_OUT),
        (4, Owner.BROKER_IN, Owner.SUBSCRIBER),
        (5, Owner.BROKER_IN, Owner.ARRIVED),
        (2, None, Owner.ACCESS_POINT),
        (6, None, Owner.BROKER_IN),
        (7, None, Owner.BROKER_OUT),
    ],
)
def test_the_truth_is_where_a_message_was_last(number: int, takes: Owner | None, owner: Owner) -> None:
    """A refusal counts only for what was not sent; what was sent and lost is the fault's."""
    truth = Truth(
        outcomes=[2, 0, 2, 0, 0, 2, 0, 0],
        transmitted=frozenset(range(2, 8)),
        reached=frozenset({3, 4, 5}),
        at_access_point=frozenset({3, 4, 5, 6, 7}),
        at_broker=frozenset({3, 4, 5, 7}),
        dropped=frozenset({4}),
        arrived=frozenset({5}),
    )
    assert truth.owner_of(number, takes) is owner


def test_the_subscribers_files_are_read_by_nonce(tmp_path: Path) -> None:
    """arrivals.csv says whose a message is, dropped.csv is this case's; no file is no message."""
    (tmp_path / "a.csv").write_text(f"number,run\n1,{RUN}\n2,8\n")
    (tmp_path / "d.csv").write_text("number\n3\n")
    assert numbers_in(tmp_path / "a.csv", RUN) == {1}
    assert numbers_in(tmp_path / "d.csv", RUN) == {3}
    assert numbers_in(tmp_path / "none.csv", RUN) == frozenset()


def compared(*pairs: tuple[Owner, Owner], contradictions: tuple[str, ...] = ()) -> Compared:
    return Compared(SCENARIOS[0], "tcp", pairs, contradictions)


def test_the_measurement_fails_for_one_wrong_owner_and_for_what_it_did_not_try() -> None:
    """Wrong are another name, a loss that arrived, an arrival that is lost or unknown; no unknown loss."""
    every = tuple((Owner(point), Owner(point)) for point in POINTS)
    arrived = ((Owner.ARRIVED, Owner.ARRIVED),) * MESSAGES_MIN
    fine = compared(*every, (Owner.ACCESS_POINT, Owner.UNDETERMINED), *arrived)
    assert not figure_of([fine]).missed
    assert fine.cells()[2:7] == (str(MESSAGES_MIN + 7), "7", "6", "1", "0")
    for pair in (
        (Owner.ACCESS_POINT, Owner.BROKER_IN),
        (Owner.SUBSCRIBER, Owner.ARRIVED),
        (Owner.ARRIVED, Owner.SUBSCRIBER),
        (Owner.ARRIVED, Owner.UNDETERMINED),
    ):
        missed = figure_of([fine, compared(pair, every[0])]).missed
        assert missed == [f"{SCENARIOS[0].name}, tcp: 1 lost at {pair[0].word}, named {pair[1].word}"]
    assert "nothing was lost" in str(figure_of([fine, compared(*arrived)]).missed)
    assert "at broker_in" in str(figure_of([compared(*every[:3], *arrived)]).missed)
    assert "fewer than" in str(figure_of([compared(*every)]).missed)
    assert "it says 3" in str(figure_of([compared(*every, *arrived, contradictions=("it says 3",))]).missed)

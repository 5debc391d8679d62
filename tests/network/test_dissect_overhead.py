# SPDX-License-Identifier: Apache-2.0
"""Every byte of a board's connections has one part; how many packets share a segment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hil.network.dissect.bundling import Bundling, bundling_of
from hil.network.dissect.overhead import MESSAGE_PARTS, Overhead, overhead_of
from hil.network.dissect.segments import MqttPorts, MqttSegment, read_segments
from tests.history.segment_files import (
    ACK,
    CLIENT,
    FIN,
    RST,
    SERVER,
    SegmentFile,
    answer,
    mqtt,
    publish,
    subscribe,
)
from tests.network.dissect_rig import (
    BOARD,
    CLIENT_ID,
    TOPIC,
    DissectLab,
    broker_with_nagle,
    dissect_lab,
    dissected,
    opened,
    wide_start,
)

MAKE_LAB = dissect_lab
pytestmark = pytest.mark.slow

HEADERS = 14 + 20 + 32
COUNT = 100
GAP_S = 0.0005


def overhead(file: SegmentFile, folder: Path) -> Overhead:
    """Add up a file, of which every byte must be in one part."""
    return whole(dissected(file, folder), CLIENT)


def whole(segments: Sequence[MqttSegment], board: str) -> Overhead:
    found = overhead_of(segments, board=board)
    assert sum(found.parts.values()) == sum(one.frame_bytes for one in segments)
    assert min(found.parts.values()) >= 0
    assert found.counts["frames"] == len(segments)
    return found


def some(found: Overhead) -> dict[str, int]:
    return {name: size for name, size in found.parts.items() if size}


def established() -> SegmentFile:
    file = opened()
    file.client()
    return file


def test_a_connections_own_cost_is_apart_from_its_messages(tmp_path: Path) -> None:
    """Frames of the connection count as a whole, those of messages layer by layer."""
    file = established()
    file.client(subscribe("t"))
    file.server(mqtt(0x90, b"\0\1\0"))
    file.client(mqtt(0xC0))
    file.server(mqtt(0xD0))
    file.client(publish("t", b"payload", qos=1, message_id=2))
    file.server(answer(0x40, 2))
    file.client()
    file.client(mqtt(0xE0))
    file.server(flags=FIN | ACK)
    file.client(flags=FIN | ACK)
    file.server()
    assert some(overhead(file, tmp_path)) == (
        {"handshake": 3 * HEADERS, "connect": HEADERS + 19, "connack": HEADERS + 4, "connection_ack": HEADERS}
        | {"subscribe": HEADERS + 8, "suback": HEADERS + 5, "ping": 2 * (HEADERS + 2)}
        | {"disconnect": HEADERS + 2, "fin": 3 * HEADERS, "tcp_ack_only": HEADERS}
        | {"ethernet": 28, "ip": 40, "tcp": 40, "tcp_options": 24}
        | {"publish_payload": 7, "publish_header": 7, "puback": 4}
    )


def test_counts_are_of_packets_frames_and_connections(tmp_path: Path) -> None:
    """Packets count by kind; an ACK that rides on data is told from one alone."""
    file = established()
    file.client(publish("t", b"1", qos=2, message_id=1) + publish("t", b"2"))
    file.server(answer(0x50, 1))
    file.client(answer(0x62, 1))
    file.server(answer(0x70, 1))
    counts = overhead(file, tmp_path).counts
    kinds = ("publish", "pubrec", "pubrel", "pubcomp")
    assert {kind: counts[kind] for kind in kinds} == {"publish": 2, "pubrec": 1, "pubrel": 1, "pubcomp": 1}
    assert (counts["connections"], counts["message_frames"], counts["handshake"]) == (1, 4, 3)
    assert counts["piggybacked_ack"] == 4  # CONNACK's, PUBREC's, PUBREL's, PUBCOMP's
    assert counts["tcp_ack_only"] == 0


def test_bytes_that_are_no_packets_are_undissected(tmp_path: Path) -> None:
    """A capture that begins inside a payload of zeros has no DISCONNECT, and every byte in a part."""
    file = SegmentFile()
    file.client(bytes(1448))
    file.server()
    found = overhead(file, tmp_path)
    assert (found.counts["disconnect"], found.counts["undissected"]) == (0, 1)
    assert some(found) == {"undissected": HEADERS + 1448, "tcp_ack_only": HEADERS}


def test_what_is_sent_again_asked_or_unreadable_is_apart(tmp_path: Path) -> None:
    """Repeated segments, keep-alives, RST, padding and bytes of a packet without end have their places."""
    file = established()
    at = file.next[True]
    file.client(publish("t", b"x" * 10), padding=5)
    file.client(publish("t", b"x" * 10), sequence=at, gap_s=0.3)
    file.server()
    file.client(b"\0", sequence=file.next[True] - 1, gap_s=60)
    file.server(gap_s=0.01)
    file.client(publish("t", b"y" * 100)[:50])
    file.server(flags=RST | ACK)
    found = overhead(file, tmp_path)
    places = {"retransmitted": HEADERS + 15, "ethernet": 14 + 5, "tcp_probe": 2 * HEADERS + 1, "rst": HEADERS}
    places |= {"undissected": HEADERS + 50, "tcp_ack_only": HEADERS}
    assert places.items() <= found.parts.items()


def test_a_long_message_and_what_rides_with_it_are_the_messages(tmp_path: Path) -> None:
    """Segments in which no packet ends belong to the one that ends next; DISCONNECT behind it rides along."""
    file = established()
    packet = publish("t", b"x" * 2500)
    file.client(packet[:1000])
    file.client(packet[1000:2000])
    file.client(packet[2000:] + mqtt(0xE0))
    found = overhead(file, tmp_path)
    assert found.counts["message_frames"] == 3
    assert found.parts["ip"] == 60
    assert found.parts["publish_payload"] + found.parts["publish_header"] == len(packet)
    assert found.parts["disconnect"] == 2


def test_facts_name_parts_and_counts_of_the_boards_connections(tmp_path: Path) -> None:
    """Facts are overhead_<part>_bytes and overhead_<name>_count, zeros too; another host's do not count."""
    segments = dissected(established(), tmp_path)
    facts = overhead_of(segments, board=CLIENT).facts()
    assert facts["overhead_connect_bytes"] == HEADERS + 19
    assert facts["overhead_publish_count"] == 0
    assert facts["overhead_tls_record_bytes"] == 0
    assert {name.rpartition("_")[2] for name in facts} == {"bytes", "count"}
    assert overhead_of(segments, board="10.0.0.9").counts["frames"] == 0
    assert overhead_of(segments, board=SERVER).counts["connections"] == 1


@pytest.mark.parametrize("timestamps", [True, False])
def test_isolated_publishes_cost_what_their_protocols_say(lab: DissectLab, timestamps: bool) -> None:
    """A connection each of QoS 0, 1 and 2, really captured: each packet and its headers to the byte."""
    lab.linux_options(timestamps)
    with lab.capture() as path:
        lab.isolated([(0, 100), (1, 100), (2, 10_240)], count=5)
    parts = whole(lab.segments(path), lab.board_address).parts
    headers = 54 + 12 * timestamps
    syn_options = 20 if timestamps else 4
    publish_header = 1 + 1 + 2 + len(TOPIC)
    assert parts["handshake"] == 3 * (2 * (54 + syn_options) + headers)
    assert parts["connect"] == 3 * (headers + 14 + len(CLIENT_ID))
    assert (parts["connack"], parts["disconnect"]) == (3 * (headers + 4), 3 * (headers + 2))
    # a busy host may acknowledge the end of the other side before its own end is ready
    assert parts["fin"] in [count * headers for count in range(3 * 3, 3 * 4 + 1)]
    assert parts["publish_payload"] == 5 * (100 + 100 + 10_240)
    assert parts["publish_header"] == 5 * (3 * publish_header + 2 * 2 + 1)  # packet ids, a longer length
    assert [parts[kind] for kind in ("puback", "pubrec", "pubrel", "pubcomp")] == [5 * 4] * 4
    assert parts["retransmitted"] == parts["undissected"] == 0


def test_with_tls_every_byte_has_its_part_too(lab: DissectLab) -> None:
    """Records add 22 bytes each with TLS 1.3; without keys everything behind the handshake is unreadable."""
    lab.linux_options(False)
    with lab.capture() as path:
        lab.isolated([(1, 100), (2, 10_240)], count=2, tls=True)
    read = whole(lab.segments(path, key_log=lab.key_log), lab.board_address)
    packets = sum(
        read.counts[kind]
        for kind in ("connect", "connack", "publish", "puback", "pubrec", "pubrel", "pubcomp", "disconnect")
    )
    assert packets == 2 * 3 + 2 * 2 + 2 * 4
    assert read.parts["tls_record"] == packets * 22
    assert read.parts["undissected"] == 0
    assert read.parts["tls_handshake"] > 2000
    assert read.parts["publish_payload"] == 2 * 100 + 2 * 10_240
    closed = whole(lab.segments(path), lab.board_address)
    assert sum(closed.parts[name] for name in MESSAGE_PARTS) == closed.parts["tcp_ack_only"]
    assert closed.parts["undissected"] > read.parts["publish_payload"]


def test_a_lossy_air_costs_what_is_sent_again(lab: DissectLab) -> None:
    """With loss the parts still add up, and the messages' own bytes are those without loss."""
    lab.linux_options(False)
    lab.rack.air.set(BOARD, "both", delay_us=2000, loss_ppm=50_000, reorder_ppm=20_000)
    try:
        with lab.capture() as path:
            lab.publish(qos=1, payload_bytes=1000, count=100, gap_s=0.001)
    finally:
        lab.rack.air.set(BOARD, "both", delay_us=0, loss_ppm=0, reorder_ppm=0)
    found = whole(lab.segments(path), lab.board_address)
    assert found.parts["publish_payload"] == 100 * 1000
    assert found.parts["puback"] == 100 * 4
    assert found.parts["undissected"] == 0
    assert found.parts["retransmitted"] > 0


def test_packets_are_counted_in_the_segments_that_hold_them(tmp_path: Path) -> None:
    """Publishes, PUBRELs and PUBCOMPs of a segment are counted there, in their own direction. Without
    segments the counts are 0 and the delays unknown."""
    file = opened()
    file.client(publish("t", b"1") + publish("t", b"2") + publish("t", b"3"))
    file.client(publish("t", b"4") + answer(0x62, 1) + answer(0x62, 2))
    file.server(answer(0x70, 1) + answer(0x70, 2) + answer(0x70, 3))
    segments = dissected(file, tmp_path)
    up = bundling_of(segments, sender=CLIENT, ports=(1883,)).facts("up_")
    assert up == (
        {"up_publishes_count": 4, "up_publish_segments_count": 2, "up_publishes_per_segment_max": 3}
        | {"up_pubrels_per_segment_max": 2, "up_pubcomps_per_segment_max": 0}
        | {"up_ack_delay_p50_us": 1000, "up_ack_delay_max_us": 2000}  # of 1, 1 and 2 ms
        | {"up_first_segment_p50_bytes": None, "up_segment_max_bytes": 19}
    )
    assert bundling_of(segments, sender=SERVER, ports=(1883,)).pubcomps_per_segment_max == 3
    assert bundling_of(segments, sender=CLIENT, ports=(8883,)).publishes_count == 0
    nothing = bundling_of([], sender=CLIENT).facts("ap_up_")
    assert (nothing["ap_up_publishes_count"], nothing["ap_up_ack_delay_p50_us"]) == (0, None)


def test_packets_that_waited_for_a_lost_segment_are_no_bundle(tmp_path: Path) -> None:
    """A late segment completes the packets behind it for tshark, but holds its own only."""
    file = opened()
    start = file.next[True]
    first = publish("t", b"0")
    file.client(first, capture=False)
    for number in range(1, 5):
        file.client(publish("t", b"%d" % number))
    file.client(first, sequence=start, gap_s=0.3)
    segments = dissected(file, tmp_path)
    assert len(segments[-1].pdus) == 5
    found = bundling_of(segments, sender=CLIENT)
    assert (found.publishes_count, found.publish_segments_count, found.publishes_per_segment_max) == (5, 5, 1)


def test_a_segment_that_was_sent_again_has_no_delay(tmp_path: Path) -> None:
    """The delay of an acknowledgement is that of segments sent once, to the first that acknowledges them."""
    file = opened()
    packet = publish("t", b"1")
    start = file.next[True]
    file.client(packet)
    file.client(packet, sequence=start, gap_s=0.3)
    file.server(gap_s=0.005)
    file.client(publish("t", b"2"))
    file.client(publish("t", b"3"), gap_s=0.010)
    file.server(gap_s=0.040)
    file.server(gap_s=0.040)
    segments = dissected(file, tmp_path)
    assert bundling_of(segments, sender=CLIENT).ack_delays_us == (1000, 50_000, 40_000)


def test_first_segments_of_long_messages_are_told(tmp_path: Path) -> None:
    """Of a message of several segments the first one's size is noted; one that fits its segment has none."""
    file = opened()
    long = publish("t", b"x" * 3000)
    for message in (long, publish("t", b"short"), long):
        half = min(len(message), 700 if file.next[True] < 2000 else 1448)
        file.client(message[:half])
        for at in range(half, len(message), 1448):
            file.client(message[at : at + 1448])
    segments = dissected(file, tmp_path)
    assert bundling_of(segments, sender=CLIENT).first_segments_bytes == (700, 1448)


def test_on_one_address_the_broker_is_the_side_of_its_port(tmp_path: Path) -> None:
    """Broker and subscriber of one host are told apart by the port."""
    file = opened()
    file.server(publish("t", b"1"))
    segments = dissected(file, tmp_path)
    one_host = [replace(one, source=SERVER, destination=SERVER) for one in segments]
    assert bundling_of(one_host, sender=SERVER, ports=(1883,)).publishes_count == 1
    file.client(publish("t", b"2") + publish("t", b"3"))
    assert bundling_of(segments, sender=CLIENT, ports=(1883,)).publishes_count == 0


@pytest.fixture
def wide(lab: DissectLab) -> Iterator[None]:
    lab.linux_options(True)
    with wide_start(lab):
        yield


def board_sends(lab: DissectLab, *, nodelay: bool) -> Bundling:
    with lab.capture() as path:
        lab.publish(qos=0, payload_bytes=32, count=COUNT, gap_s=GAP_S, nodelay=nodelay)
    return bundling_of(lab.segments(path), sender=lab.board_address, ports=lab.ports.plain)


@pytest.mark.usefixtures("wide")
def test_nagle_gathers_the_publishes_of_a_board(lab: DissectLab) -> None:
    """100 publishes of 32 bytes need a third of the segments or fewer with Nagle's algorithm."""
    gathered, alone = board_sends(lab, nodelay=False), board_sends(lab, nodelay=True)
    assert gathered.publishes_count == alone.publishes_count == COUNT
    assert gathered.publish_segments_count * 3 <= alone.publish_segments_count
    assert gathered.publishes_per_segment_max > 10
    assert alone.publishes_per_segment_max < gathered.publishes_per_segment_max


@pytest.mark.usefixtures("wide")
def test_nagle_gathers_the_publishes_of_a_broker(lab: DissectLab) -> None:
    """The broker's set_tcp_nodelay decides the same for what it sends to a subscriber."""
    found = []
    with broker_with_nagle(lab) as nagle:
        for broker in (nagle, lab.broker):
            with lab.capture() as path:
                subscriber = lab.subscribe(broker, count=COUNT)
                lab.publish(qos=0, payload_bytes=32, count=COUNT, gap_s=GAP_S, on_board=False, broker=broker)
                assert subscriber.wait(20) == 0
            ports = MqttPorts((broker.ports.tcp,))
            segments = read_segments(path, ports)
            found.append(bundling_of(segments, sender=broker.address, ports=ports.plain))
    gathered, alone = found
    assert gathered.publishes_count == alone.publishes_count == COUNT
    assert gathered.publish_segments_count * 3 <= alone.publish_segments_count

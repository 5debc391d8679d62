# SPDX-License-Identifier: Apache-2.0
"""How many packets share a segment: read from captures, and Nagle's algorithm made visible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hil.network.dissect.bundling import Bundling, bundling_of
from hil.network.dissect.segments import MqttPorts, read_segments
from tests.history.segment_files import CLIENT, SERVER, answer, publish
from tests.network.dissect_rig import (
    DissectLab,
    broker_with_nagle,
    dissect_lab,
    dissected,
    opened,
    wide_start,
)

pytestmark = pytest.mark.slow

COUNT = 100
GAP_S = 0.0005


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


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DissectLab]:
    with dissect_lab(tmp_path_factory.mktemp("bundling")) as started, wide_start(started):
        yield started


def board_sends(lab: DissectLab, *, nodelay: bool) -> Bundling:
    with lab.capture() as path:
        lab.publish(qos=0, payload_bytes=32, count=COUNT, gap_s=GAP_S, nodelay=nodelay)
    return bundling_of(lab.segments(path), sender=lab.board_address, ports=lab.ports.plain)


def test_nagle_gathers_the_publishes_of_a_board(lab: DissectLab) -> None:
    """100 publishes of 32 bytes need a third of the segments or fewer with Nagle's algorithm."""
    gathered, alone = board_sends(lab, nodelay=False), board_sends(lab, nodelay=True)
    assert gathered.publishes_count == alone.publishes_count == COUNT
    assert gathered.publish_segments_count * 3 <= alone.publish_segments_count
    assert gathered.publishes_per_segment_max > 10
    assert alone.publishes_per_segment_max < gathered.publishes_per_segment_max


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

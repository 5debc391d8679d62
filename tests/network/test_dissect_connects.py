# SPDX-License-Identifier: Apache-2.0
"""Attempts to connect, as a capture shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.network.dissect import Attempt, MqttPorts, attempts_of, read_segments
from tests.history.segment_files import (
    ACK,
    CLIENT,
    CLIENT_START,
    CONNACK,
    FIN,
    RST,
    SERVER,
    SYN,
    SegmentFile,
    connect,
    publish,
)

pytestmark = pytest.mark.slow

PORTS = MqttPorts(plain=(1883,))


def attempts(file: SegmentFile, folder: Path, client: str = CLIENT) -> list[Attempt]:
    return attempts_of(read_segments(file.write(folder / "x.pcap"), PORTS), client=client, ports=(1883,))


def test_a_connection_that_comes_about_is_timed(tmp_path: Path) -> None:
    """SYN to ACK, CONNECT to CONNACK and the whole are told apart."""
    file = SegmentFile()
    file.client(flags=SYN)
    file.server(flags=SYN | ACK, gap_s=0.010)
    file.client(gap_s=0.001)
    file.client(connect(), gap_s=0.003)
    file.server(CONNACK, gap_s=0.020)
    file.client(publish("t", b"x"))
    (found,) = attempts(file, tmp_path)
    assert (found.tcp_took_us, found.mqtt_took_us, found.took_us) == (11_000, 20_000, 34_000)
    assert (found.syns_count, found.syn_acks_count, found.connects_count) == (1, 1, 1)
    assert found.ended_us is None
    assert not attempts(file, tmp_path, client=SERVER)


def test_syns_that_are_not_answered_are_one_attempt(tmp_path: Path) -> None:
    """A SYN sent three times is one attempt, timed from the first; what never came is unknown."""
    file = SegmentFile()
    file.client(flags=SYN)
    for gap_s in (1.0, 2.0):
        file.client(flags=SYN, sequence=CLIENT_START, gap_s=gap_s)
    (found,) = attempts(file, tmp_path)
    assert found.syns_count == 3
    assert found.last_syn_us - found.syn_us == 3_000_000
    assert (found.tcp_took_us, found.mqtt_took_us, found.took_us) == (None, None, None)


def test_a_connect_without_answer_is_seen(tmp_path: Path) -> None:
    """A CONNECT sent twice and given up by the client shows who ended, and that no CONNACK came."""
    file = SegmentFile()
    file.open()
    start = file.next[True]
    file.client(connect())
    file.client(connect(), sequence=start, gap_s=0.3)
    file.client(flags=FIN | ACK, gap_s=9.7)
    (found,) = attempts(file, tmp_path)
    assert found.connects_count == 2
    assert found.connack_us is None
    assert found.connect_us is not None
    assert found.ended_us == found.connect_us + 10_000_000
    assert found.ended_by_client
    assert not found.reset


def test_a_refusal_is_the_brokers(tmp_path: Path) -> None:
    """A port that nobody listens on answers with RST; the next attempt is another one."""
    file = SegmentFile()
    file.client(flags=SYN)
    file.server(flags=RST | ACK)
    again = SegmentFile(client_port=40001, time_s=file.time_s)
    again.open()
    file.frames += again.frames
    refused, opened = attempts(file, tmp_path)
    assert refused.reset
    assert not refused.ended_by_client
    assert refused.established_us is None
    assert opened.client_port == 40001
    assert opened.established_us is not None


def test_a_connection_that_was_open_before_is_no_attempt(tmp_path: Path) -> None:
    """Without its SYN nobody can say how long a connection took to come about."""
    file = SegmentFile()
    file.client(connect())
    file.server(CONNACK)
    assert not attempts(file, tmp_path)

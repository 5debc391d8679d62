# SPDX-License-Identifier: Apache-2.0
"""MQTT 5 in a capture: topic aliases, properties of every type, AUTH, and reason codes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from hil.network.dissect.overhead import overhead_of
from hil.network.dissect.pdus import Pdu
from hil.network.dissect.segments import MqttSegment
from tests.history.segment_files import ACK, CLIENT, FIN, SYN, SegmentFile, connect, mqtt, text
from tests.network.dissect_rig import dissected, opened

pytestmark = pytest.mark.slow


def properties(*content: bytes) -> bytes:
    whole = b"".join(content)
    return mqtt(0, whole)[1:]  # a length as that of a packet, then what it counts


def alias(number: int) -> bytes:
    return b"\x23" + struct.pack(">H", number)


def user(key: str, value: str) -> bytes:
    return b"\x26" + text(key) + text(value)


def publish(topic: str, payload: bytes, *own: bytes, qos: int = 0, packet_id: int = 0) -> bytes:
    number = struct.pack(">H", packet_id) if qos else b""
    return mqtt(0x30 | qos << 1, text(topic) + number + properties(*own) + payload)


def publishes(segments: list[MqttSegment]) -> list[Pdu]:
    return [pdu for one in segments for pdu in one.pdus if pdu.kind == "PUBLISH"]


def topics(segments: list[MqttSegment]) -> list[str]:
    return [pdu.topic for pdu in publishes(segments)]


def test_each_publish_by_alias_is_a_publish(tmp_path: Path) -> None:
    """One PUBLISH names topic and alias, three have the alias alone: four PUBLISH of one topic."""
    file = opened(level=5)
    file.client(publish("a/b", b'{"seq":2}', alias(1)))
    for number in (3, 4, 5):
        file.client(publish("", b'{"seq":%d}' % number, alias(1)))
    file.client(mqtt(0xE0, b"\0\0"))
    segments = dissected(file, tmp_path)
    assert topics(segments) == ["a/b"] * 4
    assert [pdu.payload for pdu in publishes(segments)] == [b'{"seq":%d}' % number for number in (2, 3, 4, 5)]
    assert not any(one.unreadable for one in segments)
    overhead = overhead_of(segments, board=CLIENT)
    assert (overhead.counts["publish"], overhead.counts["disconnect"]) == (4, 1)


def test_several_in_a_segment_keep_their_own_alias(tmp_path: Path) -> None:
    """Of packets in one segment each has its own topic, whichever names an alias."""
    file = opened(level=5)
    packets = [
        publish("a", b"1", alias(1)),
        publish("plain", b"2", user("k", "v")),
        publish("", b"", b"\x01\x01", alias(1)),
        publish("b", b"4", user("k", "v"), alias(1), b"\x02\0\0\0\x09"),
        publish("", b"5", alias(1), qos=1, packet_id=7),
        mqtt(0x82, b"\0\1" + properties(b"\x0b\xc8\x01") + text("cmd/#") + b"\1" + text("x") + b"\0"),
        publish("c", b"6"),
    ]
    file.client(b"".join(packets))
    segments = dissected(file, tmp_path)
    assert topics(segments) == ["a", "plain", "a", "b", "b", "c"]
    assert [pdu.payload for pdu in publishes(segments)] == [b"1", b"2", b"", b"4", b"5", b"6"]
    assert [pdu.packet_bytes for pdu in segments[-1].pdus] == [len(packet) for packet in packets]


def test_each_direction_has_its_own_aliases(tmp_path: Path) -> None:
    """Alias 1 of the client and alias 1 of the broker are two topics."""
    file = opened(level=5)
    file.client(publish("up", b"", alias(1)))
    file.server(publish("down", b"", alias(1)))
    file.client(publish("", b"1", alias(1)))
    file.server(publish("", b"2", alias(1)))
    assert topics(dissected(file, tmp_path)) == ["up", "down", "up", "down"]


def test_a_connection_that_has_the_same_port_again_begins_without_aliases(tmp_path: Path) -> None:
    """An alias ends with its connection, although the next one has the same addresses and ports."""
    file = opened(level=5)
    file.client(publish("old", b"1", alias(1)))
    file.client(flags=FIN | ACK)
    file.server(flags=FIN | ACK)
    file.next = {True: 900_000, False: 700_000}
    file.open()
    file.client(connect(level=5))
    file.client(publish("", b"2", alias(1)))
    segments = dissected(file, tmp_path)
    assert topics(segments) == ["old", ""]
    assert sum(one.syn and not one.ack for one in segments) == 2
    assert "alias 1," in segments[-1].unreadable


@pytest.mark.parametrize(
    ("packets", "payloads", "said"),
    [
        (
            publish("", b"x", alias(9)) + publish("c", b"y") + publish("", b"z", alias(8)),
            "xyz",
            ("s 9,", "s 8,"),
        ),
        (publish("", b"x"), "x", ("neither",)),
        (publish("", b"x", alias(0)), "x", ("neither",)),
        (publish("t", b"x"), "x", ()),
    ],
)
def test_field_an_alias_that_nobody_gave_is_said(
    tmp_path: Path, packets: bytes, payloads: str, said: tuple[str, ...]
) -> None:
    """The packet counts with its payload; its segment names each alias without a topic. Where neither is
    there, or the alias is 0, a broker ends the connection, and the reader sees why."""
    file = opened(level=5)
    file.client(packets)
    last = dissected(file, tmp_path)[-1]
    assert "".join(pdu.payload.decode() for pdu in last.pdus) == payloads
    assert all(word in last.unreadable for word in said)
    assert bool(last.unreadable) == bool(said)


def test_an_alias_whose_connection_began_before_the_capture_is_said(tmp_path: Path) -> None:
    """Without its CONNECT nobody knows that a connection is of MQTT 5: the properties look like payload."""
    file = SegmentFile()
    file.client(publish("", b"x", alias(1)))
    (segment,) = dissected(file, tmp_path)
    assert [pdu.kind for pdu in segment.pdus] == ["PUBLISH"]
    assert "CONNECT" in segment.unreadable


def test_properties_of_every_type_take_their_place(tmp_path: Path) -> None:
    """Texts, pairs, numbers of each width, a will with its own properties: the payload is what follows."""
    file = SegmentFile()
    file.open()
    flags, keep_alive = bytes([0x06]), b"\0\x3c"
    asked = properties(b"\x11\0\0\0\x3c", b"\x21\0\x14", b"\x22\0\x05", b"\x17\1", b"\x19\1", b"\x27\0\1\0\0")
    will = properties(b"\x18\0\0\0\1", b"\x03" + text("text/plain")) + text("will") + text("gone")
    file.client(mqtt(0x10, text("MQTT") + b"\5" + flags + keep_alive + asked + text("board") + will))
    granted = (b"\x24\1", b"\x25\1", b"\x28\1", b"\x29\1", b"\x2a\0", b"\x13\0\x3c", b"\x12" + text("id"))
    file.server(mqtt(0x20, b"\0\0" + properties(*granted, b"\x1a" + text("i"), b"\x1c" + text("s"))))
    own = (
        b"\x03" + text("text/plain"),
        b"\x08" + text("r/ä"),
        b"\x09" + text("c"),
        b"\x0b\xc8\1",
        user("", ""),
    )
    file.client(publish("t", b"payload", *own, alias(3)) + publish("", b"more", alias(3)))
    segments = dissected(file, tmp_path)
    assert [(pdu.topic, pdu.payload) for pdu in publishes(segments)] == [("t", b"payload"), ("t", b"more")]
    assert [one.pdus[0].kind for one in segments if one.pdus] == ["CONNECT", "CONNACK", "PUBLISH"]
    assert not any(one.unreadable for one in segments)


def test_answers_with_a_reason_have_their_id(tmp_path: Path) -> None:
    """An acknowledgement of MQTT 5 has no reason, a reason, or a reason and properties; AUTH has no id."""
    file = opened(level=5)
    why = properties(b"\x1f" + text("why"), user("a", "b"))
    acknowledgements = [b"\0\7", b"\0\x08\x10", b"\0\x09\x10\0", b"\0\x0a\x97" + why]
    file.server(b"".join(mqtt(0x40, body) for body in acknowledgements))
    file.server(mqtt(0xF0, b"\x18" + properties(b"\x15" + text("SCRAM"), b"\x16" + text("x"))) + mqtt(0xF0))
    file.client(mqtt(0xA2, b"\0\2" + properties(user("s", "t")) + text("cmd/#") + text("x")))
    file.server(mqtt(0xB0, b"\0\2\0\0\x11") + mqtt(0xE0, b"\x8e" + properties(b"\x1f" + text("taken"))))
    found = [(pdu.kind, pdu.id) for one in dissected(file, tmp_path) for pdu in one.pdus][2:]
    assert found == [
        *(("PUBACK", number) for number in (7, 8, 9, 10)),
        *(("AUTH", 0), ("AUTH", 0), ("UNSUBSCRIBE", 2), ("UNSUBACK", 2), ("DISCONNECT", 0)),
    ]


def test_a_property_that_mqtt_does_not_know_is_said(tmp_path: Path) -> None:
    """Packets that cannot be read are named, and their bytes are booked as not dissected."""
    file = opened(level=5)
    file.client(publish("t", b"x", b"\x7e\x01"))
    file.client(mqtt(0xE0, b"\0\0"))
    segments = dissected(file, tmp_path)
    assert "do not add up" in segments[-2].unreadable
    overhead = overhead_of(segments, board=CLIENT)
    assert overhead.counts["undissected"] == 1
    assert overhead.parts["undissected"] == segments[-2].frame_bytes
    assert sum(overhead.parts.values()) == sum(one.frame_bytes for one in segments)


def test_an_older_version_on_the_same_ports_has_no_properties(tmp_path: Path) -> None:
    """A connection of MQTT 3.1.1 on the same ports is read as ever."""
    file = opened(level=5)
    file.client(flags=FIN | ACK)
    file.next = {True: 900_000, False: 700_000}
    file.client(flags=SYN)
    file.server(flags=SYN | ACK)
    file.client(connect())
    file.client(mqtt(0x30, text("t") + b"\0\0x"))
    assert [(pdu.topic, pdu.payload) for pdu in publishes(dissected(file, tmp_path))] == [("t", b"\0\0x")]

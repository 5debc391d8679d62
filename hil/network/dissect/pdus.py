# SPDX-License-Identifier: Apache-2.0
"""MQTT control packets, put together from the lists that tshark prints for a frame.

What tshark 4.0 prints for which packet: `mqtt.hdrflags` and `mqtt.len` for every packet; `mqtt.topic_len`
for PUBLISH and for each topic of SUBSCRIBE and UNSUBSCRIBE, `mqtt.topic` where that is not 0; `mqtt.msgid`
for packets with an id; `mqtt.msg` for PUBLISH, where an empty payload is `<MISSING>` (or left out).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_KINDS = {
    1: "CONNECT",
    2: "CONNACK",
    3: "PUBLISH",
    4: "PUBACK",
    5: "PUBREC",
    6: "PUBREL",
    7: "PUBCOMP",
    8: "SUBSCRIBE",
    9: "SUBACK",
    10: "UNSUBSCRIBE",
    11: "UNSUBACK",
    12: "PINGREQ",
    13: "PINGRESP",
    14: "DISCONNECT",
    15: "AUTH",
}
_WITH_ID = {"PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK"}
_WITH_TOPICS = {"SUBSCRIBE", "UNSUBSCRIBE"}
_FLAGS = {"PUBREL": 2, "SUBSCRIBE": 2, "UNSUBSCRIBE": 2}  # else 0 (MQTT 3.1.1, 2.2.2), but for PUBLISH
_EMPTY = {"PINGREQ", "PINGRESP"}
_ID_BYTES = _LENGTH_BYTES = 2
MISSING = b"<MISSING>"
_QUOTED = 4  # values of each list


@dataclass(frozen=True, slots=True)
class Pdu:
    """One MQTT control packet. ``kind`` is its name in upper case ("PUBLISH", "PUBREL"), ``packet_bytes`` its
    length with the fixed header; ``id`` is 0 and ``topic`` and ``payload`` are empty where it has none."""

    kind: str
    packet_bytes: int
    id: int = 0
    topic: str = ""
    payload: bytes = b""
    qos: int = 0
    dup: bool = False
    retain: bool = False


@dataclass(frozen=True, slots=True)
class MqttFields:
    """tshark's lists for the MQTT packets of one frame, each in the packets' order."""

    flags: Sequence[bytes]
    lengths: Sequence[bytes]
    topic_lengths: Sequence[bytes]
    topics: Sequence[bytes]
    ids: Sequence[bytes]
    payloads: Sequence[bytes]


class NoPacketsError(ValueError):
    """What tshark shows of a frame cannot be MQTT packets; the message says why."""


def pdus_of(fields: MqttFields) -> tuple[Pdu, ...]:
    """Give each packet its own values.

    Raises NoPacketsError: the lists do not add up, quoting their beginnings, or a packet is none that MQTT
    allows. So looks a stream whose start was not captured: tshark takes bytes of a payload for packets.
    """
    found = []
    try:
        reader = _Reader(fields)
        for flags, length in zip(fields.flags, fields.lengths, strict=True):
            found.append(reader.next(int(flags, 16), int(length)))
        reader.check_that_all_is_used()
    except NoPacketsError:
        raise
    except (StopIteration, ValueError) as error:
        raise NoPacketsError(f"the lists of its MQTT packets do not add up: {_quoted(fields)}") from error
    return tuple(found)


def _kind(flags: int, length: int) -> str:
    """Return a packet's kind. Raises NoPacketsError where MQTT has none that begins so."""
    kind = _KINDS.get(flags >> 4)
    allowed = kind is not None and (
        flags >> 1 & 3 != 3
        if kind == "PUBLISH"
        else flags & 15 == _FLAGS.get(kind, 0) and not (kind in _EMPTY and length)
    )
    if kind is None or not allowed:
        raise NoPacketsError(f"no MQTT packet begins with 0x{flags:02x} and a length of {length}")
    return kind


class _Reader:
    """Takes values from the front of the lists, as each kind of packet needs them."""

    def __init__(self, fields: MqttFields) -> None:
        self._topic_lengths = iter(fields.topic_lengths)
        self._topics = iter(fields.topics)
        self._ids = iter(fields.ids)
        self._payloads = iter(fields.payloads)
        publishes = sum(1 for flags in fields.flags if int(flags, 16) >> 4 == 3)
        self._empty_is_listed = len(fields.payloads) == publishes

    def next(self, flags: int, length: int) -> Pdu:
        kind = _kind(flags, length)
        packet_bytes = 1 + length_field_bytes(length) + length
        if kind == "PUBLISH":
            return self._publish(flags, length, packet_bytes)
        number = int(next(self._ids)) if kind in _WITH_ID else 0
        if kind in _WITH_TOPICS:
            self._skip_topics(length, option_bytes=1 if kind == "SUBSCRIBE" else 0)
        return Pdu(kind, packet_bytes, number)

    def check_that_all_is_used(self) -> None:
        for values in (self._topic_lengths, self._topics, self._ids, self._payloads):
            if any(True for _ in values):
                raise ValueError("values are left over")

    def _publish(self, flags: int, length: int, packet_bytes: int) -> Pdu:
        qos = flags >> 1 & 3
        topic, topic_bytes = self._topic()
        number = int(next(self._ids)) if qos else 0
        empty = length == _LENGTH_BYTES + topic_bytes + (_ID_BYTES if qos else 0)
        word = MISSING if empty and not self._empty_is_listed else next(self._payloads)
        payload = b"" if word == MISSING else bytes.fromhex(word.decode("ascii"))
        return Pdu("PUBLISH", packet_bytes, number, topic, payload, qos, bool(flags & 8), bool(flags & 1))

    def _topic(self) -> tuple[str, int]:
        length = int(next(self._topic_lengths))
        return (next(self._topics).decode("utf-8", "replace") if length else "", length)

    def _skip_topics(self, length: int, *, option_bytes: int) -> None:
        """A packet has as many topics as fill it; the id, and properties of MQTT 5, come before them."""
        left = length - _ID_BYTES
        while left > _LENGTH_BYTES:
            topic_bytes = next(self._topic_lengths, None)
            if topic_bytes is None:
                return
            if int(topic_bytes):
                next(self._topics)
            left -= _LENGTH_BYTES + int(topic_bytes) + option_bytes


def length_field_bytes(remaining: int) -> int:
    """Return how many bytes encode a remaining length (MQTT 3.1.1, 2.2.3)."""
    count = 1
    while remaining >= 128:
        remaining //= 128
        count += 1
    return count


def _quoted(fields: MqttFields) -> str:
    def shown(values: Sequence[bytes]) -> Iterator[str]:
        for value in values[:_QUOTED]:
            yield value[:16].decode("utf-8", "replace") + ("…" if len(value) > 16 else "")
        if len(values) > _QUOTED:
            yield f"… ({len(values)} in all)"

    lists = {
        "mqtt.hdrflags": fields.flags,
        "mqtt.len": fields.lengths,
        "mqtt.topic_len": fields.topic_lengths,
        "mqtt.topic": fields.topics,
        "mqtt.msgid": fields.ids,
        "mqtt.msg": fields.payloads,
    }
    return "; ".join(f"{name} {', '.join(shown(values)) or '(none)'}" for name, values in lists.items())

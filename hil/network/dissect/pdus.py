# SPDX-License-Identifier: Apache-2.0
"""MQTT control packets, put together from the lists that tshark prints for a frame.

What tshark 4.0 prints for which packet: `mqtt.hdrflags` and `mqtt.len` for every packet; `mqtt.topic_len`
for PUBLISH and for each topic of SUBSCRIBE and UNSUBSCRIBE, `mqtt.topic` where that is not 0; `mqtt.msgid`
for packets with an id; `mqtt.msg` for PUBLISH, where an empty payload is `<MISSING>` (or left out).

MQTT 5: `mqtt.property_len` for each list of properties, `mqtt.property_id` for each property, and its value
by type. A PUBLISH with an alias instead of a topic has a `mqtt.topic` too: tshark's guess, which mixes up the
two directions of a connection. The guess is not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
# MQTT 5.0, 2.2.2.2: identifiers of properties, and the bytes of each number (0: as many as it takes)
_TOPIC_ALIAS, _CONTENT_TYPE, _USER_PROPERTY, _MAXIMUM_QOS = 0x23, 0x03, 0x26, 0x24
_STRINGS = {0x08, 0x09, 0x12, 0x15, 0x16, 0x1A, 0x1C, 0x1F}
_NUMBER_BYTES = {
    **dict.fromkeys((0x01, 0x17, 0x19, 0x25, 0x28, 0x29, 0x2A), 1),
    **dict.fromkeys((0x13, 0x21, 0x22), 2),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), 4),
    0x0B: 0,
}
# the remaining length up to which a packet of MQTT 5 leaves its properties out
_WITHOUT_PROPERTIES = {
    **dict.fromkeys(("PUBACK", "PUBREC", "PUBREL", "PUBCOMP"), 3),
    **dict.fromkeys(("DISCONNECT", "AUTH"), 1),
}
_WILL = 0x04  # of the flags of CONNECT
MISSING = b"<MISSING>"
_QUOTED = 4  # values of each list


@dataclass(frozen=True, slots=True)
class Pdu:
    """One MQTT control packet. ``kind`` is its name in upper case ("PUBLISH", "PUBREL"), ``packet_bytes`` its
    length with the fixed header; ``id`` is 0 and ``topic`` and ``payload`` are empty where it has none.

    ``alias`` is the topic alias of MQTT 5, 0 for none. ``pdus_of`` leaves the topic of a PUBLISH empty that
    has nothing but its alias, for the connection says what it means.
    """

    kind: str
    packet_bytes: int
    id: int = 0
    topic: str = ""
    payload: bytes = b""
    qos: int = 0
    dup: bool = False
    retain: bool = False
    alias: int = 0


@dataclass(frozen=True, slots=True)
class MqttFields:
    """tshark's lists for the MQTT packets of one frame, each in the packets' order."""

    flags: Sequence[bytes]
    lengths: Sequence[bytes]
    topic_lengths: Sequence[bytes]
    topics: Sequence[bytes]
    ids: Sequence[bytes]
    payloads: Sequence[bytes]
    connect_flags: Sequence[bytes] = ()
    property_lengths: Sequence[bytes] = ()
    property_ids: Sequence[bytes] = ()
    aliases: Sequence[bytes] = ()
    numbers: Sequence[bytes] = ()
    string_lengths: Sequence[bytes] = ()
    key_lengths: Sequence[bytes] = ()
    value_lengths: Sequence[bytes] = ()
    content_types: Sequence[bytes] = ()


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
    except (StopIteration, LookupError, ValueError) as error:
        raise NoPacketsError(f"the lists of its MQTT packets do not add up: {_quoted(fields)}") from error
    return tuple(found)


def resolve_aliases(pdus: tuple[Pdu, ...], topics: dict[int, str]) -> tuple[tuple[Pdu, ...], str]:
    """Return the packets with the topics that their aliases mean, and what is said of one without topic.

    ``topics`` are those that one direction of a connection has named so far (MQTT 5.0, 3.3.2.3.4); what these
    packets name is added.
    """
    found: list[Pdu] = []
    said: dict[str, None] = {}
    for pdu in pdus:
        if pdu.alias and pdu.topic:
            topics[pdu.alias] = pdu.topic
        elif pdu.alias in topics:
            pdu = replace(pdu, topic=topics[pdu.alias])
        elif pdu.alias:
            said[f"a PUBLISH has topic alias {pdu.alias}, and this capture does not hold its topic"] = None
        elif pdu.kind == "PUBLISH" and not pdu.topic:
            said["a PUBLISH has neither a topic nor an alias, which MQTT forbids"] = None
        found.append(pdu)
    return tuple(found), "; ".join(said)


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
        self._connect_flags = iter(fields.connect_flags)
        self._properties = _Properties(fields)
        publishes = sum(1 for flags in fields.flags if int(flags, 16) >> 4 == 3)
        self._empty_is_listed = len(fields.payloads) == publishes

    def next(self, flags: int, length: int) -> Pdu:
        kind = _kind(flags, length)
        packet_bytes = 1 + length_field_bytes(length) + length
        if kind == "PUBLISH":
            return self._publish(flags, length, packet_bytes)
        number = int(next(self._ids)) if kind in _WITH_ID else 0
        property_bytes = 0
        if length > _WITHOUT_PROPERTIES.get(kind, 0):
            property_bytes, _ = self._properties.next()
        if kind == "CONNECT" and int(next(self._connect_flags, b"0"), 16) & _WILL:
            self._properties.next()
        if kind in _WITH_TOPICS:
            self._skip_topics(length - property_bytes, option_bytes=1 if kind == "SUBSCRIBE" else 0)
        return Pdu(kind, packet_bytes, number)

    def check_that_all_is_used(self) -> None:
        lists = (self._topic_lengths, self._topics, self._ids, self._payloads, *self._properties.lists)
        for values in lists:
            if any(True for _ in values):
                raise ValueError("values are left over")

    def _publish(self, flags: int, length: int, packet_bytes: int) -> Pdu:
        qos = flags >> 1 & 3
        topic, topic_bytes = self._topic()
        number = int(next(self._ids)) if qos else 0
        property_bytes, alias = self._properties.next()
        if alias and not topic_bytes:
            next(self._topics, None)  # tshark's guess
        empty = length == _LENGTH_BYTES + topic_bytes + (_ID_BYTES if qos else 0) + property_bytes
        word = MISSING if empty and not self._empty_is_listed else next(self._payloads)
        payload = b"" if word == MISSING else bytes.fromhex(word.decode("ascii"))
        dup, retain = bool(flags & 8), bool(flags & 1)
        return Pdu("PUBLISH", packet_bytes, number, topic, payload, qos, dup, retain, alias)

    def _topic(self) -> tuple[str, int]:
        length = int(next(self._topic_lengths))
        return (next(self._topics).decode("utf-8", "replace") if length else "", length)

    def _skip_topics(self, length: int, *, option_bytes: int) -> None:
        """A packet has as many topics as fill it, after its id; ``length`` is without MQTT 5's properties."""
        left = length - _ID_BYTES
        while left > _LENGTH_BYTES:
            topic_bytes = next(self._topic_lengths, None)
            if topic_bytes is None:
                return
            if int(topic_bytes):
                next(self._topics)
            left -= _LENGTH_BYTES + int(topic_bytes) + option_bytes


class _Properties:
    """Takes the properties of one packet of MQTT 5 after the other from the front of the lists."""

    def __init__(self, fields: MqttFields) -> None:
        self._are_there = bool(fields.property_lengths)  # else of MQTT 3, or all leave them out
        self._sizes = iter(fields.property_lengths)
        self._ids = iter(fields.property_ids)
        self._aliases = iter(fields.aliases)
        self._numbers = iter(fields.numbers)
        self._strings = iter(fields.string_lengths)
        self._keys = iter(fields.key_lengths)
        self._values = iter(fields.value_lengths)
        self._content_types = iter(fields.content_types)

    @property
    def lists(self) -> tuple[Iterator[bytes], ...]:
        """What has to be used up in the end."""
        return (self._sizes, self._ids, self._aliases)

    def next(self) -> tuple[int, int]:
        """Return the bytes of a packet's properties, with the length before them, and its topic alias.

        The bytes are 0 for a packet of MQTT 3, the alias is 0 for none.
        """
        if not self._are_there:
            return 0, 0
        size = left = int(next(self._sizes))
        alias = 0
        while left > 0:
            kind = int(next(self._ids), 16)
            if kind == _TOPIC_ALIAS:
                alias = int(next(self._aliases))
            left -= 1 + self._value_bytes(kind)
        if left:
            raise ValueError("properties are longer than their list")
        return length_field_bytes(size) + size, alias

    def _value_bytes(self, kind: int) -> int:
        if kind in (_TOPIC_ALIAS, _MAXIMUM_QOS):
            return 2 if kind == _TOPIC_ALIAS else 1
        if kind == _USER_PROPERTY:
            return 2 * _LENGTH_BYTES + int(next(self._keys)) + int(next(self._values))
        if kind == _CONTENT_TYPE:
            return _LENGTH_BYTES + len(next(self._content_types, b""))
        if kind in _STRINGS:
            return _LENGTH_BYTES + int(next(self._strings))
        number = int(next(self._numbers))
        return _NUMBER_BYTES[kind] or length_field_bytes(number)


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
        **({"mqtt.property_id": fields.property_ids} if fields.property_ids else {}),
    }
    return "; ".join(f"{name} {', '.join(shown(values)) or '(none)'}" for name, values in lists.items())

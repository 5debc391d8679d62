# SPDX-License-Identifier: Apache-2.0
"""The TCP segments of a capture with the MQTT packets that end in them, as tshark dissects them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import RigError
from hil.network.dissect.pdus import MqttFields, NoPacketsError, Pdu, pdus_of, resolve_aliases
from hil.network.dissect.tshark import Row, read_fields, values
from hil.store.files import typed_path

# Segments that came in another order are put together all the same; without that tshark 4.0 found 190 of
# 400 publishes in a capture with 3 % loss, with it all of them.
_PREFERENCES = (
    "tcp.reassemble_out_of_order:TRUE",
    "tcp.desegment_tcp_streams:TRUE",
    "tcp.analyze_sequence_numbers:TRUE",
    "tcp.relative_sequence_numbers:FALSE",
    "tcp.check_checksum:FALSE",
    "tls.desegment_ssl_records:TRUE",
    "tls.desegment_ssl_application_data:TRUE",
)


@dataclass(frozen=True)
class MqttPorts:
    """The broker's ports: those of plain MQTT, and those where MQTT is inside TLS."""

    plain: tuple[int, ...] = ()
    tls: tuple[int, ...] = ()


def options(ports: MqttPorts, key_log: Path | None = None) -> list[str]:
    """Return the options that make tshark see what is counted here, for a command by hand too."""
    preferences = [*_PREFERENCES, f"tls.keylog_file:{key_log.resolve() if key_log else ''}"]
    decode = [f"tcp.port=={port},mqtt" for port in ports.plain]
    for port in ports.tls:
        decode += [f"tcp.port=={port},tls", f"tls.port=={port},mqtt"]
    words = [word for preference in preferences for word in ("-o", preference)]
    return [*words, *(word for rule in decode for word in ("-d", rule))]


FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
_TCP_HEADER_BYTES = 20
# bits of tcp.completeness
_SYN_SEEN, _SYN_ACK_SEEN, _ACK_SEEN, _DATA_SEEN, _FIN_SEEN, _RST_SEEN = 1, 2, 4, 8, 16, 32

FRAMES_FILTER = "ip && tcp && !icmp"  # an ICMP error quotes the segment that it is about
_FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "frame.len",
    "frame.cap_len",
    "tcp.stream",
    "ip.src",
    "tcp.srcport",
    "ip.dst",
    "tcp.dstport",
    "ip.hdr_len",
    "tcp.hdr_len",
    "tcp.len",
    "tcp.flags",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tls.record.content_type",
    "mqtt.hdrflags",
    "mqtt.len",
    "mqtt.topic_len",
    "mqtt.topic",
    "mqtt.msgid",
    "mqtt.msg",
    "mqtt.conflags",
    "mqtt.property_len",
    "mqtt.property_id",
    "mqtt.property.topic_alias",
    "mqtt.prop_number",
    "mqtt.prop_string_len",
    "mqtt.prop_key_len",
    "mqtt.prop_value_len",
    "mqtt.property.content_type",
    "mqtt.unknown_version",
)
_TCP_FIELDS = _FIELDS.index("tls.record.content_type")  # the fields before it are in every frame
_MQTT_FIELDS = _FIELDS.index("mqtt.hdrflags")
_FLAGS = (
    "duplicate_ack",
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "lost_segment",
    "keep_alive",
    "keep_alive_ack",
    "zero_window_probe",
    "zero_window_probe_ack",
)
_NO_CONNECT = (
    "a PUBLISH has no topic, and its CONNECT was not captured, which says whether it has properties (MQTT 5)"
)
_NO_FLAGS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class MqttSegment:
    """One TCP segment; ``pdus`` are the MQTT packets that are complete with it (reassembled by tshark).

    ``time_us`` is the capturing host's wall clock. Bytes: ``frame_bytes`` as on the wire (Ethernet without
    FCS), ``ip_bytes`` and ``tcp_bytes`` of the headers, ``options_bytes`` of TCP's options within those,
    ``payload_bytes`` of TCP. ``stream`` is tshark's number of the connection. ``analysis`` holds the names of
    the tcp.analysis flags that tshark set ("retransmission", "duplicate_ack", …). ``completeness`` has the
    bits of tcp.completeness for the whole connection (as tshark -2 shows them). ``tls_types`` are
    the content types of the TLS records that end here, as far as they can be read (RFC 8446, 5.1).
    ``unreadable`` says why the packets that end here are not in ``pdus``, or that one of them has no topic;
    "" where all is known.
    """

    number: int
    time_us: int
    stream: int
    source: str
    source_port: int
    destination: str
    destination_port: int
    frame_bytes: int
    ip_bytes: int
    tcp_bytes: int
    options_bytes: int
    payload_bytes: int
    syn: bool
    fin: bool
    rst: bool
    ack: bool
    sequence: int
    acknowledgement: int
    analysis: frozenset[str]
    completeness: int
    pdus: tuple[Pdu, ...]
    tls_types: tuple[int, ...] = ()
    unreadable: str = ""


def read_segments(path: Path, ports: MqttPorts, *, key_log: Path | None = None) -> list[MqttSegment]:
    """Return every TCP segment of a capture, in the order captured; relative sequence numbers are not used.

    With ``key_log`` (SSLKEYLOGFILE's format) MQTT inside TLS is seen too.
    Raises RigError: tshark is missing (how to install it), the file is no capture, tshark's own words; frames
    on the broker's ports were cut when they were captured, or lack a field of TCP or IP.
    """
    reader = _SegmentReader(path, frozenset((*ports.plain, *ports.tls)))
    return reader.read(options(ports, key_log))


class _SegmentReader:
    """Turns a frame's fields into a segment, and adds up what was seen of each connection.

    ``ports`` are those on which every frame must be whole.
    """

    def __init__(self, path: Path, ports: frozenset[int]) -> None:
        self._path = path
        self._ports = ports
        self._names: dict[bytes, str] = {}
        self._topics: dict[tuple[int, bytes, int], dict[int, str]] = {}  # by direction, then by alias
        self.completeness: dict[int, int] = {}

    def read(self, options_: Sequence[str]) -> list[MqttSegment]:
        """Return the file's segments."""
        names = (*_FIELDS, *(f"tcp.analysis.{flag}" for flag in _FLAGS))
        found = [self._checked(row) for row in read_fields(self._path, names, options_, FRAMES_FILTER)]
        for one in found:
            # known only now, and nobody has seen the segment yet; replace() would take as long as tshark
            object.__setattr__(one, "completeness", self.completeness[one.stream])
        return found

    def _checked(self, row: Row) -> MqttSegment:
        try:
            return self._segment(row)
        except (IndexError, ValueError) as error:
            raise self._error(row, f"it lacks a field of TCP or IP: {_quoted(row)}") from error

    def _segment(self, row: Row) -> MqttSegment:
        frame_bytes, stream, source_port, port = int(row[2]), int(row[4]), int(row[6]), int(row[8])
        ip_bytes, tcp_bytes, payload_bytes, flags = int(row[9]), int(row[10]), int(row[11]), int(row[12], 16)
        if row[3] != row[2] and not self._ports.isdisjoint((source_port, port)):
            raise self._error(row, f"only {int(row[3])} of its {frame_bytes} bytes were captured")
        direction = (stream, row[5], source_port)
        pdus, unreadable = self._pdus(row, self._topics.setdefault(direction, {}))
        completeness = self.completeness.get(stream, 0) | _seen(flags, payload_bytes)
        self.completeness[stream] = completeness
        return MqttSegment(
            number=int(row[0]),
            time_us=_microseconds(row[1]),
            stream=stream,
            source=self._name(row[5]),
            source_port=source_port,
            destination=self._name(row[7]),
            destination_port=port,
            frame_bytes=frame_bytes,
            ip_bytes=ip_bytes,
            tcp_bytes=tcp_bytes,
            options_bytes=tcp_bytes - _TCP_HEADER_BYTES,
            payload_bytes=payload_bytes,
            syn=bool(flags & SYN),
            fin=bool(flags & FIN),
            rst=bool(flags & RST),
            ack=bool(flags & ACK),
            sequence=int(row[13]),
            acknowledgement=int(row[14]),
            analysis=_analysis(row[len(_FIELDS) :]),
            completeness=completeness,
            pdus=pdus,
            tls_types=tuple(int(kind) for kind in values(row[15])) if row[15] else (),
            unreadable=unreadable,
        )

    @staticmethod
    def _pdus(row: Row, topics: dict[int, str]) -> tuple[tuple[Pdu, ...], str]:
        """Return the packets of a frame, or none and the reason; an alias has its topic from ``topics``."""
        *fields, unknown_version = row[_MQTT_FIELDS : len(_FIELDS)]
        if not fields[0]:
            return (), ""
        try:
            pdus = pdus_of(MqttFields(*(values(field) for field in fields)))
        except NoPacketsError as error:
            return (), str(error)
        if unknown_version and any(pdu.kind == "PUBLISH" and not pdu.topic for pdu in pdus):
            return pdus, _NO_CONNECT
        return resolve_aliases(pdus, topics)

    def _error(self, row: Row, what: str) -> RigError:
        number = row[0].decode("ascii", "replace")
        return RigError(
            f"Dissecting {self._path}, frame {number}: {what}.",
            log=str(self._path),
            next_step=f"look at it: tshark -V -r {typed_path(self._path)} -Y frame.number=={number}",
        )

    def _name(self, address: bytes) -> str:
        if address not in self._names:
            self._names[address] = address.decode("ascii")
        return self._names[address]


def _seen(flags: int, payload_bytes: int) -> int:
    """Return the bits of tcp.completeness that one segment adds."""
    if flags & SYN:
        return _SYN_ACK_SEEN if flags & ACK else _SYN_SEEN
    seen = _ACK_SEEN if flags & ACK and not flags & (FIN | RST) else 0
    seen |= _DATA_SEEN if payload_bytes else 0
    return seen | (_FIN_SEEN if flags & FIN else 0) | (_RST_SEEN if flags & RST else 0)


def _analysis(fields: Row) -> frozenset[str]:
    if not any(fields):
        return _NO_FLAGS
    return frozenset(name for name, field in zip(_FLAGS, fields, strict=True) if field)


def _microseconds(seconds: bytes) -> int:
    whole, _, fraction = seconds.partition(b".")
    return int(whole) * 1_000_000 + int(fraction.ljust(6, b"0")[:6])


def _quoted(row: Row) -> str:
    pairs = zip(_FIELDS[:_TCP_FIELDS], row, strict=False)
    return ", ".join(f"{name} {field.decode('ascii', 'replace') or '(none)'}" for name, field in pairs)


__all__ = ["MqttPorts", "MqttSegment", "Pdu", "read_segments"]

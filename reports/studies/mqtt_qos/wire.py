# SPDX-License-Identifier: Apache-2.0
"""What messages and connections cost on the wire, and which packets share a segment, from the captures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hil.model import NotRun, RunRecord, bench_of, parameters_in
from hil.reports.studies.comparison import corrected_text, table_notes
from hil.reports.studies.declaration import Row, Study
from hil.reports.studies.declaration import Table as Published
from hil.reports.studies.document import NONE, NOT_MEASURED, Table, number
from hil.reports.studies.mqtt_qos.echoes import (
    BENCH,
    NO_ECHOES,
    RATE_US,
    Echoes,
    by_setting,
    echo_cells,
    echo_data,
    milliseconds,
    missing_notes,
    others,
    plain,
    rates_note,
    selected,
)
from hil.reports.studies.records import BoardRun, size_text, word

_ANSWERS: Mapping[int, tuple[str, ...]] = {0: (), 1: ("puback",), 2: ("pubrec", "pubrel", "pubcomp")}
_LAYERS = ("ethernet", "ip", "tcp", "tcp_options", "tls_record")
_CONNECTION = {
    "TCP handshake": ("handshake",),
    "TLS handshake": ("tls_handshake",),
    "CONNECT": ("connect",),
    "CONNACK": ("connack",),
    "SUBSCRIBE and SUBACK": ("subscribe", "suback"),
    "TCP acknowledgements": ("connection_ack",),
    "DISCONNECT": ("disconnect",),
    "FIN": ("fin",),
}


@dataclass(frozen=True)
class Cost:
    """Bytes for a message, each direction counted as one message; None where nothing was captured.

    ``answers_mqtt`` are the MQTT packets that answer, ``answers_frames`` the same as frames, which is how the
    study counts (at QoS 0 one TCP acknowledgement). ``acks`` are TCP acknowledgements alone, ``besides`` is
    everything but the payload.
    """

    answers_mqtt: float | None
    answers_frames: float | None
    acks: float | None
    publish_header: float | None
    besides: float | None


def cost_of(found: Echoes, qos: int) -> Cost:
    """Return what a message of these costs besides its payload."""
    publishes, frames = _part(found, "publish", "count"), _part(found, "message_frames", "count")
    if not publishes or not frames:
        return Cost(None, None, None, None, None)
    layers = sum(_part(found, name, "bytes") or 0.0 for name in _LAYERS)
    answers = sum(_part(found, name, "bytes") or 0.0 for name in _ANSWERS[qos])
    packets = sum(_part(found, name, "count") or 0.0 for name in _ANSWERS[qos])
    acks_bytes, acks = _part(found, "tcp_ack_only", "bytes") or 0.0, _part(found, "tcp_ack_only", "count")
    header = _part(found, "publish_header", "bytes") or 0.0
    if _ANSWERS[qos]:
        in_frames: float | None = (answers + packets * layers / frames) / publishes
    else:
        in_frames = acks_bytes / acks if acks else None
    return Cost(
        answers_mqtt=answers / publishes,
        answers_frames=in_frames,
        acks=acks_bytes / publishes,
        publish_header=header / publishes,
        besides=(layers + answers + header + acks_bytes) / publishes,
    )


def _part(found: Echoes, name: str, unit: str) -> float | None:
    return found.total(f"overhead_{name}_{unit}")


def message_table(study: Study, run: BoardRun) -> Table:
    """Return bytes for a message by QoS and payload, beside what was published for any payload."""
    published = study.table("overhead-message")
    theirs = {row.label: row for row in published.rows}
    rows, data = [], []
    for qos in _ANSWERS:
        sizes = {size: found for (size, level), found in by_payload(run).items() if level == qos}
        mqtt, frames = (theirs.get(f"QoS {qos}, what answers: {what}") for what in ("MQTT", "frames"))
        head = (f"QoS {qos}", _pair(*(row.published if row else None for row in (mqtt, frames))))
        costs = {size: cost_of(found, qos) for size, found in sizes.items()}
        known = {size: cost for size, cost in costs.items() if cost.besides is not None}
        if not known:
            rows.append((*head, NOT_MEASURED, *[NONE] * 4))
        for size, cost in known.items():
            ours = _pair(cost.answers_mqtt, cost.answers_frames)
            rest = (cost.acks, cost.publish_header, cost.besides)
            rows.append((*head, size_text(size), ours, *map(number, rest)))
            data.append({"qos": qos, "payload_bytes": size, **vars(cost)})
            head = ("", "")
    notes = [*table_notes(published), *_header_note(theirs.get("PUBLISH without message")), _COST_NOTE]
    columns = ("", "published", "payload", "their way", "ACKs alone", "PUBLISH header", "besides payload")
    title = "What answers a message: MQTT / frames, bytes"
    return Table("overhead-message", title, columns, tuple(rows), tuple(notes), tuple(data))


_COST_NOTE = (
    "ours: from the capture at the access point, mean over messages and their echoes. their way: PUBACK, "
    "PUBREC, PUBREL and PUBCOMP, then the same as frames of their own; at QoS 0 one TCP acknowledgement. "
    "ACKs alone: TCP acknowledgements that carry nothing, for a message; several segments may share one. "
    "besides payload: all frames of a message less its payload"
)


def _header_note(row: Row | None) -> list[str]:
    if row is None or row.published is None:
        return []
    return [f"PUBLISH header: published {row.published:g}, {corrected_text(row)}: {row.formula}; {row.why}."]


def _pair(one: float | None, other: float | None) -> str:
    return f"{_bytes(one)} / {_bytes(other)}"


def _bytes(value: float | None) -> str:
    return NONE if value is None else f"{value:,.1f}".removesuffix(".0")


def connection_table(study: Study, run: BoardRun) -> Table | None:
    """Return bytes for a connection by what they are for."""
    published = study.table("overhead-connection")
    theirs = {row.label: row.published for row in published.rows}
    transports = {
        str(transport): found
        for (transport,), found in by_setting(undisturbed(run), "transport").items()
        if found.fact("overhead_connections_count")
    }
    if not transports:
        return None
    rows, data = [], []
    for name, parts in _CONNECTION.items():
        found = {transport: _a_connection(own, parts) for transport, own in transports.items()}
        if not any(found.values()) and name not in theirs:
            continue
        rows.append((name, _bytes(theirs.get(name)), *map(_bytes, found.values())))
        data.append({"part": name, "published": theirs.get(name), "ours": found})
    notes = (
        *table_notes(published),
        "ours: bytes of whole frames, mean over the connections of the board that the access point saw. "
        "Its client id is as long as it is, and it subscribes, which the study's captured client did not",
    )
    columns = ("", "published", *(f"ours, {transport}" for transport in transports))
    return Table("overhead-connection", "Bytes for a connection", columns, tuple(rows), notes, tuple(data))


def undisturbed(run: BoardRun) -> list[RunRecord]:
    """Return the records in which no connection was cut, and nothing limited or lost on purpose."""
    kept = ("transport", "nodelay", "broker_nodelay", "echo_nodelay", "air", "delay_us", *_IN_FLIGHT)
    return [record for record in run.of(BENCH) if not others(record, *kept)]


_IN_FLIGHT = ("inflight", "broker_inflight", "clean_session", "persistence")


def _a_connection(found: Echoes, parts: tuple[str, ...]) -> float | None:
    connections = found.total("overhead_connections_count")
    sizes = [_part(found, name, "bytes") for name in parts]
    if not connections or any(size is None for size in sizes):
        return None
    return sum(size or 0.0 for size in sizes) / connections


WAYS = {"board → broker": "ap_up_", "broker → board": "ap_down_", "broker → echo": "broker_out_"}


def bundling_table(run: BoardRun) -> Table | None:
    """Return how many packets share a segment, by QoS and where TCP_NODELAY is set."""
    rows, data = [], []
    records = [record for record in undisturbed(run) if word(record, "transport") == "tcp"]
    for (qos, *switches), own in by_setting(records, "qos", "nodelay", "broker_nodelay").items():
        for way, prefix in WAYS.items():
            publishes, segments = (
                own.total(f"{prefix}{name}_count") for name in ("publishes", "publish_segments")
            )
            if not publishes or not segments:
                continue
            most = [
                own.most(f"{prefix}{kind}_per_segment_max") for kind in ("publishes", "pubrels", "pubcomps")
            ]
            nodelay = " / ".join("on" if switch else "off" for switch in switches)
            counts = (f"{publishes:,.0f}", f"{segments:,.0f}", *map(_bytes, most))
            rows.append((f"QoS {qos}", nodelay, way, *counts))
            data.append(
                {"qos": qos, "nodelay": nodelay, "way": way, "publishes": publishes, "segments": segments}
                | dict(zip(("publishes_max", "pubrels_max", "pubcomps_max"), most, strict=True))
            )
    if not rows:
        return None
    notes = (
        "TCP_NODELAY: at the board / at the broker; without limits, losses and cuts. segments: those in "
        "which a PUBLISH ends. most: the most of a kind that end in one segment. The study's captures have "
        "7 PUBLISH in one at QoS 0; at QoS 2 never two, but PUBREL and PUBCOMP share segments",
    )
    columns = ("", "TCP_NODELAY", "way", "PUBLISH", "segments", "most PUBLISH", "most PUBREL", "most PUBCOMP")
    return Table("bundling", "Packets that share a segment", columns, tuple(rows), notes, tuple(data))


def first_segments(run: BoardRun) -> dict[int, tuple[float, float]]:
    """Return the median first segment of messages that need several, and the largest segment, by payload."""
    found = {}
    for (size,), own in by_setting(plain(run), "payload_bytes").items():
        first, largest = own.fact("ap_up_first_segment_p50_bytes"), own.most("ap_up_segment_max_bytes")
        if first is not None and largest is not None:
            found[int(str(size))] = (first, largest)
    return found


def first_segment_table(run: BoardRun) -> Table | None:
    """Return the first segments of messages that need several, where the capture tells them."""
    found = first_segments(run)
    if not found:
        return None
    rows = tuple((size_text(size), number(first), number(most)) for size, (first, most) in found.items())
    data = tuple(
        {"payload_bytes": size, "first_segment_bytes": first, "largest_bytes": most}
        for size, (first, most) in found.items()
    )
    columns = ("payload", "first segment, p50", "largest segment")
    return Table("first-segments", "First segments of long messages, bytes", columns, rows, (), data)


NO_MEMORY = "not run: memory"
_LIMIT = "max_payload_bytes"
_USUAL_US = 100_000  # 10 messages a second: the rate of the sweep over payloads


def usual_rate(found: Echoes) -> Echoes:
    """Return the messages at 10 a second; where there are none, those at the slowest rate."""
    rates = by_setting(found.records, RATE_US)
    return rates.get((_USUAL_US,)) or next(reversed(rates.values()), NO_ECHOES)


def payload_table(study: Study, run: BoardRun) -> Table:
    """Return each payload and QoS: published with either broker, then ours."""
    pi, desktop = study.table("payload-pi"), study.table("payload-desktop")
    slow = {row.label: row for row in pi.rows}
    rows, data, missing, shown = [], [], [], []
    for row in desktop.rows:
        with_pi = slow.get(row.label)
        ours = usual_rate(selected(run, row.ours))
        shown.append(ours)
        head = (row.label, milliseconds(with_pi), milliseconds(row))
        published = {"label": row.label, "published_pi_ms": _ms(with_pi), "published_desktop_ms": _ms(row)}
        if ours.n:
            rows.append((*head, *echo_cells(ours)))
        else:
            why = run.why_missing(row.ours) if row.ours else "nothing of ours compares"
            rows.append((*head, NO_MEMORY if _LIMIT in why else NOT_MEASURED, *[NONE] * 3, "0", NONE))
            missing.append((row.label, why))
        data.append({**published, **echo_data(ours)})
    notes = [
        *(note for published in (desktop, pi) for note in table_notes(published)),
        *(note for published in (desktop, pi) for note in _corrections(published)),
        *rates_note(shown),
        *missing_notes(missing),
    ]
    columns = ("", "published: Pi", "desktop", "ours, their way", "p50", "p95", "p99", "n", "lost")
    title = "Round trip by payload and QoS, ms"
    return Table("payload", title, columns, tuple(rows), tuple(notes), tuple(data))


def _ms(row: Row | None) -> float | None:
    return None if row is None or row.published is None else 1000 * row.published


def _corrections(published: Published) -> list[str]:
    return [
        f"{row.label}, corrected to {number(1000 * row.corrected)} ms: {row.why}."
        for row in published.rows
        if row.corrected is not None
    ]


def by_payload(run: BoardRun) -> Mapping[tuple[int, int], Echoes]:
    """Return the messages in which nothing else varies, by payload in bytes and QoS, at the usual rate."""
    found = by_setting(plain(run), "payload_bytes", "qos")
    return {(int(str(size)), int(str(qos))): usual_rate(own) for (size, qos), own in found.items()}


def not_run_table(run: BoardRun) -> Table | None:
    """Return the cases that the board's memory leaves out, with the reason that its rack file gives."""
    rows, data = [], []
    left_out = [one for one in run.troubles if isinstance(one, NotRun) and _LIMIT in one.reason]
    for trouble in left_out:
        if bench_of(trouble.case_id) != BENCH:
            continue
        parameters = parameters_in(trouble.case_id)
        size, qos = int(parameters.get("payload_bytes", 0)), parameters.get("qos", "")
        rows.append((f"{size_text(size)}, QoS {qos}", NO_MEMORY, trouble.reason))
        data.append({"payload_bytes": size, "qos": qos, "reason": trouble.reason})
    if not rows:
        return None
    columns = ("", "ours", "because")
    return Table("not-run", "Payloads that this board leaves out", columns, tuple(rows), (), tuple(data))


def rate_table(run: BoardRun) -> Table | None:
    """Return what was asked for, offered and achieved, where a payload has several rates or one is off."""
    rows, data, hidden = [], [], 0
    for (size, qos), own in by_setting(plain(run), "payload_bytes", "qos").items():
        rates = by_setting(own.records, RATE_US)
        for (interval_us,), at in reversed(rates.items()):
            found = {name: at.fact(f"{name}_mps") for name in ("requested", "offered", "achieved")}
            off = off_by(at)
            if len(rates) == 1 and not off:
                hidden += 1
                continue
            label = f"{size_text(int(str(size)))}, QoS {qos}"
            figures = (number(found[name]) for name in found)
            rows.append((label, *figures, off, at.p50().text, str(at.n)))
            data.append({"payload_bytes": size, "qos": qos, "interval_us": interval_us, **found, "off": off})
    if not rows:
        return None
    columns = ("", "requested", "offered", "achieved", "", "p50, ms", "n")
    notes = (
        "requested: the rate of the case; offered: what the board's open loop planned and attempted; "
        "achieved: what was echoed. OFF: either is more than 2 % away from what was asked; with few "
        "messages, one that is late is more than that. A random schedule is held to what it drew",
        "the study's rate of 100 was 10 in part of its data, as its source sleeps 0.1 s; and its sleep comes "
        "after each message, so it sent 59 to 60 of 60 and 598 of 600",
        *([f"{hidden} more settings, each with one rate, kept to it"] if hidden else []),
    )
    return Table("rates", "Rates, messages a second", columns, tuple(rows), notes, tuple(data))


def off_by(found: Echoes) -> str:
    """Return "OFF" where the peer found a rate off what was asked for in any record, "" where in none."""
    told = [record.environment.get("peer", {}).get("rate_off") for record in found.records]
    return "OFF" if any(told) else ""

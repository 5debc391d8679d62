# SPDX-License-Identifier: Apache-2.0
"""What messages and connections cost on the wire, and which packets share a segment, from the captures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hil.model import NotRun, RunRecord, bench_of, parameters_in
from hil.reports.studies.comparison import corrected_text, table_notes, why_missing
from hil.reports.studies.declaration import Published, Row, Study
from hil.reports.studies.document import NONE, NOT_MEASURED, Table, number
from hil.reports.studies.layout import Figures, lay_out, published_table
from hil.reports.studies.mqtt_qos.echoes import (
    BENCH,
    NO_ECHOES,
    RATE_US,
    Echoes,
    by_setting,
    echo_line,
    missing_notes,
    others,
    plain,
    published_ms,
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
    lines: list[Figures] = []
    for qos in _ANSWERS:
        rows = (theirs.get(f"QoS {qos}, what answers: {what}") for what in ("MQTT", "frames"))
        head = {
            "label": f"QoS {qos}",
            "qos": qos,
            "shown": _pair(*(row.published if row else None for row in rows)),
        }
        sizes = {size: found for (size, level), found in by_payload(run.of(BENCH)).items() if level == qos}
        costs = {size: cost_of(found, qos) for size, found in sizes.items()}
        known = [
            {**head, "payload_bytes": size, "payload": size_text(size), **vars(cost)}
            | {"ours": _pair(cost.answers_mqtt, cost.answers_frames)}
            for size, cost in costs.items()
            if cost.besides is not None
        ]
        lines += known or [{**head, "payload_bytes": None, "payload": NOT_MEASURED}]
    notes = [*table_notes(published), *_header_note(theirs.get("PUBLISH without message"))]
    return published_table(study, "overhead-message", published, lines, notes)


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
        for (transport,), found in by_setting(undisturbed(run.of(BENCH)), "transport").items()
        if found.fact("overhead_connections_count")
    }
    lines: list[Figures] = []
    for name, parts in _CONNECTION.items():
        found = {transport: _a_connection(own, parts) for transport, own in transports.items()}
        if any(found.values()) or name in theirs:
            lines.append({"part": name, "published": theirs.get(name), "ours": found, **found})
    more = {f"{transport}.bytes": f"ours, {transport}" for transport in transports}
    if not transports:
        return None
    return published_table(study, "overhead-connection", published, lines, table_notes(published), more=more)


def undisturbed(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Return the records in which no connection was cut, and nothing limited or lost on purpose."""
    kept = ("transport", "nodelay", "broker_nodelay", "echo_nodelay", "air", "delay_us", *_IN_FLIGHT)
    return [record for record in records if not others(record, *kept)]


_IN_FLIGHT = ("inflight", "broker_inflight", "clean_session", "persistence")


def _a_connection(found: Echoes, parts: tuple[str, ...]) -> float | None:
    connections = found.total("overhead_connections_count")
    sizes = [_part(found, name, "bytes") for name in parts]
    if not connections or any(size is None for size in sizes):
        return None
    return sum(size or 0.0 for size in sizes) / connections


WAYS = {"board → broker": "ap_up_", "broker → board": "ap_down_", "broker → echo": "broker_out_"}


def bundling_table(study: Study, run: BoardRun) -> Table | None:
    """Return how many packets share a segment, by QoS and where TCP_NODELAY is set."""
    lines = []
    records = [record for record in undisturbed(run.of(BENCH)) if word(record, "transport") == "tcp"]
    for (qos, *switches), own in by_setting(records, "qos", "nodelay", "broker_nodelay").items():
        for way, prefix in WAYS.items():
            publishes, segments = (
                own.total(f"{prefix}{name}_count") for name in ("publishes", "publish_segments")
            )
            if not publishes or not segments:
                continue
            nodelay = " / ".join("on" if switch else "off" for switch in switches)
            line = {"label": f"QoS {qos}", "qos": qos, "nodelay": nodelay, "way": way, "publishes": publishes}
            kinds = ("publishes", "pubrels", "pubcomps")
            most = {f"{kind}_max": own.most(f"{prefix}{kind}_per_segment_max") for kind in kinds}
            lines.append({**line, "segments": segments, **most})
    return lay_out(study, "bundling", lines)


def first_segments(records: Iterable[RunRecord]) -> dict[int, tuple[float, float]]:
    """Return the median first segment of messages that need several, and the largest segment, by payload."""
    found = {}
    for (size,), own in by_setting(plain(records), "payload_bytes").items():
        first, largest = own.fact("ap_up_first_segment_p50_bytes"), own.most("ap_up_segment_max_bytes")
        if first is not None and largest is not None:
            found[int(str(size))] = (first, largest)
    return found


def first_segment_table(study: Study, run: BoardRun) -> Table | None:
    """Return the first segments of messages that need several, where the capture tells them."""
    lines = [
        {
            "payload": size_text(size),
            "payload_bytes": size,
            "first_segment_bytes": first,
            "largest_bytes": most,
        }
        for size, (first, most) in first_segments(run.of(BENCH)).items()
    ]
    return lay_out(study, "first-segments", lines)


NO_MEMORY = "not run: memory"
_LIMIT = "max_payload_bytes"
_USUAL_US = 100_000  # 10 messages a second: the rate of the sweep over payloads


def usual_rate(found: Echoes) -> Echoes:
    """Return the messages at 10 a second; where there are none, those at the slowest rate."""
    rates = by_setting(found.records, RATE_US)
    return rates.get((_USUAL_US,)) or next(reversed(rates.values()), NO_ECHOES)


def payload_table(study: Study, run: BoardRun) -> Table:
    """Return each payload and QoS: published with either broker, then ours."""
    both = desktop, pi = study.table("payload-desktop"), study.table("payload-pi")
    slow = {row.label: row for row in pi.rows}
    lines, missing, shown = [], [], []
    for row in desktop.rows:
        ours = usual_rate(selected(run, row.ours))
        shown.append(ours)
        published = {
            "published_pi_ms": published_ms(slow.get(row.label)),
            "published_desktop_ms": published_ms(row),
        }
        why = why_missing(run, row)
        lines.append(
            {"label": row.label, **published, **echo_line(ours, NO_MEMORY if _LIMIT in why else NOT_MEASURED)}
        )
        missing += [] if ours.n else [(row.label, why)]
    notes = [
        *(note for published in both for note in table_notes(published)),
        *(note for published in both for note in _corrections(published)),
        *rates_note(shown),
        *missing_notes(missing),
    ]
    found = lay_out(study, "payload", lines, notes=notes)
    assert found is not None
    return found


def _corrections(published: Published) -> list[str]:
    return [
        f"{row.label}, corrected to {number(1000 * row.corrected)} ms: {row.why}."
        for row in published.rows
        if row.corrected is not None
    ]


def by_payload(records: Iterable[RunRecord]) -> Mapping[tuple[int, int], Echoes]:
    """Return the messages in which nothing else varies, by payload in bytes and QoS, at the usual rate."""
    found = by_setting(plain(records), "payload_bytes", "qos")
    return {(int(str(size)), int(str(qos))): usual_rate(own) for (size, qos), own in found.items()}


def not_run_table(study: Study, run: BoardRun) -> Table | None:
    """Return the cases that the board's memory leaves out, with the reason that its rack file gives."""
    lines = []
    for trouble in run.troubles:
        if isinstance(trouble, NotRun) and _LIMIT in trouble.reason and bench_of(trouble.case_id) == BENCH:
            parameters = parameters_in(trouble.case_id)
            size, qos = int(parameters.get("payload_bytes", 0)), parameters.get("qos", "")
            line = {"label": f"{size_text(size)}, QoS {qos}", "ours": NO_MEMORY, "payload_bytes": size}
            lines.append({**line, "qos": qos, "reason": trouble.reason})
    return lay_out(study, "not-run", lines)


def rate_table(study: Study, run: BoardRun) -> Table | None:
    """Return what was asked for, offered and achieved, where a payload has several rates or one is off."""
    lines, hidden = [], 0
    for (size, qos), own in by_setting(plain(run.of(BENCH)), "payload_bytes", "qos").items():
        rates = by_setting(own.records, RATE_US)
        for (interval_us,), at in reversed(rates.items()):
            off = off_by(at)
            if len(rates) == 1 and not off:
                hidden += 1
                continue
            found = {name: at.fact(f"{name}_mps") for name in ("requested", "offered", "achieved")}
            line = {"label": f"{size_text(int(str(size)))}, QoS {qos}", "payload_bytes": size, "qos": qos}
            lines.append(
                {**line, "interval_us": interval_us, **found, "off": off, "p50": at.p50(), "n": at.n}
            )
    notes = [f"{hidden} more settings, each with one rate, kept to it"] if hidden else []
    return lay_out(study, "rates", lines, notes=notes)


def off_by(found: Echoes) -> str:
    """Return "OFF" where the peer found a rate off what was asked for in any record, "" where in none."""
    told = [record.environment.get("peer", {}).get("rate_off") for record in found.records]
    return "OFF" if any(told) else ""

"""What Wireshark's symptoms come to in the run's own captures, and what the board's TCP says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.model import RunRecord
from hil.network.dissect import SYMPTOMS
from hil.reports.studies.declaration import Background, Study
from hil.reports.studies.document import NONE, Table, number
from hil.reports.studies.records import BoardRun, fact, word
from hil.reports.studies.rtos_mqtt.losses import on_hotspot, on_rack
from hil.reports.studies.rtos_mqtt.messages import BENCH, by_name, case_name, greatest, total

_FACTS = {
    "Duplicate ACKs": "duplicate_ack_count",
    "Retransmissions": "retransmission_count",
    "Spurious retransmissions": "spurious_retransmission_count",
    "Out-of-order delivery": "out_of_order_count",
    "Previous segment not captured": "lost_segment_count",
    "Empty MQTT publish payload": "empty_publish_count",
    "PDU reassembly of multiple publishes": "reassembled_pdu_count",
}
_MORE = {
    "Fast retransmissions": "fast_retransmission_count",
    "Conversation incomplete": "incomplete_conversation_count",
}
SEEN = "ap_retransmission_count"
_POINTS = ("ap", "broker")


def published_readings(study: Study) -> Background:
    """Return the study's table of symptoms, which has each line that the code knows."""
    return next(table for table in study.background if table.id == "symptoms")


def symptom_table(study: Study, run: BoardRun) -> Table:
    """Return each symptom with the study's reading and how often it is in our captures, at both points."""
    readings = {row.label: str(row.values[0]) for row in published_readings(study).rows}
    where = _where(run)
    rows, data = [], []
    for label, name in {**_FACTS, **_MORE}.items():
        counts = [total(records, f"{point}_{name}") for records in where.values() for point in _POINTS]
        shown = (NONE if count is None else f"{count:,}" for count in counts)
        rows.append((label, readings.get(label, NONE), *shown))
        places = [f"{air}_{point}" for air in where for point in _POINTS]
        data.append({"symptom": label, "fact": name, **dict(zip(places, counts, strict=True))})
    columns = [f"{air}: {point}" for air in where for point in ("access point", "broker")]
    notes = (
        "frames, all cases together; incomplete: connections. At the access point behind the air, and at the "
        "broker's interface; – where nobody captured",
        "rack: cases on the run's own air without a planted fault; faults: cases with one; the broker's "
        "interface has what goes to the subscriber too",
    )
    title = "Wireshark's symptoms in our captures"
    return Table("symptoms", title, ("", "the study's reading", *columns), tuple(rows), notes, tuple(data))


def _where(run: BoardRun) -> Mapping[str, Sequence[RunRecord]]:
    planted = [record for record in run.of(BENCH) if word(record, "fault") != "none"]
    groups = {"rack": on_rack(run), "hotspot": on_hotspot(run), "faults": planted}
    return {name: records for name, records in groups.items() if records}


def filter_table() -> Table | None:
    """Return how to find each symptom in a capture, and what it tells."""
    known = {symptom.name: symptom for symptom in SYMPTOMS}
    found = [(label, known[name]) for label, name in {**_FACTS, **_MORE}.items() if name in known]
    rows = tuple((label, symptom.display_filter, symptom.meaning) for label, symptom in found)
    data = tuple({"symptom": symptom.name, "display_filter": symptom.display_filter} for _, symptom in found)
    if not rows:
        return None
    notes = ("--keep-captures keeps access-point.pcapng and broker.pcapng of each case",)
    title = "Display filters for the symptoms, and what they tell"
    columns = ("", "display filter, or command", "what it tells")
    return Table("filters", title, columns, rows, notes, data, measured=False)


def counter_table(run: BoardRun) -> Table | None:
    """Return what the board's own TCP counted, beside what the capture at the access point shows."""
    groups = _counted(run)
    rows, data = [], []
    for name, records in groups.items():
        told = _known(records, "tcp_retransmits")
        seen = total(records, SEEN)
        if told is None and seen is None:
            continue
        srtt, rto, unsent = (greatest(records, key, "device") for key in _CONNECTION)
        cells = [NONE if value is None else f"{value:,.0f}" for value in (told, seen)]
        times = [number(value / 1000) if value is not None and value >= 0 else NONE for value in (srtt, rto)]
        left = NONE if unsent is None or unsent < 0 else f"{unsent:,.0f}"
        more = {key: total(records, key, "device") for key in _LWIP}
        rows.append((name, *cells, *times, left, *(_lwip_cells(more) if _has_lwip(run) else ())))
        data.append(
            {"case": name, "told": told, "seen": seen, "srtt_us": srtt, "rto_us": rto, "unsent_bytes": unsent}
            | more
        )
    if not rows:
        return None
    lwip = _LWIP_HEADS if _has_lwip(run) else ()
    columns = ("", "sent again: board", "at access point", "SRTT, ms", "RTO, ms", "unsent B", *lwip)
    notes = (
        f"board: {counter_source(run)}, of the connection at the case's end; at access point: "
        "retransmissions of both directions in the capture, behind the air, so what the air loses on the "
        "way up is sent again unseen",
    )
    title = "What the board's TCP counts, and what the capture shows"
    return Table("counters", title, columns, tuple(rows), notes, tuple(data))


def _counted(run: BoardRun) -> Mapping[str, tuple[RunRecord, ...]]:
    """Return the cases in which anything was sent again, and all others together."""
    groups = by_name(run.of(BENCH), case_name)
    again = {name: own for name, own in groups.items() if _known(own, "tcp_retransmits") or total(own, SEEN)}
    others = tuple(record for name, own in groups.items() if name not in again for record in own)
    return {**again, **({"all others" if again else "all cases": others} if others else {})}


_CONNECTION = ("tcp_srtt_us", "tcp_rto_us", "tcp_unsent_bytes")
_LWIP = ("lwip_tcp_xmit", "lwip_tcp_drop", "lwip_tcp_memerr", "lwip_tcp_retrans")
_LWIP_HEADS = ("lwIP: sent", "lwIP: dropped", "lwIP: no memory", "lwIP: again")


def counter_source(run: BoardRun) -> str:
    """Say whose counters a board's are."""
    if _has_lwip(run):
        return "lwIP, its control block and its statistics"
    return "the host's kernel by TCP_INFO" if run.kind == "virtual" else "its TCP"


def _has_lwip(run: BoardRun) -> bool:
    return any(fact(record, "device", _LWIP[0]) is not None for record in run.of(BENCH))


def _lwip_cells(found: Mapping[str, int | None]) -> tuple[str, ...]:
    return tuple(NONE if found[key] is None else f"{found[key]:,}" for key in _LWIP)


def _known(records: Sequence[RunRecord], name: str) -> int | None:
    """Return the sum of a counter of the board, of the records in which it was known (not -1)."""
    found = [
        value for record in records if (value := fact(record, "device", name)) is not None and value >= 0
    ]
    return round(sum(found)) if found else None


def board_counted(run: BoardRun) -> int | None:
    """Return how often the board's TCP says that it sent a segment again, all cases together."""
    return _known(run.of(BENCH), "tcp_retransmits")

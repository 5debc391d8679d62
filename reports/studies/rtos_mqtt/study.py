# SPDX-License-Identifier: Apache-2.0
"""The study rtos-mqtt beside our run of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from hil.model import RunRecord
from hil.network.dissect.symptoms import SYMPTOMS
from hil.reports.studies.declaration import Background, Study
from hil.reports.studies.document import NONE, Table
from hil.reports.studies.layout import lay_out
from hil.reports.studies.records import BoardRun, fact, greatest, grouped, word
from hil.reports.studies.rtos_mqtt.claims import CHECKS, STATISTICS
from hil.reports.studies.rtos_mqtt.losses import (
    gap_table,
    loss_table,
    on_hotspot,
    on_rack,
    segment_table,
)
from hil.reports.studies.rtos_mqtt.messages import (
    BENCH,
    case_name,
    total,
)
from hil.reports.studies.rtos_mqtt.publish import count_table, hold_table, time_table
from hil.reports.studies.sections import Parts

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
_POINTS = {"ap": "access point", "broker": "broker"}


def published_readings(study: Study) -> Background:
    """Return the study's table of symptoms, which has each line that the code knows."""
    return next(table for table in study.background if table.id == "symptoms")


def symptom_table(study: Study, run: BoardRun) -> Table | None:
    """Return each symptom with the study's reading and how often it is in our captures, at both points."""
    readings = {row.label: str(row.values[0]) for row in published_readings(study).rows}
    where = _records_by_place(run)
    lines = [
        {"symptom": label, "fact": name, "reading": readings.get(label, NONE)}
        | {f"{air}_{point}": total(own, f"{point}_{name}") for air, own in where.items() for point in _POINTS}
        for label, name in {**_FACTS, **_MORE}.items()
    ]
    more = {f"{air}_{point}": f"{air}: {words}" for air in where for point, words in _POINTS.items()}
    return lay_out(study, "symptoms", lines, more=more)


def _records_by_place(run: BoardRun) -> Mapping[str, Sequence[RunRecord]]:
    planted = [record for record in run.of(BENCH) if word(record, "fault") != "none"]
    groups = {"rack": on_rack(run), "hotspot": on_hotspot(run), "faults": planted}
    return {name: records for name, records in groups.items() if records}


def filter_table(study: Study, _run: BoardRun) -> Table | None:
    """Return how to find each symptom in a capture, and what it tells."""
    known = {symptom.name: symptom for symptom in SYMPTOMS}
    found = [(label, known[name]) for label, name in {**_FACTS, **_MORE}.items() if name in known]
    lines = [
        {"label": label, "symptom": one.name, "display_filter": one.display_filter, "tells": one.meaning}
        for label, one in found
    ]
    return lay_out(study, "filters", lines)


def counter_table(study: Study, run: BoardRun) -> Table | None:
    """Return what the board's own TCP counted, beside what the capture at the access point shows."""
    lines = []
    for name, records in _counted(run).items():
        told, seen = _known(records, "tcp_retransmits"), total(records, SEEN)
        if told is None and seen is None:
            continue
        at_end = {
            key: value if value is not None and value >= 0 else None
            for key in ("srtt_us", "rto_us", "unsent_bytes")
            for value in (greatest(records, f"tcp_{key}", "device"),)
        }
        lwip = {key: total(records, key, "device") for key in _LWIP}
        lines.append({"case": name, "told": told, "seen": seen, **at_end, **lwip})
    without = () if _has_lwip(run) else _LWIP
    return lay_out(study, "counters", lines, without=without, source=counter_source(run))


def _counted(run: BoardRun) -> Mapping[str, Sequence[RunRecord]]:
    """Return the cases in which anything was sent again, and all others together."""
    groups = grouped(run.of(BENCH), case_name)
    again = {name: own for name, own in groups.items() if _known(own, "tcp_retransmits") or total(own, SEEN)}
    others = tuple(record for name, own in groups.items() if name not in again for record in own)
    return {**again, **({"all others" if again else "all cases": others} if others else {})}


_LWIP = ("lwip_tcp_xmit", "lwip_tcp_drop", "lwip_tcp_memerr", "lwip_tcp_retrans")


def counter_source(run: BoardRun) -> str:
    """Say whose counters a board's are."""
    if _has_lwip(run):
        return "lwIP, its control block and its statistics"
    return "the host's kernel by TCP_INFO" if run.kind == "virtual" else "its TCP"


def _has_lwip(run: BoardRun) -> bool:
    return any(fact(record, "device", _LWIP[0]) is not None for record in run.of(BENCH))


def _known(records: Sequence[RunRecord], name: str) -> int | None:
    """Return the sum of a counter of the board, of the records in which it was known (not -1)."""
    found = [
        value for record in records if (value := fact(record, "device", name)) is not None and value >= 0
    ]
    return round(sum(found)) if found else None


PARTS = Parts(
    tables={
        **{name: functools.partial(time_table, name) for name in ("publish", "security", "older")},
        **{
            name: functools.partial(count_table, name)
            for name in ("publishes", "security-publishes", "older-publishes")
        },
        "hold": hold_table,
        "bursts": segment_table,
        "losses": loss_table,
        "gaps": gap_table,
        "symptoms": symptom_table,
        "filters": filter_table,
        "counters": counter_table,
    },
    checks=CHECKS,
    statistics=STATISTICS,
)

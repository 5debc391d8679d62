# SPDX-License-Identifier: Apache-2.0
"""The study rtos-mqtt beside our run of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hil.model import RunRecord
from hil.network.dissect.symptoms import SYMPTOMS
from hil.network.ledger.files import sentence_of
from hil.reports.studies.claims import claim_table
from hil.reports.studies.declaration import Background, Study
from hil.reports.studies.document import NONE, Table, number
from hil.reports.studies.estimate import Estimate
from hil.reports.studies.layout import lay_out
from hil.reports.studies.records import BoardRun, boots, fact, greatest, grouped, word
from hil.reports.studies.rtos_mqtt.claims import CHECKS, STATISTICS, place
from hil.reports.studies.rtos_mqtt.costs import carried, cores_table, tls_table
from hil.reports.studies.rtos_mqtt.losses import (
    DOWN,
    UP,
    burst_groups,
    effect_table,
    effects,
    gap_table,
    ledger_of,
    loss_table,
    on_hotspot,
    on_rack,
    over_boots,
    per_segment,
    segment_table,
    undisturbed,
)
from hil.reports.studies.rtos_mqtt.messages import (
    BENCH,
    call_us,
    called,
    case_name,
    mean_of,
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


def board_counted(run: BoardRun) -> int | None:
    """Return how often the board's TCP says that it sent a segment again, all cases together."""
    return _known(run.of(BENCH), "tcp_retransmits")


def _claims(kind: str, study: Study, run: BoardRun) -> Table:
    name = f"{kind}s"
    found = claim_table(study.claims_of(kind), run, CHECKS, STATISTICS, where=place(run), name=name)
    return replace(found, notes=(*carried(run), *found.notes))


Answers = tuple[str, ...]


def _empty(_study: Study, run: BoardRun) -> Answers:
    records = run.of(BENCH)
    sent = total(records, f"{UP}_publishes_count")
    seen = {point: total(records, f"{point}_empty_publish_count") for point in ("ap", "broker")}
    if seen["broker"] is None:
        return ("Empty publishes were not looked for.",)
    points = {"ap": "at the access point", "broker": "at the broker"}
    told = " and ".join(f"{seen[key]:,} {words}" for key, words in points.items() if seen[key] is not None)
    found = told if sent is None else f"{told}, of {sent:,} that the board sent"
    none = not any(seen.values())
    gaps, incomplete = (
        total(records, f"broker_{name}_count") for name in ("lost_segment", "incomplete_conversation")
    )
    legal = (
        "MQTT allows an empty payload; our board sends none, and none is there. Where Wireshark's list "
        "shows one, most likely a segment was dissected without its beginning; nothing points to an "
        "underflow or a retransmission"
        if none
        else "The board sends no message without payload, so these are worth a look at the captures"
    )
    return (
        f"PUBLISH packets without payload: {found}. {legal}.",
        f"At the broker a segment before another one was not captured in {gaps or 0:,} places, and "
        f"{incomplete or 0:,} conversations were incomplete.",
    )


def _is_nagle(_study: Study, run: BoardRun) -> Answers:
    found = []
    for who, where, switch in (("board", UP, "nodelay"), ("broker", DOWN, "broker_nodelay")):
        told = [
            f"{words} {one.text} (up to {most:,.0f})"
            for words, one, most in _by_switch(run, switch, where)
            if most is not None
        ]
        if len(told) > 1:
            found.append(f"From the {who}: {', '.join(told)} publishes a segment.")
    if not found:
        return ("Bursts were not measured.",)
    return (*found, _cause(effects(run).get("board")))


def _by_switch(run: BoardRun, switch: str, where: str) -> list[tuple[str, Estimate, float | None]]:
    """Return publishes a segment with Nagle's algorithm and without, whatever the other switches."""
    records = [record for own in burst_groups(run).values() for record in own]
    found = []
    for value, words in (("0", "with Nagle's algorithm"), ("1", "without it")):
        own = [record for record in records if word(record, switch) == value]
        if own:
            most = greatest(own, f"{where}_publishes_per_segment_max")
            found.append((words, over_boots(per_segment(own, where)), most))
    return found


def _cause(effect: Estimate | None) -> str:
    if effect is None or effect.value is None:
        return "Whether Nagle's algorithm is the cause was not measured on the board."
    if effect.low > 0:
        return (
            "So bursts can be controlled: what is published before the last segment was acknowledged "
            "waits, and goes as one segment. That is Nagle's algorithm, and it needs publishes closer "
            "together than a round trip."
        )
    return "Nagle's algorithm is not proven to bundle these publishes."


def _would_nodelay_help(_study: Study, run: BoardRun) -> Answers:
    effect = effects(run).get("board")
    if effect is None or effect.value is None:
        return ("TCP_NODELAY was not measured with and without.",)
    records = [record for own in burst_groups(run).values() for record in own]
    with_it, without = (
        [record for record in records if word(record, "nodelay") == value] for value in ("1", "0")
    )
    calls = [mean_of(called(own), call_us).text for own in (with_it, without)]
    helps = "It helps" if effect.low > 0 else "It is not proven to help"
    return (
        f"{helps}: TCP_NODELAY on the board makes it {effect.text} publishes a segment fewer, over "
        f"{effect.n} boots.",
        f"A publish call of a burst takes {calls[0]} µs with it and {calls[1]} µs without, in the mean over "
        "boots; each publish is then a segment, with headers of its own.",
    )


def _counters(_study: Study, run: BoardRun) -> Answers:
    counted = board_counted(run)
    seen = total(run.of(BENCH), "ap_retransmission_count")
    if counted is None:
        own = "This board told no counter of its TCP."
    else:
        beside = "" if seen is None else f", the captures at the access point show {seen:,}"
        own = f"The board's TCP says that it sent {counted:,} segments again ({counter_source(run)}){beside}."
    return (
        f"Yes, if the firmware asks for them. {own}",
        "On a chip lwIP's control block has the retransmissions of the segment that is waiting, time-out, "
        "round trip and window, and its statistics have drops and failed allocations; how many segments "
        "were sent again is counted only where it is built with MIB2_STATS=1, as our firmware is.",
    )


def _where(_study: Study, run: BoardRun) -> Answers:
    planted = [record for record in run.of(BENCH) if word(record, "fault") != "none"]
    found = []
    for words, records in (("Without a planted fault", undisturbed(run)), ("With planted faults", planted)):
        counts = ledger_of(records)
        if counts:
            found.append(f"{words}, {_cases(records)}: {sentence_of(counts)}.")
    if not found:
        return ("No ledger of the messages was kept.",)
    return (
        "By a number in each message, and by looking for it at each point: the publish call, the board's "
        "TCP, the access point, the broker's interface in and out, the subscriber. The first point where "
        "it is missing lost it.",
        *found,
    )


def _cases(records: Sequence[RunRecord]) -> str:
    count = len({record.case_id for record in records})
    return f"{count} {'case' if count == 1 else 'cases'}, {number(boots(records))} boots".replace(".00", "")


PARTS = Parts(
    tables={
        **{name: functools.partial(time_table, name) for name in ("publish", "security", "older")},
        **{
            name: functools.partial(count_table, name)
            for name in ("publishes", "security-publishes", "older-publishes")
        },
        "tls-cost": tls_table,
        "cores": cores_table,
        "hold": hold_table,
        "bursts": segment_table,
        "nodelay": effect_table,
        "losses": loss_table,
        "gaps": gap_table,
        "symptoms": symptom_table,
        "filters": filter_table,
        "counters": counter_table,
        "claims": functools.partial(_claims, "claim"),
        "recommendations": functools.partial(_claims, "recommendation"),
    },
    answers={
        "question 1": _empty,
        "question 2": _is_nagle,
        "question 3": _would_nodelay_help,
        "question 4": _counters,
        "question 5": _where,
    },
)

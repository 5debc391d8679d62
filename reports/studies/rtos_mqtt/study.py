"""The study rtos-mqtt beside our run of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace

from hil.model import RunRecord
from hil.network.ledger.files import sentence_of
from hil.reports.studies.claims import claim_table
from hil.reports.studies.comparison import plain_table
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import Section, Table, number
from hil.reports.studies.estimate import Estimate
from hil.reports.studies.records import BoardRun, boots, word
from hil.reports.studies.rtos_mqtt.claims import check, place
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
    over_boots,
    per_segment,
    segment_table,
    undisturbed,
)
from hil.reports.studies.rtos_mqtt.messages import BENCH, call_us, called, greatest, mean_of, total
from hil.reports.studies.rtos_mqtt.publish import count_table, hold_table, time_table
from hil.reports.studies.rtos_mqtt.symptoms import (
    board_counted,
    counter_source,
    counter_table,
    filter_table,
    symptom_table,
)

OUR_WAY = (
    "their way: the study's average of one run. Beside it the publish call alone: its mean, with an "
    "interval whose ends are each wrong with 5 % at most, over boots; of one boot it holds for this boot, "
    "over batches of its messages. p50 and p99 are those of what was measured; 'n < 299': too few for it. "
    "50/s and 1/s are messages a second; the study says 1/s and had two. Messages are numbered and planned "
    "ahead, whether or not the one before was done."
)
VIRTUAL = (
    "On a virtual rack the host schedules the tasks, OpenSSL does TLS, and the air is emulated. What "
    "depends on the core of Wi-Fi, on the chip's speed or on a radio cannot be carried over to an ESP32; "
    "where a message was lost, what a capture shows and what TCP_NODELAY does to segments is real TCP."
)


def sections_of(study: Study, run: BoardRun) -> list[Section]:
    """Return the sections; a case that is missing leaves its row and says why."""
    remarks = (OUR_WAY, VIRTUAL) if run.kind == "virtual" else (OUR_WAY,)
    times = tuple(time_table(study.table(name), run) for name in ("publish", "security", "older"))
    counts = ("publishes", "security-publishes", "older-publishes")
    return [
        Section("How long a publish takes", remarks, times),
        Section("How many there were", tables=tuple(count_table(study.table(name), run) for name in counts)),
        *_section("What TLS and the tasks' cores cost", tls_table(study, run), cores_table(study, run)),
        *_section("A mutex that is held", hold_table(run)),
        *_section("Bursts", segment_table(run), effect_table(run)),
        *_section("Who loses messages", loss_table(run), gap_table(run)),
        *_section("Wireshark's symptoms", symptom_table(study, run), filter_table()),
        *_section("Counters on the board", counter_table(run)),
        *(
            Section(f"Question: {question}", answers=answer)
            for question, answer in zip(study.questions, answers(run), strict=True)
        ),
        Section("Claims and recommendations", tables=_claims(study, run)),
        _background(study),
    ]


def _section(heading: str, *tables: Table | None) -> list[Section]:
    found = tuple(table for table in tables if table)
    return [Section(heading, tables=found)] if found else []


def _claims(study: Study, run: BoardRun) -> tuple[Table, ...]:
    decide = functools.partial(check, study)
    found = [
        claim_table(study.claims_of(kind), run, decide, where=place(run), name=name)
        for kind, name in (("claim", "claims"), ("recommendation", "recommendations"))
    ]
    return tuple(replace(table, notes=(*carried(run), *table.notes)) for table in found)


def _background(study: Study) -> Section:
    """Return the study's own table of traffic, shown and not judged."""
    tables = tuple(plain_table(table) for table in study.background if table.id != "symptoms")
    return Section("The study's traffic", ("Shown as it was published.",), tables)


Answers = tuple[str, ...]


def answers(run: BoardRun) -> tuple[Answers, ...]:
    """Return the sentences that answer each of the study's questions, in their order."""
    return tuple(answer(run) for answer in _ANSWERS)


def _empty(run: BoardRun) -> Answers:
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


def _is_nagle(run: BoardRun) -> Answers:
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


def _would_nodelay_help(run: BoardRun) -> Answers:
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


def _counters(run: BoardRun) -> Answers:
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


def _where(run: BoardRun) -> Answers:
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


_ANSWERS: Sequence[Callable[[BoardRun], Answers]] = (
    _empty,
    _is_nagle,
    _would_nodelay_help,
    _counters,
    _where,
)

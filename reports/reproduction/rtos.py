"""The study rtos-mqtt beside our run of it."""

from __future__ import annotations

import functools
from dataclasses import replace

from hil.reference import Study
from reports.reproduction.background import plain_table
from reports.reproduction.claims import claim_table
from reports.reproduction.document import Section, Table
from reports.reproduction.records import BoardRun
from reports.reproduction.rtos_answers import answers
from reports.reproduction.rtos_bursts import effect_table, segment_table
from reports.reproduction.rtos_claims import check, place
from reports.reproduction.rtos_costs import carried, cores_table, tls_table
from reports.reproduction.rtos_hold import hold_table
from reports.reproduction.rtos_losses import gap_table, loss_table
from reports.reproduction.rtos_publish import count_table, time_table
from reports.reproduction.rtos_symptoms import counter_table, filter_table, symptom_table

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

"""The study mqtt-http-rtt beside our run of it."""

from __future__ import annotations

from hil.reference import Study
from reports.reproduction import first, parts, phases
from reports.reproduction.claims import claim_table
from reports.reproduction.document import Section, Table
from reports.reproduction.http_claims import check
from reports.reproduction.records import BoardRun

OUR_WAY = (
    "The rows 'together' send three requests at the same instant, as published; 'interleaved' takes turns, "
    "'single' has one profile alone. p50 with an interval whose ends are each wrong with 5 % at most, over "
    "boots; of one boot it holds for this boot. p95 and p99 are those of the requests that were measured, "
    "without an interval; 'n < 59' says that they are too few for the percentile. A request without an "
    "answer counts as slower than all others. 'single, 100' has phases of 100 requests, which are nearly all "
    "later ones, instead of the published five."
)


def sections_of(study: Study, run: BoardRun) -> list[Section]:
    """Return the sections; a case that is missing leaves its row and says why."""
    return [
        Section("Phases", (OUR_WAY,), (phases.phase_table(study.table("phases"), run),)),
        Section("Timeouts", tables=(phases.timeout_table(study.table("timeouts"), run),)),
        *_section("First and later requests", first.first_table(run), first.excess_table(run)),
        *_section("Connecting", first.connect_table(run), parts.tls_table(run)),
        *_section("Pauses", parts.pause_table(run)),
        *_section("Profiles", parts.profile_table(run)),
        Section("Claims", tables=(claim_table(study.claims, run, check),)),
    ]


def _section(heading: str, *tables: Table | None) -> list[Section]:
    found = tuple(table for table in tables if table)
    return [Section(heading, tables=found)] if found else []

"""What is attached to a result, in order: charts, traces, samples, ledgers, console, environment."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hil.model import RunRecord
from hil.reports.allure.console import console_of
from hil.reports.allure.distribution import draw_distribution
from hil.reports.allure.samples import samples_of
from hil.reports.allure.story import RunStory, Story, parse_case_id
from hil.reports.allure.timeline import draw_timeline
from hil.reports.ledger import ledger_file
from hil.reports.traces.files import events_file

_OWN_COLUMNS = ("boot_index", "row", "warmup")
_TRACE_FILES = (
    (".svg", "scheduler trace", "image/svg+xml"),
    (".pftrace", "scheduler trace for ui.perfetto.dev", "application/octet-stream"),
)


@dataclass(frozen=True)
class Attachment:
    """A file of a result; ``key`` stays the same from one completion to the next."""

    key: str
    name: str
    mime_type: str
    extension: str
    data: bytes


def attachments_of(run: RunStory, story: Story) -> Iterator[Attachment]:
    """Yield the attachments of a case's result."""
    yield from _charts(story)
    yield from _traces(run, story)
    if story.records:
        virtual = ", virtual" if story.kind == "virtual" else ""
        yield Attachment(
            "samples", f"samples, raw{virtual} (CSV)", "text/csv", "csv", samples_csv(story.records)
        )
    yield from _ledgers(run, story)
    if story.records or story.faults:
        bench, parameters = parse_case_id(story.case_id)
        log = console_of(run.path, story.board, bench, parameters)
        if log:
            yield Attachment("console", f"console of {story.place}", "text/plain", "txt", log.encode())
    yield Attachment("environment", "environment", "application/json", "json", _environment(run, story))


def _charts(story: Story) -> Iterator[Attachment]:
    virtual = " (virtual)" if story.kind == "virtual" else ""
    for samples in samples_of(story):
        charts = (("distribution", draw_distribution), ("over time", draw_timeline))
        for what, draw in charts if samples.ordered else charts[:1]:
            name = f"{samples.quantity} {what}{virtual}"
            yield Attachment(f"{samples.quantity} {what}", name, "image/svg+xml", "svg", draw(samples))


def _traces(run: RunStory, story: Story) -> Iterator[Attachment]:
    """Yield a trace's picture, and the trace for ui.perfetto.dev."""
    virtual = ", virtual" if story.kind == "virtual" else ""
    for record in story.records:
        path = events_file(run.path, record)
        boot = f"boot {record.boot_index}{virtual}"
        for suffix, name, mime_type in _TRACE_FILES:
            if path and path.with_suffix(suffix).is_file():
                key = f"trace {record.boot_index} {suffix}"
                data = path.with_suffix(suffix).read_bytes()
                yield Attachment(key, f"{name}, {boot}", mime_type, suffix.removeprefix("."), data)


def _ledgers(run: RunStory, story: Story) -> Iterator[Attachment]:
    """Yield the ledger of each boot that kept one: a line a message."""
    virtual = ", virtual" if story.kind == "virtual" else ""
    for record in story.records:
        if path := ledger_file(run.path, record):
            name = f"loss ledger, boot {record.boot_index}{virtual} (CSV)"
            yield Attachment(f"ledger {record.boot_index}", name, "text/csv", "csv", path.read_bytes())


def samples_csv(records: Sequence[RunRecord]) -> bytes:
    """Return every row of every boot; the unit stands at the end of a column's name, as in the journal."""
    columns = list(dict.fromkeys(name for record in records for name in record.columns))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow((*_OWN_COLUMNS, *columns))
    for record in records:
        for row in range(record.rows):
            values = [record.columns[name][row] if name in record.columns else "" for name in columns]
            writer.writerow((record.boot_index, row, int(row < record.warmup_rows), *values))
    return file.getvalue().encode()


def _environment(run: RunStory, story: Story) -> bytes:
    """Return the case in full, and what was true of board, air and host while it was measured."""
    boots = [
        {
            "boot_index": record.boot_index,
            "started_utc": record.started_utc,
            "firmware_sha256": record.firmware_sha256,
            "ruler_hash": record.ruler_hash,
            "clock": record.clock,
            **{group: dict(facts) for group, facts in record.environment.items()},
        }
        for record in story.records
    ]
    bench, parameters = parse_case_id(story.case_id)
    facts = {
        "run_id": run.run_id,
        "rack": story.rack,
        "board": story.board,
        "kind": story.kind,
        "target": story.target,
        "bench": bench,
        "parameters": dict(story.records[0].parameters) if story.records else parameters,
        "boots": boots,
    }
    return (json.dumps(facts, ensure_ascii=False, indent=2) + "\n").encode()

# SPDX-License-Identifier: Apache-2.0
"""What is attached to a result, in order: charts, traces, samples, ledgers, crashes, console, environment.

The part of a board's console log that belongs to one case. Secrets were masked when it was written.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.reading import RUN_MOST_BYTES, read_at_most
from hil.model import RunRecord, Scalar
from hil.reports.allure.charts import draw_distribution, draw_timeline
from hil.reports.allure.samples import samples_of
from hil.reports.allure.story import RunStory, Story, parse_case_id
from hil.reports.kinds import mark
from hil.reports.ledger import ledger_file
from hil.reports.trace_notes import GROUP, events_file, timeline

_COMMAND = re.compile(r"\d+\.\d+ > #\S+ (?P<verb>\S+) ?(?P<rest>.*)")
_BETWEEN_BOOTS = "…\n"


def console_of(run_path: Path, board: str, bench: str, parameters: Mapping[str, Scalar]) -> str:
    """Return the lines from a case's ``run`` to the next case, of every boot.

    The whole log where it has no such line, and "" where the board has no log.
    """
    path = run_path / "console" / f"{board}.log"
    if not path.is_file():
        return ""
    text = read_at_most(path, RUN_MOST_BYTES).decode("utf-8", errors="replace")
    lines = text.splitlines(keepends=True)
    wanted = {f"{key}={value}" for key, value in parameters.items()}
    commands = [(number, match) for number, line in enumerate(lines) if (match := _COMMAND.match(line))]
    parts = []
    for place, (number, match) in enumerate(commands):
        words = match["rest"].split()
        if match["verb"] == "run" and words[:1] == [bench] and wanted <= set(words[1:]):
            parts.append("".join(lines[number : _end(commands, place, len(lines))]))
    return _BETWEEN_BOOTS.join(parts) if parts else "".join(lines)


def _end(commands: list[tuple[int, re.Match[str]]], place: int, lines: int) -> int:
    """Return the line of the greeting before the next case, or before the next boot's."""
    later = (number for number, match in commands[place + 1 :] if match["verb"] in ("hello", "run"))
    return next(later, lines)


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
        kind = mark([story.kind], ", {}")
        yield Attachment(
            "samples", f"samples, raw{kind} (CSV)", "text/csv", "csv", samples_csv(story.records)
        )
    yield from _ledgers(run, story)
    for crash in story.crashes:
        yield Attachment(
            crash.name, f"{crash.name} of {story.place}", "text/plain", "txt", crash.text.encode()
        )
    if story.records or story.faults:
        bench, parameters = parse_case_id(story.case_id)
        log = console_of(run.path, story.board, bench, parameters)
        if log:
            yield Attachment("console", f"console of {story.place}", "text/plain", "txt", log.encode())
    yield Attachment("environment", "environment", "application/json", "json", _environment(run, story))


def _charts(story: Story) -> Iterator[Attachment]:
    kind = mark([story.kind], " ({})")
    for samples in samples_of(story):
        charts = (("distribution", draw_distribution), ("over time", draw_timeline))
        for what, draw in charts if samples.ordered else charts[:1]:
            name = f"{samples.quantity} {what}{kind}"
            yield Attachment(f"{samples.quantity} {what}", name, "image/svg+xml", "svg", draw(samples))


def _traces(run: RunStory, story: Story) -> Iterator[Attachment]:
    """Yield a trace's picture, and the trace for ui.perfetto.dev."""
    kind = mark([story.kind], ", {}")
    for record in story.records:
        path = events_file(run.path, record)
        boot = f"boot {record.boot_index}{kind}"
        for suffix, name, mime_type in _TRACE_FILES:
            if path and path.with_suffix(suffix).is_file():
                key = f"trace {record.boot_index} {suffix}"
                data = path.with_suffix(suffix).read_bytes()
                yield Attachment(key, f"{name}, {boot}", mime_type, suffix.removeprefix("."), data)
        yield from _timeline(run, record, boot)


def _timeline(run: RunStory, record: RunRecord, boot: str) -> Iterator[Attachment]:
    """Yield what an emulator saw of a boot, or that it left nothing."""
    key, name = f"timeline {record.boot_index}", f"emulator's timeline for ui.perfetto.dev, {boot}"
    if path := timeline(run.path, record):
        yield Attachment(key, name, "application/json", "json", path.read_bytes())
    elif missing := record.environment.get(GROUP, {}).get("timeline"):
        yield Attachment(key, f"no {name}", "text/plain", "txt", f"The emulator left no {missing}.".encode())


def _ledgers(run: RunStory, story: Story) -> Iterator[Attachment]:
    """Yield the ledger of each boot that kept one: a line a message."""
    kind = mark([story.kind], ", {}")
    for record in story.records:
        if path := ledger_file(run.path, record):
            name = f"loss ledger, boot {record.boot_index}{kind} (CSV)"
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

# SPDX-License-Identifier: Apache-2.0
"""``evidence.json``: what was done on a rack step by step, what was expected, and what came out.

It is the programme's state while that goes on, and the head of the file that is sent when it is through. The
same steps for people: lines of the terminal, and the table of ``evidence.md``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hil.base.errors import ConfigError
from hil.base.schema import refuse_newer
from hil.base.untrusted import code, markdown, terminal
from hil.store.codec import build, decode
from hil.store.files import replace_file

SCHEMA = 1
EVIDENCE = "evidence.json"
TABLE = "evidence.md"
VIRTUAL = "virtual"

Result = Literal["ok", "differs", "skipped", "open"]
MARKS: dict[Result, str] = {"ok": "✓", "differs": "✗", "skipped": "·", "open": "…"}


@dataclass(frozen=True)
class Command:
    """One command of a step: how it was called and how it ended."""

    argv: tuple[str, ...]
    status: int
    seconds: float


@dataclass(frozen=True)
class StepReport:
    """What came of a step. ``why`` it was skipped; ``closes`` are rows of docs/explain/hardware.md.

    ``runs`` are the ids of its runs, in their order. ``got`` is "" where nothing was measured.
    """

    name: str
    title: str
    expected: str
    result: Result = "open"
    got: str = ""
    why: str = ""
    closes: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    commands: tuple[Command, ...] = ()
    ended_utc: str = ""


@dataclass(frozen=True)
class EvidenceBoard:
    """``ports`` is how the rack file names its port: by-id, by-path, or another way."""

    id: str
    kind: str
    target: str
    ports: str


@dataclass(frozen=True)
class Evidence:
    """The whole. ``host`` and ``tool`` say where and by what it was measured; ``left_out`` what a pack of it
    lacks, each with the reason."""

    rack: str
    kind: Literal["virtual", "physical"]
    access_point: str
    boards: tuple[EvidenceBoard, ...]
    started_utc: str
    steps: tuple[StepReport, ...]
    host: dict[str, str] = field(default_factory=dict)
    tool: dict[str, str] = field(default_factory=dict)
    packed_utc: str = ""
    anonymous: bool = False
    left_out: tuple[str, ...] = ()
    schema: int = SCHEMA

    def step(self, name: str) -> StepReport:
        return next(step for step in self.steps if step.name == name)

    def replaced(self, step: StepReport) -> Evidence:
        """Return it with one step as it is now."""
        return dataclasses.replace(
            self, steps=tuple(step if one.name == step.name else one for one in self.steps)
        )


def write_evidence(path: Path, evidence: Evidence) -> None:
    """Write it at once and whole. Raises OSError."""
    replace_file(path, to_bytes(evidence))


def to_bytes(evidence: Evidence) -> bytes:
    return json.dumps(dataclasses.asdict(evidence), ensure_ascii=False, indent=2).encode() + b"\n"


def parse_evidence(where: str, content: bytes) -> Evidence:
    """Return what ``write_evidence`` wrote. Raises ConfigError, which names ``where`` and the key."""
    again = "the file was changed after it was written, or is none of hil's; ask for it again."
    try:
        stored = decode(content)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}.", next_step=again) from error
    refuse_newer(stored.get("schema") if isinstance(stored, dict) else None, SCHEMA, where)
    try:
        found = build(Evidence, stored)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}.", next_step=again) from error
    if found.schema != SCHEMA:
        raise ConfigError(f"{where}: its schema is {found.schema}, this program reads {SCHEMA}.")
    return found


def lines(evidence: Evidence, notes: Sequence[str] = ()) -> Iterator[str]:
    """Yield it for a terminal, whoever wrote it: a line a step, then what it closes; ``notes`` at the end."""
    boards = ", ".join(f"{board.id} {board.target}" for board in evidence.boards)
    yield terminal(f"rack {evidence.rack} ({evidence.kind}), begun {evidence.started_utc}: {boards}")
    width = max((len(step.name) for step in evidence.steps), default=0)
    label = f"{VIRTUAL}  " if evidence.kind == VIRTUAL else ""
    for step in evidence.steps:
        came = terminal(step.got or step.why or "not done yet")
        yield f"{MARKS[step.result]} {terminal(step.name).ljust(width)}  {label}{step.result}: {came}"
        if step.result == "differs":
            yield f"  {' ' * width}  expected: {terminal(step.expected)}"
        if step.result == "ok" and step.closes:
            yield f"  {' ' * width}  closes: {terminal('; '.join(step.closes), 1000)}"
    yield terminal(sentence(evidence))
    yield from (terminal(note) for note in notes)


def sentence(evidence: Evidence) -> str:
    """Return what it comes to: "7 of 11 steps as expected, 1 differs, 3 skipped; …"."""
    count = {result: sum(step.result == result for step in evidence.steps) for result in MARKS}
    parts = [f"{count['ok']} of {len(evidence.steps)} steps as expected"]
    parts += [f"{count[word]} {words}" for word, words in _COUNTED if count[word]]
    rows = {row for step in evidence.steps if step.result == "ok" for row in step.closes}
    if evidence.kind == VIRTUAL:
        closes = "virtual, so it closes no row of docs/explain/hardware.md"
    else:
        closes = f"it closes {len(rows)} row{'s' * (len(rows) != 1)} of docs/explain/hardware.md"
    return f"{', '.join(parts)}; {closes}."


_COUNTED: tuple[tuple[Result, str], ...] = (("differs", "differ"), ("skipped", "skipped"), ("open", "open"))


def table(evidence: Evidence) -> str:
    """Return evidence.md: what a person reads in ten seconds."""
    label = " (virtual)" if evidence.kind == VIRTUAL else ""
    rows = [
        f"# Evidence of rack {code(evidence.rack)}{label}",
        "",
        markdown(sentence(evidence)),
        "",
        "| | step | expected | got | closes (rows of hardware.md) |",
        "|---|---|---|---|---|",
    ]
    for step in evidence.steps:
        closes = "; ".join(step.closes) if step.result == "ok" else ""
        none = f"none{label}" if evidence.kind == VIRTUAL else "–"
        cells = (step.title, step.expected, step.got or step.why, closes or none)
        mark = f"{MARKS[step.result]} {step.result}{label}"
        rows.append(f"| {mark} | {' | '.join(markdown(cell, most=1000) for cell in cells)} |")
    machine = ", ".join(f"{key} {value}" for key, value in (*evidence.tool.items(), *evidence.host.items()))
    rows += ["", code(machine, most=1000), ""]
    rows += [f"- left out: {markdown(one)}" for one in evidence.left_out]
    return "\n".join(rows) + "\n"

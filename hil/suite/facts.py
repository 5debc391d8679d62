# SPDX-License-Identifier: Apache-2.0
"""Read the file that the plugin pytest_hil writes: one fact a line, of a session, its boards and tests.

docs/reference/suite-facts.md is the format. The plugin imports nothing of hil, nor hil of it: this file is
all that they share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from hil.base.errors import ConfigError
from hil.base.reading import SUMMARY_MOST_BYTES, read_at_most
from hil.base.schema import refuse_newer
from hil.model import Kind, Name

SCHEMA = 1


class _Fact(msgspec.Struct, frozen=True, tag_field="fact", forbid_unknown_fields=True):
    """A line of the file."""


class SessionFact(_Fact, frozen=True, tag="session"):
    """What pytest session it was; the first line of the file. ``worker`` is xdist's, "" without."""

    schema: int
    session: Name
    started_utc: str
    worker: str = ""
    versions: Mapping[str, str] = msgspec.field(default_factory=dict)


class BoardFact(_Fact, frozen=True, tag="board"):
    """What a test measured on, as of the tests that follow; keys that are missing nothing told."""

    board: Name
    kind: Kind
    target: Name
    services: str = ""
    port: str = ""
    mac: str = ""
    image: str = ""
    image_sha256: str = ""
    app_version: str = ""
    idf_version: str = ""


class MetricFact(_Fact, frozen=True, tag="metric"):
    """A value, in the unit that is said, else in the unit that ends the name."""

    test: Name
    board: Name
    name: Name
    value: float
    at_utc: str
    source: Literal["metric", "log_metric", "record_property", "unity"]
    unit: str = ""
    direction: Literal["", "lower", "higher"] = ""
    limit: float | None = None


class OutcomeFact(_Fact, frozen=True, tag="test"):
    """What became of a test; ``said`` is the first line of its failure. ``attempts`` above 1 are reruns."""

    test: Name
    outcome: Literal["passed", "failed", "skipped"]
    said: str = ""
    duration_s: float = 0.0
    attempts: int = 1
    boards: tuple[str, ...] = ()


class EndFact(_Fact, frozen=True, tag="end"):
    """The session ended, and was not killed; ``exit_status`` is pytest's."""

    exit_status: int


Fact = SessionFact | BoardFact | MetricFact | OutcomeFact | EndFact
_DECODER = msgspec.json.Decoder(Fact)


@dataclass(frozen=True)
class SuiteValue:
    """A value, and the board that it was measured on with the image of then."""

    fact: MetricFact
    board: BoardFact


@dataclass(frozen=True)
class SuiteSession:
    """A session's facts. ``cut_off`` names the files whose process did not come to its end."""

    session: SessionFact
    values: tuple[SuiteValue, ...]
    tests: tuple[OutcomeFact, ...]
    boards: tuple[BoardFact, ...]
    cut_off: tuple[Path, ...] = ()


def is_of_session(path: Path) -> bool:
    """Say whether a file's lines are JSON objects, as those of a session are; of none that is not there."""
    try:
        return read_at_most(path, SUMMARY_MOST_BYTES).lstrip().startswith(b"{")
    except OSError:
        return False


def read_sessions(paths: Sequence[Path]) -> list[SuiteSession]:
    """Return the sessions of some files, each once: xdist's workers have a file each of one session.

    Raises ConfigError: a file cannot be read, or a line is no fact; names file and line.
    """
    found: dict[str, SuiteSession] = {}
    for path in paths:
        one = _read(path)
        name = one.session.session
        found[name] = _joined(found[name], one) if name in found else one
    return list(found.values())


def _joined(first: SuiteSession, second: SuiteSession) -> SuiteSession:
    return replace(
        first,
        values=first.values + second.values,
        tests=first.tests + second.tests,
        boards=first.boards + second.boards,
        cut_off=first.cut_off + second.cut_off,
    )


def _read(path: Path) -> SuiteSession:
    try:
        lines = read_at_most(path, SUMMARY_MOST_BYTES).split(b"\n")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}.") from error
    whole = lines[:-1]  # what follows the last end of a line was cut off in writing
    facts = [_parse(path, number, line) for number, line in enumerate(whole, start=1)]
    if not facts or not isinstance(facts[0], SessionFact):
        raise ConfigError(f"{path}:1: it does not begin with a session, so it is no file of pytest --hil.")
    return _gathered(path, facts[0], facts)


def _gathered(path: Path, session: SessionFact, facts: Sequence[Fact]) -> SuiteSession:
    boards: dict[str, BoardFact] = {}
    every: list[BoardFact] = []
    values, tests = [], []
    for number, fact in enumerate(facts, start=1):
        match fact:
            case BoardFact():
                boards[fact.board] = fact
                every.append(fact)
            case MetricFact() if fact.board not in boards:
                raise ConfigError(f"{path}:{number}: no line before it says what board {fact.board!r} is.")
            case MetricFact():
                values.append(SuiteValue(fact, boards[fact.board]))
            case OutcomeFact():
                tests.append(fact)
    is_whole = isinstance(facts[-1], EndFact)
    return SuiteSession(session, tuple(values), tuple(tests), tuple(every), () if is_whole else (path,))


def _parse(path: Path, number: int, line: bytes) -> Fact:
    try:
        if number == 1:
            refuse_newer(msgspec.json.decode(line).get("schema"), SCHEMA, str(path))
        fact: Fact = _DECODER.decode(line)
    except (msgspec.DecodeError, AttributeError) as error:
        raise ConfigError(
            f"{path}:{number}: no fact of a session: {error}.",
            next_step="restore the file as the plugin wrote it, or run the suite again.",
        ) from error
    return fact

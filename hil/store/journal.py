# SPDX-License-Identifier: Apache-2.0
"""The journal read back: a run's records.jsonl, line by line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.schema import UPDATE, SchemaError
from hil.model import Entry, RunRecord
from hil.store.codec import decode
from hil.store.entries import entry_from_json


@dataclass(frozen=True)
class Journal:
    """The entries read back. ``torn`` is a sentence where the last line was cut off in writing, else ""."""

    entries: tuple[Entry, ...]
    torn: str = ""

    @property
    def records(self) -> tuple[RunRecord, ...]:
        return tuple(entry for entry in self.entries if isinstance(entry, RunRecord))


def parse_journal(path: Path, content: bytes) -> Journal:
    """Return the entries of a file; a last line cut off in writing is left out and reported in ``torn``.

    Raises ConfigError: any other line is no entry; names ``path`` and line.
    """
    lines = content.split(b"\n")
    entries = [_parse_line(path, n, line) for n, line in enumerate(lines[:-1], start=1)]
    if not lines[-1]:
        return Journal(tuple(entries))
    torn = f"{path}:{len(lines)}: the last line was cut off after {len(lines[-1])} bytes; its entry is lost."
    return Journal(tuple(entries), torn)


def _parse_line(path: Path, number: int, line: bytes) -> Entry:
    try:
        return entry_from_json(decode(line))
    except ValueError as error:
        newer = isinstance(error, SchemaError) and error.is_newer
        shown = line[:60].decode(errors="replace")
        raise ConfigError(
            f"{path}:{number}: not an entry: {error}; the line starts with {shown!r}.",
            next_step=UPDATE if newer else "restore the file as it was written, or measure again.",
        ) from error

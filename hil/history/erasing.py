# SPDX-License-Identifier: Apache-2.0
"""Taking one product out of a history for good: its runs' files and lines, and a note that they were there.

``erased.jsonl`` in the history's folder has a line a run, so that no merge and no fetch brings it back.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.history.loading import read_segment, segment_paths
from hil.model import format_product
from hil.store.files import disk_error, read_jsonl, replace_file, sync_folder

ERASED_FILE = "erased.jsonl"
SCHEMA = 1
_LINES = "*.jsonl"


@dataclass(frozen=True)
class Erased:
    """What was taken out, or would be: runs, files, lines of other files, and how many bytes these were."""

    runs: tuple[str, ...]
    files: int
    lines: int
    size_bytes: int


def erased_runs(folder: Path) -> frozenset[str]:
    """Return the runs that were erased from a history. Raises ConfigError where its note is damaged."""
    return frozenset(str(line["run_id"]) for line in read_jsonl(folder / ERASED_FILE, _parse_note))


def erase(folder: Path, product: str, *, when_utc: str, dry_run: bool = False) -> Erased:
    """Take all runs of a product out of the history in ``folder``.

    The note is written first: killed in between, the same call ends what was begun. Other products' files
    stay as they are, byte for byte, and so do their lines.

    Raises:
        ConfigError: no run of that product, a damaged file; nothing is erased then.
        RigError: the disk does not take it.
    """
    own = {path for path in segment_paths(folder) if read_segment(path).product == product}
    runs = {path.stem for path in own} | set(_noted(folder, product)) | set(_lined(folder, product))
    if not runs:
        _refuse(folder, product)
    kept = {path: _without(path, runs) for path in sorted(folder.glob(_LINES)) if path.name != ERASED_FILE}
    changed = {path: cut for path, cut in kept.items() if cut[1]}
    size = sum(path.stat().st_size for path in own) + sum(cut[2] for cut in changed.values())
    erased = Erased(tuple(sorted(runs)), len(own), sum(cut[1] for cut in changed.values()), size)
    if dry_run:
        return erased
    try:
        _write_note(folder, product, runs, when_utc)
        _drop(own, {path: content for path, (content, _lines, _bytes) in changed.items()})
    except OSError as error:
        what = f"could not erase {format_product(product)} from {folder}"
        raise disk_error(what, error, "the runs of all other products") from error
    return erased


def drop_erased(folder: Path) -> None:
    """Take out again what came back of erased runs, as from another copy of the history. Raises OSError."""
    runs = set(erased_runs(folder))
    if runs:
        own = {path for path in segment_paths(folder) if path.stem in runs}
        lines = {path: _without(path, runs) for path in folder.glob(_LINES) if path.name != ERASED_FILE}
        _drop(own, {path: content for path, (content, count, _bytes) in lines.items() if count})


def _drop(files: Collection[Path], rewritten: Mapping[Path, bytes]) -> None:
    for path in sorted(files):
        path.unlink(missing_ok=True)
        sync_folder(path.parent)
        with suppress(OSError):  # other racks' runs are in it
            path.parent.rmdir()
    for path, content in rewritten.items():
        replace_file(path, content)


def _refuse(folder: Path, product: str) -> None:
    known = sorted({read_segment(path).product for path in segment_paths(folder)} - {""})
    raise ConfigError(
        f"the history in {folder} holds nothing of product {product!r}{did_you_mean(product, known)}",
        next_step=f"it holds {', '.join(known) or 'no product by name'}: hil history show",
    )


def _without(path: Path, runs: set[str]) -> tuple[bytes, int, int]:
    """Return a file without the lines of some runs, how many these are, and of how many bytes."""
    content = path.read_bytes()
    kept = [line for line in content.splitlines(keepends=True) if not _runs_of(line) & runs]
    whole = b"".join(kept)
    return whole, content.count(b"\n") - whole.count(b"\n"), len(content) - len(whole)


def _runs_of(line: bytes) -> set[str]:
    """Return the runs that a line is about; a line that is none of ours is about nobody's."""
    with suppress(ValueError):
        value = json.loads(line)
        if isinstance(value, dict):
            several = value.get("runs")
            return {str(value.get("run_id", "")), *map(str, several if isinstance(several, list) else ())}
    return set()


def _lined(folder: Path, product: str) -> Iterator[str]:
    """Yield the runs of a product that only the reports' lines know: those of pull requests."""
    for path in folder.glob(_LINES):
        for line in path.read_bytes().splitlines() if path.name != ERASED_FILE else ():
            with suppress(ValueError):
                value = json.loads(line)
                if isinstance(value, dict) and value.get("product") == product and "run_id" in value:
                    yield str(value["run_id"])


def _noted(folder: Path, product: str) -> Iterator[str]:
    """Yield the runs that were to be erased before, and of which something is there (again)."""
    noted = {
        line["run_id"] for line in read_jsonl(folder / ERASED_FILE, _parse_note) if line["product"] == product
    }
    there = {path.stem for path in segment_paths(folder)}
    for path in folder.glob(_LINES):
        if path.name != ERASED_FILE:
            there |= {run for line in path.read_bytes().splitlines() for run in _runs_of(line)}
    yield from sorted(noted & there)


def _write_note(folder: Path, product: str, runs: set[str], when_utc: str) -> None:
    before = read_jsonl(folder / ERASED_FILE, _parse_note)
    known = {str(line["run_id"]) for line in before}
    added = [
        {"schema": SCHEMA, "run_id": run, "product": product, "erased_utc": when_utc}
        for run in sorted(runs - known)
    ]
    lines = [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in [*before, *added]]
    replace_file(folder / ERASED_FILE, "".join(f"{line}\n" for line in lines).encode())


def _parse_note(path: Path, number: int, raw: bytes) -> Mapping[str, Any]:
    with suppress(ValueError):
        line = json.loads(raw)
        if (
            isinstance(line, dict)
            and isinstance(line.get("run_id"), str)
            and isinstance(line.get("product"), str)
        ):
            return line
    raise ConfigError(
        f"{path}:{number}: no line of what was erased.",
        next_step="restore the file: it keeps erased runs from coming back.",
    )

# SPDX-License-Identifier: Apache-2.0
"""Steps of a migration taken, and taken back: what was there is kept beside it, and a note says what changed.

The note is written first. Killed in between, the same call goes on, and going back undoes what was done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from hil.base.errors import ConfigError
from hil.base.schema import refuse_newer
from hil.history.loading import read_bytes
from hil.history.migration import Step
from hil.store.codec import build, decode
from hil.store.files import disk_error, replace_file

NOTE = "migrated.json"
SCHEMA: Literal[1] = 1
OLD = ".old"


@dataclass(frozen=True)
class Done:
    """A step in the note: names relative to its folder. ``kept`` holds what was there, "" of what moved."""

    path: str
    target: str
    kept: str
    before_sha256: str
    after_sha256: str
    why: str
    when_utc: str


@dataclass(frozen=True)
class _Note:
    schema: Literal[1]
    steps: tuple[Done, ...]


def migrate(folder: Path, steps: Sequence[Step], *, when_utc: str) -> list[Done]:
    """Take the steps; ``folder`` has the note. Raises RigError where the disk does not take it."""
    done = [_planned(folder, step, when_utc) for step in steps]
    try:
        _write_note(folder, [*read_note(folder), *done])
        for step, one in zip(steps, done, strict=True):
            if one.kept:
                replace_file(folder / one.kept, read_bytes(step.path))
            step.target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(step.target, step.content)
    except OSError as error:
        raise disk_error(f"could not migrate {folder}", error, f"what was there, as {OLD} files") from error
    return done


def take_back(folder: Path) -> list[Done]:
    """Undo what the note in ``folder`` says, the last step first; return what was undone.

    Raises:
        ConfigError: nothing was migrated, or a file was changed since; nothing is undone then.
        RigError: the disk does not take it.
    """
    noted = read_note(folder)
    if not noted:
        raise ConfigError(f"{folder} has no {NOTE}, so there is nothing to take back.")
    undone = [one for one in reversed(noted) if _is_done(folder, one)]
    try:
        for one in undone:
            if one.kept:
                replace_file(folder / one.target, read_bytes(folder / one.kept))
            else:
                (folder / one.target).unlink()
        for one in noted:
            if one.kept:
                (folder / one.kept).unlink(missing_ok=True)
        (folder / NOTE).unlink()
    except OSError as error:
        raise disk_error(f"could not take {folder} back", error, f"what was there, as {OLD} files") from error
    return undone


def read_note(folder: Path) -> list[Done]:
    """Return what was done, in order; nothing without a note. Raises ConfigError where it is damaged."""
    path = folder / NOTE
    if not path.exists():
        return []
    try:
        stored = decode(read_bytes(path))
        refuse_newer(stored.get("schema") if isinstance(stored, dict) else None, SCHEMA, str(path))
        return list(build(_Note, stored).steps)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}.", next_step=f"the files of before end in {OLD}.") from error


def _planned(folder: Path, step: Step, when_utc: str) -> Done:
    kept = "" if step.target != step.path else _relative(folder, _free(step.path))
    return Done(
        path=_relative(folder, step.path),
        target=_relative(folder, step.target),
        kept=kept,
        before_sha256=_sha256(read_bytes(step.path)),
        after_sha256=_sha256(step.content),
        why=step.why,
        when_utc=when_utc,
    )


def _free(path: Path) -> Path:
    """Return where a file's content is kept: beside it, under a name that nothing else has."""
    content, number = read_bytes(path), 0
    while True:
        kept = path.with_name(f"{path.name}{OLD}{number or ''}")
        if not kept.exists() or read_bytes(kept) == content:
            return kept
        number += 1


def _is_done(folder: Path, one: Done) -> bool:
    """Say whether a step was taken. Raises ConfigError where its file is neither as before nor as after."""
    target = folder / one.target
    now = _sha256(read_bytes(target)) if target.exists() else ""
    if now == one.after_sha256:
        return True
    if now == (one.before_sha256 if one.kept else ""):
        return False
    kept = f"what was there is {folder / one.kept}" if one.kept else f"what was there is {folder / one.path}"
    raise ConfigError(
        f"{target} was changed since it was migrated, which going back would lose.",
        next_step=f"put it right by hand; {kept}.",
    )


def _relative(folder: Path, path: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write_note(folder: Path, done: Sequence[Done]) -> None:
    text = json.dumps(asdict(_Note(SCHEMA, tuple(done))), indent=2, ensure_ascii=False)
    replace_file(folder / NOTE, f"{text}\n".encode())

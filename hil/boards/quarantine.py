# SPDX-License-Identifier: Apache-2.0
"""Boards that take part in no run: a file a rack, ``quarantine.json``, where hil.boards.lease.kept_dir says.

It also counts, for racks that ask for it, the latest runs in a row in which the rig failed on a board. It is
replaced at once and whole, under a lock, so that neither a crash nor another process loses anything.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, RigError
from hil.base.flock import wait_for_lock
from hil.boards.lease import kept_dir, lock_dir, open_lock
from hil.boards.rack import Rack
from hil.history.health.types import rig_failed, took_part
from hil.history.summary import Summary
from hil.model import Quarantine
from hil.store.files import disk_error, replace_file, short_path, typed_path
from hil.store.run_info import utc_now

QUARANTINE_FILE = "quarantine.json"
BY_ITSELF = "hil"  # who put a board there, where nobody did
_SCHEMA = 1
_LOCK_TIMEOUT_S = 10.0
_LOST = "it did not answer, and nothing that its rack can do brought it back"


@dataclass(frozen=True)
class _Kept:
    """What the file holds: ``faulted`` are the ids of a board's latest runs in a row that the rig failed."""

    boards: Mapping[str, Quarantine] = field(default_factory=dict)
    faulted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Watch:
    """Puts a board into quarantine after ``after`` runs in a row in which the rig failed on it, or at once
    where nothing brought it back that did not answer."""

    folder: Path
    after: int
    rack_file: Path

    def look(self, run: Summary) -> list[str]:
        """Count a run; return a sentence for each board that it puts into quarantine. It may be repeated.

        Raises:
            ConfigError: the file is damaged.
            RigError: it cannot be written, or another process keeps it too long.
        """
        with _changing(self.folder) as change:
            faulted, boards = dict(change.kept.faulted), dict(change.kept.boards)
            lost: set[str] = set()
            for part in run.health.boards:
                if rig_failed(part):
                    lost |= {part.board} if part.is_lost else set()
                    faulted[part.board] = _with(faulted.get(part.board, ()), run.run_id)
                elif took_part(part):
                    faulted.pop(part.board, None)
            fresh = [
                Quarantine(board, utc_now(), BY_ITSELF, _LOST if board in lost else _why(ids))
                for board, ids in faulted.items()
                if (len(ids) >= self.after or board in lost) and board not in boards
            ]
            change.kept = _Kept({**boards, **{one.board: one for one in fresh}}, faulted)
        return [
            f"board {one.board} is in quarantine from now on: {one.why}; {way_out(one.board, self.rack_file)}"
            for one in fresh
        ]


def folder_of(rack: Rack, out: Path) -> Path:
    """Return where the rack's file is."""
    return kept_dir(rack, lock_dir(rack, out))


def read_quarantine(folder: Path) -> dict[str, Quarantine]:
    """Return the boards in quarantine, by id; none where nobody ever put one there.

    Raises:
        ConfigError: the file is damaged; names it, and the way out.
        RigError: the disk does not give it.
    """
    return dict(_read(folder / QUARANTINE_FILE).boards)


def put(folder: Path, quarantine: Quarantine) -> None:
    """Put a board into quarantine; an earlier reason is replaced. Raises as Watch.look() does."""
    with _changing(folder) as change:
        boards = {**change.kept.boards, quarantine.board: quarantine}
        change.kept = dataclasses.replace(change.kept, boards=boards)


def release(folder: Path, board: str) -> Quarantine | None:
    """Release a board, and forget its faults; return its quarantine, None where it was in none.

    Raises as Watch.look() does.
    """
    with _changing(folder) as change:
        found = change.kept.boards.get(board)
        change.kept = _Kept(
            {key: value for key, value in change.kept.boards.items() if key != board},
            {key: value for key, value in change.kept.faulted.items() if key != board},
        )
    return found


def reason(quarantine: Quarantine, rack_file: Path) -> str:
    """Return why a board measures nothing, and how that ends."""
    return f"{describe(quarantine)}; {way_out(quarantine.board, rack_file)}"


def describe(quarantine: Quarantine) -> str:
    """Return "quarantined since 2026-11-20 22:12 UTC by anna: its port vanishes"."""
    since = quarantine.since_utc[:16].replace("T", " ")
    return f"quarantined since {since} UTC by {quarantine.who}: {quarantine.why}"


def way_out(board: str, rack_file: Path) -> str:
    """Return the command that releases a board."""
    return f"release it: hil board release {board} --rack {shlex.quote(short_path(rack_file))}"


def _why(ids: tuple[str, ...]) -> str:
    return f"the rig failed on it in {len(ids)} run{'' if len(ids) == 1 else 's'} in a row"


def _with(ids: tuple[str, ...], run_id: str) -> tuple[str, ...]:
    return ids if run_id in ids else (*ids, run_id)


@dataclass
class _Change:
    kept: _Kept


@contextmanager
def _changing(folder: Path) -> Iterator[_Change]:
    """Read the file and write it again, alone among processes; what is unchanged is not written."""
    path = folder / QUARANTINE_FILE
    lock = open_lock(folder / f"{QUARANTINE_FILE}.lock")  # no board is called so: ids hold no dot
    try:
        if not wait_for_lock(lock, timeout_s=_LOCK_TIMEOUT_S, waiting=lambda: None):
            raise RigError(
                f"another process has held {path}.lock for {_LOCK_TIMEOUT_S:.0f} s.",
                next_step=f"find it (fuser -v {typed_path(path)}.lock) and wait for it, or end it.",
            )
        before = _read(path)
        change = _Change(before)
        yield change
        if change.kept != before:
            _write(path, change.kept)
    finally:
        os.close(lock)


def _write(path: Path, kept: _Kept) -> None:
    value = {
        "schema": _SCHEMA,
        "boards": {board: dataclasses.asdict(one) for board, one in kept.boards.items()},
        "faulted": {board: list(ids) for board, ids in kept.faulted.items()},
    }
    try:
        replace_file(path, (json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2) + "\n").encode())
    except OSError as error:
        raise disk_error(f"could not write {path}", error, "what it held before") from error


def _read(path: Path) -> _Kept:
    try:
        return _parse(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return _Kept()
    except OSError as error:
        raise disk_error(f"could not read {path}", error, "what is on disk") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{path}: not a valid list of boards in quarantine: {error}.",
            next_step="correct it, or delete it: then no board is in quarantine.",
        ) from error


def _parse(value: Any) -> _Kept:
    """Return what _write() wrote. Raises ValueError, KeyError, TypeError or AttributeError."""
    if value["schema"] != _SCHEMA:
        raise ValueError(f"its schema is {value['schema']!r}, this program reads {_SCHEMA}")
    keys = [item.name for item in dataclasses.fields(Quarantine)]
    boards = {
        str(board): Quarantine(*(str(one[key]) for key in keys)) for board, one in value["boards"].items()
    }
    return _Kept(boards, {str(board): tuple(map(str, ids)) for board, ids in value["faulted"].items()})

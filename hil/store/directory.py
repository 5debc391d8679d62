# SPDX-License-Identifier: Apache-2.0
"""What a run leaves on disk, ``out/<run-id>/``; everything else can be computed from it again.

    records.jsonl   the journal: one entry a line, on disk (fsync) before anyone judges it
    run.json        who ran what, when, and with which versions
    verdicts.json   the gate's verdict, canonical: the same journal gives the same bytes
    reporting.json  what became of the reports, the only one that they write again
    thresholds/     the limits of that day, which sentences quote by file and line
    summary.md, console/, capture/, allure-pytest/, allure-results/

``out/latest`` points at the newest run; a command that ended before it had one leaves ``out/ended.json``.
Several threads of one process may append at once; several processes may run at once, each in its own run
directory.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from hil.base.errors import ConfigError
from hil.model import Entry, Fault, Verdict
from hil.store import ended
from hil.store.files import disk_error, read_bytes, replace_file, sync_folder, write_all
from hil.store.journal import Journal, parse_journal
from hil.store.reported import REPORTED, Reported
from hil.store.run_info import RunInfo, parse_info

JOURNAL = "records.jsonl"
RUN_INFO = "run.json"
VERDICTS = "verdicts.json"
SUMMARY = "summary.md"
THRESHOLDS = "thresholds"
LATEST = "latest"
_RUN_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z")


def time_in(run_id: str) -> str:
    """Return when a run began: its id starts with that time, written ``2026-11-20T22:12:57Z``; else ""."""
    found = _RUN_TIME.match(run_id)
    return "{}-{}-{}T{}:{}:{}Z".format(*found.groups()) if found else ""


class RunDirectory:
    """One run's folder. Make one with ``create``, ``open`` or ``latest``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._written = 0
        self._owed: list[Fault] = []

    @classmethod
    def create(cls, root: Path, info: RunInfo) -> RunDirectory:
        """Make ``root/<run_id>``, which says what is known of the run, and point ``root/latest`` at it.

        The journal comes after run.json, so that no folder is taken for a run that does not say what it is.

        Raises:
            ConfigError: there is a run of this name already.
            RigError: the disk does not take it.
        """
        path = root / info.run_id
        try:
            root.mkdir(parents=True, exist_ok=True)
            path.mkdir()
            replace_file(path / RUN_INFO, _json(msgspec.to_builtins(info)))
            (path / JOURNAL).touch()
            _point_latest(root, info.run_id)
            sync_folder(path)
            sync_folder(root)
            ended.clear(root)
        except FileExistsError as error:
            raise ConfigError(f"{path}: a run of this name exists already.") from error
        except OSError as error:
            raise disk_error(f"could not create the run directory {path}", error, "nothing") from error
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Open a run that is on disk. Raises ConfigError where ``path`` is none, naming those nearby."""
        if not (path / JOURNAL).is_file():
            near = ", ".join(run.run_id for run in cls.list(path.parent)[-5:])
            known = f"check the path; {path.parent} holds {near}." if near else "measure a run: hil run"
            raise ConfigError(f"{path}: not a run directory, it has no {JOURNAL}.", next_step=known)
        return cls(path.resolve())

    @classmethod
    def list(cls, root: Path) -> list[RunDirectory]:
        """Return the runs below ``root``, oldest first by name (a run id starts with its UTC time)."""
        found = sorted(path.parent for path in root.glob(f"*/{JOURNAL}") if not path.parent.is_symlink())
        return [cls(path) for path in found]

    @classmethod
    def latest(cls, root: Path) -> RunDirectory:
        """Open the run that ``root/latest`` points at. Raises ConfigError where there is none."""
        return cls.open(root / LATEST)

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def journal_path(self) -> Path:
        return self.path / JOURNAL

    @property
    def verdicts_path(self) -> Path:
        return self.path / VERDICTS

    @property
    def summary_path(self) -> Path:
        return self.path / SUMMARY

    def console_log(self, board: str) -> Path:
        """Return where the console of ``board`` is logged."""
        return self.path / "console" / f"{board}.log"

    def append(self, entry: Entry) -> None:
        """Add an entry to the journal and wait until it is on disk. Safe from several threads.

        Raises:
            RigError: the disk is full or broken; what was written before is untouched. A fault is kept for
                settle() then: without it the run would be one that nothing stopped.
        """
        line = json.dumps(entry.to_json(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        with self._lock:
            try:
                _append_line(self.journal_path, line.encode() + b"\n")
            except OSError as error:
                self._owed += [entry] if isinstance(entry, Fault) else []
                safe = f"the {self._written} entries written before it"
                what = f"could not write an entry to {self.journal_path}"
                raise disk_error(what, error, safe) from error
            self._written += 1

    def settle(self) -> None:
        """Add the faults that the disk did not take when they were found. Raises RigError where it still
        does not."""
        while self._owed:
            self.append(self._owed.pop(0))

    def read(self) -> Journal:
        """Read the journal; a last line cut off in writing is left out and reported in ``torn``.

        Raises:
            ConfigError: any other line is no entry; names file and line.
            RigError: the disk does not give it.
        """
        return parse_journal(self.journal_path, read_bytes(self.journal_path))

    def end(self, info: RunInfo) -> None:
        """Write run.json once more, with what is known when a run ends. Raises RigError."""
        self._replace(self.path / RUN_INFO, _json(msgspec.to_builtins(info)))

    def read_info(self) -> RunInfo:
        """Return run.json.

        Raises:
            ConfigError: it is missing or damaged.
            RigError: the disk does not give it.
        """
        path = self.path / RUN_INFO
        if not path.exists():
            raise ConfigError(
                f"{path} is missing, so the run's plan is unknown, and whether it was completed.",
                next_step="restore it from the stored run.",
            )
        return parse_info(path, read_bytes(path))

    def write_verdict(self, verdict: Verdict, name: str = VERDICTS) -> bytes:
        """Write verdicts.json, keys sorted, so that a replay gives the same bytes; return them.

        Raises RigError.
        """
        content = _json(verdict.to_json())
        self._replace(self.path / name, content)
        return content

    def write_reported(self, reported: Reported) -> None:
        """Write what became of the reports. Raises RigError."""
        self._replace(self.path / REPORTED, _json(msgspec.to_builtins(reported)))

    def write_summary(self, markdown: str) -> None:
        """Write summary.md. Raises RigError."""
        self._replace(self.summary_path, markdown.encode())

    def keep(self, sources: Iterable[Path], folder: str) -> None:
        """Copy files into a folder of the run's. Raises RigError."""
        target = self.path / folder
        try:
            target.mkdir(parents=True, exist_ok=True)
            for source in sources:
                replace_file(target / source.name, source.read_bytes())
        except OSError as error:
            raise disk_error(f"could not copy files to {target}", error, str(self.journal_path)) from error

    def _replace(self, path: Path, content: bytes) -> None:
        try:
            replace_file(path, content)
        except OSError as error:
            raise disk_error(f"could not write {path}", error, f"the journal {self.journal_path}") from error


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=2)
    return f"{text}\n".encode()


def _append_line(path: Path, line: bytes) -> None:
    """Append a whole line or nothing: what a full disk left of it is taken back."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        end = _end_of_whole_lines(descriptor)
        try:
            write_all(descriptor, line)
            os.fsync(descriptor)
        except OSError:
            with contextlib.suppress(OSError):  # the first error is the one to tell; the next append cuts too
                os.ftruncate(descriptor, end)
            raise
    finally:
        os.close(descriptor)


def _end_of_whole_lines(descriptor: int) -> int:
    """Cut off what an earlier writer, killed in the middle of a line, left behind; return the size."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    content = os.pread(descriptor, size, 0)
    end = content.rfind(b"\n") + 1
    os.ftruncate(descriptor, end)
    return end


def _point_latest(root: Path, run_id: str) -> None:
    """Replace ``latest`` at once, whatever another run does at the same time."""
    temporary = root / f".{LATEST}.{run_id}.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(run_id)
    temporary.replace(root / LATEST)

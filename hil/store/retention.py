# SPDX-License-Identifier: Apache-2.0
"""What of a run is kept for a while only: captures, keys, payloads, core dumps and brokers' raw logs.

Records, verdicts, summaries, tables, console logs and whatever else a report or the gate reads stay for good.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from hil.store.directory import VERDICTS, RunDirectory, time_in
from hil.store.files import disk_error

# folder of a run → names of files in it, at any depth, that end
RAW = {
    "capture": ("*",),
    "console": ("*.coredump-*.bin",),  # memory, and what is secret in it
    "peer": (
        *("*.pcapng", "*.pcap", "*.cap", "*.pcapng.gz", "*.pcap.gz"),  # what crossed the air and the host
        *("*.keys", "*.keylog"),  # of TLS
        *("*.jsonl", "*.payload", "*.bin"),  # messages, line by line or as they are
        *("mosquitto.log", "broker-client.log"),
    ),
    "broker": ("*.log", "*.keys", "*.keylog"),
}
NOTE = "pruned.txt"
_UNJUDGED = datetime.timedelta(days=1)  # a run without a verdict may still measure; none takes a day


@dataclass(frozen=True)
class Pruned:
    """What was removed of a run, or would be: files by their names in its folder, with their sizes."""

    run: Path
    files: tuple[tuple[str, int], ...]

    @property
    def size_bytes(self) -> int:
        return sum(size for _name, size in self.files)


def prune(out: Path, days: int, *, now: datetime.datetime, dry_run: bool = False) -> list[Pruned]:
    """Remove what RAW names from the runs below ``out`` that began more than ``days`` days ago.

    A note in the run's folder says what and when. Nothing is removed where ``dry_run``.

    Raises:
        ConfigError: a run.json is damaged.
        RigError: the disk does not let go of a file; the run's note has those that went before it.
    """
    found = []
    for directory in RunDirectory.list(out):
        if _is_old(directory, days, now) and (files := tuple(_raw_files(directory.path))):
            pruned = Pruned(directory.path, files)
            if not dry_run:
                _remove(pruned, now)
            found.append(pruned)
    return found


def _is_old(directory: RunDirectory, days: int, now: datetime.datetime) -> bool:
    """Say whether a run began so long ago; of one of which nothing tells when, nothing is removed."""
    told = time_in(directory.run_id) or str(directory.read_info().get("started_utc", ""))
    try:
        started = datetime.datetime.fromisoformat(told)
    except ValueError:
        return False
    age = now - (started if started.tzinfo else started.replace(tzinfo=datetime.UTC))
    is_judged = (directory.path / VERDICTS).exists()
    return age > datetime.timedelta(days=days) and (is_judged or age > _UNJUDGED)


def _raw_files(run: Path) -> Iterator[tuple[str, int]]:
    for name, patterns in RAW.items():
        for folder, _folders, files in os.walk(run / name):
            for path in (Path(folder) / file for file in sorted(files)):
                if not path.is_symlink() and any(fnmatch(path.name, pattern) for pattern in patterns):
                    yield path.relative_to(run).as_posix(), path.stat().st_size


def _remove(pruned: Pruned, now: datetime.datetime) -> None:
    """Note what goes, then remove it: a note too many is better than a file that nobody misses."""
    moment = now.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        with (pruned.run / NOTE).open("a", encoding="utf-8") as note:
            note.writelines(f"{moment} removed {name} ({size} bytes)\n" for name, size in pruned.files)
        for name, _size in pruned.files:
            (pruned.run / name).unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(f"could not prune {pruned.run}", error, "records and verdicts") from error


def total_bytes(found: Sequence[Pruned]) -> int:
    """Return how much was removed, or would be."""
    return sum(one.size_bytes for one in found)

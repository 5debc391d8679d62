# SPDX-License-Identifier: Apache-2.0
"""What of a run expires: captures, keys, payloads, core dumps and brokers' raw logs.

Records, verdicts, summaries, tables, console logs and whatever else a report or the gate reads stay.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from hil.base.project import keep_here
from hil.store.directory import RunDirectory, time_in
from hil.store.files import disk_error

# folder of a run → names of files in it, at any depth, that expire
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


def expire_as_kept(out: Path, say: Callable[[str], None]) -> None:
    """Remove the captures of old runs where hil.toml says for how long they are kept; say how many went.

    Raises as expire_captures() does, and ConfigError where hil.toml is wrong.
    """
    days = keep_here().captures_days
    if days and (expired := expire_captures(out, days, now=datetime.datetime.now(datetime.UTC))):
        say(f"Removed captures and raw logs of runs older than {days} days: {len(expired)}")


def expire_captures(out: Path, days: int, *, now: datetime.datetime) -> list[Path]:
    """Remove what RAW names from the runs below ``out`` that began more than ``days`` days ago.

    Return the files that went. A run whose name does not say when it began keeps its own.

    Raises RigError: the disk does not let go of a file.
    """
    oldest = now - datetime.timedelta(days=days)
    expired = [
        path
        for run in RunDirectory.list(out)
        if (began := time_in(run.run_id)) and datetime.datetime.fromisoformat(began) < oldest
        for path in _raw_files(run.path)
    ]
    try:
        for path in expired:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise disk_error(f"could not remove captures below {out}", error, "records and verdicts") from error
    return expired


def _raw_files(run: Path) -> Iterator[Path]:
    for name, patterns in RAW.items():
        for folder, _folders, files in os.walk(run / name):
            for path in (Path(folder) / file for file in sorted(files)):
                if not path.is_symlink() and any(fnmatch(path.name, pattern) for pattern in patterns):
                    yield path

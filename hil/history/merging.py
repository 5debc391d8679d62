# SPDX-License-Identifier: Apache-2.0
"""Union of the histories of several racks: files are copied, never changed, never deleted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hil.base.errors import ConfigError
from hil.history.judgements import (
    JUDGEMENTS_FILE,
    UnchangedRun,
    read_judgements,
    with_runs,
    write_judgements,
)
from hil.history.loading import in_order_of_time, read_bytes, read_segment, segment_paths
from hil.history.saving import write_once
from hil.store.files import disk_error


def merge(sources: Sequence[Path], target: Path) -> list[Path]:
    """Copy what ``target`` lacks; return the new files. Nothing is written where anything is wrong.

    Judgements of unchanged firmware come along, a line a run; of a run that both have, the target's stays.

    Raises:
        ConfigError: a source is no folder or holds no run; a file is damaged; one run has two contents, both
            named.
        RigError: the disk does not take it.
    """
    known: dict[str, Path] = {}
    judged: list[UnchangedRun] = []
    for folder in [*sources, target]:
        judged += read_judgements(folder / JUDGEMENTS_FILE)
    for folder in [target, *sources]:
        paths = segment_paths(folder)
        if folder != target and not (paths or (folder / JUDGEMENTS_FILE).is_file()):
            what = "holds no <rack>/<run-id>.json" if folder.is_dir() else "no such folder"
            raise ConfigError(f"{folder}: {what}, so there is nothing to merge.")
        for path in paths:
            name = f"{path.parent.name}/{path.name}"
            if known.setdefault(name, path) != path and read_bytes(known[name]) != read_bytes(path):
                raise ConfigError(
                    f"{known[name]} and {path} are one run with two contents; a file of the history never "
                    "changes, so one of them was.",
                    next_step="compare with the branch hil-history, delete the changed one, merge again.",
                )
    in_order_of_time(map(read_segment, known.values()))  # each can be read, and is of one rack
    new = [path for name, source in known.items() if _copy(source, path := target / name)]
    if judged:
        _write_judgements(target / JUDGEMENTS_FILE, judged)
    return new


def _write_judgements(path: Path, runs: Sequence[UnchangedRun]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_judgements(path, with_runs((), runs))
    except OSError as error:
        raise disk_error(f"could not write {path}", error, "what was there before") from error


def _copy(source: Path, target: Path) -> bool:
    return source != target and write_once(target, read_bytes(source))

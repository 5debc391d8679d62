# SPDX-License-Identifier: Apache-2.0
"""The history as CSV: a line a boot value, everything named, for spreadsheets and statistics programs.

Union of the histories of several racks: files are copied, never changed, never deleted.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from hil.base.errors import ConfigError
from hil.base.units import QuantityError, unit_of
from hil.history.judgements import (
    JUDGEMENTS_FILE,
    UnchangedRun,
    read_judgements,
    with_runs,
    write_judgements,
)
from hil.history.loading import in_order_of_time, read_bytes, read_segment, segment_paths
from hil.history.saving import write_once
from hil.metrics.sessions import History, SeriesHistory
from hil.model import bench_of
from hil.store.files import disk_error

COLUMNS = (
    "time_utc",
    "rack",
    "board",
    "target",
    "kind",
    "bench",
    "case",
    "metric",
    "unit",
    "role",
    "value",
    "beyond_timeout",
    "samples",
    "hits",
    "boot",
    "run_id",
    "trigger",
    "commit",
    "dirty",
    "firmware_sha256",
    "ruler",
    "product",
)


def write_csv(history: History, stream: TextIO) -> int:
    """Write a heading and a line a boot value, by series, then time; return how many values.

    ``value`` is empty where it fell among timeouts, which ``beyond_timeout`` says.
    """
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for entry in history.entries.values():
        writer.writerows(_lines(history, entry))
    return sum(map(len, history.entries.values()))


def _lines(history: History, entry: SeriesHistory) -> list[list[object]]:
    columns = (entry.session, entry.boot, entry.value, entry.samples, entry.hits, entry.ruler, entry.firmware)
    name = entry.name
    board, case_id, metric = name.board, name.case_id, name.metric
    lines: list[list[object]] = []
    for number, boot, value, samples, hits, ruler, firmware in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        session = history.sessions[number]
        facts = session.boards.get(board)
        lines.append(
            [
                session.started_utc,
                session.rack,
                board,
                facts.target if facts else "",
                session.kind_of(board),
                bench_of(case_id),
                case_id,
                metric,
                _unit(metric),
                entry.role,
                "" if math.isinf(value) else f"{value:.10g}",
                int(math.isinf(value)),
                samples,
                hits,
                boot,
                session.run_id,
                session.trigger,
                session.commit,
                int(session.dirty),
                firmware,
                ruler,
                session.product,
            ]
        )
    return lines


def _unit(metric: str) -> str:
    try:
        return unit_of(metric).name
    except QuantityError:
        return ""


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

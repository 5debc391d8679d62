# SPDX-License-Identifier: Apache-2.0
"""What every run measured, one JSON line a run: the memory behind the trend page.

The file is ``out/history/metrics.jsonl``; docs/reference/schema/history.schema.json says what a line holds. A
run that is appended again replaces its line, so everything here may be repeated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hil.base.errors import RigError
from hil.base.flock import wait_for_lock
from hil.base.schema import check_schema
from hil.boards import health
from hil.history import judgements
from hil.model import SeriesVerdict
from hil.reports import rows
from hil.store import JudgedRun, StoredRun
from hil.store.files import disk_error, replace_file
from hil.store.jsonl import parse_line, read_jsonl
from hil.store.run_info import measured_commit

HISTORY_SCHEMA = 1
LOCK_TIMEOUT_S = 60.0  # ten times what a large report takes
_HOLDER_CHARACTERS = 120

_Line = Mapping[str, Any]
_WANTED: Mapping[str, type] = {"run_id": str, "started_utc": str, "trigger": str, "rack": str, "cases": list}


def append_run(history: Path, run: JudgedRun) -> None:
    """Put a run into the file ``history``; its earlier line is replaced.

    Raises:
        ConfigError: a line of the file is damaged.
        RigError: the disk does not take it; the file is as it was.
    """
    line = line_of(run)
    with appending(history, line["run_id"]):
        write_history(history, with_runs(read_history(history), [line]))


def append_health(path: Path, run: StoredRun) -> health.RunHealth:
    """Put a run into the rack's health, in place of its earlier line; return what it says.

    ``path`` is ``out/history/health.jsonl``.

    Raises:
        ConfigError: a line of the file is damaged.
        RigError: the disk does not take it; the file is as it was.
    """
    said = health.health_of(run)
    append_health_line(path, said)
    return said


def append_health_line(path: Path, said: health.RunHealth) -> None:
    """Put what is said of a rack into its health. Raises as append_health()."""
    with appending(path, said.run_id):
        health.write_lines(path, health.with_runs(health.read_lines(path), [said]))


def append_judgements(path: Path, run: StoredRun) -> None:
    """Put what the gate said of unchanged firmware into ``path``, in place of the run's earlier line.

    Of another run, and where nothing was judged, the file stays as it is.

    Raises:
        ConfigError: a line of the file is damaged, or the run's thresholds are.
        RigError: the disk does not take it; the file is as it was.
    """
    judged = judgements.unchanged_run_of(run)
    if judged is None:
        return
    with appending(path, judged.run_id):
        runs = judgements.with_runs(judgements.read_judgements(path), [judged])
        judgements.write_judgements(path, runs)


def read_history(history: Path) -> list[_Line]:
    """Return the lines, oldest run first; none where the file does not exist yet.

    A last line without its end is left out if it was cut off in writing; ``hil report build RUN`` puts its
    run back.

    Raises:
        ConfigError: another line is damaged; names file and line.
        RigError: the disk does not give it.
    """
    return read_jsonl(history, _parse)


def write_history(history: Path, lines: Iterable[_Line]) -> None:
    """Write the file at once and whole. Raises OSError."""
    replace_file(history, "".join(map(_dump, lines)).encode())


def line_of(run: JudgedRun) -> _Line:
    """Return what the history keeps of a run."""
    info, verdict = run.info, run.verdict
    own = measured_commit(info) == info.git.commit
    words = {"title": info.git.title, "author": info.git.author} if own else {}
    return {
        "schema": HISTORY_SCHEMA,
        "run_id": run.run_id,
        "started_utc": info.started_utc,
        "commit": measured_commit(info),
        **{key: text for key, text in words.items() if text},
        "dirty": info.git.dirty,
        "trigger": info.trigger,
        **({"product": info.product} if info.product else {}),
        "rack": info.rack,
        "profile": info.profile,
        "suite": info.suite,
        "outcome": verdict.outcome,
        "exit_code": verdict.exit_code,
        "url": info.ci.url,
        "cases": _cases(verdict.series),
    }


def with_runs(lines: Iterable[_Line], added: Sequence[_Line]) -> list[_Line]:
    """Return the lines with ``added`` in place of those of the same runs, in the order of their start."""
    again = {line["run_id"] for line in added}
    kept = [line for line in lines if line["run_id"] not in again]
    return sorted([*kept, *added], key=lambda line: (line["started_utc"], line["run_id"]))


def comparable(lines: Iterable[_Line], runs: Sequence[_Line]) -> list[_Line]:
    """Return the lines that ``runs`` are shown against: those of the same purpose, up to the newest of them.

    A pull request is shown against the nightly runs, because its own earlier commits are no baseline.
    """
    purposes = {"nightly" if line["trigger"] == "pr" else line["trigger"] for line in runs}
    newest = max((line["started_utc"] for line in runs), default="")
    return [line for line in lines if line["trigger"] in purposes and line["started_utc"] <= newest]


@contextmanager
def appending(path: Path, run_id: str) -> Iterator[None]:
    """Hold the folder of ``path``, which is made, while the run ``run_id`` is written into the file.

    Raises:
        RigError: the disk does not take it, or another process holds the folder.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.parent):
            yield
    except OSError as error:
        raise disk_error(f"could not add {run_id} to {path}", error, "the runs before it") from error


@contextmanager
def locked(folder: Path, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Hold ``folder`` against other processes that do the same; the kernel lets go when the process ends.

    Raises:
        RigError: another one holds it still after ``timeout_s`` seconds; the sentence names it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not wait_for_lock(descriptor, timeout_s=timeout_s, waiting=lambda: None):
            raise RigError(
                f"waited {timeout_s:.0f} s for {folder}, which is held by {_holder(descriptor)}.",
                next_step="let it end, or end it; then build the report: hil report build RUN.",
            )
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    """Return "process 4711 (python -m hil.reports build)" from the kernel's list of locks."""
    inode = f":{os.fstat(descriptor).st_ino}"
    with suppress(OSError):
        for words in map(str.split, Path("/proc/locks").read_text().splitlines()):
            if words[1] == "FLOCK" and words[5].endswith(inode):
                command = Path("/proc", words[4], "cmdline").read_text(errors="replace").replace("\0", " ")
                return f"process {words[4]} ({command.strip()[:_HOLDER_CHARACTERS]})"
    return "another process"


def _cases(series: Iterable[SeriesVerdict]) -> list[dict[str, Any]]:
    cases: dict[tuple[str, str], dict[str, Any]] = {}
    for item in series:
        case = cases.setdefault(
            (item.board, item.case_id),
            {
                "board": item.board,
                "kind": item.kind,
                "target": item.target,
                "case_id": item.case_id,
                "label": item.case_label,
                "metrics": {},
            },
        )
        case["metrics"][item.metric] = _metric(item)
    return list(cases.values())


def _metric(item: SeriesVerdict) -> dict[str, Any]:
    """Return value and limit in the unit that the metric's name ends with; what is usual is left out."""
    metric: dict[str, Any] = {"value": item.value, "outcome": rows.outcome(item)}
    if item.limit is not None:
        metric |= {"limit": item.limit, "blocking": item.blocking}
    if item.direction == "higher":
        metric["direction"] = item.direction
    if item.at_least:
        metric["at_least"] = True
    return metric


def _parse(path: Path, number: int, raw: bytes) -> _Line:
    loss = "hil report build RUN puts a stored run back"
    return parse_line(path, number, raw, read=_checked, loss=loss)


def _checked(line: dict[str, Any]) -> _Line:
    """Return the line. Raises ValueError, which says what is wrong with it."""
    check_schema(line.get("schema"), HISTORY_SCHEMA)
    wrong = [key for key, kind in _WANTED.items() if not isinstance(line.get(key), kind)]
    if wrong:
        raise ValueError(f"{', '.join(wrong)} missing or of the wrong type")
    return line


def _dump(line: _Line) -> str:
    return json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"

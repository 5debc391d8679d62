# SPDX-License-Identifier: Apache-2.0
"""Where a trace lies with its run, and what the case's record says of it.

    trace/<board>/<boot>-<nn>-<bench>.json      the events, with what is needed to read them
    trace/<board>/<boot>-<nn>-<bench>.pftrace   the same for ui.perfetto.dev

The picture beside them (.svg) is drawn with the reports, from the JSON file.

From the samples of ``run trace`` to a trace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, FirmwareError, HilError
from hil.base.reading import RUN_MOST_BYTES, read_at_most
from hil.model import Case, Scalar, Series
from hil.store.files import disk_error, replace_file
from hil.trace.events import FIRST_MARK, OBJECT_KINDS, Event, EventKind, Mark, SharedObject, Task, Trace
from hil.trace.finding import Finding, explain
from hil.trace.reconstruction import reconstruct
from hil.trace.timeline import Timeline

COLUMNS = ("time_us", "core", "event", "task", "argument")
_WRAP = 2**32
_TASK = re.compile(r"(.*):(\d+):(\d+|-)")


def read_trace(columns: Mapping[str, Sequence[int]], device: Mapping[str, Scalar], *, exact: bool) -> Trace:
    """Return the trace that a board sent.

    ``device`` holds task_<n>=<name>:<priority>:<core or ->, object_<n>=<kind>.

    Raises:
        FirmwareError: a column is missing, an event is unknown, or a name cannot be read.
    """
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise _error(f"its columns are {', '.join(columns) or 'none'}; {', '.join(missing)} missing")
    times = _unwrapped(columns["time_us"])
    rows = zip(times, *(columns[name] for name in COLUMNS[1:]), strict=True)
    events = sorted((_event(*row) for row in rows), key=lambda event: event.time_us)
    tasks = {number: _task(number, text) for number, text in _named(device, "task_")}
    objects = {number: _object(number, text) for number, text in _named(device, "object_")}
    return Trace(tuple(events), tasks, objects, exact)


def _unwrapped(times_us: Sequence[int]) -> Iterable[int]:
    """Yield times that go on where the board's 32 bits begin anew, after 71 minutes."""
    last = now = times_us[0] if times_us else 0
    for time_us in times_us:
        step = (time_us - last) % _WRAP
        now += step if step < _WRAP // 2 else step - _WRAP
        last = time_us
        yield now


def _event(time_us: int, core: int, number: int, task: int, argument: int) -> Event:
    try:
        if number >= FIRST_MARK:
            return Event(time_us, core, EventKind.MARK, task, argument, Mark(number - FIRST_MARK))
        return Event(time_us, core, EventKind(number), task, argument)
    except ValueError as error:
        raise _error(f"event {number} at {time_us} us is unknown") from error


def _named(device: Mapping[str, Scalar], prefix: str) -> Iterable[tuple[int, str]]:
    for key, value in device.items():
        number = key.removeprefix(prefix)
        if key.startswith(prefix) and number.isdecimal():
            yield int(number), str(value)


def _task(number: int, text: str) -> Task:
    match = _TASK.fullmatch(text)
    if match is None:
        raise _error(f"task_{number}={text!r} is not <name>:<priority>:<core or ->")
    name, priority, core = match.groups()
    return Task(number, name or f"task {number}", int(priority), None if core == "-" else int(core))


def _object(number: int, text: str) -> SharedObject:
    if text not in OBJECT_KINDS:
        raise _error(f"object_{number}={text!r} is none of {', '.join(OBJECT_KINDS)}")
    return SharedObject(number, text)


def _error(what: str) -> FirmwareError:
    return FirmwareError(
        f"the board's trace cannot be read: {what}.",
        next_step="compare firmware/components/trace with docs/explain/tracing.md: events have one number.",
    )


FOLDER = "trace"
SCHEMA = 1
CASE = Case("trace", {})
HOST_SCHEDULERS = ("fifo", "other")  # `sched` of a host build: preemption is Linux's and not seen
VOID = 2  # of the column `outcome`: the host was late, not the board
_LATENESS = (("woke_us", "planned_us"), ("acquired_us", "woke_us"))  # what a bench marks is one of these


@dataclass(frozen=True)
class Origin:
    """Whose trace it is. ``number`` counts the board's traces of this run, from 1."""

    board: str
    kind: str
    boot_index: int
    number: int
    case: Case

    @property
    def title(self) -> str:
        return f"{self.board} ({self.kind})"

    @property
    def stem(self) -> Path:
        """Return the files' path below the run, without suffix."""
        return Path(FOLDER) / self.board / f"{self.boot_index}-{self.number:02}-{self.case.bench}"


@dataclass(frozen=True)
class StoredTrace:
    """A trace read back, with what it shows. ``title`` is "v1 (virtual)"."""

    title: str
    case_id: str
    boot_index: int
    trace: Trace
    timeline: Timeline
    finding: Finding


def is_traced(series: Series) -> bool:
    """Say whether the board still has a trace of this case to send."""
    count = series.device.get("trace_events_count", 0)
    return isinstance(count, int) and count > 0


def store_trace(run_path: Path, origin: Origin, series: Series, sent: Series) -> Mapping[str, Scalar]:
    """Write the trace ``sent`` after the case ``series``; return the record's group ``trace``.

    A trace is extra: what is wrong with it stands in the group as ``error`` and is no failure of the case.
    """
    try:
        return _store(run_path, origin, series, sent)
    except HilError as error:
        return {"error": str(error)}


def _store(run_path: Path, origin: Origin, series: Series, sent: Series) -> Mapping[str, Scalar]:
    from hil.trace.perfetto import write_perfetto  # protocol buffers, of which most runs write none

    exact = series.device.get("sched") not in HOST_SCHEDULERS
    trace = read_trace(sent.columns, sent.device, exact=exact)
    timeline = reconstruct(trace)
    finding = explain(trace, timeline)
    late_us = void_host_late_us(series.columns, finding.outlier_us)
    if late_us is not None:
        finding = explain(trace, timeline, host_late_us=late_us)
    content = {
        "schema": SCHEMA,
        "board": origin.board,
        "kind": origin.kind,
        "boot_index": origin.boot_index,
        "case_id": origin.case.case_id,
        "exact": exact,
        "host_late_us": late_us,
        "names": {key: value for key, value in sent.device.items() if key.startswith(("task_", "object_"))},
        "columns": {name: list(sent.columns[name]) for name in COLUMNS},
    }
    path = run_path / origin.stem
    data = (json.dumps(content, ensure_ascii=False, separators=(",", ":")) + "\n").encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path.with_suffix(".json"), data)
        perfetto = write_perfetto(trace, timeline, finding, title=origin.title)
        replace_file(path.with_suffix(".pftrace"), perfetto)
    except OSError as error:
        raise disk_error(f"could not write {path}.json", error, "the case's samples") from error
    return {
        "events_count": len(trace.events),
        "frozen": bool(series.device.get("trace_frozen", 0)),
        "file": str(origin.stem.with_suffix(".json")),
        "outlier_us": finding.outlier_us,
        "finding": finding.sentence,
    }


def void_host_late_us(columns: Mapping[str, Sequence[int]], outlier_us: int | None) -> int | None:
    """Return how late the host was in the row that the outlier is of, None where that row is not void."""
    rows = len(columns.get("outcome", ()))
    late = columns.get("host_late_us", ())
    if outlier_us is None or len(late) != rows:
        return None
    for row in range(rows):
        found = [
            columns[end][row] - columns[begin][row] for end, begin in _LATENESS if {end, begin} <= {*columns}
        ]
        if outlier_us in found:
            return late[row] if columns["outcome"][row] == VOID else None
    return None


def read_stored(path: Path) -> StoredTrace:
    """Read what store_trace() wrote. Raises ConfigError where ``path`` holds no trace."""
    try:
        content = read_at_most(path, RUN_MOST_BYTES)
    except OSError as error:
        raise _no_trace(path, error) from error
    try:
        return _from_json(json.loads(content))
    except (ValueError, KeyError, TypeError, HilError) as error:
        raise _no_trace(path, error) from error


def _no_trace(path: Path, error: Exception) -> ConfigError:
    return ConfigError(
        f"{path}: no trace can be read from it ({error!r}).",
        next_step="restore the file, or measure again; the run's records do not depend on it.",
    )


def _from_json(content: Mapping[str, Any]) -> StoredTrace:
    if content["schema"] != SCHEMA:
        raise ValueError(f"schema {content['schema']} is not {SCHEMA}")
    trace = read_trace(content["columns"], content["names"], exact=bool(content["exact"]))
    timeline = reconstruct(trace)
    return StoredTrace(
        f"{content['board']} ({content['kind']})",
        str(content["case_id"]),
        int(content["boot_index"]),
        trace,
        timeline,
        explain(trace, timeline, host_late_us=content["host_late_us"]),
    )

# SPDX-License-Identifier: Apache-2.0
"""Where a trace lies with its run, and what the case's record says of it.

    trace/<board>/<boot>-<nn>-<bench>.json      the events, with what is needed to read them
    trace/<board>/<boot>-<nn>-<bench>.pftrace   the same for ui.perfetto.dev
    trace/<board>/<boot>-<nn>.timeline.json     what an emulator saw of a whole boot, for ui.perfetto.dev

The picture beside them (.svg) is drawn with the reports, from the JSON file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, HilError
from hil.base.reading import RUN_MOST_BYTES, read_at_most
from hil.model import Case, Scalar, Series
from hil.store.files import disk_error, replace_file
from hil.trace.events import Trace
from hil.trace.finding import TraceFinding, explain
from hil.trace.reading import COLUMNS, read_trace
from hil.trace.reconstruction import reconstruct
from hil.trace.timeline import Timeline

FOLDER = "trace"
SCHEMA = 1
CASE = Case("trace", {})
HOST_SCHEDULERS = ("fifo", "other")  # `sched` of a host build: preemption is Linux's and not seen
VOID = 2  # of the column `outcome`: the host was late, not the board
_LATENESS = (("woke_us", "planned_us"), ("acquired_us", "woke_us"))  # what a bench marks is one of these


@dataclass(frozen=True)
class Origin:
    """The board, boot and case of a trace. ``number`` counts the board's traces of this run, from 1."""

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
    finding: TraceFinding


def timeline_file(board: str, boot_index: int, number: int) -> Path:
    """Return the path below the run of a boot's timeline, the board's trace ``number``."""
    return Path(FOLDER) / board / f"{boot_index}-{number:02}.timeline.json"


def is_traced(series: Series) -> bool:
    """Return whether the board still has a trace of this case to send."""
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
        f"{path}: its trace cannot be read ({error!r}).",
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

# SPDX-License-Identifier: Apache-2.0
"""``out/history/health.jsonl``: one JSON line a run, of what it says of its rack.

docs/reference/schema/health.schema.json says what a line holds. A run that is appended again replaces its
line, so everything here may be repeated.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hil.base.schema import check_schema
from hil.boards.health.types import RunHealth, unix_s
from hil.store.codec import build
from hil.store.files import replace_file
from hil.store.jsonl import parse_line, read_jsonl

HEALTH_SCHEMA = 1
HEALTH_FILE = "health.jsonl"
_LEFT_OUT: Mapping[str, Any] = {
    "rack": "",
    "trigger": "",
    "started_utc": "",
    "boards": [],
}


def read_lines(path: Path) -> list[RunHealth]:
    """Return the runs, each once, the earliest first; none where the file does not exist yet.

    A last line that was cut off in writing is left out; ``hil report build RUN`` puts its run back.

    Raises:
        ConfigError: another line is damaged; names file and line, and the way out.
        RigError: the disk does not give it.
    """
    return with_runs((), read_jsonl(path, _parse))


def write_lines(path: Path, runs: Iterable[RunHealth]) -> None:
    """Write the file at once and whole. Raises OSError."""
    replace_file(path, "".join(map(to_line, runs)).encode())


def with_runs(runs: Iterable[RunHealth], added: Sequence[RunHealth]) -> list[RunHealth]:
    """Return the runs with ``added`` in place of those of the same ids, in the order of their start."""
    by_id = {run.run_id: run for run in (*runs, *added)}
    return sorted(by_id.values(), key=lambda run: (unix_s(run.started_utc) or 0.0, run.run_id))


def to_line(run: RunHealth) -> str:
    """Return a run as its line, with its end; what is empty or unknown in it is left out."""
    line = {"schema": HEALTH_SCHEMA, **_slim(dataclasses.asdict(run))}
    line["boards"] = [_slim(dataclasses.asdict(board)) for board in run.boards]
    return json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def _slim(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in ({}, (), [], "", None)}


def _parse(path: Path, number: int, raw: bytes) -> RunHealth:
    loss = "hil report build RUN puts a stored run back"
    return parse_line(path, number, raw, read=_run_of, loss=loss)


def _run_of(line: Mapping[str, Any]) -> RunHealth:
    """Return what to_line() wrote. Raises ValueError, which says what is wrong."""
    check_schema(line.get("schema"), HEALTH_SCHEMA)
    run: dict[str, Any] = {**_LEFT_OUT, **{key: value for key, value in line.items() if key != "schema"}}
    if isinstance(run["boards"], list):
        run["boards"] = [{"target": "", **one} if isinstance(one, dict) else one for one in run["boards"]]
    return build(RunHealth, run)

"""``out/history/health.jsonl``: one JSON line a run, of what it says of its rack.

docs/reference/schema/health.schema.json says what a line holds. A run that is appended again replaces its
line, so everything here may be repeated.

Format history
    1  first format
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from hil.boards.health.types import BoardRun, Quarantine, RunHealth, unix_s
from hil.store.files import check_of, parse_line, read_jsonl, replace_file

HEALTH_SCHEMA = 1
HEALTH_FILE = "health.jsonl"
_PARTS: Mapping[type, Mapping[str, type]] = {
    RunHealth: {"boards": BoardRun},
    BoardRun: {"quarantine": Quarantine},
    Quarantine: {},
}
_HINTS: Mapping[type, Mapping[str, Any]] = {kind: get_type_hints(kind) for kind in _PARTS}


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
    if line.get("schema") != HEALTH_SCHEMA:
        raise ValueError(f"its schema is {line.get('schema')!r}, this program reads {HEALTH_SCHEMA}")
    values: dict[str, Any] = {
        "lease_wait_s": None,
        "held_s": None,
        "rack": "",
        "trigger": "",
        "started_utc": "",
        "boards": [],
    }
    run: RunHealth = _item(RunHealth, {**values, **{k: v for k, v in line.items() if k != "schema"}})
    return run


def _item(kind: type, stored: object) -> Any:
    """Return a dataclass of ours from its JSON object, each value of its field's type. Raises ValueError."""
    if not isinstance(stored, dict):
        raise ValueError(f"{str(stored)[:40]!r} is no object")  # noqa: TRY004 - the file's content is wrong, not a call
    values: dict[str, Any] = {"target": ""} if kind is BoardRun else {}
    for key, value in stored.items():
        if key not in _HINTS[kind]:
            raise ValueError(f"{key} is an unknown key")
        values[key] = _value(kind, key, value)
    try:
        return kind(**values)
    except TypeError as error:  # a key that has no default is missing
        raise ValueError(f"{str(error).partition('missing ')[2] or error} missing") from error


def _value(kind: type, key: str, value: Any) -> Any:
    part, hint = _PARTS[kind].get(key), _HINTS[kind][key]
    if part and isinstance(value, list) == (get_origin(hint) is tuple):
        return tuple(_item(part, one) for one in value) if isinstance(value, list) else _item(part, value)
    plain = tuple(value) if isinstance(value, list) else value
    if not check_of(hint)(plain):
        raise ValueError(f"{key} is {str(value)[:40]!r}, which it cannot be")
    return plain

"""Journal entries from JSON: every key and type checked, so that a damaged line is never half read."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from hil.base.errors import ExitCode
from hil.model import KINDS, SCHEMA_VERSION, Comparison, Entry, Fault, NotRun, RunRecord, Scalar

ROLES = ("candidate", "base", "reference")
OTHER_ROLES = ROLES[1:]  # what a candidate is compared with
_LARGEST = 1 << 53  # a board sends 32 bits, a peer's columns fit; beyond it JSON readers lose digits

# the reason by which a journal without ``expected`` said that the board's own limits rule the case out
_OWN_LIMIT = re.compile(r"\w+=\S+ is beyond (?:max|min)_\w+=\S+ of board \S+")


class EntryError(ValueError):
    """A JSON object that is no entry; the message says what is wrong with it."""


def entry_from_json(value: object) -> Entry:
    """Build the entry that ``Entry.to_json`` wrote. Raises EntryError."""
    if not isinstance(value, dict):
        raise EntryError("it is not a JSON object")
    readers: dict[str, Callable[[dict[str, Any]], Entry]] = {
        "record": _read_record,
        "fault": _read_fault,
        "not-run": _read_not_run,
        "comparison": _read_comparison,
    }
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in readers:
        raise EntryError(f"its type is {kind!r}; expected {', '.join(readers)}")
    if value.get("schema") != SCHEMA_VERSION:
        raise EntryError(f"its schema is {value.get('schema')!r}; this program reads {SCHEMA_VERSION}")
    fields = {key: content for key, content in value.items() if key != "type"}
    return readers[kind](fields)


def _read_record(fields: dict[str, Any]) -> RunRecord:
    case_id = fields.pop("case_id", None)
    fields.setdefault("measured_s", None)  # older journals have none
    _check_fields(RunRecord, fields)
    _check_span(fields, "measured_s")
    _check_choice(fields, "kind", KINDS)
    _check_choice(fields, "role", ROLES)
    fields["parameters"] = _scalars(fields, "parameters")
    fields["columns"] = _columns(fields)
    groups = _mapping(fields, "environment")
    fields["environment"] = {name: _scalars(groups, name) for name in groups}
    record = RunRecord(**fields)
    if case_id != record.case_id:
        raise EntryError(f"its case_id is {case_id!r}, but its parameters say {record.case_id!r}")
    if not 0 <= record.warmup_rows <= record.rows:
        raise EntryError(f"it has {record.warmup_rows} warm-up rows of {record.rows}")
    return record


def _read_fault(fields: dict[str, Any]) -> Fault:
    _check_fields(Fault, fields)
    if fields["exit_code"] not in [int(code) for code in ExitCode]:
        raise EntryError(f"its exit_code is {fields['exit_code']!r}, which is none of hil's")
    return Fault(**fields)


def _read_not_run(fields: dict[str, Any]) -> NotRun:
    if "expected" not in fields:  # older journals have none
        fields["expected"] = not _OWN_LIMIT.fullmatch(str(fields.get("reason")))
    _check_fields(NotRun, fields)
    return NotRun(**fields)


def _read_comparison(fields: dict[str, Any]) -> Comparison:
    _check_fields(Comparison, fields)
    _check_choice(fields, "role", OTHER_ROLES)
    fields["boards"], fields["cases"] = _names(fields, "boards"), _names(fields, "cases")
    fields["looks"] = _looks(fields)
    comparison = Comparison(**fields)
    if not comparison.boards:
        raise EntryError("'boards' is empty; expected at least one")
    if comparison.identical and comparison.candidate_sha256 != comparison.other_sha256:
        raise EntryError("'identical' is true, but the digests of candidate and other differ")
    if not (comparison.identical or comparison.looks):
        raise EntryError("'looks' is empty; expected at least one pair, for the images are not identical")
    return comparison


def _names(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = fields[name]
    if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
        raise EntryError(f"{name!r} is {values!r:.40}; expected a list of names")
    if len(set(values)) < len(values):
        raise EntryError(f"{name!r} names something twice")
    return tuple(values)


def _looks(fields: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """Read boots a board, (candidate, other), from the start on: both grow from look to look."""
    values = fields["looks"]
    if not isinstance(values, list):
        raise EntryError(f"'looks' is {values!r:.40}; expected a list of pairs")
    before = (0, 0)
    for pair in values:
        if not isinstance(pair, list) or [type(part) for part in pair] != [int, int]:
            raise EntryError(f"'looks' holds {pair!r:.40}; expected pairs of integers")
        if not (pair[0] > before[0] and pair[1] > before[1]):
            raise EntryError(f"'looks' holds {pair} after {list(before)}; expected more boots of both")
        before = (pair[0], pair[1])
    return tuple((pair[0], pair[1]) for pair in values)


def _check_fields(kind: type, fields: Mapping[str, Any]) -> None:
    """Check that all fields are there, none is unknown, and that texts, integers and booleans are such."""
    wanted = {item.name: str(item.type) for item in dataclasses.fields(kind)}
    missing = [name for name in wanted if name not in fields]
    unknown = [name for name in fields if name not in wanted]
    if missing or unknown:
        problems = [f"{name!r} is missing" for name in missing] + [f"{name!r} is unknown" for name in unknown]
        raise EntryError(", ".join(problems))
    for name, annotation in wanted.items():
        if annotation == "str" and not isinstance(fields[name], str):
            raise EntryError(f"{name!r} is {fields[name]!r}; expected text")
        if annotation == "int" and type(fields[name]) is not int:
            raise EntryError(f"{name!r} is {fields[name]!r}; expected an integer")
        if annotation == "bool" and not isinstance(fields[name], bool):
            raise EntryError(f"{name!r} is {fields[name]!r}; expected true or false")


def _check_choice(fields: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> None:
    if fields[name] not in choices:
        raise EntryError(f"{name!r} is {fields[name]!r}; expected one of {', '.join(choices)}")


def _check_span(fields: Mapping[str, Any], name: str) -> None:
    value = fields[name]
    if value is not None and not (type(value) in (int, float) and 0 <= value < math.inf):
        raise EntryError(f"{name!r} is {value!r:.40}; expected seconds")


def _mapping(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = fields[name]
    if not isinstance(value, dict):
        raise EntryError(f"{name!r} is {value!r:.40}; expected an object")
    return value


def _scalars(fields: Mapping[str, Any], name: str) -> dict[str, Scalar]:
    values = _mapping(fields, name)
    for key, value in values.items():
        if value is not None and not isinstance(value, bool | int | float | str):
            raise EntryError(f"{key!r} in {name!r} is {value!r:.40}; expected a single value")
    return values


def _columns(fields: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    columns = _mapping(fields, "columns")
    for name, values in columns.items():
        if not isinstance(values, list) or any(type(value) is not int for value in values):
            raise EntryError(f"column {name!r} is not a list of integers")
        if any(abs(value) > _LARGEST for value in values):
            raise EntryError(f"column {name!r} holds an integer beyond 2^53, which nothing sends")
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise EntryError(f"its columns have different lengths: {lengths}")
    return {name: tuple(values) for name, values in columns.items()}

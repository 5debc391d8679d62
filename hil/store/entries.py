# SPDX-License-Identifier: Apache-2.0
"""Journal entries from JSON: every key and type checked, so that a damaged line is never half read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from hil.base.errors import ExitCode
from hil.base.schema import check_schema
from hil.model import SCHEMA_VERSION, Comparison, Entry, Fault, NoBase, NotRun, Recovery, RunRecord
from hil.store.codec import build

_KINDS: Mapping[str, type[Entry]] = {
    "record": RunRecord,
    "fault": Fault,
    "not-run": NotRun,
    "comparison": Comparison,
    "no-base": NoBase,
    "recovery": Recovery,
}
_OPTIONAL = {"measured_s", "boot_s", "product", "to"}  # not written where there is nothing to say


def entry_from_json(value: object) -> Entry:
    """Build the entry that ``Entry.to_json`` wrote. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - the file's content is wrong, not a call
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"its type is {kind!r}; expected {', '.join(_KINDS)}")
    check_schema(value.get("schema"), SCHEMA_VERSION)
    fields = {key: content for key, content in value.items() if key != "type"}
    case_id = fields.pop("case_id", None) if kind == "record" else None
    if kind == "not-run":
        fields = without_expected(fields)
    entry = _build(_KINDS[kind], fields)
    if isinstance(entry, RunRecord):
        _check_record(entry, case_id)
    elif isinstance(entry, Comparison):
        _check_comparison(entry)
    elif isinstance(entry, Fault) and entry.exit_code not in set(ExitCode):
        raise ValueError(f"its exit_code is {entry.exit_code!r}, which is none of hil's")
    return entry


def without_expected(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a not-run's fields without ``expected``, which follows from its cause. Raises ValueError."""
    if type(fields.get("expected", True)) is not bool:
        raise ValueError(f"expected is {fields['expected']!r}; expected true or false")
    return {key: value for key, value in fields.items() if key != "expected"}


def _build(kind: type[Entry], fields: Mapping[str, Any]) -> Entry:
    """Return the entry, whose fields are all there but those in _OPTIONAL. Raises ValueError."""
    names = [item.name for item in dataclasses.fields(kind) if item.name not in _OPTIONAL]
    if missing := [name for name in names if name not in fields]:
        raise ValueError(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return build(kind, fields)


def _check_record(record: RunRecord, case_id: object) -> None:
    if case_id != record.case_id:
        raise ValueError(f"its case_id is {case_id!r}, but its parameters say {record.case_id!r}")
    lengths = {name: len(values) for name, values in record.columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"its columns have different lengths: {lengths}")
    if not 0 <= record.warmup_rows <= record.rows:
        raise ValueError(f"it has {record.warmup_rows} warm-up rows of {record.rows}")


def _check_comparison(comparison: Comparison) -> None:
    if comparison.role == "candidate":
        raise ValueError("role is 'candidate'; expected what a candidate is set beside")
    for key, names in (("boards", comparison.boards), ("cases", comparison.cases)):
        if len(set(names)) < len(names):
            raise ValueError(f"{key} names something twice")
    if not comparison.boards:
        raise ValueError("boards is empty; expected at least one")
    before = (0, 0)
    for look in comparison.looks:
        if not (look[0] > before[0] and look[1] > before[1]):
            raise ValueError(f"looks holds {list(look)} after {list(before)}; expected more boots of both")
        before = look
    if comparison.identical and comparison.candidate_sha256 != comparison.other_sha256:
        raise ValueError("identical is true, but the digests of candidate and other differ")
    if not (comparison.identical or comparison.looks):
        raise ValueError("looks is empty; expected at least one pair, for the images are not identical")

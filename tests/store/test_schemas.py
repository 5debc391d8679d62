# SPDX-License-Identifier: Apache-2.0
"""The schemas of docs/reference/schema beside the types: the same keys, and no value that a type has not."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from hil.history.summary import Summary
from hil.model import Comparison, Fault, NoBase, NotRun, Recovery, RunRecord, Verdict
from hil.store import Reported, RunInfo

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schema"
TYPES: Mapping[str, type] = {
    "record": RunRecord,
    "fault": Fault,
    "not-run": NotRun,
    "comparison": Comparison,
    "no-base": NoBase,
    "recovery": Recovery,
    "verdicts": Verdict,
    "run": RunInfo,
    "reporting": Reported,
    "history": Summary,
}
WHOLE = ("verdicts", "run", "reporting", "history")  # files of one object, without a type
ADDED = {"record": {"type", "case_id"}, **{name: set[str]() for name in WHOLE}}  # beside the fields
COMPUTED = {"NotRun": {"expected"}}  # the same wherever the type stands

Schema = Mapping[str, Any]


def written(name: str) -> Schema:
    """Return a schema of the docs."""
    schema: Schema = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
    return schema


def differences(schema: Schema, name: str) -> list[str]:
    """Return in what a schema differs from the type whose name it has."""
    typed = msgspec.json.schema(TYPES[name])
    added = ADDED.get(name, {"type"})
    missing = [f"{key} is missing" for key in added - schema["properties"].keys()]
    rest = {**schema, "properties": {k: v for k, v in schema["properties"].items() if k not in added}}
    return missing + list(_differences(rest, typed, schema, typed, name))


def _differences(own: Schema, typed: Schema, whole: Schema, types: Schema, where: str) -> Iterator[str]:
    """Yield what the schema ``own`` of ``whole`` says otherwise than ``typed`` of ``types``."""
    own, typed = _resolved(own, whole), _resolved(typed, types)
    if "properties" in typed:
        yield from _of_object(own, typed, whole, types, where)
    elif isinstance(typed.get("additionalProperties"), dict):
        inner = own.get("additionalProperties", True)
        if not isinstance(inner, dict):
            yield f"{where} takes any value"
        else:
            yield from _differences(inner, typed["additionalProperties"], whole, types, f"{where}.*")
    elif typed.get("type") == "array":
        inner = typed["items"] or typed["prefixItems"][0]
        yield from _differences(own.get("items", {}), inner, whole, types, f"{where}[]")
    elif more := _more_than(own, typed):
        yield f"{where} takes {', '.join(more)}"


def _of_object(own: Schema, typed: Schema, whole: Schema, types: Schema, where: str) -> Iterator[str]:
    if own.get("additionalProperties") is not False:
        yield f"{where} takes any key"
    computed = COMPUTED.get(str(typed.get("title")), set())
    for key in sorted(own.get("properties", {}).keys() - computed ^ typed["properties"].keys()):
        yield f"{where}.{key} is in one of the two alone"
    for key in sorted({*typed.get("required", ())} - {*own.get("required", ())}):
        yield f"{where}.{key} may be missing"
    for key in own.get("properties", {}).keys() & typed["properties"].keys():
        yield from _differences(
            own["properties"][key], typed["properties"][key], whole, types, f"{where}.{key}"
        )


def _resolved(schema: Schema, whole: Schema) -> Schema:
    refs = [one for one in schema.get("anyOf", ()) if "$ref" in one]
    schema = refs[0] if len(refs) == 1 else schema  # or null, which no file holds
    if "$ref" in schema:
        found: Schema = whole["$defs"][schema["$ref"].rpartition("/")[2]]
        return found
    return schema


def _more_than(own: Schema, typed: Schema) -> list[str]:
    """Return the listed values, else the types, that ``own`` takes and ``typed`` does not."""
    if "const" in own or "enum" in own:
        validator = Draft202012Validator(typed)
        values = own.get("enum", [own.get("const")])
        return [json.dumps(value) for value in values if not validator.is_valid(value)]
    kinds = _kinds(typed)
    return sorted(_kinds(own) - kinds - ({"integer"} if "number" in kinds else set()))


def _kinds(schema: Schema) -> set[str]:
    """Return the types of which a schema takes any value; "anything" where it names none."""
    if "anyOf" in schema:
        return {kind for one in schema["anyOf"] for kind in _kinds(one)}
    kinds = [] if "enum" in schema else schema.get("type", "anything")
    return {kinds} if isinstance(kinds, str) else {*kinds}


@pytest.mark.parametrize("name", TYPES)
def test_a_schema_has_the_keys_of_its_type_and_takes_no_other_values(name: str) -> None:
    """Bounds, patterns and what a key means are the schema's own; keys and types are not."""
    assert differences(written(name), name) == []


@pytest.mark.parametrize(
    ("name", "place", "change", "said"),
    [
        ("record", (), {"additionalProperties": True}, "record takes any key"),
        ("record", ("properties", "board"), {"type": ["string", "null"]}, "record.board takes null"),
        ("record", ("properties", "kind"), {"enum": ["virtual", "real"]}, 'record.kind takes "real"'),
        ("record", ("properties", "kind"), {"enum": None, "type": "string"}, "record.kind takes string"),
        ("record", ("properties", "colour"), {"type": "string"}, "record.colour is in one of the two alone"),
        ("fault", (), {"required": ["type"]}, "fault.exit_code may be missing"),
        (
            "comparison",
            ("properties", "looks", "items", "items"),
            {"type": "number"},
            "[][] takes number",
        ),
        (
            "verdicts",
            ("properties", "series", "items", "properties", "value"),
            {"type": ["number", "string", "null"]},
            "verdicts.series[].value takes string",
        ),
    ],
)
def test_a_schema_that_differs_is_named(
    name: str, place: tuple[str, ...], change: Mapping[str, Any], said: str
) -> None:
    """Key by key, at any depth."""
    schema = copy.deepcopy(dict(written(name)))
    part = schema
    for key in place:
        part = part.setdefault(key, {})
    part.update(change)
    for key in [key for key, value in change.items() if value is None]:
        del part[key]
    assert any(said in one for one in differences(schema, name))

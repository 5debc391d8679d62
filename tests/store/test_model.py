# SPDX-License-Identifier: Apache-2.0
"""The records: names of cases and series, the JSON of all that the store writes, its schemas and reading."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import Meta

from hil.base.errors import ConfigError, ExitCode, FirmwareError, RigError, Undecided, combine_exit_codes
from hil.gate import judge
from hil.history.summary import Summary
from hil.model import (
    Case,
    Comparison,
    Entry,
    Fault,
    NoBase,
    NotRun,
    Recovery,
    RunRecord,
    SeriesId,
    Verdict,
    format_case_id,
    format_series_id,
    parameters_in,
)
from hil.store import Reported, RunInfo
from hil.store.codec import build, decode
from hil.store.entries import entry_from_json
from tests.make_records import RUN_ID, leave_run, publish_record, publish_thresholds, quick_run

DOCS = Path(__file__).resolve().parents[2] / "docs" / "reference"
FAULT = Fault(RUN_ID, "rig", 3, "the port is gone", "virtual-1")
NOT_RUN = NotRun(RUN_ID, "virtual-1", "publish/x", "the board was lost")
COMPARISON = Comparison(
    RUN_ID, "virtual", "virtual-esp32", "virtual-esp32", ("virtual-1",), "base", "ab" * 32, "ba" * 32,
    ((2, 1), (4, 2)), cases=(publish_record(rows=1).case_id,),
)  # fmt: skip
PLANNED = dataclasses.replace(COMPARISON, boot_s=47.6)
UNEXPECTED = dataclasses.replace(NOT_RUN, cause="not-compared")
UNTIMED = publish_record(rows=1)
TIMED = dataclasses.replace(publish_record(rows=2), measured_s=4.125)


def validate(name: str, value: object) -> None:
    schema = json.loads((DOCS / "schema" / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(value)


def test_a_case_is_named_by_its_sorted_parameters() -> None:
    """The order in which parameters were given does not matter."""
    assert format_case_id("publish", {"qos": 1, "api": "publish"}) == "publish/api=publish,qos=1"
    assert Case("publish", {"b": 2, "a": 1}).case_id == "publish/a=1,b=2"
    assert format_series_id("lab", "b1", "publish/a=1", "p95_us") == "lab/b1/publish/a=1/p95_us"


def test_names_are_taken_apart_as_they_were_made() -> None:
    """A series into product, rack, board, case and metric; a case into its bench and its parameters."""
    name = SeriesId.parse("lab/b1/publish/a=1,url=x/y/p95_us")
    assert name == ("lab", "b1", "publish/a=1,url=x/y", "p95_us", "")
    assert format_series_id(*name) == "lab/b1/publish/a=1,url=x/y/p95_us"
    of_product = SeriesId.parse("sensor-node:lab/b1/publish/url=a:b/p95_us")
    assert of_product == ("lab", "b1", "publish/url=a:b", "p95_us", "sensor-node")
    assert format_series_id(*of_product) == "sensor-node:lab/b1/publish/url=a:b/p95_us"
    assert (name.bench, parameters_in(name.case_id)) == ("publish", {"a": "1", "url": "x/y"})
    assert parameters_in("publish/") == {}


@pytest.mark.parametrize(
    "entry", [publish_record(rows=2), TIMED, FAULT, NOT_RUN, UNEXPECTED, COMPARISON, PLANNED]
)
def test_an_entry_comes_back_from_its_json(entry: Entry) -> None:
    """What is written is what is read."""
    assert entry_from_json(json.loads(json.dumps(entry.to_json()))) == entry


def test_a_record_that_nobody_timed_does_not_say_how_long_it_took() -> None:
    """Where ``measured_s`` is missing it is None, for the schema as for the store, and not written again."""
    written = json.loads(json.dumps(UNTIMED.to_json()))
    assert "measured_s" not in written
    validate("record", written)
    assert entry_from_json(written).to_json() == UNTIMED.to_json()
    with pytest.raises(ValueError, match="measured_s is -1; expected a number >= 0"):
        entry_from_json({**written, "measured_s": -1})


@given(st.dictionaries(st.text(min_size=1), st.none() | st.booleans() | st.integers() | st.text()))
def test_any_environment_survives(facts: dict[str, str | int | bool | None]) -> None:
    """Facts are single values of any type."""
    record = dataclasses.replace(UNTIMED, environment={"device": facts})
    assert entry_from_json(json.loads(json.dumps(record.to_json()))) == record


def test_warm_up_rows_are_counted_apart() -> None:
    """Ten cold rows and three that count are thirteen rows."""
    record = publish_record(rows=3)
    assert (record.rows, record.measured_rows) == (13, 3)


def test_what_the_store_writes_fits_the_schemas(tmp_path: Path) -> None:
    """Every file of a run directory validates against docs/reference/schema, byte for byte as on disk."""
    ci = {"url": "https://github.example/acme/firmware/actions/runs/17", "pull_request": 42}
    failed = publish_record(board="virtual-2", failed=30)
    entries: list[Entry] = [*quick_run(("virtual-1",)), failed, TIMED, FAULT, NOT_RUN, COMPARISON]
    verdict = judge(entries, {"publish": publish_thresholds()})
    run = leave_run(tmp_path, entries, verdict, trigger="pr", ci=ci, quarantined=[], legs=2)
    run.write_reported(Reported(report="out/report/index.html", warnings=("the gateway is down",)))
    for line in run.journal_path.read_text().splitlines():
        value = json.loads(line)
        validate(value["type"], value)
    validate("verdicts", json.loads(run.verdicts_path.read_text()))
    for name in ("run", "reporting"):
        validate(name, json.loads((run.path / f"{name}.json").read_text()))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("record", {"kind": "real"}),
        ("record", {"extra": 1}),
        ("record", {"measured_s": "long"}),
        ("fault", {"exit_code": 7}),
        ("not-run", {"board": 1}),
        ("not-run", {"expected": "no"}),
        ("not-run", {"cause": "lost"}),
        ("comparison", {"looks": [[2]]}),
        ("comparison", {"role": "candidate"}),
        ("comparison", {"boards": []}),
        ("comparison", {"schema": 2}),
    ],
)
def test_the_schemas_refuse_what_the_store_would_not_write(name: str, change: dict[str, object]) -> None:
    """A schema that accepts anything would prove nothing."""
    entries: tuple[Entry, ...] = (UNTIMED, FAULT, NOT_RUN, COMPARISON)
    (value,) = [one.to_json() for one in entries if one.to_json()["type"] == name]
    with pytest.raises(jsonschema.ValidationError):
        validate(name, {**json.loads(json.dumps(value)), **change})


def test_the_documentation_names_every_field_of_a_record() -> None:
    """docs/reference/records.md and the model do not drift apart."""
    text = (DOCS / "records.md").read_text()
    names = [
        field.name
        for kind in (type(publish_record()), Fault, NotRun, Comparison)
        for field in dataclasses.fields(kind)
    ]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_an_error_is_a_sentence_with_log_and_next_step() -> None:
    """Log and next step follow the sentence."""
    error = RigError("gone.", next_step="plug it in.", log="out/x.log")
    assert str(error).split(". ") == ["gone", "Log: out/x.log", "Next: plug it in."]


def test_each_error_has_its_owner_and_exit_code() -> None:
    """Whose fault it is decides the exit code."""
    kinds = (ConfigError, FirmwareError, RigError, Undecided)
    codes = [("configuration", 2), ("firmware", 1), ("rig", 3), ("rig", 4)]
    assert [(kind.owner, int(kind.exit_code)) for kind in kinds] == codes


@given(st.lists(st.sampled_from([0, 1, 2, 3, 4])))
def test_exit_codes_rank_2_1_3_4_0(codes: list[int]) -> None:
    """Where several apply the first of this order wins; none is a pass."""
    assert combine_exit_codes(codes) == next((code for code in (2, 1, 3, 4) if code in codes), ExitCode.PASS)


@dataclass(frozen=True)
class Part:
    name: str
    ratio: float | None = None


@dataclass(frozen=True)
class Whole:
    count: int
    sure: bool = True
    word: Literal["a", "b"] = "a"
    names: tuple[Annotated[str, Meta(min_length=1)], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    parts: tuple[Part, ...] = ()
    one: Part | None = None
    facts: Mapping[str, Mapping[str, int | float | str | bool | None]] | None = None
    columns: Mapping[str, tuple[Annotated[int, Meta(le=9)], ...]] | None = None


def test_what_fits_becomes_the_dataclass() -> None:
    """Lists become tuples, objects become parts; what is left out has its default."""
    stored = {
        "count": 2,
        "names": ["x"],
        "pairs": [[1, 2]],
        "parts": [{"name": "p", "ratio": 2}],
        "one": None,
    }
    assert build(Whole, stored) == Whole(2, names=("x",), pairs=((1, 2),), parts=(Part("p", 2.0),))
    facts = {"device": {"a": 1, "b": 1.5, "c": True, "d": None, "e": "x"}}
    assert build(Whole, {"count": 2, "facts": facts}).facts == facts


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ([], "it is []; expected an object"),
        ({}, "count is missing"),
        ({"count": "1"}, "count is '1'; expected an integer"),
        ({"count": 1.0}, "count is 1.0; expected an integer"),
        ({"count": True}, "count is True; expected an integer"),
        ({"sure": 1}, "sure is 1; expected true or false"),
        ({"word": "c"}, "word is 'c'; expected one of a, b"),
        ({"names": "x"}, "names is 'x'; expected a list"),
        ({"names": [""]}, "names[0] is ''; expected text of length >= 1"),
        ({"pairs": [[1, 2], [1]]}, "pairs[1] is [1]; expected a list of length 2"),
        ({"pairs": [[1, "2"]]}, "pairs[0][1] is '2'; expected an integer"),
        ({"parts": [{"name": "p"}, {}]}, "parts[1].name is missing"),
        ({"parts": [{"name": "p", "ratio": "1"}]}, "parts[0].ratio is '1'; expected a number or null"),
        ({"parts": [{"name": "p", "colour": "red"}]}, "parts[0].colour is an unknown key"),
        ({"one": {"name": 1}}, "one.name is 1; expected text"),
        ({"colour": "red"}, "colour is an unknown key"),
        ({"facts": {"device": 1}}, "facts.device is 1; expected an object"),
        ({"facts": {"host": {"a": 1}, "device": {"a": 1, "b": [1]}}}, "facts.device.b is [1]; expected "),
        ({"columns": {"a_us": [1], "b_us": [1, 10]}}, "columns.b_us[1] is 10; expected an integer <= 9"),
    ],
)
def test_what_does_not_fit_is_named(stored: object, said: str) -> None:
    """Key, value and what was expected, at any depth; the key of an object too."""
    wrong = {"count": 1, **stored} if isinstance(stored, dict) and stored else stored
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        build(Whole, wrong)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("text", ["c' - at `$.names`", "` - at `$.nothing`"])
def test_a_value_or_key_that_looks_like_a_place_is_none(text: str) -> None:
    """What others wrote stands in the sentence, and leads no reader astray."""
    for wrong, said in (({"count": 1, "word": text}, "word is "), ({"count": 1, text: 1}, text)):
        with pytest.raises(ValueError, match=re.escape(said)):
            build(Whole, wrong)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'{"a": NaN}', b"1e999", b"[" * 100_000])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    """Neither half a text nor a number that is none."""
    with pytest.raises(ValueError, match="not JSON: "):
        decode(text)


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
        ("comparison", ("properties", "looks", "items", "items"), {"type": "number"}, "[][] takes number"),
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

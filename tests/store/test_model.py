# SPDX-License-Identifier: Apache-2.0
"""The records: names of cases and series, and the JSON of everything the store writes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hil.base.errors import ConfigError, ExitCode, FirmwareError, RigError, Undecided, combine_exit_codes
from hil.gate import judge
from hil.model import (
    Case,
    Comparison,
    Entry,
    Fault,
    NotRun,
    SeriesId,
    format_case_id,
    format_series_id,
    parameters_in,
)
from hil.store import Reported, RunDirectory
from hil.store.entries import entry_from_json
from tests.make_records import RUN_ID, publish_record, publish_thresholds, quick_run, run_info

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
    run = RunDirectory.create(tmp_path, run_info(trigger="pr", ci=ci, quarantined=[], legs=2))
    failed = publish_record(board="virtual-2", failed=30)
    for entry in (*quick_run(("virtual-1",)), failed, TIMED, FAULT, NOT_RUN, COMPARISON):
        run.append(entry)
    run.write_verdict(judge(run.read().entries, {"publish": publish_thresholds()}))
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
    assert str(error) == "gone. Log: out/x.log. Next: plug it in."


def test_each_error_has_its_owner_and_exit_code() -> None:
    """Whose fault it is decides the exit code."""
    kinds = (ConfigError, FirmwareError, RigError, Undecided)
    codes = [("configuration", 2), ("firmware", 1), ("rig", 3), ("rig", 4)]
    assert [(kind.owner, int(kind.exit_code)) for kind in kinds] == codes


@given(st.lists(st.sampled_from([0, 1, 2, 3, 4])))
def test_exit_codes_rank_2_1_3_4_0(codes: list[int]) -> None:
    """Where several apply the first of this order wins; none is a pass."""
    assert combine_exit_codes(codes) == next((code for code in (2, 1, 3, 4) if code in codes), ExitCode.PASS)

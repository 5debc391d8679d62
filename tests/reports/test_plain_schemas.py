# SPDX-License-Identifier: Apache-2.0
"""Every format that is written has a schema, and docs/reference/files.md names it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hil.ci.plan import read_plan, write_plan
from hil.model import Case, Series
from hil.reports.plain.writing import COMPARISON_COLUMNS, SERIES_COLUMNS
from hil.trace.events import EventKind
from hil.trace.files import Origin, store_trace
from tests.ci.ci_rig import a_plan

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "docs" / "reference" / "schema"
EVENT = min(kind.value for kind in EventKind)
DOCS = (ROOT / "docs" / "reference" / "files.md").read_text(encoding="utf-8")


def check(name: str, content: Any) -> None:
    """Validate ``content``, and see that a key more is refused."""
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    validator.validate(content)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**content, "extra": 1})
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**content, "schema": 99})


def test_every_schema_is_named_where_a_person_looks() -> None:
    """docs/reference/files.md links each file of docs/reference/schema, and none that is not there."""
    named = set(re.findall(r"\(schema/([a-z-]+\.schema\.json)\)", DOCS))
    assert named == {path.name for path in SCHEMAS.glob("*.json")}


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.name)
def test_every_schema_is_one(path: Path) -> None:
    """Each file of docs/reference/schema says that it is JSON Schema 2020-12, and is."""
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("columns", [SERIES_COLUMNS, COMPARISON_COLUMNS], ids=["series", "comparisons"])
def test_every_column_is_explained(columns: tuple[str, ...]) -> None:
    """docs/reference/files.md names each column of both tables."""
    missing = [column for column in columns if f"`{column}`" not in DOCS]
    assert not missing


def test_a_plan_is_as_its_schema_says(tmp_path: Path) -> None:
    """plan.json of a pull request with racks, a comparison and a leg that is left out validates."""
    plan = a_plan(["esp32"], compare=True)
    write_plan(plan, tmp_path / "plan.json")
    check("plan", json.loads((tmp_path / "plan.json").read_text()))
    assert read_plan(tmp_path / "plan.json") == plan


def test_a_trace_is_as_its_schema_says(tmp_path: Path) -> None:
    """The events of a trace, as they are stored, validate."""
    columns = {"time_us": (1, 2), "core": (0, 0), "event": (EVENT, EVENT), "task": (1, 1), "argument": (0, 0)}
    sent = Series(Case("trace", {}), columns, 0, "esp_timer", "ab" * 32, "cd" * 32, 1, {"task_1": "main:1:0"})
    case = Series(
        Case("jitter", {"count": 1}), {"woke_us": (1,)}, 0, "esp_timer", "ab" * 32, "cd" * 32, 1, {}
    )
    said = store_trace(tmp_path, Origin("v1", "virtual", 0, 1, case.case), case, sent)
    assert "error" not in said
    check("trace", json.loads((tmp_path / str(said["file"])).read_text()))

# SPDX-License-Identifier: Apache-2.0
"""`hil history erase`: one product's figures go for good, and the others' keep their bytes."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.cli.app import run_command
from hil.history import append, load
from hil.history.erasing import ERASED_FILE, drop_erased, erase, erased_runs
from hil.history.export import merge
from hil.history.from_run import add_run
from hil.reports.history import append_health, append_run
from hil.store import read_judged_run, read_run
from tests.history.history_files import night
from tests.history.test_history_store_runs import four_boots, leave_run
from tests.history.test_products import NODE, of

WHEN = "2026-12-01T00:00:00Z"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A history of two products, with lines of each and of a pull request."""
    folder = tmp_path / "h"
    for number, product in enumerate(("", NODE, "gateway", NODE)):
        append(folder, night(number, product=product))
    runs = {path.stem: json.loads(path.read_text()).get("product") for path in folder.glob("*/*.json")}
    lines = [{"run_id": run, "product": product} for run, product in runs.items()]
    lines.append({"run_id": "a-pull-request", "product": NODE})
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (folder / "allure.jsonl").write_text(
        "".join(f"{json.dumps({'runs': [line['run_id']]})}\n" for line in lines)
    )
    (folder / "health.jsonl").write_text('{"run_id": "a-pull-request"}\n{"run_id": "other"}\nnot json\n')
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_one_product_goes_and_the_others_keep_their_bytes(folder: Path) -> None:
    """Its files, its lines, those of its pull requests; a line of nobody's stays; sizes are what went."""
    before = content(folder)
    gone = erase(folder, NODE, when_utc=WHEN)
    after = content(folder)
    note = [json.loads(line) for line in after.pop(ERASED_FILE).splitlines()]
    assert (len(gone.runs), gone.files, gone.lines) == (3, 2, 7)
    assert gone.size_bytes == sum(map(len, before.values())) - sum(map(len, after.values()))
    assert load(folder).products == ("", "gateway")
    assert NODE.encode() not in b"".join(after.values())
    assert after["health.jsonl"] == b'{"run_id": "other"}\nnot json\n'
    assert all(before[name] == after[name] for name in after if name.endswith(".json"))
    schema = json.loads((PROJECT_ROOT / "docs" / "reference" / "schema" / "erased.schema.json").read_text())
    for line in note:
        jsonschema.Draft202012Validator(schema).validate(line)
    assert {line["run_id"] for line in note} == set(gone.runs) == erased_runs(folder)
    assert {(line["product"], line["erased_utc"]) for line in note} == {(NODE, WHEN)}


def test_what_was_erased_does_not_come_back(folder: Path, tmp_path: Path) -> None:
    """Neither by a merge of another copy, nor by adding its run: the sentence says where the note is."""
    append(tmp_path / "copy", night(1, product=NODE))
    run = leave_run(tmp_path / "out", [of(NODE, record) for record in four_boots()], product=NODE)
    add_run(read_run(run), folder)
    erase(folder, NODE, when_utc=WHEN)
    assert merge([tmp_path / "copy"], folder) == []
    assert load(folder).products == ("", "gateway")
    with pytest.raises(ConfigError, match=r"was erased from .* product sensor-node.*erased.jsonl"):
        add_run(read_run(run), folder)


def test_neither_a_report_nor_a_fetch_brings_lines_back(folder: Path, tmp_path: Path) -> None:
    """A report of its folder, which is still there, and files of another copy: all of it stays out."""
    records = [of(NODE, record) for record in four_boots()]
    run = leave_run(tmp_path / "out", records, product=NODE)
    add_run(read_run(run), folder)
    copy = content(folder)
    erase(folder, NODE, when_utc=WHEN)
    erased = content(folder)
    append_run(folder / "metrics.jsonl", read_judged_run(run))
    append_health(folder / "health.jsonl", read_run(run))
    assert content(folder) == erased
    for name, before in copy.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(before)
    drop_erased(folder)
    assert content(folder) == erased
    assert not (folder / "virtual").exists()


def test_what_was_begun_is_ended(folder: Path) -> None:
    """Killed after the note, the same call removes what is left; without anything left there is nothing."""
    first = erase(folder, NODE, when_utc=WHEN)
    (path,) = [path for path in (folder / "bench-1").glob("*") if "gateway" in path.name]
    left = path.with_name(f"{next(run for run in first.runs if 'bench' in run)}.json")
    left.write_bytes(
        json.dumps({**json.loads(path.read_text()), "run_id": left.stem, "product": NODE}).encode()
    )
    again = erase(folder, NODE, when_utc="2027-01-01T00:00:00Z")
    assert (again.runs, again.files) == ((left.stem,), 1)
    assert not left.exists()
    assert {json.loads(line)["erased_utc"] for line in (folder / ERASED_FILE).read_text().splitlines()} == {
        WHEN
    }
    with pytest.raises(ConfigError, match=r"holds nothing of product 'sensor-node'.*it holds gateway"):
        erase(folder, NODE, when_utc=WHEN)


def test_the_command_needs_a_yes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without it nothing changes, and it says what would go, as with it what went."""
    before = content(folder)
    command = ["history", "erase", "--history", str(folder), "--product"]
    assert run_command([*command, NODE]) == 0
    said = capsys.readouterr().out
    assert "would erase 3 runs of product sensor-node: 2 files, 7 lines, " in said
    assert said.endswith("Nothing was removed; it is with --yes.\n")
    assert content(folder) == before
    assert run_command([*command, NODE, "--yes"]) == 0
    assert capsys.readouterr().out == said.splitlines()[0].replace("would erase", "erased") + "\n"
    assert run_command([*command, "sensor-nod", "--yes"]) == 2
    assert run_command([*command, "", "--yes"]) == 2
    assert run_command([*command, "Node", "--yes"]) == 2


def test_a_damaged_note_is_named(folder: Path) -> None:
    """What it holds keeps erased runs away, so it is not passed over."""
    (folder / ERASED_FILE).write_text('{"run_id": 1}\n')
    with pytest.raises(ConfigError, match=r"erased\.jsonl:1: no line of what was erased"):
        append(folder, night(9))

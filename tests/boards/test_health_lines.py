# SPDX-License-Identifier: Apache-2.0
"""health.jsonl: what is written comes back, and what is damaged names its line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from hil.base.errors import ConfigError
from hil.boards.health import read_lines, with_runs, write_lines
from hil.boards.health.lines import to_line
from hil.history import branch as history
from tests.boards.health_runs import run_at
from tests.ci.ci_rig import Repository

ROOT = Path(__file__).resolve().parents[2]
FULL = run_at(
    1,
    *("ok", "both", "absent", "quarantine"),
    faults={"rig": 1},
    first_fault="the broker did not start",
)
BARE = run_at(0)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Full and bare runs come back equal, the earliest first; no file is no runs."""
    path = tmp_path / "health.jsonl"
    assert read_lines(path) == []
    write_lines(path, [FULL, BARE])
    assert read_lines(path) == [BARE, FULL]


def test_a_line_is_as_its_schema_says() -> None:
    """The schema of the docs holds of a full line and of a bare one, and not of another key."""
    schema = json.loads((ROOT / "docs/reference/schema/health.schema.json").read_text())
    validator = Draft202012Validator(schema)
    for run in (FULL, BARE):
        line = json.loads(to_line(run))
        validator.validate(line)
        assert not validator.is_valid({**line, "colour": "red"})


def test_a_run_that_comes_again_replaces_its_line(tmp_path: Path) -> None:
    """One line a run: the later one wins, in memory and in a file that two machines wrote to."""
    newer = run_at(0, "rig")
    assert with_runs([BARE, FULL], [newer]) == [newer, FULL]
    path = tmp_path / "health.jsonl"
    path.write_text(to_line(BARE) + to_line(newer))
    assert read_lines(path) == [newer]


def test_runs_are_in_the_order_of_their_moments() -> None:
    """A moment may be written with the offset of another clock: the earlier run comes first all the same."""
    east = replace(BARE, run_id="east", started_utc="2026-11-20T23:00:00+02:00")
    later = replace(BARE, run_id="later", started_utc="2026-11-20T22:00:00Z")
    assert with_runs([later], [east]) == [east, later]


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    """Only the last line, and only without its end: what a killed writer leaves."""
    path = tmp_path / "health.jsonl"
    path.write_text(to_line(BARE) + to_line(FULL)[:40])
    assert read_lines(path) == [BARE]
    path.write_text(to_line(BARE) + to_line(FULL).rstrip("\n"))
    assert read_lines(path) == [BARE, FULL]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("junk", "not JSON: malformed"),
        ("[]", "not a JSON object"),
        ('{"schema":0}', "its schema is 0, this program reads 1"),
        ('{"schema":1,"run_id":"x"}', "exit_code is missing"),
        ('{"schema":1,"run_id":7,"exit_code":0}', "run_id is 7; expected text"),
        ('{"schema":1,"run_id":"x","exit_code":true}', "exit_code is True; expected an integer"),
        ('{"schema":1,"run_id":"x","exit_code":0,"colour":"red"}', "colour is an unknown key"),
        ('{"schema":1,"run_id":"x","exit_code":0,"boards":[{"board":"e1","state":"up"}]}', "state is 'up'"),
        ('{"schema":1,"run_id":"x","exit_code":0,"boards":{}}', "boards is {}; expected a list"),
        ('{"schema":1,"run_id":"x","exit_code":0,"boards":["e1"]}', "boards[0] is 'e1'; expected an object"),
        (
            '{"schema":1,"run_id":"x","exit_code":0,"faults":{"rig":"one"}}',
            "faults.rig is 'one'; expected",
        ),
    ],
)
def test_a_damaged_line_names_itself_and_the_way_out(tmp_path: Path, line: str, words: str) -> None:
    """Exit 2 with file, line number, what is wrong, and the command that takes the line out."""
    path = tmp_path / "health.jsonl"
    path.write_text(f"{to_line(BARE)}{line}\n{to_line(FULL)}")
    with pytest.raises(ConfigError) as caught:
        read_lines(path)
    assert f"{path}:2: " in str(caught.value)
    assert words in str(caught.value)
    assert f"sed -i 2d {path}" in str(caught.value)


def test_health_travels_with_the_history(tmp_path: Path) -> None:
    """Two machines push their runs to the branch hil-history; what is fetched has both, each once."""
    work = Repository(tmp_path / "work")
    work.commit({"README.md": "sources\n"})
    work.git("remote", "add", "origin", f"file://{work.path}")
    for name, runs in (("one", [BARE]), ("two", [BARE, FULL])):
        folder = tmp_path / name
        folder.mkdir()
        write_lines(folder / "health.jsonl", runs)
        history.push(work.path, folder, name)
    fetched = tmp_path / "fetched"
    assert history.fetch(work.path, fetched) == ["health.jsonl"]
    assert read_lines(fetched / "health.jsonl") == [BARE, FULL]

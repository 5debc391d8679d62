# SPDX-License-Identifier: Apache-2.0
"""Fuzzing: a broken rule is found and told; what once broke one does so no more."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from tools.fuzz import TARGETS
from tools.fuzz import __main__ as fuzzing
from tools.fuzz.target import Target

FOUND = sorted(path for path in fuzzing.KEPT.rglob("*") if path.is_file())

PLANTED = """
import sys, atheris

@atheris.instrument_func
def fuzz(data):
    if data[:1] == b"h":
        if data[1:2] == b"i":
            if data[2:3] == b"l":
                raise ZeroDivisionError("the input begins with hil")

atheris.Setup([one for one in sys.argv if one != "planted"], fuzz)
atheris.Fuzz()
"""


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_broke_a_rule_does_so_no_more(path: Path) -> None:
    """Every input that was ever found is read without a traceback."""
    target = next(one for one in TARGETS if one.name == path.parent.name)
    target.make()(path.read_bytes())


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_reader_begins_with_inputs_that_it_takes(target: Target) -> None:
    """No reader breaks a rule at what it begins with, and none begins with nothing."""
    fuzz = target.make()
    seeds = list(target.seeds())
    assert seeds
    for seed in seeds:
        fuzz(seed)


@pytest.mark.slow
def test_a_reader_is_fuzzed_and_its_figures_are_printed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command prints inputs, inputs a second, branches and the corpus, which is kept for the next one."""
    monkeypatch.setattr(fuzzing, "OUT", tmp_path)
    assert fuzzing.main(["--seconds", "2", "--only", "console|loader"]) == 0
    said = capsys.readouterr().out
    assert len(re.findall(r"✓ \S+ +[\d,]+ inputs +[\d,.]+/s +[1-9][\d,]* branches +[1-9]\d* kept", said)) == 2
    assert "2 readers, " in said
    assert "0 broken rules" in said
    assert len(list((tmp_path / "corpus" / "loader").iterdir())) > 7


@pytest.mark.slow
def test_a_broken_rule_is_found_and_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that raises at an input which only its branches lead to: exit 1, the traceback, the input."""
    program = tmp_path / "planted.py"
    program.write_text(PLANTED)
    monkeypatch.setattr(fuzzing, "OUT", tmp_path)
    monkeypatch.setattr(fuzzing, "RUNNER", (str(program),))
    monkeypatch.setattr(fuzzing, "TARGETS", (Target("planted", lambda: bytes, lambda: iter([b"xyz"])),))
    assert fuzzing.main(["--seconds", "120", "--only", "planted"]) == 1
    said = capsys.readouterr().out
    assert "✗ planted" in said
    assert "ZeroDivisionError" in said
    assert "1 broken rules" in said
    assert next((tmp_path / "found" / "planted").iterdir()).read_bytes()[:3] == b"hil"

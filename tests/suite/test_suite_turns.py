# SPDX-License-Identifier: Apache-2.0
"""`hil compare --pytest`: sessions of a suite on two builds, alternately, judged as boots of one comparison.

The suite is a process with the plugin. Its value comes from the build that it is given, with a boot's noise.
The dut has what pytest-embedded's has, and says a MAC only where it flashes.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, HilError, RigError
from hil.cli.app import run_command
from hil.gate import judge
from hil.model import Comparison, NotRun, Verdict
from hil.store import RunDirectory, read_judged_run, read_measured
from hil.store.run_info import planned_boots
from hil.suite.turns import SuiteCommand, SuiteTurns
from hil.thresholds import own_limits
from tests.lab import ROOT
from tests.suite.consoles import build_folder

pytestmark = pytest.mark.slow  # each session is a process

SOURCES = ROOT / "fixtures" / "src"
CONFTEST = """
import pathlib, pytest

def pytest_addoption(parser):
    parser.addoption("--build-dir")

class Part:
    def __init__(self, **facts): self.__dict__.update(facts)

@pytest.fixture
def embedded_services(): return "esp,idf"

@pytest.fixture
def dut(request, tmp_path, embedded_services):
    build = pathlib.Path(request.config.getoption("--build-dir"))
    log = tmp_path / "dut.log"
    flashed = pathlib.Path("flashed")
    is_there = flashed.exists() and flashed.read_text() == str(build)
    log.write_text("" if is_there else "Chip is ESP32\\nMAC: 24:0a:c4:12:34:56\\n")
    flashed.write_text(str(build))
    return Part(target="esp32", serial=Part(port="/dev/ttyUSB0"), logfile=str(log), testsuite=None,
                app=Part(binary_path=str(build), target="esp32"))
"""
SUITE = """
import json, pathlib

def test_connect(dut, metric):
    told = json.loads((pathlib.Path(dut.app.binary_path) / "app.bin").read_text())
    count = pathlib.Path("boots")
    boot = int(count.read_text()) if count.exists() else 0
    count.write_text(str(boot + 1))
    for place in range(5):
        metric("connect_ms", told["connect_ms"] * (1 + 0.004 * ((boot * 7 + place * 3) % 5 - 2)), limit=800)
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a suite, and a pytest that knows the plugin alone."""
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_wifi.py").write_text(SUITE)
    program = folder / "pytest"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest -p pytest_hil.plugin "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PYTHONPATH", str(SOURCES))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.chdir(folder)
    return folder


def build(folder: Path, connect_ms: float) -> Path:
    found = build_folder(folder)
    (found / "app.bin").write_text(json.dumps({"connect_ms": connect_ms}))
    return found


def turns(suite: Path, candidate_ms: float, base_ms: float, *words: str) -> SuiteTurns:
    command = SuiteCommand(str(suite / "pytest"), ("test_wifi.py", *words), suite)
    builds = {"candidate": build(suite / "new", candidate_ms), "base": build(suite / "old", base_ms)}
    return SuiteTurns(command, builds, suite / "out", suite / "thresholds", "local", print)  # type: ignore[arg-type]


def verdict_of(directory: RunDirectory) -> Verdict:
    run = read_measured(directory.path)
    return judge(run.journal.entries, own_limits(run), planned_boots(run.info))


def test_a_slower_build_regresses_by_that_much(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A planted +30 % ends the command with 1, as soon as all is decided; its sessions are of one board."""
    new, old = build(suite / "new", 520), build(suite / "old", 400)
    words = ["--firmware", str(new), "--base", str(old), "--out", str(suite / "out"), "--no-report"]
    assert run_command(["compare", "--pytest", "test_wifi.py", *words, "--", "-q"]) == 1
    assert "connect" in capsys.readouterr().out
    run = read_judged_run(suite / "out" / "latest")
    (found,) = [item for item in run.verdict.compared if item.metric == "connect_ms"]
    assert (run.verdict.outcome, found.outcome) == ("regressed", "regressed")
    assert found.change == pytest.approx(0.30, abs=0.02)
    roles = [record.role for record in run.records]
    assert roles.count("candidate") == roles.count("base") < 20, "the looks end where all is decided"
    assert isinstance(run.journal.entries[0], Comparison)
    assert {record.board for record in run.records} == {"esp32-123456"}
    macs = ["mac" in record.environment["device"] for record in run.records]
    assert not all(macs), "a session that finds its image on the board is told no MAC"


def test_what_the_budget_cuts_off_is_said(suite: Path) -> None:
    """Without time for a second look the comparison is undecided, and the reason is the budget."""
    directory = turns(suite, 400.001, 400).measure(0.1)
    entries = read_measured(directory.path).journal.entries
    verdict = verdict_of(directory)
    assert verdict.outcome in ("undecided", "pass")
    assert all(entry.cause == "cut-off" for entry in entries if isinstance(entry, NotRun))


@pytest.mark.parametrize(
    ("program", "error", "words"),
    [
        (f'exec {sys.executable} -m pytest "$@"', ConfigError, "has no plugin"),
        ("kill -9 $$", RigError, "signal 9"),
    ],
)
def test_a_pytest_that_measures_nothing_gives_no_verdict(
    suite: Path, program: str, error: type[HilError], words: str
) -> None:
    """Without the plugin it is the configuration's, a session that is killed the rig's."""
    (suite / "pytest").write_text(f"#!/bin/sh\n{program}\n")
    with pytest.raises(error, match=words):
        turns(suite, 1, 2).measure(10)


def test_options_of_a_rack_are_refused(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a suite does not read is refused by name; so are two builds of one image."""
    new = build(suite / "new", 520)
    words = ["compare", "--pytest", "test_wifi.py", "--firmware", str(new), "--base", str(new)]
    assert run_command([*words, "--suite", "pr"]) == 2
    assert "--suite: only for a rack" in capsys.readouterr().err
    assert run_command(words) == 2
    assert "hold the same image" in capsys.readouterr().err

# SPDX-License-Identifier: Apache-2.0
"""The plugin of a team's own suite, as a process: pytest-embedded's classes, boards that are terminals."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hil.suite.facts import SuiteSession, read_sessions
from tests.lab import ROOT, own_environment
from tests.suite.consoles import build_folder, console

pytestmark = pytest.mark.slow  # each session is a process

SOURCES = ROOT / "fixtures" / "src"
CONSOLE = [
    "Chip is ESP32", "MAC: 24:0a:c4:12:34:56", "I (200) wifi: start", "I (612) net: got ip after 412 ms",
    "app.c:12:test_queue:PASS", "-----------------------", "1 Tests 0 Failures 0 Ignored", "OK",
]  # fmt: skip
PROJECT = 'schema = 1\nproduct = "node"\n[firmware]\nfolder = "."\ntargets = ["esp32"]\n'
SUITE = """
import pytest

def test_connect(dut, metric):
    dut.expect("wifi: start")
    metric("connect_ms", int(dut.expect(r"got ip after (\\d+) ms").group(1)), limit=800)

def test_logged(dut, log_metric, record_property):
    log_metric("boot_time", 3.25, target="esp32", mode="cold")
    log_metric("state", "up")
    record_property("heap_bytes", 1234)
    record_property("not_asked_for_bytes", 1)

def test_unity(dut):
    dut.expect_unity_test_output()

def test_fails(dut, metric):
    metric("lost_count", 3)
    assert 1 + 1 == 3

@pytest.fixture
def last(log_metric):
    yield
    log_metric("closing_ms", 7)

@pytest.fixture(scope="session", autouse=True)
def after_all(log_metric):
    yield
    log_metric("whole_ms", 8)

def test_host(metric, last):
    for value in (1.5, 2.5):
        metric("ratio", value, unit="percent", direction="higher")
"""


def session(
    folder: Path, *arguments: str | Path, suite: str = SUITE, path: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a suite that has nothing of hil's but the plugin."""
    folder.mkdir(exist_ok=True)
    (folder / "test_wifi.py").write_text(suite, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nhil_properties = heap_bytes\n", encoding="utf-8")
    (folder / "hil.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "CMakeLists.txt").write_text("include($ENV{IDF_PATH}/tools/cmake/project.cmake)\n")
    plugins = ["-p", "pytest_hil.plugin", "-p", "no:cacheprovider"]
    argv = [sys.executable, "-m", "pytest", "-q", *plugins, *arguments]
    env = {**own_environment(), "PYTHONPATH": str(SOURCES), **({"PATH": path} if path else {})}
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=60)


def facts(folder: Path, *arguments: str | Path) -> SuiteSession:
    """Return what a session with --hil wrote."""
    file = folder / "facts.jsonl"
    done = session(folder, "--hil", "--hil-file", file, *arguments)
    assert file.is_file(), done.stdout + done.stderr
    (found,) = read_sessions([file])
    return found


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> SuiteSession:
    folder = tmp_path_factory.mktemp("embedded")
    build = build_folder(folder)
    with console(CONSOLE) as port:
        return facts(folder, "--embedded-services", "serial", "--port", port, "--build-dir", build)


def test_the_values_of_a_suite_are_kept_as_it_calls_them(embedded: SuiteSession) -> None:
    """metric, log_metric without --metric-path, properties asked for; no text and no other property."""
    found = {(one.fact.source, one.fact.name, one.fact.value) for one in embedded.values}
    assert found == {
        ("metric", "connect_ms", 412.0),
        ("log_metric", "mode_cold_boot_time", 3.25),
        ("record_property", "heap_bytes", 1234.0),
        ("metric", "lost_count", 3.0),
        ("metric", "ratio", 1.5),
        ("metric", "ratio", 2.5),
        ("log_metric", "closing_ms", 7.0),
        ("log_metric", "whole_ms", 8.0),
    }
    (connect,) = [one.fact for one in embedded.values if one.fact.name == "connect_ms"]
    assert connect.limit == 800
    named = ("test_connect", "test_logged", "test_unity", "test_fails", "test_host")
    outcomes = {test.test.partition("::")[2]: test.outcome for test in embedded.tests}
    assert outcomes == {**dict.fromkeys(named, "passed"), "test_fails": "failed"}
    assert not embedded.cut_off


def test_a_board_is_what_its_dut_tells(embedded: SuiteSession) -> None:
    """MAC as esptool printed it, kind by the service, image by its digest; a test without a dut: the host."""
    boards = {board.board: board for board in embedded.boards}
    assert set(boards) == {"board-123456", "host"}
    board = boards["board-123456"]
    assert (board.kind, board.mac) == ("physical", "24:0a:c4:12:34:56")
    assert board.image_sha256 == hashlib.sha256(b"the image").hexdigest()
    assert (board.app_version, board.idf_version) == ("v1.2", "v5.5")
    assert {one.board.board for one in embedded.values if one.fact.name == "ratio"} == {"host"}


def test_without_hil_a_suite_is_as_it_was(tmp_path: Path) -> None:
    """No file, no line, no program: metric hands its value to the JUnit report alone."""
    with console(CONSOLE) as port:
        words = ("--embedded-services", "serial", "--port", port, "--metric-path", "m.txt")
        done = session(tmp_path, *words, "--junit-xml", "j.xml")
    assert done.returncode == 1, done.stdout  # test_fails
    assert "hil:" not in done.stdout
    assert 'name="connect_ms" value="412"' in (tmp_path / "j.xml").read_text()
    assert "connect_ms 412\n" in (tmp_path / "m.txt").read_text(), "once"
    assert not (tmp_path / "out").exists()


def test_an_image_of_the_host_is_of_a_virtual_board(tmp_path: Path) -> None:
    """hil's virtual boards speak esptool's protocol and look like a chip on a port: their image says it."""
    build = build_folder(tmp_path, bytes(24 + 8 + 256) + b"VELF" + bytes(8))
    with console(CONSOLE) as port:
        ways = ("--embedded-services", "serial", "--port", port, "--build-dir", build, "-k", "connect")
        found = facts(tmp_path, *ways)
    assert {(one.board.board, one.board.kind) for one in found.values} == {("board-123456", "virtual")}


TWO = """
import pytest

@pytest.mark.parametrize("count", [2], indirect=True)
def test_two(dut, metric):
    metric("first_ms", int(dut[0].expect(r"after (\\d+) ms").group(1)))
    metric("second_ms", int(dut[1].expect(r"after (\\d+) ms").group(1)), dut=dut[1])

def test_unity(dut):
    dut.expect_unity_test_output()
    for case in dut.testsuite.testcases:
        case.attrs["time"] = 0.25  # as pytest-embedded's runner of menus notes it
"""


def test_several_duts_and_unity_cases(tmp_path: Path) -> None:
    """A value is of the dut that the call names; each Unity case is a value of its own where the ini asks."""
    second = [line.replace("12:34:56", "12:34:57").replace("412", "430") for line in CONSOLE]
    with console(CONSOLE) as one, console(second) as other:
        file = tmp_path / "facts.jsonl"
        ports = ["--embedded-services", "serial", "--port", f"{one}|{other}"]
        options = ["--hil", "--hil-file", file, "-o", "hil_unity=true"]
        done = session(tmp_path, *options, *ports, "-k", "two", suite=TWO)
        assert done.returncode == 0, done.stdout
        (found,) = read_sessions([file])
        assert [(item.fact.name, item.fact.value, item.board.board) for item in found.values] == [
            ("first_ms", 412.0, "board-123456"),
            ("second_ms", 430.0, "board-123457"),
        ]
        session(tmp_path, *options, *ports[:2], "--port", one, "-k", "unity", suite=TWO)
        (found,) = read_sessions([file])
        assert [(item.fact.name, item.fact.value) for item in found.values] == [("test_queue_s", 0.25)]


HOST = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(metric, number):
    metric("took_ms", 10 + number, limit=11)
"""


def test_the_session_follows_its_limits_under_xdist_too(tmp_path: Path) -> None:
    """Each worker has a file of its own; hil judges them as one session, and a broken limit fails it."""
    done = session(tmp_path, "--hil", "-n", "2", suite=HOST)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "4 passed" in done.stdout
    assert re.search("^hil: 4 .* 4 tests; took_ms 12 ms, .* 11 ms ✗", done.stdout, re.MULTILINE)
    assert len(list((tmp_path / "out" / "pytest").glob("*-gw*.jsonl"))) == 2
    verdict: Any = json.loads((tmp_path / "out" / "latest" / "verdicts.json").read_text())
    assert [item["outcome"] for item in verdict["series"]].count("regressed") == 2
    kept = session(tmp_path, "--hil", "-k", "0 or 1", suite=HOST)
    assert kept.returncode == 0, kept.stdout
    assert "✓" in kept.stdout


def test_a_wrong_call_fails_its_test(tmp_path: Path) -> None:
    """The test says what is wrong with a call, with --hil or without."""
    wrong = {
        "name": ('"Connect ms", 1', "not a valid metric name"),
        "text": ('"a_ms", "1"', "expected a number"),
        "nan": ('"a_ms", float("nan")', "finite"),
        "direction": ('"a_ms", 1, direction="up"', "direction is "),
    }
    tests = [f"def test_{name}(metric):\n    metric({words})\n" for name, (words, _said) in wrong.items()]
    done = session(tmp_path, suite="\n".join(tests))
    assert done.returncode == 1
    _head, *failures = re.split(r"^_+ test_(\w+) _+$", done.stdout, flags=re.MULTILINE)
    told = dict(zip(failures[::2], failures[1::2], strict=True))
    assert told.keys() == wrong.keys()
    for name, (_words, said) in wrong.items():
        assert said in told[name]


def test_what_is_not_judged_is_not_green(tmp_path: Path) -> None:
    """A unit that is none: pytest passed, hil judged nothing, and the session says where the values are."""
    done = session(tmp_path, "--hil", suite='def test_it(metric):\n    metric("a", 1, unit="parsec")\n')
    assert done.returncode == 3, done.stdout
    assert re.search("test_wifi.py::test_it: a: .*'parsec'", done.stdout)
    assert "NOT JUDGED" in done.stdout


def own_judging(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SOURCES))
    import pytest_hil.judging

    return pytest_hil.judging


def test_without_the_program_nothing_is_green(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No hil beside the interpreter nor on PATH: the file is named, and how to install the tool."""
    judging = own_judging(monkeypatch)
    monkeypatch.setattr(judging, "PROGRAM", "hil-that-nobody-has")
    file = tmp_path / "s.jsonl"
    file.write_text("{}\n")
    judged = judging.judge(file, tmp_path, asks=True)
    assert judged.status == 3
    assert str(file) in judged.lines[1]
    assert "pipx install esp-hil" in judged.lines[1]
    assert judging.judge(tmp_path / "none", tmp_path, asks=True).status == 0, "control"


def test_the_plugin_needs_nothing_of_hil() -> None:
    """It imports pytest and the standard library alone: a suite pins its own versions of everything else."""
    code = (
        "import sys; sys.modules.update(hil=None, pytest_embedded=None, esptool=None); "
        "import pytest_hil.plugin; print('fine')"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}
    argv: Sequence[str] = [sys.executable, "-c", code]
    assert subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout == "fine\n"

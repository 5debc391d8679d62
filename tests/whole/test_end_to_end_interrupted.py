# SPDX-License-Identifier: Apache-2.0
"""A run that is interrupted or killed in the middle, and what is left of it."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hil.reports.history import locked
from hil.store import RunDirectory
from hil.store.run_info import planned_boots
from tests.in_process import hil
from tests.lab import Lab, Process, Running, descendants, of_type, read_process, run, wait_for

pytestmark = pytest.mark.slow

NewLab = Callable[[int], Lab]
MEASURING = r"b1 \[0/1\b[^]]*\] measuring"


@pytest.fixture
def measuring(new_lab: NewLab, request: pytest.FixtureRequest) -> Iterator[tuple[Lab, Running]]:
    """A run on one board in the middle of a case that outlasts any test, or of the suite asked for."""
    lab = new_lab(1)
    running = lab.start("--suite", getattr(request, "param", "pr"))
    try:
        running.await_line(MEASURING)
        yield lab, running
    finally:
        running.close()
        lab.await_nothing_left()


def find(processes: list[Process], word: str) -> Process:
    found = [process for process in processes if word in process.name and "unshare" not in process.name]
    assert found, f"no {word!r} among {[process.name for process in processes]}"
    return found[0]  # what it has forked is named like it until it is another program


def test_a_second_run_is_told_who_holds_the_board_and_may_wait(measuring: tuple[Lab, Running]) -> None:
    """It ends with 3 at once, naming process and run, and does not disturb the first; a run that waits gets
    the boards when the first is ended by the process that `hil rack status` names."""
    lab, running = measuring
    done = lab.run()
    assert done.returncode == 3
    for said in ("board b1 of rack lab is held by", holder := f"pid {running.process.pid}"):
        assert said in done.stdout
    files = ("--rack", str(lab.rack), "--out", str(lab.out))
    assert holder in hil("rack", "status", *files, env=lab.env).stdout
    assert running.process.poll() is None
    waiting = Running(lab.command("--wait", "60"), lab.folder / "waiting.txt", lab.env)
    try:
        waiting.await_line("board b1 of rack lab is held by")
        running.send(signal.SIGTERM)
        assert running.wait() == 143
        assert waiting.wait() == 0, waiting.said()
    finally:
        waiting.close()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.heavy)],
)
def test_a_signal_ends_the_run_in_order(
    measuring: tuple[Lab, Running], number: signal.Signals, code: int
) -> None:
    """Ctrl-C and SIGTERM: exit 130 and 143, nothing left, no secrets, the journal says what is missing."""
    lab, running = measuring
    family = descendants(running.process.pid)
    running.send(number)
    assert running.wait() == code
    lab.await_nothing_left(*family)
    assert not list(lab.temporary.glob("hil-secrets-*"))
    journal = RunDirectory.latest(lab.out).read()
    assert not journal.torn
    assert [entry["type"] for entry in lab.entries()] == ["not-run"]
    assert re.search("Interrupted, before .*; logs ", running.said())
    assert "hil gate" not in running.said()  # there is nothing to judge


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)]
)
def test_a_signal_before_anything_is_measured_is_said(
    new_lab: NewLab, number: signal.Signals, code: int
) -> None:
    """While the session still loads: one sentence, the documented code, and no run is left."""
    lab = new_lab(1)
    running = lab.start()
    try:
        wait_for(lambda: catches(running.process.pid, signal.SIGHUP), lambda: "no session was begun")
        running.send(number)
        assert running.wait() == (130 if number == signal.SIGINT else 143), running.said()
    finally:
        running.close()
    assert running.said().startswith("Interrupted, before ")
    assert len(running.said().splitlines()) == 1
    assert not list(lab.out.glob("*-quick-*"))


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a run's session has begun, and has a handler for a signal."""
    process = read_process(pid)
    if process is None or "hil.fixtures" not in process.name:
        return False
    caught = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.heavy)],
)
def test_a_signal_while_the_report_is_built_keeps_the_verdict(
    new_lab: NewLab, number: signal.Signals, code: int
) -> None:
    """What was judged is said and on disk before the report begins; no traceback, the documented code."""
    lab = new_lab(1)
    with locked(lab.out):  # as another build would; the run waits for it
        running = lab.start(report=True)
        try:
            running.await_line("Building the report")
            running.send(number)
            assert running.wait() == code, running.said()
        finally:
            running.close()
    said = running.said()
    assert "Traceback" not in said
    word = lab.good_outcome()
    assert said.index(word) < said.index("Interrupted. The verdict ")
    assert "hil report build" in said
    assert (lab.out / "latest" / "summary.md").read_text().startswith(f"# {word}")
    assert not list(lab.out.glob(".report-*"))
    lab.await_nothing_left()


def test_a_signal_after_the_end_is_no_traceback(new_lab: NewLab) -> None:
    """SIGTERM between the last word and the end of the process: 143, as documented."""
    lab = new_lab(1)
    plugin = "import os, signal\ndef pytest_unconfigure(): os.kill(os.getpid(), signal.SIGTERM)\n"
    (lab.folder / "late_signal.py").write_text(plugin)
    env = {**lab.env, "PYTHONPATH": str(lab.folder)}
    done = run(lab.pytest("-p", "late_signal", "-k", "no such case"), env=env)
    assert done.returncode == 143, done.stdout
    assert "Traceback" not in done.stdout


def test_kill_9_of_the_run_leaves_nothing(measuring: tuple[Lab, Running]) -> None:
    """After kill -9 of the run the kernel takes the rest; the next run finds boards, ports and lock free."""
    lab, running = measuring
    family = descendants(running.process.pid)
    assert len(family) >= 4  # supervisor, air, board, broker
    running.send(signal.SIGKILL)
    running.wait()
    lab.await_nothing_left(*family)
    killed = RunDirectory.latest(lab.out)
    assert killed.read().entries == ()
    assert planned_boots(killed.read_info())
    judged = hil("gate", killed.path, env=lab.env)
    assert (judged.returncode, "1 planned case not measured" in judged.stdout) == (4, True), judged.stdout
    assert lab.run().returncode == 0


@pytest.mark.parametrize(
    ("victim", "words"),
    [
        pytest.param("hil.virtual.board", ["board b1", "killed by signal 9"], marks=pytest.mark.heavy),
        pytest.param("hil-air", ["air", "killed by signal 9"], marks=pytest.mark.heavy),
        ("mosquitto", ["broker", "killed by signal 9"]),
        ("hil.virtual.supervisor", ["supervisor"]),
    ],
)
def test_kill_9_of_a_part_is_the_rigs(measuring: tuple[Lab, Running], victim: str, words: list[str]) -> None:
    """A part that dies in the middle: exit 3, the sentence names it; the next run works."""
    lab, running = measuring
    family = descendants(running.process.pid)
    os.kill(find(family, victim).pid, signal.SIGKILL)
    assert running.wait() == 3, running.said()
    (fault,) = of_type(lab.entries(), "fault")
    assert fault["owner"] == "rig"
    for word in words:
        assert word in fault["sentence"]
    lab.await_nothing_left(*family)
    assert lab.run().returncode == 0


@pytest.mark.parametrize(
    ("victim", "said"),
    [
        ("mosquitto", "The MQTT broker gave no answer"),
        pytest.param("hil-air", "The virtual air of board b1 stood still", marks=pytest.mark.heavy),
    ],
)
@pytest.mark.parametrize("measuring", ["some_seconds"], indirect=True)  # the case goes on to its end
def test_a_part_that_stands_still_is_the_rigs(measuring: tuple[Lab, Running], victim: str, said: str) -> None:
    """Stopped for three seconds and let go on: every message is late, and no firmware is called slow for it.

    Exit 3, the sentence names the part; the next run works.
    """
    lab, running = measuring
    stopped = find(descendants(running.process.pid), victim).pid
    os.kill(stopped, signal.SIGSTOP)
    time.sleep(3.0)
    os.kill(stopped, signal.SIGCONT)
    assert running.wait() == 3, running.said()
    (fault,) = of_type(lab.entries(), "fault")
    assert (fault["owner"], said in fault["sentence"]) == ("rig", True), fault
    assert of_type(lab.entries(), "record") == []
    assert lab.run().returncode == 0

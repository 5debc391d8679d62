# SPDX-License-Identifier: Apache-2.0
"""Run after run, whatever becomes of one, and on from where it stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.history.measuring import MOST_FAILURES, begin, until_done
from hil.store import RunDirectory
from tests.lab import ROOT, wait_for
from tests.make_records import run_info

# Stands in for `hil run`. The first word of the file "fate" is what becomes of the next run: a status, or
# "wait" until it is interrupted. A run that ends with 0 counts.
RUN = """\
import os, signal, sys
folder = sys.argv[1]
words = open(f"{folder}/fate").read().split()
open(f"{folder}/fate", "w").write(" ".join(words[1:]))
fate = words[0] if words else "0"
open(f"{folder}/calls", "a").write(f"{fate}\\n")
if fate == "wait":
    signal.signal(signal.SIGINT, lambda *_: (open(f"{folder}/interrupted", "w"), os._exit(130)))
    open(f"{folder}/waiting", "w")
    while True:
        signal.pause()
sys.exit(int(fate))
"""


class Lab:
    """A folder in which runs come to what the file ``fate`` says; "0" where it says nothing more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.fate("")
        (folder / "run.py").write_text(RUN)
        self.command = [sys.executable, "-I", "-S", str(folder / "run.py"), str(folder)]

    def fate(self, words: str) -> None:
        (self.folder / "fate").write_text(words)

    def measure(self, wanted: int) -> None:
        until_done(self.command, wanted, lambda: self.calls.count("0"), self.said.append)

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.mark.slow
def test_runs_are_measured_until_enough_count(lab: Lab) -> None:
    """A run that does not count is told, and measured again."""
    lab.fate("0 3 0")
    lab.measure(2)
    assert lab.calls == ["0", "3", "0"]
    (again,) = [line for line in lab.said if "measured again" in line]
    assert "ended with 3" in again


@pytest.mark.slow
def test_runs_that_fail_one_after_another_end_it(lab: Lab) -> None:
    """It does not go on all night against a rack that is broken."""
    lab.fate("0 3 3 3 3")
    with pytest.raises(RigError, match=r"3 runs in a row failed, the last one with 3"):
        lab.measure(5)
    assert len(lab.calls) == 1 + MOST_FAILURES


@pytest.mark.slow
def test_a_wrong_configuration_ends_it_at_once(lab: Lab) -> None:
    """It would be as wrong the next time."""
    lab.fate("2")
    with pytest.raises(ConfigError, match="configuration is wrong"):
        lab.measure(5)
    assert len(lab.calls) == 1


def test_the_same_command_goes_on_and_another_begins_anew(tmp_path: Path) -> None:
    """Only with the same options; a state file that was cut off begins anew."""
    out, state = tmp_path / "out", tmp_path / "out" / "state" / "lab.json"
    earlier, later = "20261101T010000Z-pr-0000", "20261102T010000Z-pr-0000"

    def leave(run_id: str) -> None:
        RunDirectory.create(out, run_info(run_id=run_id))

    leave(earlier)
    assert begin(state, ["--boots=4"], out) == (earlier, False)
    leave(later)
    assert begin(state, ["--boots=4"], out) == (earlier, True)
    assert begin(state, ["--board=v1"], out) == (later, False)
    state.write_text('{"options": ["--bo')
    assert begin(state, ["--board=v1"], out) == (later, False)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_lets_the_run_put_its_boards_down(lab: Lab, number: signal.Signals) -> None:
    """It is interrupted once and waited for, and the exit code is that of an interruption."""
    lab.fate("wait")
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # below `&` it is ignored
        "from hil.cli import app, qualify\n"
        f"qualify.hil_run = lambda *_: {lab.command!r}\n"
        "app.main()"
    )
    words = ["rack", "qualify", "--runs=2", f"--out={lab.folder}/out", f"--history={lab.folder}/history"]
    process = subprocess.Popen([sys.executable, "-c", program, *words], cwd=ROOT, env=dict(os.environ))
    try:
        wait_for((lab.folder / "waiting").exists, lambda: "the run did not begin")
        process.send_signal(number)
        assert process.wait(timeout=60) == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    finally:
        process.kill()
        process.wait(timeout=60)
    assert (lab.folder / "interrupted").exists()

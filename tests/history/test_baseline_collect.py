# SPDX-License-Identifier: Apache-2.0
"""`hil baseline collect`: session after session, whatever becomes of one, and on from where it stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, ExitCode, RigError
from hil.cli.app import run_command
from hil.history import load
from hil.history.baseline.collect import MOST_FAILURES, Campaign, collect
from tests.lab import ROOT, wait_for
from tests.make_records import THRESHOLDS_ROOT, publish_record

pytestmark = pytest.mark.slow

RACK = "virtual"

# What `hil run` leaves, without measuring: a judged run of one record. The first word of the file "fate" is
# what becomes of the next session: a status, or "wait" until it is interrupted.
SESSION = """\
import json, os, shutil, signal, sys, time
folder, thresholds = sys.argv[1:3]
words = open(f"{folder}/fate").read().split()
open(f"{folder}/fate", "w").write(" ".join(words[1:]))
with open(f"{folder}/calls", "a") as calls:
    calls.write(json.dumps(sys.argv[3:]) + "\\n")
fate = words[0] if words else "0"
out = next(word for word in sys.argv if word.startswith("--out=")).removeprefix("--out=")
number = len(open(f"{folder}/calls").readlines())
run_id = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()) + f"-pr-{number:04}"
run = f"{out}/{run_id}"
os.makedirs(f"{run}/thresholds")
shutil.copy(thresholds, f"{run}/thresholds")
record = json.load(open(f"{folder}/record.json"))
open(f"{run}/records.jsonl", "w").write(json.dumps(record | {"run_id": run_id}) + "\\n")
started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
info = {"run_id": run_id, "rack": "virtual", "suite": "pr", "trigger": "baseline", "started_utc": started}
info["git"] = {"commit": "a" * 40, "dirty": False}
open(f"{run}/run.json", "w").write(json.dumps(info))
if fate == "wait":
    signal.signal(signal.SIGINT, lambda *_: (open(f"{folder}/interrupted", "w"), os._exit(130)))
    open(f"{folder}/waiting", "w")
    while True:
        signal.pause()
verdict = {"run_id": run_id, "outcome": "pass", "exit_code": int(fate), "sentence": ""}
verdict |= {"series": [], "faults": [], "not_run": [], "warnings": []}
open(f"{run}/verdicts.json", "w").write(json.dumps(verdict))
sys.exit(int(fate))
"""


class Lab:
    """A folder in which sessions come to what the file ``fate`` says; "0" where it says nothing more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.fate("")
        script = folder / "session.py"
        script.write_text(SESSION)
        (folder / "record.json").write_text(json.dumps(publish_record(rows=60).to_json()))
        limits = str(THRESHOLDS_ROOT / "publish.yaml")
        self.command = (sys.executable, "-I", "-S", str(script), str(folder), limits)

    def fate(self, words: str) -> None:
        (self.folder / "fate").write_text(words)

    def campaign(self, sessions: int, *options: str) -> Campaign:
        return Campaign(
            rack=RACK,
            sessions=sessions,
            options=["--boots=4", *options],
            out=self.folder / "out",
            history=self.folder / "history",
            command=self.command,
        )

    def collect(self, sessions: int, *options: str) -> None:
        collect(self.campaign(sessions, *options), self.said.append)

    @property
    def calls(self) -> list[list[str]]:
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def kept(self) -> int:
        return len(load(self.folder / "history").sessions)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_sessions_are_measured_until_the_history_has_them(lab: Lab) -> None:
    """Each is a run with the trigger baseline; a session that fails is told, and measured again."""
    lab.fate("0 3 0")
    lab.collect(2)
    assert len(lab.calls) == 3
    assert {"--trigger=baseline", "--no-report", "--boots=4"} <= set(lab.calls[0])
    assert lab.kept == 2
    assert any("ended with 3, so it is not in the history" in line for line in lab.said)
    assert not lab.campaign(2).state.exists()


def test_what_breaks_a_limit_or_was_not_measured_is_no_baseline(lab: Lab) -> None:
    """Only sessions that end with 0 enter."""
    lab.fate("1 4 0")
    lab.collect(1)
    assert (len(lab.calls), lab.kept) == (3, 1)


def test_sessions_that_fail_one_after_another_end_it(lab: Lab) -> None:
    """It does not go on all night against a rack that is broken; what is done stays."""
    lab.fate("0 3 3 3 3")
    with pytest.raises(
        RigError, match=r"3 sessions in a row failed, the last one with 3.*the same command goes on"
    ):
        lab.collect(5)
    assert (len(lab.calls), lab.kept) == (1 + MOST_FAILURES, 1)


def test_a_wrong_configuration_ends_it_at_once(lab: Lab) -> None:
    """It would be as wrong the next time."""
    lab.fate("2")
    with pytest.raises(ConfigError, match="configuration is wrong"):
        lab.collect(5)
    assert len(lab.calls) == 1


def test_the_same_command_goes_on_and_another_begins_anew(lab: Lab) -> None:
    """Sessions of a campaign that stopped count, and one that was measured and not entered enters."""
    lab.fate("0 0 2")
    with pytest.raises(ConfigError):
        lab.collect(3)
    entered = sorted((lab.folder / "history" / RACK).iterdir())
    entered[-1].unlink()  # as if it had been killed between measuring and entering
    lab.collect(3)
    assert "2 of 3 sessions" in next(line for line in lab.said if line.startswith("Going on"))
    assert (len(lab.calls), lab.kept) == (4, 3)
    lab.collect(1, "--board=v1")
    assert (len(lab.calls), lab.kept) == (5, 4)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_lets_the_session_put_its_boards_down(lab: Lab, number: signal.Signals) -> None:
    """It is interrupted once and waited for, and the exit code is that of an interruption."""
    lab.fate("wait")
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # below `&` it is ignored
        "from dataclasses import replace; from hil.cli import app, baseline; real = baseline.Campaign\n"
        f"baseline.Campaign = lambda *words: replace(real(*words), command={lab.command!r})\n"
        "app.main()"
    )
    words = ["baseline", "collect", "--sessions=2", "--force", f"--out={lab.folder}/out"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words, f"--history={lab.folder}/history"],
        cwd=ROOT,
        env=dict(os.environ),
    )
    try:
        wait_for((lab.folder / "waiting").exists, lambda: "the session did not begin")
        process.send_signal(number)
        assert process.wait(timeout=60) == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
    finally:
        process.kill()
        process.wait(timeout=60)
    assert (lab.folder / "interrupted").exists()


def test_sources_that_are_not_committed_are_refused_before_anything_is_measured(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A night of sessions that may not enter the history would be lost."""
    monkeypatch.setattr("hil.cli.baseline.git_state", lambda _: {"commit": "a" * 40, "dirty": True})
    assert run_command(["baseline", "collect", "--sessions=2", f"--out={lab.folder}/out"]) == ExitCode.CONFIG
    assert "not committed" in capsys.readouterr().err
    assert not (lab.folder / "out").exists()

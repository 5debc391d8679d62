# SPDX-License-Identifier: Apache-2.0
"""The whole programme on a virtual rack, as a person at a terminal goes through it."""

from __future__ import annotations

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hil.base.errors import HilError
from hil.evidence.report import EVIDENCE, Evidence, parse_evidence
from hil.virtual.air.control import AirControl
from hil.virtual.board.client import BoardControl
from tests.gate.gate_lab import open_gate_lab
from tests.lab import ROOT, Lab, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.heavy]

DEADLINE_S = 900.0  # of one thing that is waited for, on a busy host
SUITES = """\
suites:
  quick:
    - {count: 60, warmup: 5, interval_us: 5000}
  pr:
    - {count: 150, warmup: 5, interval_us: 5000}
  nightly:
    - {payload_bytes: [128, 256, 512, 1024], count: 1000, warmup: 0, interval_us: 5000}

"""


class Person:
    """Somebody at a terminal of `hil evidence`, who reads what it says and types."""

    def __init__(self, lab: Lab, *more: str) -> None:
        self.lab = lab
        words = [sys.executable, "-m", "hil", "evidence", *lab.arguments(*more)]
        mine, its = pty.openpty()
        self._terminal = mine
        self._said: list[str] = []
        self.process = subprocess.Popen(
            words, stdin=its, stdout=its, stderr=its, cwd=ROOT, env=lab.env, start_new_session=True
        )
        os.close(its)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._seen = 0

    def _read(self) -> None:
        while True:
            try:
                content = os.read(self._terminal, 65536)
            except OSError:  # the program has ended
                return
            self._said.append(content.decode(errors="replace"))

    def said(self) -> str:
        return "".join(self._said)

    def reads(self, pattern: str) -> str:
        """Wait for the next place that matches, behind the last one; return it."""

        def there() -> bool:
            return self._find(pattern) is not None or self.process.poll() is not None

        wait_for(there, lambda: f"{pattern!r} did not come: {self.said()[-4000:]}", DEADLINE_S)
        found = self._find(pattern)
        assert found, self.said()[-4000:]
        self._seen = found.end()
        return found[0]

    def _find(self, pattern: str) -> re.Match[str] | None:
        return re.compile(pattern).search(self.said(), self._seen)

    def ahead(self) -> str:
        """Return what was said behind the last place that was read."""
        return self.said()[self._seen :]

    def types(self, line: str = "") -> None:
        os.write(self._terminal, f"{line}\n".encode())

    def ends(self) -> int:
        status = self.process.wait(DEADLINE_S)
        self._reader.join(10)
        return status

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(DEADLINE_S)
        os.close(self._terminal)


@pytest.fixture
def lab() -> Iterator[Lab]:
    """Two virtual boards, short suites, and one comparison that blocks."""
    folder = Path(tempfile.mkdtemp(prefix="hil-lab-"))
    yield open_gate_lab(folder, 2, {"publish": SUITES}, tolerance=0.15).lab
    shutil.rmtree(folder)


def state_of(lab: Lab) -> Evidence:
    path = lab.out / "evidence" / "lab" / EVIDENCE
    return parse_evidence(str(path), path.read_bytes())


def keep_down(air: AirControl, person: Person) -> None:
    """Drop what a board sends until its run has ended: a run sets what it finds changed right before it
    measures."""

    def has_ended() -> bool:
        with suppress(HilError, OSError):  # the run's air is gone with it
            air.down("b1")
        return "then press Enter" in person.ahead()

    wait_for(has_ended, person.said, DEADLINE_S)


def test_a_person_goes_through_the_programme(lab: Lab) -> None:
    """Stopped by Ctrl-C it goes on where it was. The planted slowdown is found. Each fault that the person
    makes is the rig's, what is skipped says so, and the next run is untouched. The file says *virtual* on
    each line and closes no row; shown, it is judged again from its records and comes to the same."""
    first = Person(lab)
    try:
        first.reads("== unchanged")
        first.reads("look 1 of")
        os.kill(first.process.pid, signal.SIGINT)
        assert first.ends() == 130, first.said()
    finally:
        first.close()
    done = {step.name: step.result for step in state_of(lab).steps}
    assert (done["build"], done["quick"], done["unchanged"]) == ("ok", "ok", "open"), first.said()

    state = lab.out / "evidence" / "lab" / "out" / "virtual" / "lab" / "b1"
    board, air = BoardControl(state / "b1.sock"), AirControl(state / "air.sock")
    faults: dict[str, Callable[[], object]] = {
        "pull the USB cable of b1": lambda: board.fault("disconnect", "now"),
        "hold the reset button of b1": lambda: board.power("cycle"),
        "switch the access point off": lambda: keep_down(air, person),
    }
    person = Person(lab, "--anonymous")
    try:
        person.reads("Going on with what was begun")
        for asked, make in faults.items():
            person.reads(rf"asked to {asked}.*skip: ")
            person.types()
            person.reads(f">>> NOW: {asked}")
            make()
            if "reset" in asked:
                person.reads("Please let it go, then press Enter: ")
                person.types()
                person.reads("asked to cut the power of b1.*skip: ")
                person.types("skip")
            else:
                person.reads("Please .* then press Enter: ")
                person.types()
        assert person.ends() == 4, person.said()
    finally:
        person.close()

    evidence = state_of(lab)
    came = {step.name: (step.result, step.got or step.why) for step in evidence.steps}
    assert came["planted"][0] == "ok", (came, person.said())
    assert "regressed" in came["planted"][1]
    assert came["power"] == ("skipped", "a person skipped it")
    assert came["swap"][0] == "skipped"
    for name in ("unplug", "reset", "access-point"):
        assert came[name][0] == "ok", (name, came[name], person.said()[-6000:])
        assert "next run: untouched" in came[name][1]
    assert not [step.name for step in evidence.steps if step.closes]

    (packed,) = (lab.out / "evidence").glob("evidence-lab-*.tar.gz")
    shown = lab.hil("evidence", "show", str(packed))
    assert shown.returncode == 4, shown.stdout  # two steps were skipped
    lines = [line for line in shown.stdout.splitlines() if line[:1] in "✓✗·"]
    assert len(lines) == len(evidence.steps)
    assert all(" virtual " in line for line in lines)
    assert "closes no row" in shown.stdout
    assert "contradicts" not in shown.stdout
    assert "Each run was judged again from its records." in shown.stdout

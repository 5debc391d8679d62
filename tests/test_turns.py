# SPDX-License-Identifier: Apache-2.0
"""The order and the turns of tests on several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import ROOT, wait_for
from tests.turns import turn

HOLD = """
import sys
from pathlib import Path
from tests.turns import turn
with turn(Path(sys.argv[1]), alone=sys.argv[2] == "alone"):
    print("in", flush=True)
    sys.stdin.readline()
"""


class Holder:
    """Another process that holds a turn until it is told to leave."""

    def __init__(self, folder: Path, kind: str) -> None:
        argv = [sys.executable, "-c", HOLD, str(folder), kind]
        self.process = subprocess.Popen(
            argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def enter(self) -> None:
        assert self.process.stdout
        assert self.process.stdout.readline() == "in\n"

    def leave(self) -> None:
        self.process.communicate("\n")

    def waits_for_a_lock(self) -> bool:
        """Whether the kernel lists it as blocked."""
        blocked = [line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" in line]
        return any(words[5] == str(self.process.pid) for words in blocked)


@pytest.mark.slow
def test_who_measures_time_is_alone(tmp_path: Path) -> None:
    """It waits for those inside, and those that come later wait for it, however many there are."""
    beside = Holder(tmp_path, "beside")
    beside.enter()
    alone = Holder(tmp_path, "alone")
    wait_for(alone.waits_for_a_lock, lambda: "the one that is to be alone does not wait")
    later = Holder(tmp_path, "beside")
    wait_for(later.waits_for_a_lock, lambda: "who came later went in before the one that waited")
    beside.leave()
    alone.enter()
    assert later.waits_for_a_lock()
    alone.leave()
    later.enter()
    later.leave()


def test_a_killed_test_process_leaves_no_lock(tmp_path: Path) -> None:
    """The kernel drops its locks with it."""
    holder = Holder(tmp_path, "alone")
    holder.enter()
    holder.process.kill()
    holder.process.communicate()
    with turn(tmp_path, alone=True):
        pass


def test_what_a_test_forked_and_left_behind_keeps_nobody_out(tmp_path: Path) -> None:
    """A turn ends with its test, whatever goes on in a process that began in it, such as a manager's."""
    with turn(tmp_path, alone=False):
        left = os.fork()
        if left == 0:
            signal.pause()
            os._exit(0)
    try:
        other = Holder(tmp_path, "alone")
        other.enter()
        other.leave()
    finally:
        os.kill(left, signal.SIGKILL)
        os.waitpid(left, 0)


FILES = {
    "test_b.py": "def test_one(): pass\ndef test_two(): pass\n",
    "test_a.py": "import pytest\ndef test_one(): pass\n@pytest.mark.alone\ndef test_two(): pass\n",
    "test_places.py": "def test_one(): pass\n",
}


@pytest.mark.slow
def test_long_files_begin_and_lonely_ones_end(tmp_path: Path) -> None:
    """A file stays together, in its own order."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "conftest.py").write_text(
        "from tests.turns import in_order\n"
        "def pytest_collection_modifyitems(items):\n    items[:] = in_order(items)\n"
    )
    argv = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pytest.ini"), "--rootdir", str(tmp_path)]
    done = subprocess.run(
        [*argv, "--collect-only", "-q", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = [line for line in done.stdout.splitlines() if "::" in line]
    assert found == [
        "test_places.py::test_one",
        "test_b.py::test_one",
        "test_b.py::test_two",
        "test_a.py::test_one",
        "test_a.py::test_two",
    ]

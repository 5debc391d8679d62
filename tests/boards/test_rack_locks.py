# SPDX-License-Identifier: Apache-2.0
"""Lock files that several people share, and locks whose holder has left no readable record."""

from __future__ import annotations

import fcntl
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.boards import lease
from hil.boards.lease import UNKNOWN_HOLDER, lease_boards, read_holder
from hil.cli.app import run_command
from tests.lab import Lab, folder_of_all, make_lab

ROOT = Path(__file__).resolve().parents[2]
SOMEBODY, SOMEBODY_ELSE = 65533, 65534

# Holds board a of rack "shared", as another user where it may: it imports everything before it becomes one.
HOLD = """
import os, sys
from pathlib import Path
from hil.boards import lease
from hil.boards.lease import lease_boards
lease.PHYSICAL_LOCK_DIR = Path(sys.argv[1])
os.umask(0o077)
if os.getuid() == 0:
    os.setuid(int(sys.argv[2]))
with lease_boards(lease.PHYSICAL_LOCK_DIR / "shared", ["a"], run_id=sys.argv[3]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by(root: Path, uid: int, run_id: str) -> Iterator[subprocess.Popen[str]]:
    """A process of user ``uid`` that holds the board until its stdin closes, or that was refused."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(root), str(uid), run_id],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    with process:
        yield process


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of all physical racks' locks, in a place that every user may write, as /run/lock is."""
    with folder_of_all() as shared:
        monkeypatch.setattr(lease, "PHYSICAL_LOCK_DIR", shared / "hil")
        yield shared / "hil"


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


@pytest.mark.slow
def test_two_users_share_the_boards_of_a_host(root: Path) -> None:
    """Who comes second is told who holds the board, and gets it afterwards, whatever the umask."""
    with held_by(root, SOMEBODY, "first") as first:
        assert first_line(first) == "held\n"
        assert stat.S_IMODE(root.stat().st_mode) == 0o1777
        assert stat.S_IMODE((root / "shared").stat().st_mode) == 0o1777
        with held_by(root, SOMEBODY_ELSE, "second") as second:
            _, said = second.communicate(timeout=30)
            for part in ("board a of rack shared", f"pid {first.pid}", "run first"):
                assert part in said
    with held_by(root, SOMEBODY_ELSE, "second") as second:
        assert first_line(second) == "held\n"
        holder = read_holder(root / "shared", "a")
        assert holder is not None
        assert (holder.pid, holder.run_id) == (second.pid, "second")


@pytest.mark.slow
def test_a_lock_file_that_only_its_owner_may_write_still_locks(root: Path) -> None:
    """A lock needs no write access: only the record is missing then, and the board is held by "unknown"."""
    folder = root / "shared"
    folder.mkdir(parents=True)
    path = folder / "a.lock"
    path.touch()
    path.chmod(0o444)
    with held_by(root, SOMEBODY, "first") as first:
        assert first_line(first) == "held\n"
        assert read_holder(folder, "a") == UNKNOWN_HOLDER
        with pytest.raises(RigError, match="held by unknown"), lease_boards(folder, ["a"], run_id="x"):
            pytest.fail("two processes held one board")


@contextmanager
def locked(folder: Path, board: str, record: str) -> Iterator[Path]:
    """A lock that another open file holds, with this text in it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{board}.lock"
    path.write_text(record)
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield path


OF_PID = '{"who": "a", "pid": %s, "host": "h", "since_utc": "", "run_id": "r"}'


@pytest.mark.parametrize(
    "record", ["", '{"who": "ada", "pi', "[]", '{"who": "a"}', *(OF_PID % pid for pid in ("0", "-1", '"1"'))]
)
def test_a_board_that_is_locked_without_a_record_is_not_free(tmp_path: Path, record: str) -> None:
    """Its holder is unknown, also where a signal to the pid that it names would end what it must not; once
    the lock is gone, what it left holds nothing."""
    with locked(tmp_path, "a", record):
        assert read_holder(tmp_path, "a") == UNKNOWN_HOLDER
    assert read_holder(tmp_path, "a") is None


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return make_lab(tmp_path, 2)


def options(lab: Lab) -> tuple[str, ...]:
    return ("--rack", str(lab.rack), "--out", str(lab.out))


def test_every_command_shows_an_unknown_holder(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """status and check say that the board is held."""

    def said(*words: str) -> str:
        run_command([*words, *options(lab)])
        captured = capsys.readouterr()
        return captured.out + captured.err

    with locked(lab.out / "lock" / "lab", "b1", ""):
        status = said("rack", "status").splitlines()
        assert "2 boards, 1 free " in status[0]
        assert status[2].split() == ["b1", "esp32", "ok", "unknown"]
        assert status[3].split() == ["b2", "esp32", "ok", "free"]
        assert "b1: in use by unknown" in said("rack", "check")

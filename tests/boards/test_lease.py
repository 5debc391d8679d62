# SPDX-License-Identifier: Apache-2.0
"""Leases between real processes and users, and locks whose holder left no record."""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.boards import lease
from hil.boards.lease import UNKNOWN_HOLDER, lease_air, lease_boards, lease_rack, read_holder
from hil.cli.app import run_command
from tests.lab import ROOT, folder_of_all, make_lab, wait_for

# Takes a lock as often as it is told, says so, and holds it until it is told a line.
HOLD = """
import sys
from pathlib import Path
from hil.boards.lease import lease_air, lease_boards, lease_rack
folder, turns = Path(sys.argv[1]), int(sys.argv[2])
for turn in range(turns):
    with LEASE:
        print(f"held {turn}", flush=True)
        sys.stdin.readline()
print("done", flush=True)
"""
NO_STOP = "check_stop=lambda: None"


@contextmanager
def user(folder: Path, lease_of: str, *, turns: int = 1) -> Iterator[subprocess.Popen[str]]:
    """A process that takes a lease, an expression of ``folder``, so many times."""
    argv = [sys.executable, "-c", HOLD.replace("LEASE", lease_of), str(folder), str(turns)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=10)


@contextmanager
def holder(folder: Path, *boards: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds boards."""
    with user(folder, f"lease_boards(folder, {boards!r}, run_id='run-of-holder')") as process:
        assert said(process) == "held 0\n"
        yield process


def air_user(folder: Path, run_id: str, turns: int) -> AbstractContextManager[subprocess.Popen[str]]:
    return user(folder, f"lease_air(folder, run_id={run_id!r}, {NO_STOP})", turns=turns)


def rack_user(
    folder: Path, run_id: str, turns: int, how: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    lease_of = f"lease_rack(folder, run_id={run_id!r}, alone={how == 'alone'}, {NO_STOP})"
    return user(folder, lease_of, turns=turns)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


def let_go(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.slow
def test_the_second_is_told_who_holds_the_board(tmp_path: Path) -> None:
    """A board held by another process is a rig fault that names its user, process and run."""
    folder = tmp_path / "rack"
    with holder(folder, "a") as process:
        with pytest.raises(RigError) as caught, lease_boards(folder, ["a"], run_id="second"):
            pytest.fail("two processes held one board")
        for part in ("board a of rack rack ", f"pid {process.pid}", "run-of-holder", "--wait"):
            assert part in str(caught.value)
        assert caught.value.exit_code == 3


@pytest.mark.slow
def test_kill_9_of_the_holder_frees_the_board(tmp_path: Path) -> None:
    """The record of a dead holder is no obstacle, and is not mistaken for a holder."""
    with holder(tmp_path, "a") as process:
        assert read_holder(tmp_path, "a") is not None
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=10)
        assert "run-of-holder" in (tmp_path / "a.lock").read_text()
        assert read_holder(tmp_path, "a") is None
        with lease_boards(tmp_path, ["a"], run_id="next"):
            now = read_holder_from_outside(tmp_path, "a")
            assert "next" in now


@pytest.mark.slow
def test_waiting_gets_the_board_when_it_is_free(tmp_path: Path) -> None:
    """--wait: who waits is told by whom the board is held, and gets it when the holder ends. After a lease
    the lock file is empty, so that `hil rack status` shows nothing stale."""
    told: list[str] = []
    with holder(tmp_path, "a") as process:

        def end_it(sentence: str) -> None:
            told.append(sentence)
            os.kill(process.pid, signal.SIGKILL)

        with lease_boards(tmp_path, ["a"], run_id="patient", wait_s=20, on_wait=end_it):
            assert "run-of-holder" in told[0]
    assert (tmp_path / "a.lock").read_bytes() == b""


@pytest.mark.slow
def test_nothing_is_kept_of_a_lease_that_failed(tmp_path: Path) -> None:
    """Boards taken before the one that is held are given back. They are taken in sorted order, so that two
    runs that want the same in another order cannot wait for each other for ever."""
    with holder(tmp_path, "b"):
        for boards in (["a", "b"], ["c", "b"]):
            with pytest.raises(RigError, match="board b of"), lease_boards(tmp_path, boards, run_id="second"):
                pytest.fail("board b is held")
        assert read_holder(tmp_path, "a") is None
        assert not (tmp_path / "c.lock").exists()


def read_holder_from_outside(folder: Path, board: str) -> str:
    """Ask as another process would: a process never conflicts with its own lock file description."""
    code = (
        "import sys, pathlib, hil.boards.lease as lease;"
        "print(lease.read_holder(pathlib.Path(sys.argv[1]), sys.argv[2]))"
    )
    argv = [sys.executable, "-c", code, str(folder), board]
    return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, timeout=20, check=True).stdout


class StopError(Exception):
    """What a stopped run raises."""


@pytest.mark.slow
def test_the_air_is_held_by_one_process_at_a_time(tmp_path: Path) -> None:
    """Whoever waits for the air hears a stop and sees who holds it; kill -9 of the holder frees it."""
    with air_user(tmp_path, "first", 1) as process:
        assert said(process) == "held 0\n"
        asked = 0

        def check_stop() -> None:
            nonlocal asked
            asked += 1
            if asked > 2:
                raise StopError

        with pytest.raises(StopError), lease_air(tmp_path, run_id="second", check_stop=check_stop):
            pytest.fail("two processes held the air")
        holder_now = read_holder(tmp_path, "air")
        assert holder_now
        assert (holder_now.run_id, holder_now.pid) == ("first", process.pid)
        process.kill()
        process.wait(timeout=10)
    with lease_air(tmp_path, run_id="second", check_stop=lambda: None):
        assert "second" in read_holder_from_outside(tmp_path, "air")
    assert read_holder(tmp_path, "air") is None


@pytest.mark.slow
def test_processes_take_turns_at_the_air(tmp_path: Path) -> None:
    """A run that gives the air back and wants it again stands behind the one that waits."""
    with air_user(tmp_path, "greedy", 2) as process:
        assert said(process) == "held 0\n"
        told = False

        def let_go_once() -> None:
            nonlocal told
            if not told and not turnstile_is_free(tmp_path):
                told = True
                let_go(process)

        with lease_air(tmp_path, run_id="patient", check_stop=let_go_once):
            assert told
            assert "patient" in read_holder_from_outside(tmp_path, "air")
        assert said(process) == "held 1\n"


def turnstile_is_free(folder: Path, name: str = "air") -> bool:
    path = folder / f"{name}.turnstile"
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def stop_at_the_third_look() -> Callable[[], None]:
    looks = itertools.count(1)

    def check_stop() -> None:
        if next(looks) > 3:
            raise StopError

    return check_stop


@pytest.mark.slow
def test_several_share_a_rack_and_one_has_it_alone(tmp_path: Path) -> None:
    """Two that share do not wait for each other; who wants it alone waits for both, and keeps both off."""
    with rack_user(tmp_path, "first", 1, "shared") as process:
        assert said(process) == "held 0\n"
        with lease_rack(tmp_path, run_id="second", alone=False, check_stop=lambda: None):
            pass
        with (
            pytest.raises(StopError),
            lease_rack(tmp_path, run_id="third", alone=True, check_stop=stop_at_the_third_look()),
        ):
            pytest.fail("it was shared")
    with rack_user(tmp_path, "loner", 1, "alone") as process:
        assert said(process) == "held 0\n"
        holder_now = read_holder(tmp_path, "rack")
        assert holder_now
        assert (holder_now.run_id, holder_now.pid) == ("loner", process.pid)
        for alone in (True, False):
            with (
                pytest.raises(StopError),
                lease_rack(tmp_path, run_id="next", alone=alone, check_stop=stop_at_the_third_look()),
            ):
                pytest.fail("it was held alone")
        process.kill()
        process.wait(timeout=10)
        with lease_rack(tmp_path, run_id="next", alone=False, check_stop=lambda: None):
            assert read_holder(tmp_path, "rack") is None


@pytest.mark.slow
@pytest.mark.parametrize(("how", "holder_named"), [("alone", "run first"), ("shared", "that did not write")])
def test_waiting_for_the_rack_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, holder_named: str
) -> None:
    """Whoever waits too long is told who has it now, which need not be who had it all the time."""
    monkeypatch.setattr(lease, "TURN_DEADLINE_S", 0.3)
    with rack_user(tmp_path, "first", 1, how) as process:
        assert said(process) == "held 0\n"
        with (
            pytest.raises(RigError, match=f"was not free within 0 s; it is held by .*{holder_named}"),
            lease_rack(tmp_path, run_id="second", alone=True, check_stop=lambda: None),
        ):
            pytest.fail("it was held")
        assert turnstile_is_free(tmp_path, "rack")


@pytest.mark.slow
def test_who_waits_for_the_rack_alone_is_not_starved(tmp_path: Path) -> None:
    """While one waits to have the rack alone nobody gets a new share, though others still hold theirs."""
    with rack_user(tmp_path, "sharer", 2, "shared") as sharer:
        assert said(sharer) == "held 0\n"
        with rack_user(tmp_path, "loner", 1, "alone") as loner:
            wait_for(lambda: not turnstile_is_free(tmp_path, "rack"), lambda: "nobody waits", deadline_s=20.0)
            with (
                pytest.raises(StopError),
                lease_rack(tmp_path, run_id="x", alone=False, check_stop=stop_at_the_third_look()),
            ):
                pytest.fail("somebody waits to have it alone")
            let_go(sharer)  # it wants the rack again at once, and stands behind the loner
            assert said(loner) == "held 0\n"
            let_go(loner)
            assert said(loner) == "done\n"
        assert said(sharer) == "held 1\n"


@pytest.mark.parametrize("name", ["air", "rack"])
def test_a_board_called_like_another_lock_is_refused(tmp_path: Path, name: str) -> None:
    """The air's lock and the rack's lie beside the boards', so a board of that name would wait for itself."""
    with (
        pytest.raises(ConfigError, match=f"board '{name}' of rack"),
        lease_boards(tmp_path, [name], run_id="x"),
    ):
        pytest.fail("the lock would be its own")


SOMEBODY, SOMEBODY_ELSE = 65533, 65534

# Holds board a of rack "shared", as another user where it may: it imports everything before it becomes one.
HOLD_AS = """
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
        [sys.executable, "-c", HOLD_AS, str(root), str(uid), run_id],
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


@pytest.mark.slow
def test_two_users_share_the_boards_of_a_host(root: Path) -> None:
    """Who comes second is told who holds the board, and gets it afterwards, whatever the umask."""
    with held_by(root, SOMEBODY, "first") as first:
        assert said(first) == "held\n"
        assert stat.S_IMODE(root.stat().st_mode) == 0o1777
        assert stat.S_IMODE((root / "shared").stat().st_mode) == 0o1777
        with held_by(root, SOMEBODY_ELSE, "second") as second:
            _, refusal = second.communicate(timeout=30)
            for part in ("board a of rack shared", f"pid {first.pid}", "run first"):
                assert part in refusal
    with held_by(root, SOMEBODY_ELSE, "second") as second:
        assert said(second) == "held\n"
        now = read_holder(root / "shared", "a")
        assert now is not None
        assert (now.pid, now.run_id) == (second.pid, "second")


@pytest.mark.slow
def test_a_lock_file_that_only_its_owner_may_write_still_locks(root: Path) -> None:
    """A lock needs no write access: only the record is missing then, and the board is held by "unknown"."""
    folder = root / "shared"
    folder.mkdir(parents=True)
    path = folder / "a.lock"
    path.touch()
    path.chmod(0o444)
    with held_by(root, SOMEBODY, "first") as first:
        assert said(first) == "held\n"
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


def test_every_command_shows_an_unknown_holder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """status and check say that the board is held."""
    lab = make_lab(tmp_path, 2)

    def printed(*words: str) -> str:
        run_command([*words, "--rack", str(lab.rack), "--out", str(lab.out)])
        captured = capsys.readouterr()
        return captured.out + captured.err

    with locked(lab.out / "lock" / "lab", "b1", ""):
        status = printed("rack", "status").splitlines()
        assert "2 boards, 1 free " in status[0]
        assert status[2].split() == ["b1", "esp32", "ok", "unknown"]
        assert status[3].split() == ["b2", "esp32", "ok", "free"]
        assert "b1: in use by unknown" in printed("rack", "check")

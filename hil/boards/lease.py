# SPDX-License-Identifier: Apache-2.0
"""Leases: one run at a time owns a board, one case at a time the air, and some cases the whole rack.

A lease is a ``flock`` on ``<lock folder>/<rack>/<board>.lock``; the kernel drops it with its process, so a
killed run never blocks the next. The file's text says who holds it, for people and for error sentences.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.base.flock import try_lock
from hil.boards.rack import Rack

PHYSICAL_LOCK_DIR = Path("/run/lock/hil")
KEPT_DIR = Path("/var/lib/hil")  # what a reboot must not empty


def lock_dir(rack: Rack, out: Path) -> Path:
    """Return where a rack's locks live: virtual racks belong to a checkout, physical ones to the host."""
    return (out / "lock" if rack.is_virtual else PHYSICAL_LOCK_DIR) / rack.name


def kept_dir(rack: Rack, locks: Path) -> Path:
    """Return where what is known of a rack's boards is kept: beside ``locks``, for a virtual one.

    Of a physical one it outlives a reboot, where KEPT_DIR is there or this user may make it. A folder of the
    rack that is there counts for every user, so that nobody measures a board in quarantine.
    """
    if rack.is_virtual:
        return locks
    if (KEPT_DIR / rack.name).is_dir():
        return KEPT_DIR / rack.name
    parent = KEPT_DIR if KEPT_DIR.is_dir() else KEPT_DIR.parent
    return KEPT_DIR / rack.name if os.access(parent, os.W_OK) else locks


@dataclass(frozen=True)
class Holder:
    """Who holds a board."""

    who: str
    pid: int
    host: str
    since_utc: str
    run_id: str

    def describe(self) -> str:
        if not self.pid:
            return f"{self.who} (a process that left no readable record)"
        return f"{self.who} (pid {self.pid} on {self.host}, run {self.run_id}, since {self.since_utc})"


UNKNOWN_HOLDER = Holder(who="unknown", pid=0, host="", since_utc="", run_id="")


def read_holder(lock_dir: Path, board_id: str) -> Holder | None:
    """Return who holds a board now; None where it is free, whatever a dead holder left in the file.

    A board whose holder left no readable record is held by UNKNOWN_HOLDER: it is not free.
    """
    path = lock_dir / f"{board_id}.lock"
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return UNKNOWN_HOLDER
    try:
        return None if try_lock(file, shared=True) else parse_holder(path) or UNKNOWN_HOLDER
    finally:
        os.close(file)


def open_lock(path: Path) -> int:
    try:
        _make_folder(path.parent)
        return _open_shared(path)
    except OSError as error:
        raise RigError(
            f"the lock file {path} could not be opened: {error.strerror}.",
            next_step="give this user write access to that folder.",
        ) from error


def _make_folder(folder: Path) -> None:
    """Make a folder; one of physical boards is for all users of the host, like /tmp."""
    root = next((root for root in (PHYSICAL_LOCK_DIR, KEPT_DIR) if root in folder.parents), None)
    if root is None:
        folder.mkdir(parents=True, exist_ok=True)
        return
    for shared in (root, folder):
        with suppress(FileExistsError):
            shared.mkdir(parents=True)
            shared.chmod(0o1777)


def _open_shared(path: Path) -> int:
    """Open a lock file, whoever made it. It is never opened with O_CREAT while it exists: in a sticky folder
    Linux refuses that for another user's file (``fs.protected_regular``)."""
    with suppress(FileExistsError):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        os.fchmod(file, 0o666)  # whatever the umask says
        return file
    with suppress(PermissionError):
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)  # flock needs no write access


def write_holder(file: int, run_id: str) -> None:
    holder = Holder(
        who=_user(),
        pid=os.getpid(),
        host=socket.gethostname(),
        since_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        run_id=run_id,
    )
    write_record(file, json.dumps(asdict(holder)).encode())


def write_record(file: int, record: bytes) -> None:
    """Write the record. It is for people: where it cannot be written, the lock holds all the same."""
    with suppress(OSError):
        os.truncate(file, 0)
        os.pwrite(file, record, 0)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def parse_holder(path: Path) -> Holder | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        holder = Holder(**{part.name: record[part.name] for part in fields(Holder)})
        return holder if isinstance(holder.pid, int) and holder.pid > 0 else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


AIR = "air"  # its lock lies beside the boards', and so does the rack's
RACK = "rack"
TURN_POLL_S = 0.1
TURN_DEADLINE_S = 3600.0  # far beyond what the longest case of another run may take


@contextmanager
def lease_air(lock_dir: Path, *, run_id: str, check_stop: Callable[[], None]) -> Iterator[None]:
    """Hold a rack's air alone among processes; ``check_stop`` is called meanwhile and may raise.

    Raises:
        RigError: it was not free within ``TURN_DEADLINE_S``; the sentence names the holder.
    """
    with _turn(lock_dir, AIR, run_id, check_stop, alone=True):
        yield


@contextmanager
def lease_rack(lock_dir: Path, *, run_id: str, alone: bool, check_stop: Callable[[], None]) -> Iterator[None]:
    """Take part in what happens on a rack; ``alone``, nothing else happens meanwhile.

    It holds among threads too, as each call locks the file anew. Arguments and errors are lease_air's.
    """
    with _turn(lock_dir, RACK, run_id, check_stop, alone=alone):
        yield


@contextmanager
def _turn(
    lock_dir: Path, name: str, run_id: str, check_stop: Callable[[], None], *, alone: bool
) -> Iterator[None]:
    """Hold a lock, shared or ``alone``.

    Whoever waits stands in a turnstile, so that nobody takes the lock again, or a share in it, before the one
    that waits.
    """
    deadline = time.monotonic() + TURN_DEADLINE_S
    with ExitStack() as stack:
        turnstile = open_lock(lock_dir / f"{name}.turnstile")
        stack.callback(os.close, turnstile)
        _lock_in_slices(turnstile, lock_dir, name, deadline, check_stop)
        file = open_lock(lock_dir / f"{name}.lock")
        stack.callback(os.close, file)
        _lock_in_slices(file, lock_dir, name, deadline, check_stop, shared=not alone)
        if alone:
            write_holder(file, run_id)
            stack.callback(write_record, file, b"")
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield


def _lock_in_slices(
    file: int,
    lock_dir: Path,
    name: str,
    deadline: float,
    check_stop: Callable[[], None],
    *,
    shared: bool = False,
) -> None:
    check_stop()
    while not try_lock(file, shared=shared):
        if time.monotonic() >= deadline:
            holder = read_holder(lock_dir, name)
            by = holder.describe() if holder else "a process that did not write its name, or waits for it too"
            what = f"the air of rack {lock_dir.name}" if name == AIR else f"the rack {lock_dir.name}"
            raise RigError(
                f"{what} was not free within {TURN_DEADLINE_S:.0f} s; it is held by {by}.",
                next_step=f"end that run (fuser -v {lock_dir / name}.*), then run again.",
            )
        time.sleep(TURN_POLL_S)
        check_stop()


BOARD_POLL_S = 0.2
# Whoever reads the holder takes the lock for a moment, so a first refusal need not be a conflict.
GRACE_S = 0.5


@contextmanager
def lease_boards(
    lock_dir: Path,
    board_ids: Sequence[str],
    *,
    run_id: str,
    disturbs: bool = False,
    wait_s: float = 0.0,
    on_wait: Callable[[str], None] | None = None,
) -> Iterator[None]:
    """Hold all boards named, taken in sorted order so that two runs cannot wait for each other.

    What ``disturbs`` others, as flashing does, waits besides until no case is measured that is to be alone.

    Raises:
        ConfigError: a board has the name of the air's lock, or of the rack's.
        RigError: somebody else holds one still after ``wait_s`` seconds; the sentence names the holder.
    """
    for name in (AIR, RACK):
        if name in board_ids:
            raise ConfigError(
                f"board {name!r} of rack {lock_dir.name} has the name of the {name}'s own lock.",
                next_step="give the board another id in the rack file.",
            )
    deadline = time.monotonic() + max(wait_s, GRACE_S)
    with ExitStack() as stack:
        for board_id in sorted(board_ids):
            file = open_lock(lock_dir / f"{board_id}.lock")
            stack.callback(os.close, file)
            _lock(file, lock_dir, board_id, deadline, on_wait if wait_s > 0 else None)
            write_holder(file, run_id)
            stack.callback(write_record, file, b"")
        if disturbs:
            share = lease_rack(lock_dir, run_id=run_id, alone=False, check_stop=lambda: None)
            stack.enter_context(share)
        yield


def _lock(
    file: int, lock_dir: Path, board_id: str, deadline: float, on_wait: Callable[[str], None] | None
) -> None:
    while not try_lock(file):
        sentence = _held_sentence(lock_dir, board_id)
        if time.monotonic() >= deadline:
            raise RigError(sentence, next_step="wait for it, or ask for patience: --wait SECONDS.")
        if on_wait:
            on_wait(sentence)
            on_wait = None
        time.sleep(BOARD_POLL_S)


def _held_sentence(lock_dir: Path, board_id: str) -> str:
    holder = parse_holder(lock_dir / f"{board_id}.lock") or UNKNOWN_HOLDER
    return f"board {board_id} of rack {lock_dir.name} is held by {holder.describe()}."

"""The files of leases: where they lie, how they are opened, and the record in them of who holds one."""

from __future__ import annotations

import getpass
import json
import os
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from hil.base.errors import RigError
from hil.base.flock import try_lock
from hil.boards.rack import Rack

PHYSICAL_LOCK_DIR = Path("/run/lock/hil")
KEPT_DIR = Path("/var/lib/hil")  # what a reboot must not empty


def lock_dir(rack: Rack, out: Path) -> Path:
    """Return where a rack's locks live: virtual racks belong to a checkout, physical ones to the host."""
    return (out / "lock" if rack.is_virtual else PHYSICAL_LOCK_DIR) / rack.name


def kept_dir(rack: Rack, locks: Path) -> Path:
    """Return where what is counted of a rack's boards is kept: beside ``locks``, for a virtual one.

    Of a physical one it outlives a reboot, where KEPT_DIR is there or this user may make it.
    """
    if rack.is_virtual:
        return locks
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


def clear_stale(lock_dir: Path, board_id: str) -> bool:
    """Empty the record that a dead holder left. Return whether there was one."""
    try:
        file = os.open(lock_dir / f"{board_id}.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if not try_lock(file):
            return False
        stale = os.fstat(file).st_size > 0
        os.truncate(file, 0)  # under the lock, so that it is nobody's record who is alive
        return stale
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

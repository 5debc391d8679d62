# SPDX-License-Identifier: Apache-2.0
"""Names of files, and writing them so that no reader, nor a start after a power cut, finds half of one."""

from __future__ import annotations

import errno
import os
import shlex
import threading
from pathlib import Path

from hil.base.errors import RigError
from hil.base.reading import RUN_MOST_BYTES, read_at_most


def short_path(path: Path) -> str:
    """Return a path as a person in this folder would type it."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def typed_path(path: Path) -> str:
    """Return a path as it stands in a command for a shell: quoted where it needs that."""
    return shlex.quote(short_path(path))


def replace_file(path: Path, data: bytes) -> None:
    """Write ``path`` at once and whole, and wait until it is on disk. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def read_bytes(path: Path) -> bytes:
    """Return a file's content. Raises RigError where the disk does not give it."""
    try:
        return read_at_most(path, RUN_MOST_BYTES)
    except OSError as error:
        raise disk_error(f"could not read {path}", error, "what is on disk") from error


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however many calls the kernel takes for it. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: Path) -> None:
    """Wait until the names in ``folder`` are on disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def disk_error(what: str, error: OSError, safe: str) -> RigError:
    """Return the sentence for a disk that did not take or give something; ``safe`` is what is not lost."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    next_step = "free some space on this disk" if full else "look at this disk (dmesg) and its permissions"
    return RigError(
        f"{what}: {error.strerror or error}. Safe on disk: {safe}.", next_step=f"{next_step}, then run again."
    )

# SPDX-License-Identifier: Apache-2.0
"""A NOR flash chip kept in a file: erase sets sectors to 0xFF, programming only clears bits."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.base.flock import try_lock

SECTOR_BYTES = 0x1000
ERASED = b"\xff"
EARLIER_BYTES = 4 << 20  # of the flash that a board had in an earlier hil: it grows
LOCK_TIMEOUT_S = 2.0  # the application of a board that was killed just now still ends
LOCK_POLL_S = 0.02


class FlashRangeError(ValueError):
    """An access beyond the end of the flash."""


class NorFlash:
    """``size_bytes`` of NOR flash in ``path``; what is written outlives the process.

    The file is created erased, and locked (flock(2)) while it is open: one board has it at a time. The
    descriptor ``fd`` may be shared with another process: both see the same bytes. Raises RigError where the
    file cannot be opened or another board has it, ConfigError where its size is another.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        self.path = path
        self.size_bytes = size_bytes
        try:
            self.fd = _open(path, size_bytes)
        except OSError as error:
            raise RigError(
                f"Opening the flash file {path} failed: {error.strerror}.",
                next_step="Give a path in a folder that exists and can be written.",
            ) from error
        found = os.fstat(self.fd).st_size
        if found != size_bytes:
            os.close(self.fd)
            raise ConfigError(
                f"The flash file {path} has {found} bytes, not the {size_bytes} bytes of this board's flash.",
                next_step=f"Remove {path} or give another path.",
            )
        self._map = mmap.mmap(self.fd, size_bytes)

    def read(self, offset: int, length: int) -> bytes:
        self._check(offset, length)
        return self._map[offset : offset + length]

    def erase(self, offset: int, length: int) -> None:
        """Erase every sector that ``offset`` .. ``offset + length`` touches."""
        self._check(offset, length)
        start = offset - offset % SECTOR_BYTES
        end = -(-(offset + length) // SECTOR_BYTES) * SECTOR_BYTES
        self._map[start:end] = ERASED * (end - start)

    def program(self, offset: int, data: bytes) -> None:
        """Clear bits: a byte becomes the AND of what was there and ``data``."""
        self._check(offset, len(data))
        old = self._map[offset : offset + len(data)]
        if old.count(0xFF) != len(old):
            anded = int.from_bytes(old, "little") & int.from_bytes(data, "little")
            data = anded.to_bytes(len(old), "little")
        self._map[offset : offset + len(data)] = data

    def damage(self, offset: int) -> None:
        """Flip the lowest bit of one byte, as a worn cell does."""
        self._check(offset, 1)
        self._map[offset] ^= 1

    def close(self) -> None:
        self._map.close()
        os.close(self.fd)

    def _check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset + length > self.size_bytes:
            raise FlashRangeError(
                f"{length} bytes at {offset:#x} do not lie in {self.size_bytes:#x} bytes of flash"
            )


def _open(path: Path, size_bytes: int) -> int:
    """Open the flash file, created where there is none or an empty one. Raises OSError, RigError."""
    if not path.exists() or path.stat().st_size == 0:
        _create(path, size_bytes)
    fd = open_locked(path, os.O_RDWR)
    if os.fstat(fd).st_size == EARLIER_BYTES < size_bytes:
        os.pwrite(fd, ERASED * (size_bytes - EARLIER_BYTES), EARLIER_BYTES)
    return fd


def _create(path: Path, size_bytes: int) -> None:
    """Create the file erased, under another name at first: whoever is killed meanwhile leaves no zeros."""
    part = path.with_name(path.name + ".part")
    fd = open_locked(part, os.O_WRONLY | os.O_CREAT)
    try:
        if path.exists() and path.stat().st_size > 0:
            part.unlink(missing_ok=True)
            return  # another board was faster
        os.ftruncate(fd, 0)
        with os.fdopen(os.dup(fd), "wb") as file:
            file.write(ERASED * size_bytes)
        part.replace(path)
    finally:
        os.close(fd)


def open_locked(path: Path, flags: int, *, what: str = "flash file") -> int:
    """Open a file for one board alone. Raises OSError, RigError where another board has it."""
    fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while not try_lock(fd):
        if time.monotonic() > deadline:
            os.close(fd)
            raise RigError(
                f"The {what} {path} is in use by another board.",
                next_step="End the process that has it (fuser shows it), or give another path.",
            )
        time.sleep(LOCK_POLL_S)
    return fd

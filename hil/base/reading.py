# SPDX-License-Identifier: Apache-2.0
"""Reading files that others write: no more of one than such a file can hold."""

from __future__ import annotations

import io
import os
from pathlib import Path

from hil.base.errors import ConfigError

SETTINGS_MOST_BYTES = 2 << 20  # YAML, CSV, ESP-IDF's JSON
IMAGE_MOST_BYTES = 128 << 20  # no module's flash is larger
SUMMARY_MOST_BYTES = 64 << 20  # a run in the history
RUN_MOST_BYTES = 1 << 30  # a run's journal, verdict or run.json
CAPTURE_MOST_BYTES = 8 << 30  # tshark reads it as a stream


def read_at_most(path: Path, most_bytes: int) -> bytes:
    """Return a file's content. Raises ConfigError where it has more than ``most_bytes``, and OSError.

    What is no regular file, such as a pipe, is read until it ends or is too large.
    """
    with path.open("rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        chunks, left_bytes = [], most_bytes - size_bytes
        while left_bytes >= 0 and (chunk := file.read(max(size_bytes, 1 << 16))):
            chunks.append(chunk)
            left_bytes = most_bytes - sum(map(len, chunks))
    if left_bytes < 0:
        raise too_large(path, most_bytes)
    return b"".join(chunks)


def decode(content: bytes, *, label: str) -> str:
    """Return a file's content as text, lines ended by LF. Raises ConfigError: not UTF-8."""
    try:
        return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8").read()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigError(f"{label}:{line}: not UTF-8 text.", next_step="save it as UTF-8.") from error


def too_large(path: Path, most_bytes: int) -> ConfigError:
    """Return the error for a file that has more than may be read of it."""
    return ConfigError(
        f"{path}: larger than {most_bytes >> 20} MiB, the limit for such a file.",
        next_step="check that it is the right file.",
    )

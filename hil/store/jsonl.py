# SPDX-License-Identifier: Apache-2.0
"""Read files of one JSON object a line: whole, or with an error that names file and line and the way out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from hil.base.errors import ConfigError
from hil.base.reading import RUN_MOST_BYTES, read_at_most
from hil.base.schema import UPDATE, SchemaError
from hil.store.codec import decode
from hil.store.files import disk_error

_SHOWN_BYTES = 40
_Item = TypeVar("_Item")


def read_jsonl(path: Path, parse: Callable[[Path, int, bytes], _Item]) -> list[_Item]:
    """Return what ``parse`` makes of each line; nothing where the file does not exist yet.

    A last line without its end is left out if it was cut off in writing.

    Raises:
        ConfigError: ``parse`` refuses another line.
        RigError: the disk does not give the file.
    """
    try:
        *whole, last = read_at_most(path, RUN_MOST_BYTES).split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise disk_error(f"could not read {path}", error, "what is on disk") from error
    found = [parse(path, number, raw) for number, raw in enumerate(whole, start=1)]
    with suppress(ConfigError):
        found += [parse(path, len(whole) + 1, last)] if last else []
    return found


def parse_line(
    path: Path, number: int, raw: bytes, *, read: Callable[[dict[str, Any]], _Item], loss: str
) -> _Item:
    """Return what ``read`` makes of the object in line ``number`` of ``path``.

    ``read`` raises ValueError, which says what is wrong; ``loss`` says what is lost if the line is taken out.

    Raises:
        ConfigError: the line is no JSON object, or ``read`` refuses it.
    """
    try:
        return read(_object_in(raw))
    except SchemaError as error:
        out = UPDATE if error.is_newer else f"take it out (sed -i {number}d {path}); {loss}."
        raise ConfigError(f"{path}:{number}: {error}.", next_step=out) from error
    except ValueError as error:
        start = raw[:_SHOWN_BYTES].decode(errors="replace")
        raise ConfigError(
            f"{path}:{number}: {error}; the line starts with {start!r}.",
            next_step=f"take it out (sed -i {number}d {path}); {loss}.",
        ) from error


def _object_in(raw: bytes) -> dict[str, Any]:
    value = decode(raw)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - the file's content is wrong, not a call
    return value

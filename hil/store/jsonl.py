# SPDX-License-Identifier: Apache-2.0
"""Read a line of a file of JSON objects, or raise an error that names file, line and the way out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from hil.base.errors import ConfigError
from hil.base.schema import UPDATE, SchemaError
from hil.store.codec import decode

_SHOWN_BYTES = 40
_Item = TypeVar("_Item")


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

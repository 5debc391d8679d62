"""One line of a history file: a JSON object, or an error that names file and line and the way out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hil.errors import ConfigError

_SHOWN_BYTES = 40


def parse_line(
    path: Path, number: int, raw: bytes, *, what_is_wrong: Callable[[Mapping[str, Any]], str], loss: str
) -> dict[str, Any]:
    """Return the object in line ``number`` of ``path``; ``loss`` says what is lost if it is taken out.

    Raises:
        ConfigError: it is no JSON object, or ``what_is_wrong`` finds something.
    """
    try:
        value = json.loads(raw)
    except ValueError as error:
        wrong = f"not JSON: {error}"
    else:
        wrong = what_is_wrong(value) if isinstance(value, dict) else "not a JSON object"
    if wrong:
        start = raw[:_SHOWN_BYTES].decode(errors="replace")
        raise ConfigError(
            f"{path}:{number}: {wrong}; the line starts with {start!r}.",
            next_step=f"take it out (sed -i {number}d {path}); {loss}.",
        )
    return value  # type: ignore[no-any-return]  # a dict, as was looked

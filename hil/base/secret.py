# SPDX-License-Identifier: Apache-2.0
"""Passwords by the name of a variable: of the environment, or of a file that no other program gets to see.

On a rack's runner they are in the file, so that a job's environment, and what prints it, has none.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.yamlfile import Node

FILE_VARIABLE = "HIL_SECRETS"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def secret(name: str) -> str:
    """Return a variable of the environment, else of the file that HIL_SECRETS names; "" without.

    Raises ConfigError: this user may not read the file, or it is no text.
    """
    path = os.environ.get(FILE_VARIABLE, "")
    if not name or os.environ.get(name) or not path:
        return os.environ.get(name, "")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}, which {FILE_VARIABLE} names, cannot be read: {error}.",
            next_step="write lines NAME=VALUE into it, and let the group of the user that runs hil read it.",
        ) from error
    return next((value for key, value in _lines(text, path) if key == name), "")


def _lines(text: str, path: str) -> list[tuple[str, str]]:
    """Return the names and values. Raises ConfigError with the line that is neither that nor a comment."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        key, equals, value = line.partition("=")
        if equals and _VARIABLE.fullmatch(key.strip()):
            found.append((key.strip(), _unquoted(value.strip())))
        elif line.strip() and not line.lstrip().startswith("#"):
            raise ConfigError(
                f"{path}:{number}: the line is not NAME=VALUE.",  # which it may hold: it is not quoted
                next_step="write it so, without export, or put # before it.",
            )
    return found


def read_variable(node: Node, key: str) -> str:
    """Return the variable that a key names, "" without the key. Raises ConfigError, which shows no value."""
    name = node.text(key, default="")
    if name and not _VARIABLE.fullmatch(name):
        raise node.error(
            key,
            f"{key} is not a valid name of an environment variable: letters, digits and '_'.",
            next_step="write the variable's name; the password itself belongs into no rack file.",
        )
    return name


def way_out(name: str) -> str:
    """Return how to give the variable a value."""
    path = os.environ.get(FILE_VARIABLE, "")
    return f"write a line {name}=… into {path}." if path else f"export {name}=…"


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value

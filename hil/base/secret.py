# SPDX-License-Identifier: Apache-2.0
"""Passwords by the name of a variable: of the environment, or of a file that no other program gets to see.

On a rack's runner they are in the file that HIL_SECRETS names, so that a job's environment, and what prints
it, has none. On a desk they are in a file of the user's own, one for each project.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.base.paths import PROJECT_ROOT
from hil.base.yamlfile import Node

FILE_VARIABLE = "HIL_SECRETS"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def secret(name: str) -> str:
    """Return a variable of the environment, else of the file that HIL_SECRETS names, else of kept_file().

    It is "" without. Raises ConfigError: this user may not read the file, or it is no text.
    """
    if not name or os.environ.get(name):
        return os.environ.get(name, "")
    named = os.environ.get(FILE_VARIABLE, "")
    return (named and _read(Path(named)).get(name, "")) or _read(kept_file()).get(name, "")


def kept_file() -> Path:
    """Return the file of this user's own that holds what the project's rack file leaves out."""
    home = Path(os.environ.get("HOME", "/"))
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config", "hil")
    key = hashlib.sha256(os.fsencode(PROJECT_ROOT)).hexdigest()[:8]
    return folder / f"{PROJECT_ROOT.name or 'root'}-{key}.env"


def keep(values: Mapping[str, str]) -> Path:
    """Write variables into kept_file(), which no other user may read; return it. Raises RigError."""
    path = kept_file()
    text = "".join(f'{name}="{value}"\n' for name, value in {**_read(path), **values}.items())
    fresh = path.with_suffix(".new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(text)
        fresh.replace(path)
    except OSError as error:
        raise RigError(
            f"{path} cannot be written: {error.strerror}.",
            next_step=f"name another folder in XDG_CONFIG_HOME, or export {' and '.join(values)}.",
        ) from error
    return path


def _read(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the file of passwords {path} cannot be read: {error}.",
            next_step="write lines NAME=VALUE into it, and let the group of the user that runs hil read it.",
        ) from error
    return dict(_lines(text, str(path)))


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
                next_step="write NAME=VALUE without export, or start the line with #.",
            )
    return found


def read_variable(node: Node, key: str) -> str:
    """Return the variable that a key names, "" without the key. Raises ConfigError, which shows no value."""
    name = node.text(key, default="")
    if name and not _VARIABLE.fullmatch(name):
        raise node.error(
            key,
            f"{key} is not the name of an environment variable (letters, digits and '_').",
            next_step="write the variable's name; keep the password itself out of rack files.",
        )
    return name


def way_out(name: str) -> str:
    """Return how to give the variable a value."""
    path = os.environ.get(FILE_VARIABLE, "")
    return f"write a line {name}=… into {path}." if path else f"export {name}=…"


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value

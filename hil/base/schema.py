# SPDX-License-Identifier: Apache-2.0
"""Versions of file formats: a file that a newer hil wrote is never half read, nor taken for a damaged one."""

from __future__ import annotations

import hil
from hil.base.errors import ConfigError

UPDATE = f"update hil: a newer one than this ({hil.__version__}) wrote it; nothing was changed."


class SchemaError(ValueError):
    """A format of a version that is not read; ``is_newer`` where a newer hil wrote it."""

    def __init__(self, found: object, known: int) -> None:
        super().__init__(f"its schema is {found!r}, this program reads {known}")
        self.is_newer = is_newer(found, known)


def is_newer(found: object, known: int) -> bool:
    """Return whether a format's version is one that only a newer hil knows."""
    return type(found) is int and found > known


def check_schema(found: object, known: int) -> None:
    """Raise SchemaError where ``found`` is no version that is read."""
    if found != known:
        raise SchemaError(found, known)


def refuse_newer(found: object, known: int, where: str) -> None:
    """Raise ConfigError where only a newer hil knows the version of the file ``where``."""
    if is_newer(found, known):
        raise ConfigError(f"{where}: its schema is {found}, this program reads {known}.", next_step=UPDATE)

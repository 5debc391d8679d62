# SPDX-License-Identifier: Apache-2.0
"""numpy, imported when something of it is first used.

It is a third of a command's start, which a usage error or `--help` need not wait for.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Deferred(ModuleType):
        """Stands for a module: its first use of a name imports it, and keeps what the name means."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self.__name__), name)
            setattr(self, name, value)
            return value

    np = _Deferred("numpy")

__all__ = ["np"]

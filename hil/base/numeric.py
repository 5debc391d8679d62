# SPDX-License-Identifier: Apache-2.0
"""numpy, scipy.special and scipy.optimize, each imported when something of it is first used.

They are a third of a command's start, which a usage error or `--help` need not wait for.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import scipy.optimize as optimize
    import scipy.special as special
else:

    class _Deferred(ModuleType):
        """Stands for a module: its first use of a name imports it, and keeps what the name means."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self.__name__), name)
            setattr(self, name, value)
            return value

    np, optimize, special = map(_Deferred, ("numpy", "scipy.optimize", "scipy.special"))

__all__ = ["np", "optimize", "special"]

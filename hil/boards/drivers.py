# SPDX-License-Identifier: Apache-2.0
"""Drivers by the ``type`` of a rack file: a file of ours, or of the lab's in ``drivers/`` beside it.

``power: {type: relay}`` is ``drivers/power_relay.py``, which holds one class of PowerDriver.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from hil.base.errors import ConfigError, HilError
from hil.base.yamlfile import Node

T = TypeVar("T")
FOLDER = "drivers"
_PAGE = "docs/operate/own-driver.md shows a driver"


def read_driver(
    node: Node, base: type[T], ours: ModuleType, folder: Path, *, others: Sequence[str] = ()
) -> tuple[str, type[T] | None]:
    """Return what a section's ``type`` names, and the class that drives it; None for one of ``others``.

    ``ours`` is the package of our drivers, ``folder`` has the lab's. Raises ConfigError with file and line.
    """
    kind = ours.__name__.rpartition(".")[2]
    built_in = types_of(ours)
    labs = _files(kind, folder, taken=(*others, *built_in))
    name = node.choice("type", (*others, *built_in, *labs))
    if name in others:
        return name, None
    module = _loaded(labs[name]) if name in labs else importlib.import_module(f"{ours.__name__}.{name}")
    return name, _class_in(module, base)


def types_of(package: ModuleType) -> tuple[str, ...]:
    """Return the types that have a file in a package of drivers."""
    return tuple(module.name for module in pkgutil.iter_modules(package.__path__))


@contextmanager
def errors_of(driver: type[object] | ModuleType, owner: type[HilError] = ConfigError) -> Iterator[None]:
    """Raise what a driver lets through, and is no HilError, as an ``owner`` with its file and line."""
    try:
        yield
    except HilError:
        raise
    except Exception as error:
        file = inspect.getfile(driver)
        line = error.lineno if isinstance(error, SyntaxError) else None
        frames = traceback.extract_tb(error.__traceback__)
        lines = [line, *(frame.lineno for frame in reversed(frames) if frame.filename == file)]
        raise owner(
            f"{file}:{next(filter(None, lines), 1)}: {type(error).__name__}: {error}.",
            next_step=f"look at its device, or mend the driver; {_PAGE}.",
        ) from error


def _files(kind: str, folder: Path, *, taken: Sequence[str]) -> Mapping[str, Path]:
    """Return the lab's drivers by type. Raises ConfigError: one has the name of a type that is there."""
    files = {
        path.stem.removeprefix(f"{kind}_"): path for path in sorted(folder.resolve().glob(f"{kind}_*.py"))
    }
    for name in taken:
        if name in files:
            raise ConfigError(
                f"{files[name]}:1: the type {name!r} is built into hil.",
                next_step="give the driver another name.",
            )
    return files


@functools.cache
def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(str(path), path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its module up
    with errors_of(module):
        spec.loader.exec_module(module)
    return module


def _class_in(module: ModuleType, base: type[T]) -> type[T]:
    """Return a module's one class of a base. Raises ConfigError: another number, or it lacks a method."""
    classes = [item for item in vars(module).values() if isinstance(item, type) and issubclass(item, base)]
    own = [item for item in classes if item.__module__ == module.__name__]
    if len(own) != 1:
        raise ConfigError(
            f"{module.__file__}:1: {len(own)} classes of {base.__name__}; a driver file has exactly one.",
            next_step=f"write 'class Relay({base.__name__}):'; {_PAGE}.",
        )
    if missing := sorted(getattr(own[0], "__abstractmethods__", ())):
        raise ConfigError(
            f"{module.__file__}:{inspect.getsourcelines(own[0])[1]}: {own[0].__name__} lacks "
            f"{', '.join(missing)}.",
            next_step=f"add each method of {base.__module__}.{base.__name__}; {_PAGE}.",
        )
    return own[0]

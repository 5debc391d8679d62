# SPDX-License-Identifier: Apache-2.0
"""What a suite calls its values, in the names and units of hil: ``boot_time_seconds`` is ``boot_time_s``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from hil.base.errors import ConfigError
from hil.base.units import QuantityError, Unit, find_unit, unit_of

UNNAMED = "value"  # the unit of a value whose name has none
_WORDS = {
    "second": "s", "seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns",
    "byte": "bytes",
}  # fmt: skip
_RATES = {"bit_per_s": "bps", "kbit_per_s": "kbps", "mbit_per_s": "mbps", "per_s": "ops", "per_second": "ops"}
_COLUMNS = {"time": "ns", "rate": "bps", "current": "na", "energy": "nj"}  # in which a value is whole
_HIGHER = ("rate", "frequency")
_FREE = "free"
_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9_.\[\]-]+")


@dataclass(frozen=True)
class Naming:
    """``name`` ends with ``unit``; ``column`` is where its samples are, in whole numbers."""

    name: str
    unit: Unit

    @property
    def column(self) -> str:
        return f"{self.name.removesuffix(f'_{self.unit.name}')}_{_column_unit(self.unit)}"

    @property
    def higher_is_better(self) -> bool:
        """Whether more is better, where nobody says: of rates, and of what is free."""
        return self.unit.dimension in _HIGHER or _FREE in self.name.split("_")


def named(name: str, said: str, where: str) -> Naming:
    """Return what a value is called; ``said`` is the unit that its call says, "" for the name's.

    Raises ConfigError: there is no such unit, or the name ends with another one.
    """
    stem, own = _split(name)
    if not said:
        unit = own or find_unit(UNNAMED)
        return Naming(f"{stem}_{unit.name}", unit)
    try:
        unit = find_unit(_WORDS.get(said, said))
    except QuantityError as error:
        raise ConfigError(f"{where}: {name}: {error}.") from error
    if own and own != unit:
        raise ConfigError(
            f"{where}: {name}: its unit is said to be {said}, and its name ends with {own.name}.",
            next_step="say the unit once, in the name or in the call.",
        )
    return Naming(f"{stem}_{unit.name}", unit)


def _split(name: str) -> tuple[str, Unit | None]:
    for ending, unit in _RATES.items():
        if name.endswith(f"_{ending}"):
            return name.removesuffix(f"_{ending}"), find_unit(unit)
    stem, _, word = name.rpartition("_")
    try:
        return (stem, unit_of(f"{stem}_{_WORDS.get(word, word)}")) if stem else (name, None)
    except QuantityError:
        return name, None


def _column_unit(unit: Unit) -> str:
    return _COLUMNS.get(unit.dimension) or f"micro{unit.name}"


def column_unit(unit: Unit) -> Unit:
    """Return the unit in which a column holds values of ``unit`` as whole numbers."""
    return find_unit(_column_unit(unit))


def bench_of_test(node: str) -> str:
    """Return the bench of a test: the stem of its file without test_ or pytest_."""
    stem = PurePosixPath(node.partition("::")[0]).stem
    return _NOT_IN_LABELS.sub("-", stem.removeprefix("pytest_").removeprefix("test_")) or stem


def label_of_test(node: str) -> str:
    """Return what tells a test from the others of its file: ``test_connect[esp32]``, ``Class.test_it``."""
    name = node.partition("::")[2].replace("::", ".")
    return _NOT_IN_LABELS.sub("-", name).strip("-")

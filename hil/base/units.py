# SPDX-License-Identifier: Apache-2.0
"""Units: which belong together, how to convert them, and how a person writes a value.

Names end with their unit: ``latency_us``, ``throughput_mbps``, ``lost_ratio``.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


class QuantityError(ValueError):
    """A number without a unit, an unknown unit, or a unit of another dimension."""


@dataclass(frozen=True)
class Unit:
    """``factor`` times a value in this unit is the value in the dimension's base unit.

    ``symbol`` stands at figures, ``noun`` in sentences. Factors are exact, so that 25 ms are 25000 us and not
    a hair more.
    """

    name: str
    dimension: str
    factor: Fraction
    symbol: str
    aliases: tuple[str, ...] = ()

    @property
    def noun(self) -> str:
        return self.name if self.dimension == "instructions" else self.symbol


UNITS = (
    Unit("ns", "time", Fraction(1, 10**9), "ns"),
    Unit("us", "time", Fraction(1, 10**6), "µs", ("µs",)),
    Unit("ms", "time", Fraction(1, 10**3), "ms"),
    Unit("s", "time", Fraction(1), "s"),
    Unit("bytes", "size", Fraction(1), "B", ("B", "byte")),
    Unit("kib", "size", Fraction(1024), "KiB", ("KiB",)),
    Unit("mib", "size", Fraction(1024**2), "MiB", ("MiB",)),
    Unit("bps", "rate", Fraction(1), "bit/s", ("bit/s",)),
    Unit("kbps", "rate", Fraction(10**3), "kbit/s", ("kbit/s",)),
    Unit("mbps", "rate", Fraction(10**6), "Mbit/s", ("Mbit/s",)),
    Unit("gbps", "rate", Fraction(10**9), "Gbit/s", ("Gbit/s",)),
    Unit("ratio", "ratio", Fraction(1), ""),
    Unit("percent", "ratio", Fraction(1, 100), "%", ("%",)),
    Unit("permille", "ratio", Fraction(1, 1000), "‰", ("‰",)),
    Unit("count", "count", Fraction(1), ""),
    Unit("cycles", "cycles", Fraction(1), "cycles"),
    Unit("instructions", "instructions", Fraction(1), "instr"),
    Unit("ops", "frequency", Fraction(1), "ops/s", ("ops/s",)),
    Unit("dbm", "power", Fraction(1), "dBm", ("dBm",)),
    Unit("na", "current", Fraction(1, 10**9), "nA", ("nA",)),
    Unit("ua", "current", Fraction(1, 10**6), "µA", ("µA",)),
    Unit("ma", "current", Fraction(1, 10**3), "mA", ("mA",)),
    Unit("nj", "energy", Fraction(1, 10**9), "nJ", ("nJ",)),
    Unit("uj", "energy", Fraction(1, 10**6), "µJ", ("µJ",)),
    Unit("mj", "energy", Fraction(1, 10**3), "mJ", ("mJ",)),
    Unit("value", "number", Fraction(1), ""),  # of a suite's metric that names no unit
)
# In which columns, that hold integers, keep fractions of units without a smaller one: nobody writes them.
_MICRO_UNITS = tuple(
    Unit(f"micro{unit.name}", unit.dimension, unit.factor / 10**6, f"µ{unit.symbol}")
    for unit in UNITS
    if unit.dimension not in ("time", "rate", "current", "energy")
)

_BY_NAME = {name: unit for unit in (*UNITS, *_MICRO_UNITS) for name in (unit.name, *unit.aliases)}
_LADDERS = {  # of units that grow into one another, the largest first
    "rate": ("gbps", "mbps", "kbps", "bps"),
    "current": ("ma", "ua", "na"),
    "energy": ("mj", "uj", "nj"),
}
_MOST_IN_PERCENT = 10
_MILLION = 1_000_000
_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµ%/]*)\s*")
_GREEK_MU, _MICRO = "\u03bc", "\u00b5"  # two characters that look alike; keyboards have one or the other


def find_unit(name: str) -> Unit:
    """Return the unit called ``name``. Raises QuantityError with the known ones."""
    try:
        return _BY_NAME[name]
    except KeyError:
        known = ", ".join(unit.name for unit in UNITS)
        raise QuantityError(f"unknown unit {name!r}; known units: {known}") from None


def unit_of(name: str) -> Unit:
    """Return the unit that ``name`` ends with: ``latency_p95_us`` → us. Raises QuantityError."""
    suffix = name.rpartition("_")[2]
    if "_" not in name or suffix not in _BY_NAME:
        known = ", ".join(f"_{unit.name}" for unit in UNITS)
        raise QuantityError(f"{name!r} does not end with a unit; known endings: {known}")
    return _BY_NAME[suffix]


def convert(value: float, source: Unit, target: Unit) -> float:
    """Convert between units of one dimension. Raises QuantityError where the dimensions differ."""
    numerator, denominator = conversion(source, target)
    return value * numerator / denominator


def conversion(source: Unit, target: Unit) -> tuple[int, int]:
    """Return the factor and divisor of ``convert``, for many values. Raises QuantityError."""
    if source.dimension != target.dimension:
        raise QuantityError(
            f"{source.name} is a unit of {source.dimension}, {target.name} one of {target.dimension}"
        )
    return _ratio(source.name, target.name)


@functools.cache
def _ratio(source: str, target: str) -> tuple[int, int]:
    ratio = _BY_NAME[source].factor / _BY_NAME[target].factor
    return ratio.numerator, ratio.denominator


def parse_quantity(text: str, unit: str) -> float:
    """Read ``3 ms`` or ``30 Mbit/s`` and return it in ``unit``. Raises QuantityError."""
    match = _QUANTITY.fullmatch(text.replace(_GREEK_MU, _MICRO))
    if match is None:
        raise QuantityError(f"{text!r} is not a number and a unit")
    number, written = match.groups()
    if not written:
        raise QuantityError(f"{text!r} has no unit")
    if math.isinf(float(number)):
        raise QuantityError(f"{text!r} is more than a number can hold")
    return convert(float(number), find_unit(written), find_unit(unit))


def format_value(value: float, unit: Unit) -> str:
    """Write a value for a person, in the unit that reads best: ``25 ms``, ``1.2 %``, ``1,024 B``."""
    text, _, symbol = format_values([value], unit)[0].partition(" ")
    number = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{number} {symbol}".strip()


def format_difference(value: float, unit: Unit) -> str:
    """Write a difference of two values: as format_value(), but that of shares in percentage points."""
    text = format_value(value, unit)
    return f"{text.removesuffix('%')}percentage points" if unit.dimension == "ratio" else text


def format_relative(value: float, limit: float, unit: Unit) -> str:
    """Write how far a value lies from its limit, relative to it: ``47 %``, or ``97 times the limit``.

    Shares, and what is more than ten times the limit, read as multiples. "" where the limit is 0, and of a
    share below its limit.
    """
    if limit == 0 or (unit.dimension == "ratio" and value < limit):
        return ""
    times = value / limit
    if unit.dimension == "ratio" or times > _MOST_IN_PERCENT:
        return f"{times:,.{0 if times >= 10 else 1}f} times the limit"
    return f"{abs(value - limit) / abs(limit) * 100:.0f} %"


def format_values(values: Sequence[float], unit: Unit) -> list[str]:
    """Write values that belong together, in one unit and with the digits of the first.

    The first carries the unit, the others are bare: ``["31.2 ms", "30.4", "33.0"]``.
    """
    shown = best_unit(values[0], unit)
    amounts = [convert(value, unit, shown) for value in values]
    decimals = _decimals(amounts[0], shown)
    texts = [_written(amount, decimals, shown) for amount in amounts]
    return [f"{texts[0]} {shown.symbol}".strip(), *texts[1:]]


def best_unit(value: float, unit: Unit) -> Unit:
    """Return the unit of the same dimension in which the value is at least 1.

    Nanoseconds only where they are the value's own: a clock of microseconds has none.
    """
    if unit.dimension == "ratio":
        return _BY_NAME["percent"]
    times = ("s", "ms", "us", "ns") if unit.name == "ns" else ("s", "ms", "us")
    names = {"time": times, **_LADDERS}.get(unit.dimension)
    if names is None or value == 0:
        return unit
    units = [_BY_NAME[name] for name in names]
    return next((found for found in units if abs(convert(value, unit, found)) >= 1.0), units[-1])


def _written(amount: float, decimals: int, unit: Unit) -> str:
    """Write an amount; counts from a million on in millions, for nobody reads their last digits."""
    if unit.dimension in ("count", "frequency") and abs(amount) >= _MILLION:
        return f"{amount / _MILLION:,.2f} M"
    return f"{amount:,.{decimals}f}"


def _decimals(amount: float, unit: Unit) -> int:
    if unit.dimension in ("size", "count", "cycles", "instructions") or abs(amount) >= 100:
        return 0
    if unit.dimension == "number" and 0 < abs(amount) < 1:
        return min(6, 2 - math.floor(math.log10(abs(amount))))
    return 1 if abs(amount) >= 10 else 2

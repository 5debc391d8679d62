# SPDX-License-Identifier: Apache-2.0
"""Units: conversions within a dimension only, and values as a person writes them."""

from __future__ import annotations

import pytest

from hil.base.units import (
    QuantityError,
    convert,
    find_unit,
    format_difference,
    format_relative,
    format_value,
    format_values,
    parse_quantity,
    unit_of,
)


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("3 ms", "us", 3000.0),
        ("30 Mbit/s", "kbps", 30000.0),
        ("2KiB", "bytes", 2048.0),
        ("5 %", "ratio", 0.05),
    ],
)
def test_a_quantity_is_converted(text: str, unit: str, expected: float) -> None:
    """A number with its unit comes back in the unit asked for."""
    assert parse_quantity(text, unit) == pytest.approx(expected)


@pytest.mark.parametrize("mu", ["\u00b5", "\u03bc"])
def test_field_both_characters_for_micro_are_read(mu: str) -> None:
    """A German keyboard types the micro sign, a Greek one and many editors the letter; they look alike."""
    assert parse_quantity(f"5 {mu}s", "ns") == 5000.0


@pytest.mark.parametrize("text", ["3", "ms", "3 ms 4", "3 bytes", "", "NaN ms", "1e999 ms"])
def test_a_quantity_without_a_fitting_unit_is_refused(text: str) -> None:
    """No unit is guessed."""
    with pytest.raises(QuantityError):
        parse_quantity(text, "ms")


def test_the_unit_is_the_last_part_of_a_name() -> None:
    """A name without a known unit is refused with the known ones."""
    assert unit_of("latency_p95_us").name == "us"
    with pytest.raises(QuantityError, match="_us"):
        unit_of("latency_p95")
    with pytest.raises(QuantityError, match="unit of time, bytes one of size"):
        convert(1.0, find_unit("us"), find_unit("bytes"))


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (25000, "us", "25 ms"),
        (31240, "us", "31.2 ms"),
        (60, "us", "60 µs"),
        (-25_000, "us", "-25 ms"),
        (0, "us", "0 µs"),
        (5_000_000, "us", "5 s"),
        (0.0125, "ratio", "1.25 %"),
        (1536, "bytes", "1,536 B"),
        (30, "mbps", "30 Mbit/s"),
        (3.25, "value", "3.25"),
        (0.00123, "value", "0.00123"),
    ],
)
def test_a_value_is_written_in_the_unit_that_reads_best(value: float, unit: str, expected: str) -> None:
    """Three digits, and no trailing zeros."""
    assert format_value(value, find_unit(unit)) == expected


@pytest.mark.parametrize(
    ("value", "limit", "unit", "difference", "relative"),
    [
        (0.9706, 0.01, "ratio", "96.1 percentage points", "97 times the limit"),
        (0.3, 0.2, "ratio", "10 percentage points", "1.5 times the limit"),
        (1.0, 0.0, "ratio", "100 percentage points", ""),
        (0.1, 0.4, "ratio", "30 percentage points", ""),
        (36_750, 25_000, "us", "11.8 ms", "47 %"),
        (5_000_000, 25_000, "us", "4.97 s", "200 times the limit"),
        (17.1, 19, "mbps", "1.9 Mbit/s", "10 %"),
    ],
)
def test_a_difference_of_shares_is_in_percentage_points(
    value: float, limit: float, unit: str, difference: str, relative: str
) -> None:
    """A per cent of a per cent is ambiguous; what is far beyond its limit is a multiple of it."""
    assert format_difference(abs(value - limit), find_unit(unit)) == difference
    assert format_relative(value, limit, find_unit(unit)) == relative


def test_values_that_belong_together_share_unit_and_digits() -> None:
    """An interval is read beside its value."""
    assert format_values([31240, 30400, 33000], find_unit("us")) == ["31.2 ms", "30.4", "33.0"]


def test_counts_from_a_million_on_are_written_in_millions() -> None:
    """Nobody reads the last digits of a score; a number below a million keeps them."""
    count = find_unit("count")
    assert format_value(7_354_350, count) == "7.35 M"
    assert format_value(1_400_000, count) == "1.4 M"
    assert format_value(999_999, count) == "999,999"
    assert format_value(2_500_000, find_unit("ops")) == "2.5 M ops/s"


def test_a_clock_of_microseconds_has_no_nanoseconds() -> None:
    """A value is shown in ns only where it was measured in them."""
    assert format_value(0.5, find_unit("us")) == "0.5 µs"
    assert format_value(500, find_unit("ns")) == "500 ns"
    assert format_value(2190, find_unit("ns")) == "2.19 µs"

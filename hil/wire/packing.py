# SPDX-License-Identifier: Apache-2.0
"""Packing of samples: column after column, first differences, zigzag, varint.

docs/reference/console-protocol.md shows one.

A column starts from 0, so its first value is a difference too. Values are unsigned 32-bit integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

BLOCK_BYTES = 1024
VALUE_MAX = 0xFFFF_FFFF
VARINT_BYTES_MAX = 5  # a difference of two 32-bit values, zigzagged, has 33 bits


def zigzag(value: int) -> int:
    """Map …, -2, -1, 0, 1, 2, … to 3, 1, 0, 2, 4: small magnitudes become small numbers."""
    return value * 2 if value >= 0 else -value * 2 - 1


def unzigzag(value: int) -> int:
    return -(value >> 1) - 1 if value & 1 else value >> 1


def encode_varint(value: int) -> bytes:
    """Encode as LEB128: seven bits a byte, lowest first, the top bit says that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def decode_varints(packed: bytes) -> Iterator[int]:
    """Decode numbers until the bytes end.

    Raises:
        ValueError: the last number is cut, or a number is not in its shortest form or too long.
    """
    value = shift = 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte & 0x80:
            if shift >= 7 * VARINT_BYTES_MAX:
                raise ValueError("a varint is longer than five bytes")
            continue
        if byte == 0 and shift > 7:
            raise ValueError("a varint is not in its shortest form")
        yield value
        value = shift = 0
    if shift:
        raise ValueError("the last varint is cut")


def pack_columns(columns: Sequence[Sequence[int]]) -> bytes:
    """Pack columns of equal length.

    Raises:
        ValueError: a value does not fit 32 bits, or the columns differ in length.
    """
    if len({len(column) for column in columns}) > 1:
        raise ValueError("columns differ in length")
    return b"".join(encode_varint(zigzag(step)) for column in columns for step in _steps(column))


def unpack_columns(packed: bytes, *, columns: int, rows: int) -> tuple[tuple[int, ...], ...]:
    """Unpack what pack_columns packed.

    Raises:
        ValueError: the bytes do not hold exactly ``columns`` times ``rows`` 32-bit values.
    """
    steps = [unzigzag(number) for number in decode_varints(packed)]
    if len(steps) != columns * rows:
        raise ValueError(f"{len(steps)} values packed where {columns} columns of {rows} rows were announced")
    return tuple(_sum_steps(steps[start * rows : (start + 1) * rows]) for start in range(columns))


def _steps(column: Iterable[int]) -> Iterator[int]:
    previous = 0
    for value in column:
        if not 0 <= value <= VALUE_MAX:
            raise ValueError(f"{value} does not fit an unsigned 32-bit integer")
        yield value - previous
        previous = value


def _sum_steps(steps: Sequence[int]) -> tuple[int, ...]:
    values = []
    value = 0
    for step in steps:
        value += step
        if not 0 <= value <= VALUE_MAX:
            raise ValueError(f"{value} does not fit an unsigned 32-bit integer")
        values.append(value)
    return tuple(values)

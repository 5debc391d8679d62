# SPDX-License-Identifier: Apache-2.0
"""The ESP application image: header, segments, checksum, SHA-256, and the host ELF carried inside.

Source: ESP-IDF Programming Guide, "App Image Format", and ``esp_app_format.h``. The virtual board's
own addition: right after the 256-byte application description lies ``VELF``, a little-endian length,
and the ELF that the host executes. So what runs is what was flashed.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hil.base.reading import IMAGE_MOST_BYTES, read_at_most
from hil.boards.firmware.partition_table import TABLE_OFFSET

HEADER = struct.Struct("<BBBBI16s")
SEGMENT_HEADER = struct.Struct("<II")
MAGIC = 0xE9
MAX_SEGMENTS = 16
CHECKSUM_SEED = 0xEF
SHA256_BYTES = 32

APP_DESCRIPTION = struct.Struct("<II8x32s32s16s16s32s32sHHB3x72x")
APP_DESCRIPTION_MAGIC = 0xABCD5432
BOOTLOADER_DESCRIPTION = struct.Struct("<B2xBI32s24s16x")
BOOTLOADER_DESCRIPTION_MAGIC = 80

ELF_CONTAINER = struct.Struct("<4sI")
ELF_CONTAINER_MAGIC = b"VELF"
CONSOLE_CONTAINER = struct.Struct("<4sI")
CONSOLE_CONTAINER_MAGIC = b"VUAR"
_WORD = struct.Struct("<I")

Read = Callable[[int, int], bytes]


class ImageError(ValueError):
    """The image is not valid; the text is what the second-stage bootloader prints."""


class ChecksumError(ImageError):
    """The one-byte checksum over all segments is wrong."""

    def __init__(self, calculated: int, stored: int) -> None:
        super().__init__(f"Checksum failed. Calculated {calculated:#x} read {stored:#x}")
        self.calculated, self.stored = calculated, stored


@dataclass(frozen=True)
class AppSegment:
    """One segment; ``flash_offset`` is where its data begins."""

    address: int
    flash_offset: int
    data: bytes


@dataclass(frozen=True)
class AppImage:
    """A verified image. ``sha256`` is the appended digest, None where the image has none."""

    segments: tuple[AppSegment, ...]
    entry: int
    chip_id: int
    sha256: bytes | None
    length: int


@dataclass(frozen=True)
class AppDescription:
    """The part of ``esp_app_desc_t`` that the boot log prints."""

    project: str
    version: str
    idf_version: str
    elf_sha256: bytes


def xor_bytes(data: bytes) -> int:
    """Return the XOR of all bytes, folding halves so that a megabyte takes about a millisecond."""
    while len(data) > 1:
        half = (len(data) + 1) // 2
        folded = int.from_bytes(data[:half], "little") ^ int.from_bytes(data[half:], "little")
        data = folded.to_bytes(half, "little")
    return data[0] if data else 0


def read_image(read: Read, offset: int, limit: int) -> AppImage:
    """Read and verify the image at flash ``offset``, at most ``limit`` bytes long.

    Raises ImageError with the bootloader's text (``esp_image_format.c``).
    """
    if limit < HEADER.size:
        raise ImageError(f"image at {offset:#x} has {limit} bytes, fewer than its header")
    magic, count, _mode, _size_speed, entry, extended = HEADER.unpack(read(offset, HEADER.size))
    if magic != MAGIC:
        raise ImageError(f"image at {offset:#x} has invalid magic byte (nothing flashed here?)")
    if count > MAX_SEGMENTS:
        raise ImageError(f"image at {offset:#x} segment count {count} exceeds max {MAX_SEGMENTS}")
    segments, at = _read_segments(read, offset, limit, count)
    checksum_at = at | 15
    end = checksum_at + 1 + (SHA256_BYTES if extended[15] else 0)
    if end > limit:
        raise ImageError(f"Image length {end} doesn't fit in partition length {limit}")
    calculated = CHECKSUM_SEED
    for segment in segments:
        calculated ^= xor_bytes(segment.data)
    stored = read(offset + checksum_at, 1)[0]
    if stored != calculated:
        raise ChecksumError(calculated, stored)
    digest = read(offset + checksum_at + 1, SHA256_BYTES) if extended[15] else None
    if digest and hashlib.sha256(read(offset, checksum_at + 1)).digest() != digest:
        raise ImageError("Image hash failed - image is corrupt")
    return AppImage(segments, entry, int.from_bytes(extended[4:6], "little"), digest, end)


def _read_segments(read: Read, offset: int, limit: int, count: int) -> tuple[tuple[AppSegment, ...], int]:
    """Return the segments and where, counted from ``offset``, they end."""
    segments: list[AppSegment] = []
    at = HEADER.size
    for _ in range(count):
        if at + SEGMENT_HEADER.size > limit:
            raise ImageError("image offset has wrapped")
        address, length = SEGMENT_HEADER.unpack(read(offset + at, SEGMENT_HEADER.size))
        at += SEGMENT_HEADER.size
        if length % 4:
            raise ImageError(f"unaligned segment length {length:#x}")
        if at + length > limit:
            raise ImageError(f"Image length {at + length} doesn't fit in partition length {limit}")
        segments.append(AppSegment(address, offset + at, read(offset + at, length)))
        at += length
    return tuple(segments), at


def pack_app_description(
    *, project: str, version: str, idf_version: str, elf_sha256: bytes, max_efuse_revision: int
) -> bytes:
    """Write ``esp_app_desc_t``; texts are cut to 31 bytes. There is no build time: same ELF, same bytes."""
    return APP_DESCRIPTION.pack(
        APP_DESCRIPTION_MAGIC,
        0,
        _text(version),
        _text(project),
        b"",
        b"",
        _text(idf_version),
        elf_sha256,
        0,
        max_efuse_revision,
        16,  # MMU page size: 2**16 bytes
    )


def pack_bootloader_description(*, idf_version: str, console_baud: int, table_offset: int) -> bytes:
    """Write ``esp_bootloader_desc_t``, the console's baud rate, and a table's offset that is not 0x8000."""
    description = BOOTLOADER_DESCRIPTION.pack(BOOTLOADER_DESCRIPTION_MAGIC, 0, 1, _text(idf_version), b"")
    elsewhere = b"" if table_offset == TABLE_OFFSET else _WORD.pack(table_offset)
    return description + CONSOLE_CONTAINER.pack(CONSOLE_CONTAINER_MAGIC, console_baud) + elsewhere


def unpack_app_description(image: AppImage) -> AppDescription | None:
    """Return the application description at the head of the first segment, None where there is none."""
    data = image.segments[0].data if image.segments else b""
    if len(data) < APP_DESCRIPTION.size or data[:4] != APP_DESCRIPTION_MAGIC.to_bytes(4, "little"):
        return None
    fields = APP_DESCRIPTION.unpack_from(data)
    return AppDescription(
        version=_until_nul(fields[2]),
        project=_until_nul(fields[3]),
        idf_version=_until_nul(fields[6]),
        elf_sha256=fields[7],
    )


def read_app_description(path: Path) -> AppDescription | None:
    """Return what an app image on disk says of itself, None where it says nothing.

    Raises ImageError where it is no image.
    """
    content = read_at_most(path, IMAGE_MOST_BYTES)
    return unpack_app_description(
        read_image(lambda offset, size: content[offset : offset + size], 0, len(content))
    )


def unpack_bootloader_description(image: AppImage) -> tuple[str, int, int] | None:
    """Return a bootloader's ESP-IDF version, console baud rate and table offset; None where it has none."""
    data = image.segments[0].data if image.segments else b""
    if len(data) < BOOTLOADER_DESCRIPTION.size + CONSOLE_CONTAINER.size:
        return None
    idf_version = BOOTLOADER_DESCRIPTION.unpack_from(data)[3]
    magic, baud = CONSOLE_CONTAINER.unpack_from(data, BOOTLOADER_DESCRIPTION.size)
    more = data[BOOTLOADER_DESCRIPTION.size + CONSOLE_CONTAINER.size :]
    table = _WORD.unpack_from(more)[0] if len(more) >= _WORD.size else TABLE_OFFSET
    return (_until_nul(idf_version), baud, table) if magic == CONSOLE_CONTAINER_MAGIC else None


def pack_elf(elf: bytes) -> bytes:
    """Write the container that holds the host ELF, padded to a multiple of 4 bytes."""
    container = ELF_CONTAINER.pack(ELF_CONTAINER_MAGIC, len(elf)) + elf
    return container + b"\0" * (-len(container) % 4)


def unpack_elf(image: AppImage) -> bytes | None:
    """Return the host ELF that the image carries, None where it carries none (a real chip's image)."""
    data = image.segments[0].data if image.segments else b""
    at = APP_DESCRIPTION.size
    if len(data) < at + ELF_CONTAINER.size:
        return None
    magic, length = ELF_CONTAINER.unpack_from(data, at)
    start = at + ELF_CONTAINER.size
    if magic != ELF_CONTAINER_MAGIC or start + length > len(data):
        return None
    return data[start : start + length]


def _text(text: str) -> bytes:
    return text.encode()[:31]


def _until_nul(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "replace")

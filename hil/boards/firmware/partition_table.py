# SPDX-License-Identifier: Apache-2.0
"""ESP-IDF partition tables: read the CSV, write and read the binary that lies in flash, at 0x8000 by default.

Source: ESP-IDF Programming Guide, "Partition Tables", ``gen_esp32part.py`` and ``esp_flash_partitions.h``.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import os
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.reading import SETTINGS_MOST_BYTES, decode, read_at_most

TABLE_OFFSET = 0x8000
TABLE_MAX_BYTES = 0xC00
SECTOR_BYTES = 0x1000
APP_ALIGNMENT_BYTES = 0x10000

APP, DATA = 0x00, 0x01
FACTORY, OTA_FIRST, OTA_LAST = 0x00, 0x10, 0x1F
DATA_OTA = 0x00

MOST_FLASH_BYTES = 128 << 20
BOOTLOADER, TABLE = 0x02, 0x03
TYPES = {"app": APP, "data": DATA, "bootloader": BOOTLOADER, "partition_table": TABLE}
APP_SUBTYPES = {
    "factory": FACTORY,
    "test": 0x20,
    **{f"ota_{i}": OTA_FIRST + i for i in range(16)},
    **{f"tee_{i}": 0x30 + i for i in range(2)},
}
DATA_SUBTYPES = {
    "ota": DATA_OTA,
    "phy": 0x01,
    "nvs": 0x02,
    "coredump": 0x03,
    "nvs_keys": 0x04,
    "efuse": 0x05,
    "undefined": 0x06,
    "esphttpd": 0x80,
    "fat": 0x81,
    "spiffs": 0x82,
    "littlefs": 0x83,
    "tee_ota": 0x90,
}
_PRIMARY = 0x00
SUBTYPES = {
    APP: APP_SUBTYPES,
    DATA: DATA_SUBTYPES,
    BOOTLOADER: {"primary": _PRIMARY, "ota": 0x01, "recovery": 0x02},
    TABLE: {"primary": _PRIMARY, "ota": 0x01},
}
FLAGS = {"encrypted": 1, "readonly": 2}

_ENTRY = struct.Struct("<2sBBII16sI")
_ENTRY_MAGIC = b"\xaa\x50"
_MD5_MAGIC = b"\xeb\xeb" + b"\xff" * 14


@dataclass(frozen=True)
class Partition:
    """One entry of the table; ``offset`` and ``size_bytes`` are in flash."""

    name: str
    type: int
    subtype: int
    offset: int
    size_bytes: int
    flags: int = 0

    @property
    def is_ota_slot(self) -> bool:
        return self.type == APP and OTA_FIRST <= self.subtype <= OTA_LAST


class TableError(ValueError):
    """The binary table in flash is not valid; the text is what the bootloader prints."""


def read_csv(
    path: Path,
    *,
    flash_bytes: int = MOST_FLASH_BYTES,
    table_offset: int = TABLE_OFFSET,
    bootloader: int = 0x1000,
) -> tuple[Partition, ...]:
    """Read a partition CSV as ESP-IDF's gen_esp32part.py does; ``bootloader`` is the boot loader's offset.

    Raises ConfigError naming file and line for an unknown word, a misaligned or overlapping partition,
    or one beyond ``flash_bytes``.
    """
    try:
        text = decode(read_at_most(path, SETTINGS_MOST_BYTES), label=str(path))
    except OSError as error:
        raise ConfigError(
            f"Reading the partition table {path} failed: {error.strerror}.",
            next_step="Give the path of a partitions.csv.",
        ) from error
    partitions: list[Partition] = []
    next_free = table_offset + SECTOR_BYTES
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{path}:{number}"
        partition = _parse_line(where, os.path.expandvars(line), next_free, (table_offset, bootloader))
        partitions.append(partition)
        if partition.type in (BOOTLOADER, TABLE) and partition.subtype == _PRIMARY:
            continue  # before the table, and in no order
        _check_place(where, partition, next_free, partitions[:-1], flash_bytes)
        next_free = partition.offset + partition.size_bytes
    if not partitions:
        raise ConfigError(f"{path}: the partition table is empty.")
    return tuple(partitions)


def _parse_line(where: str, line: str, next_free: int, fixed: tuple[int, int]) -> Partition:
    if unknown := re.match(r"\s*\$([A-Za-z_]\w*)", line):
        raise ConfigError(f"{where}: the variable {unknown[1]} is not set.")
    words = next(csv.reader([f"{line},,,,"], quoting=csv.QUOTE_NONE))
    fields = [word.strip() for word in words]
    if any(fields[6:]) or not fields[4]:
        raise ConfigError(
            f"{where}: {line.strip()!r} has {len(fields) - 4} fields; "
            "a partition is 'name, type, subtype, offset, size[, flags]'."
        )
    name, type_text, subtype_text, offset_text, size_text = fields[:5]
    if not 0 < len(name.encode()) <= 16:
        raise ConfigError(f"{where}: the name {name!r} must have 1 to 16 bytes.")
    kind = _word(where, "type", type_text, TYPES)
    if not subtype_text and kind == APP:
        raise ConfigError(f"{where}: an app partition needs a subtype, such as factory or ota_0.")
    subtype = _word(where, "subtype", subtype_text or f"{DATA_SUBTYPES['undefined']}", SUBTYPES.get(kind, {}))
    place, size = _of_chip(kind, subtype, fixed)
    if place is None:
        free = -(-next_free // _alignment(kind)) * _alignment(kind)
        place = _size(where, "offset", offset_text) if offset_text else free
    size = size or _size(where, "size", size_text)
    flags = sum(_word(where, "flag", word, FLAGS) for word in "".join(fields[5:6]).split(":") if word)
    return Partition(name, kind, subtype, place, size if size >= 0 else -size - place, flags)


def _of_chip(kind: int, subtype: int, fixed: tuple[int, int]) -> tuple[int | None, int]:
    """Return the offset (None: the file says it) and size (0: likewise) of a boot loader or table."""
    if kind not in (BOOTLOADER, TABLE):
        return None, 0
    table, bootloader = fixed
    place = {BOOTLOADER: bootloader, TABLE: table}[kind] if subtype == _PRIMARY else None
    return place, table - bootloader if kind == BOOTLOADER else SECTOR_BYTES


def _alignment(kind: int) -> int:
    return APP_ALIGNMENT_BYTES if kind == APP else SECTOR_BYTES


def _word(where: str, what: str, text: str, words: Mapping[str, int]) -> int:
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = _number(text)
    except ValueError:
        near = difflib.get_close_matches(text, words, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(words)}."
        raise ConfigError(f"{where}: {what} {text!r} is not known{hint}") from None
    if not 0 <= value <= 0xFF:
        raise ConfigError(f"{where}: {what} {text} is not a number from 0 to 0xff.")
    return value


def _number(text: str) -> int:
    factor = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:].upper(), 1)
    return int(text[:-1] if factor > 1 else text, 0) * factor


def _size(where: str, what: str, text: str) -> int:
    try:
        return _number(text)
    except ValueError:
        raise ConfigError(f"{where}: {what} {text!r} is not a number such as 0x6000, 24K or 1M.") from None


def _check_place(
    where: str, new: Partition, next_free: int, before: Iterable[Partition], flash_bytes: int
) -> None:
    alignment = _alignment(new.type)
    if new.offset % alignment:
        raise ConfigError(
            f"{where}: offset {new.offset:#x} of {new.name!r} is not a multiple of {alignment:#x}."
        )
    if new.size_bytes <= 0 or (new.type == APP and new.size_bytes % SECTOR_BYTES):
        raise ConfigError(
            f"{where}: size {new.size_bytes:#x} of {new.name!r} is not a multiple of {SECTOR_BYTES:#x}."
        )
    for other in before:
        if other.name == new.name:
            raise ConfigError(f"{where}: there are two partitions named {new.name!r}.")
        if new.offset < other.offset + other.size_bytes and other.offset < new.offset + new.size_bytes:
            raise ConfigError(f"{where}: {new.name!r} overlaps {other.name!r}.")
    end = new.offset + new.size_bytes
    if new.offset < next_free or end > flash_bytes:
        raise ConfigError(
            f"{where}: {new.name!r} at {new.offset:#x}..{end:#x} is outside "
            f"{next_free:#x}..{flash_bytes:#x}, the free part of the flash."
        )
    _check_kind(where, new, before)


def _check_kind(where: str, new: Partition, before: Iterable[Partition]) -> None:
    """Check what ESP-IDF asks of single kinds of data."""
    if new.type != DATA:
        return
    twice = any((other.type, other.subtype) == (DATA, new.subtype) for other in before)
    if new.subtype in (DATA_OTA, DATA_SUBTYPES["tee_ota"]) and (twice or new.size_bytes != 2 * SECTOR_BYTES):
        raise ConfigError(f"{where}: otadata is one partition of 0x2000 bytes.")
    read_only = bool(new.flags & FLAGS["readonly"])
    if read_only and new.subtype in (DATA_OTA, DATA_SUBTYPES["coredump"]):
        raise ConfigError(f"{where}: {new.name!r} is written by the firmware and cannot be readonly.")
    if new.subtype == DATA_SUBTYPES["nvs"] and new.size_bytes < 3 * SECTOR_BYTES and not read_only:
        raise ConfigError(
            f"{where}: a writable NVS needs 0x3000 bytes, more than {new.name!r} has.",
            next_step="Enlarge it, or flag it readonly.",
        )


def to_binary(partitions: Iterable[Partition]) -> bytes:
    """Write the table as flash holds it: 32-byte entries, an MD5 entry, 0xFF up to 0xC00 bytes."""
    entries = b"".join(
        _ENTRY.pack(_ENTRY_MAGIC, p.type, p.subtype, p.offset, p.size_bytes, p.name.encode(), p.flags)
        for p in partitions
    )
    table = entries + _MD5_MAGIC + hashlib.md5(entries, usedforsecurity=False).digest()
    if len(table) + _ENTRY.size > TABLE_MAX_BYTES:
        raise ConfigError(
            f"The partition table has {len(table)} bytes; {TABLE_MAX_BYTES} bytes are the limit."
        )
    return table.ljust(TABLE_MAX_BYTES, b"\xff")


def from_binary(table: bytes, *, flash_bytes: int = MOST_FLASH_BYTES) -> tuple[Partition, ...]:
    """Read and verify a binary table as the second-stage bootloader does.

    Raises TableError with the bootloader's text (``flash_partitions.c``).
    """
    partitions: list[Partition] = []
    for index, at in enumerate(range(0, min(len(table), TABLE_MAX_BYTES), _ENTRY.size)):
        entry = table[at : at + _ENTRY.size]
        if entry[:2] == _MD5_MAGIC[:2]:
            if entry[16:] != hashlib.md5(table[:at], usedforsecurity=False).digest():
                raise TableError("Incorrect MD5 checksum")
            continue
        if entry[:2] == b"\xff\xff":
            return tuple(partitions)
        if len(entry) < _ENTRY.size:
            break  # cut off
        magic, kind, subtype, offset, size_bytes, label, flags = _ENTRY.unpack(entry)
        if magic != _ENTRY_MAGIC:
            raise TableError(f"partition {index} invalid magic number 0x{int.from_bytes(magic, 'little'):x}")
        if offset + size_bytes > flash_bytes:
            raise TableError(
                f"partition {index} invalid - offset {offset:#x} size {size_bytes:#x} "
                f"exceeds flash chip size {flash_bytes:#x}"
            )
        name = label.rstrip(b"\0").decode("utf-8", "replace")
        partitions.append(Partition(name, kind, subtype, offset, size_bytes, flags))
    raise TableError("partition table has no terminating entry, not valid")


def first_app(partitions: Iterable[Partition]) -> Partition | None:
    """Return where the build system flashes the app: the factory partition, else the first OTA slot."""
    apps = sorted((p for p in partitions if p.type == APP), key=lambda p: p.subtype)
    return next((p for p in apps if p.subtype == FACTORY or p.is_ota_slot), None)


def find_data(partitions: Iterable[Partition], subtype: int) -> Partition | None:
    """Return the first data partition of ``subtype``."""
    return next((p for p in partitions if p.type == DATA and p.subtype == subtype), None)

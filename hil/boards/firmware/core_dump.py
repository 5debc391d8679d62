# SPDX-License-Identifier: Apache-2.0
"""What a crash left of a program's memory: ESP-IDF's core dump, decoded with the ELF file of its build.

A chip prints it in base64, or keeps it in a partition of its own. It begins with two words: the length of
all, and the version of its format with the chip's number (ESP-IDF v5.5, ``esp_core_dump_types.h``).
esp-coredump checks it, and has gdb tell of each task. The dump itself is kept, whatever can be decoded of it:
it is memory, and what the program held there, passwords too, is readable.
"""

from __future__ import annotations

import base64
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hil.base.process import run_group
from hil.boards.firmware.build_folder import app_image, build_target, option
from hil.boards.firmware.partition_table import DATA, DATA_SUBTYPES, Partition
from hil.boards.firmware.symbols import find_gdb, frames_in, innermost, machine_of
from hil.session.console import DUMP_BEGINS, DUMP_ENDS, is_dump_line
from hil.session.trouble import Decoded

TO_FLASH = "ESP_COREDUMP_ENABLE_TO_FLASH"
SUBTYPE = DATA_SUBTYPES["coredump"]
DEADLINE_S = 180.0
GDB_ANSWER_S = 10  # a busy host may take longer than esp-coredump's 3 s; each complaint of gdb costs as much
_HEAD = struct.Struct("<II")
_BLANK = 0xFFFFFFFF
_STACK = "CURRENT THREAD STACK"
# Nothing that a build brings along is run; an argument's value may be a secret; a chip's core is not Linux's.
_SETTINGS = """\
set auto-load no
set debuginfod enabled off
set width 0
set osabi none
set print frame-arguments none
"""


def keeps_core_dumps(build_dir: Path) -> bool:
    """Return whether a build's program puts a core dump into flash. Raises ConfigError."""
    return option(build_dir, TO_FLASH) is True


def partition_in(table: Sequence[Partition]) -> Partition | None:
    """Return where a partition table has core dumps, None where it has none."""
    return next((one for one in table if (one.type, one.subtype) == (DATA, SUBTYPE)), None)


def length_of(dump: bytes) -> int:
    """Return how many bytes the core dump has that begins so; 0 where none does."""
    if len(dump) < _HEAD.size:
        return 0
    length, version = _HEAD.unpack_from(dump)
    return 0 if length == _BLANK or version & 0xFF00 > 0x0200 else int(length)


def take_core_dump(lines: Sequence[str]) -> tuple[list[str], bytes | None]:
    """Return the lines of an incident without the core dump that is among them, and the dump or None."""
    begin = next((number for number, line in enumerate(lines) if DUMP_BEGINS in line), None)
    if begin is None:
        return list(lines), None
    end = begin + 1
    while end < len(lines) and is_dump_line(lines[end]):
        end += 1
    after = end + (end < len(lines) and DUMP_ENDS in lines[end])
    return [*lines[:begin], *lines[after:]], b"".join(map(_bytes_of, lines[begin + 1 : end]))


def _bytes_of(line: str) -> bytes:
    """Return what a line of base64 holds: nothing where it came damaged, which the checksum will tell."""
    try:
        return base64.b64decode(line.strip(), validate=True)
    except ValueError:
        return b""


def together(panic: Decoded | None, dump: Decoded) -> Decoded:
    """Return what a panic's print and its core dump tell: where it was by the one that knows more callers."""
    if panic is None:
        return dump
    where = max(panic.where, dump.where, key=lambda text: (bool(text), text.count(" < ")))
    return Decoded(where, f"{panic.next_step} {dump.next_step[:1].upper()}{dump.next_step[1:]}")


def decode_core_dump(dump: bytes, build_dir: Path, console_log: Path) -> Decoded:
    """Keep a core dump beside the console log and decode it; return where the crashed task was.

    Whatever is missing is said in the way out; nothing is raised, as that would hide the crash.
    """
    raw = _unused(console_log)
    try:
        raw.write_bytes(dump)
        if len(dump) < (length := length_of(dump)) or not length:
            whole = f"{len(dump)} of {length} bytes came" if length else f"{len(dump)} bytes that are none"
            return Decoded("", f"its core dump, kept in {raw}, is damaged: {whole}.")
        return _decode(raw, app_image(build_dir).with_suffix(".elf").resolve(), build_target(build_dir))
    except Exception as error:  # whatever is wrong with a dump or an ELF file must not hide the crash
        return Decoded("", f"its core dump, kept in {raw}, could not be decoded: {error!r}.")


def _unused(console_log: Path) -> Path:
    number = 1
    while (path := console_log.with_suffix(f".coredump-{number}.bin")).exists():
        number += 1
    return path


def _decode(raw: Path, elf: Path, chip: str) -> Decoded:
    if not elf.is_file():
        return Decoded("", f"its core dump is kept in {raw}; {elf} is missing, with which it is decoded.")
    gdb, way = find_gdb(machine_of(elf), chip)
    if not gdb:
        return Decoded("", f"its core dump is kept in {raw}; to have it decoded install gdb: {way}.")
    said, complaint = _ask(raw, elf, gdb)
    frames = frames_in(said.partition(_STACK)[2].partition("\n====")[0])
    if not frames:
        return Decoded("", f"its core dump, kept in {raw}, could not be decoded: {complaint}.")
    text = raw.with_suffix(".txt")
    shown = "\n".join(f"#{number:<2} {frame}" for number, frame in enumerate(frames))
    text.write_text(f"{shown}\n\n{said}", encoding="utf-8")
    note = f" Not all of it could be decoded: {complaint}." if complaint else ""
    return Decoded(innermost(frames), f"read what its core dump tells of each task in {text}.{note}")


def _ask(raw: Path, elf: Path, gdb: str) -> tuple[str, str]:
    """Return what esp-coredump prints of a dump, and its complaint, "" where it came to the end."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / ".gdbinit"  # gdb reads it twice: before the program as HOME's, and after
        settings.write_text(_SETTINGS, encoding="ascii")
        argv = [sys.executable, "-m", "esp_coredump", "--gdb-timeout-sec", str(GDB_ANSWER_S), "info_corefile"]
        argv += ["--gdb", gdb, "--extra-gdbinit-file", str(settings), "--core-format", "raw"]
        argv += ["--core", str(raw.resolve()), str(elf)]
        environment = {**os.environ, "HOME": folder}
        try:
            done = run_group(argv, DEADLINE_S, cwd=folder, env=environment, encoding="utf-8")
        except subprocess.TimeoutExpired as error:
            return str(error.output or b"", "utf-8", "replace"), f"it did not end within {DEADLINE_S:g} s"
    if done.returncode == 0:
        return done.stdout, ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"]
    return done.stdout, next((line for line in lines if line.startswith("ERROR:")), lines[-1]).rstrip(".")

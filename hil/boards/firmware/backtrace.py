# SPDX-License-Identifier: Apache-2.0
"""Where a chip panicked, by the ELF file of its build.

An Xtensa chip prints its backtrace. A RISC-V chip prints registers and a part of its stack, of which gdb
makes a backtrace; where there is no gdb, program counter and return address are known without. What a panic
printed of its memory is decoded with it.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hil.boards.firmware.build_folder import app_image
from hil.boards.firmware.core_dump import decode_core_dump, take_core_dump, together
from hil.boards.firmware.symbols import Frame, find_gdb, frames_in, innermost, locate
from hil.session.trouble import Decoded

GDB_DEADLINE_S = 60.0

_ABORT = re.compile(r"abort\(\) was called at PC (0x[0-9a-f]{8})")
_REGISTERS = re.compile(r"^MEPC\s*:\s*(0x[0-9a-f]{8})\s+RA\s*:\s*(0x[0-9a-f]{8})")
_BACKTRACE = re.compile(r"Backtrace:((?:\s*0x[0-9a-f]{8}:0x[0-9a-f]{8})+)")
_ELF_SHA256 = re.compile(r"ELF file SHA256:\s*([0-9a-f]{8,64})")

_UNPROVEN = "Its image carries no hash of its ELF, so it is taken to be of this build. "


def decode_panic(lines: Sequence[str], build_dir: Path, console_log: Path) -> Decoded | None:
    """Return where a panic of the build in ``build_dir`` happened; None where it printed no address.

    The backtrace and what the board printed go into a file of their own beside the console log, a core dump
    into two. Whatever is missing is said in the way out; nothing is raised, as that would hide the panic.
    """
    lines, dump = take_core_dump(lines)
    panic = _decode(lines, build_dir, console_log)
    return panic if dump is None else together(panic, decode_core_dump(dump, build_dir, console_log))


def _decode(lines: Sequence[str], build_dir: Path, console_log: Path) -> Decoded | None:
    addresses = _addresses(lines)
    if not addresses:
        return None
    try:
        elf = app_image(build_dir).with_suffix(".elf").resolve()
        if missing := _other_build(elf, lines):
            return Decoded("", missing)
        unproven = _UNPROVEN if _tells_nothing(_elf_said(lines)) else ""
        kept = _keep(console_log, lines)
        riscv = any(map(_REGISTERS.match, lines))
        frames, note = _gdb_frames(elf, kept) if riscv else ([], "")
        calls = bool(frames) or not riscv
        frames = frames or locate(elf, addresses)
        if not frames:
            return Decoded("", f"none of its addresses is in a function of {elf}. {note}".strip())
        _complete(kept, frames, calls=calls)
    except Exception as error:  # whatever is wrong with an ELF file must not hide the panic
        return Decoded("", f"its addresses could not be decoded with the ELF in {build_dir}: {error!r}.")
    way = f"read what was decoded in {kept}. {unproven}{note}".strip()
    return Decoded(innermost(frames, calls=calls), way)


def _addresses(lines: Sequence[str]) -> list[int]:
    """Return the addresses of code of the first core that a panic shows, the innermost first."""
    found = [match[1] for line in lines if (match := _ABORT.search(line))][:1]
    for line in lines:
        if match := _BACKTRACE.search(line):
            pairs = [int(pair.partition(":")[0], 16) for pair in match[1].split()]
            return [address for address in pairs if address]
    registers = next((match.groups() for line in lines if (match := _REGISTERS.match(line))), ())
    # a return address is after the call, which may be the last of its function
    after = [int(address, 16) - number for number, address in enumerate(registers)]
    return [address for address in [*(int(text, 16) for text in found), *after] if address > 0]


def _other_build(elf: Path, lines: Sequence[str]) -> str:
    """Return why ``elf`` is not the one to decode with, "" where it is."""
    if not elf.is_file():
        return f"{elf} is missing: decode the addresses with the ELF of that build. {_by_hand(elf)}"
    said = _elf_said(lines)
    with elf.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest.startswith(said) or _tells_nothing(said):
        return ""
    return f"{elf} ({digest[:9]}) is of another build than the one that panicked ({said}). {_by_hand(elf)}"


def _elf_said(lines: Sequence[str]) -> str:
    """Return the ELF hash that a panic prints, "" if it prints none."""
    return next((match[1] for line in lines if (match := _ELF_SHA256.search(line))), "")


def _tells_nothing(said: str) -> bool:
    """Return whether the hash is nothing or zeros: esptool was not asked to put it into the image."""
    return not said.strip("0")


def _by_hand(elf: Path) -> str:
    return f"With it: riscv32-esp-elf-addr2line (xtensa-…) -fiaCpe {elf.name} ADDRESS, from ESP-IDF's tools."


def _keep(console_log: Path, lines: Sequence[str]) -> Path:
    """Write a panic's lines into a file of their own, which gdb's server reads too; return it."""
    number = 1
    while (path := console_log.with_suffix(f".panic-{number}.txt")).exists():
        number += 1
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
    return path


def _complete(path: Path, frames: Sequence[Frame], *, calls: bool) -> None:
    """Put frames on top of a panic's file: numbered where each was called by the next."""
    text = "\n".join(f"#{number:<2} {frame}" if calls else str(frame) for number, frame in enumerate(frames))
    path.write_text(f"{text}\n\n{path.read_text(encoding='utf-8')}", encoding="utf-8")


def _gdb_frames(elf: Path, panic: Path) -> tuple[list[Frame], str]:
    """Return the frames that gdb makes of a RISC-V panic, the innermost first; or none, and why."""
    gdb, way = find_gdb("EM_RISCV")
    if not gdb:
        return [], f"For the whole backtrace install gdb on this host: {way}."
    server = shlex.join([sys.executable, "-m", "esp_idf_panic_decoder", str(panic.resolve())])
    settings = ("set auto-load no", "set debuginfod enabled off")  # nothing that a build brings along is run
    # an argument's value may be a secret
    commands = ("set width 0", "set print frame-arguments none", f"target remote | {server}", "bt 40")
    argv = [gdb, "--batch", "-n", *_each("-iex", settings), str(elf), *_each("-ex", commands)]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=GDB_DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"There is no backtrace: {error}."
    frames = frames_in(done.stdout.decode(errors="replace"))
    complaint = (done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
    return frames, "" if frames else f"{Path(gdb).name} made no backtrace: {complaint}"


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]

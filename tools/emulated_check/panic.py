# SPDX-License-Identifier: Apache-2.0
"""A panic of the firmware: the agent has no command for it, so an instruction of the image is made illegal.

Checksum and SHA-256, which the boot loader checks, are made right again. All else is as built.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from elftools.elf.elffile import ELFFile

from hil.base.errors import ConfigError, ExitCode
from hil.boards.firmware.app_image import SHA256_BYTES, read_image, xor_bytes
from hil.boards.firmware.build_folder import FLASHER_ARGS, app_image, flash_files
from tools.emulated_check.bench import BOARDS, Bench

FUNCTION = "mqtt_msg_publish"  # esp-mqtt's: the first message of the case comes through it
ILLEGAL = bytes(4)  # two of RISC-V's c.unimp
WORDS = "Illegal instruction"

_QUOTED = re.compile(r"Guru Meditation Error.*?\)")


def provoke(bench: Bench) -> tuple[str, dict[str, str]]:
    """Measure an image whose publish path panics: the firmware is at fault, with the chip's own words."""
    folder = damaged(bench.inputs.firmware.build_dir, bench.lab.folder / "panic")
    done = bench.run("--suite", "quick", "--board", BOARDS[0], "--firmware", str(folder))
    faults = done.of_type("fault")
    wrong = {}
    if done.status != ExitCode.FIRMWARE:
        wrong["exit code"] = f"{done.status}, not {int(ExitCode.FIRMWARE)}; said last: {done.last_line}"
    sentence = str(faults[0]["sentence"]) if faults else "no fault"
    if WORDS not in sentence:
        wrong["sentence"] = f"{WORDS!r} is not in: {sentence}"
    found = _QUOTED.search(sentence)
    where = f"an illegal instruction in {FUNCTION}() of the same image"
    owner = faults[0]["owner"] if faults else "nobody"
    return f"{where}: exit {done.status}, owner {owner}: “{found[0] if found else sentence}”", wrong


def damaged(build_dir: Path, folder: Path) -> Path:
    """Copy a build to ``folder``, its publish path damaged; return it.

    Raises ConfigError where the build has no program, or no such function in it.
    """
    folder.mkdir(parents=True)
    image = app_image(build_dir)
    for name in {FLASHER_ARGS, *(name for _, name in flash_files(build_dir))}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(build_dir / name, folder / name)
    content = replaced(image.read_bytes(), address_of(build_dir, FUNCTION), ILLEGAL)
    (folder / image.relative_to(build_dir)).write_bytes(content)
    return folder


def address_of(build_dir: Path, function: str) -> int:
    """Return where a function of a build's program begins. Raises ConfigError."""
    for path in sorted(build_dir.glob("*.elf")):
        with path.open("rb") as file:
            table = ELFFile(file).get_section_by_name(".symtab")
            for symbol in (table.get_symbol_by_name(function) or []) if table else []:
                return int(symbol["st_value"])
    raise ConfigError(f"{build_dir} has no program with {function}() in it.", next_step="name another build.")


def replaced(image: bytes, address: int, code: bytes) -> bytes:
    """Return an app image with other code at an address, its checksum and SHA-256 made right.

    Raises ConfigError where the image has nothing there, ImageError where it is none.
    """
    whole = read_image(lambda at, length: image[at : at + length], 0, len(image))
    for segment in whole.segments:
        at = address - segment.address
        if 0 <= at <= len(segment.data) - len(code):
            start = segment.flash_offset + at
            body = bytearray(image[: whole.length - SHA256_BYTES])
            body[-1] ^= xor_bytes(bytes(body[start : start + len(code)])) ^ xor_bytes(code)
            body[start : start + len(code)] = code
            return bytes(body) + hashlib.sha256(body).digest()
    raise ConfigError(f"the image has nothing at {address:#x}.", next_step="name the build of this program.")

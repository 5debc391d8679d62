# SPDX-License-Identifier: Apache-2.0
"""A RISC-V build whose functions lie where those of a recorded core dump's program lay, that dump, and a gdb.

The dump is what an ESP32-C3's image printed in QEMU: a task wrote to address 4.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import sys
import zlib
from pathlib import Path

from hil.boards.firmware.core_dump import TO_FLASH, take_core_dump
from hil.boards.firmware.partition_table import TABLE_OFFSET, Partition, to_binary
from hil.session.console import DUMP_BEGINS

RECORDED = Path(__file__).parent / "panics" / "esp32c3-core-dump.txt"
SHOWN = "in read_sensor < take_reading < sensor < vPortTaskWrapper"
PARTITION = Partition("coredump", 1, 3, 0x3F0000, 0x10000)
_RECORDED_SHA = b"7efb958e1"
# name: start, size, and the instructions by which gdb finds its caller
_FUNCTIONS = {
    "read_sensor": (0x42006EBE, 6, "9d471cc18280"),
    "take_reading": (0x42006EC4, 44, "411106c622c4"),
    "sensor": (0x42006EF0, 28, "411106c622c4"),
    "vPortTaskWrapper": (0x40383BE0, 40, "411106c622c4"),
}
_SECTIONS = {".text": (0x42006EBE, 0x4E), ".iram": (0x40383BE0, 40)}
_NOP = bytes.fromhex("0100")
# As gdb/MI does, for the commands of esp-coredump; of a core without the program counter it knows nothing.
_GDB = """\
#!{python}
import pathlib, sys
(core,) = [word.partition("=")[2] for word in sys.argv if word.startswith("--core=")]
known = (0x42006ec0).to_bytes(4, "little") in pathlib.Path(core).read_bytes()
settings = pathlib.Path.home().joinpath(".gdbinit").read_text()
if "frame-arguments none" not in settings or pathlib.Path(sys.argv[-1]).read_bytes()[18] != 243:
    sys.exit("these are no settings of ours, or this is no program for RISC-V")
frames = [
    "#0  0x42006ec0 in read_sensor ()", "#1  0x42006eee in take_reading ()", "#2  0x42006efe in sensor ()",
    "#3  0x40383bec in vPortTaskWrapper ()",
]
name = "process" if "osabi none" in settings else "LWP"  # as gdb-multiarch, which takes it for Linux's
thread = 'id="1",target-id="' + name + ' 1070141340",state="stopped"'
said = {{
    "bt": frames if known else ["No stack."], "info registers": ["pc  0x42006ec0"], "info threads": ["* 1"],
}}
for line in sys.stdin:
    line = line.strip()
    for command, lines in said.items():
        if line == '-interpreter-exec console "' + command + '"':
            print("".join('~"' + text + '\\\\n"\\n' for text in lines), end="")
    if line == "-thread-info":
        print('^done,threads=[{{' + thread + '}}],current-thread-id="1"')
    elif line.startswith("-data-evaluate-expression") and "pcTaskName" in line:
        print('^done,value="0x3fc90fd0 \\\\"sensor\\\\""')
    elif line.startswith("-data-evaluate-expression"):
        print('^done,value="0x3fc90f90"')
    else:
        print("^done")
    print("(gdb) ", flush=True)
"""


def build(folder: Path) -> Path:
    """Make ``folder`` a build: flasher_args.json, image, ELF file, a table with a partition of dumps."""
    (folder / "config").mkdir(parents=True)
    (folder / "app.elf").write_bytes(_elf())
    (folder / "app.bin").write_bytes(b"image")
    (folder / "table.bin").write_bytes(to_binary([PARTITION]))
    (folder / "config" / "sdkconfig.json").write_text(json.dumps({TO_FLASH: True}))
    described = {"app": {"file": "app.bin"}, "flash_files": {hex(TABLE_OFFSET): "table.bin"}}
    (folder / "flasher_args.json").write_text(json.dumps(described))
    return folder


def _elf() -> bytes:
    """Return an ELF32 file for RISC-V: two sections of code, and the functions in it."""
    code = {name: bytearray(_NOP * (size // 2)) for name, (_, size) in _SECTIONS.items()}
    strings, symbols = b"\0", bytes(16)
    for name, (start, size, instructions) in _FUNCTIONS.items():
        number, section = next(
            (n, one) for n, (one, (at, room)) in enumerate(_SECTIONS.items(), 1) if at <= start < at + room
        )
        at = start - _SECTIONS[section][0]
        code[section][at : at + len(instructions) // 2] = bytes.fromhex(instructions)
        symbols += struct.pack("<IIIBBH", len(strings), start, size, 0x12, 0, number)
        strings += name.encode() + b"\0"
    names = b"\0" + b"\0".join(name.encode() for name in (*_SECTIONS, ".symtab", ".strtab")) + b"\0"
    parts = [  # name, type, flags, address, content, link, info, size of an entry
        *((name, 1, 6, _SECTIONS[name][0], bytes(code[name]), 0, 0, 0) for name in _SECTIONS),
        (".symtab", 2, 0, 0, symbols, 4, 1, 16),
        (".strtab", 3, 0, 0, strings, 0, 0, 0),
        (".strtab", 3, 0, 0, names, 0, 0, 0),
    ]
    at, content, headers = 52, b"", bytes(40)
    for name, kind, flags, address, data, link, info, entry in parts:
        place = (at + len(content), len(data), link, info, 4 if kind == 2 else 2, entry)
        headers += struct.pack("<10I", names.index(name.encode()), kind, flags, address, *place)
        content += data + bytes(-len(data) % 4)
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    numbers = (2, 243, 1, 0x42006EBE, 0, at + len(content), 1, 52, 0, 0, 40, len(parts) + 1, len(parts))
    return ident + struct.pack("<HHIIIIIHHHHHH", *numbers) + content + headers


def dump_of(folder: Path) -> bytes:
    """Return the recorded dump, as the build in ``folder`` would have left it."""
    _, dump = take_core_dump(RECORDED.read_text().splitlines())
    assert dump
    return _adopted(dump, folder)


def _adopted(dump: bytes, folder: Path) -> bytes:
    digest = hashlib.sha256((folder / "app.elf").read_bytes()).hexdigest()[: len(_RECORDED_SHA)]
    assert dump.count(_RECORDED_SHA) == 1
    body = dump.replace(_RECORDED_SHA, digest.encode())[:-4]
    return body + struct.pack("<I", zlib.crc32(body))


def printed(folder: Path) -> list[str]:
    """Return the lines of the recorded panic with its dump, as the build in ``folder`` would print them."""
    digest = hashlib.sha256((folder / "app.elf").read_bytes()).hexdigest()
    text = re.sub(r"(ELF file SHA256: )\w+", rf"\g<1>{digest[:9]}", RECORDED.read_text())
    lines = text.splitlines()
    begin = next(number for number, line in enumerate(lines) if DUMP_BEGINS in line) + 1
    rest, dump = take_core_dump(lines)
    assert dump
    count = len(lines) - len(rest) - 2
    new, at = [], _adopted(dump, folder)
    for line in lines[begin : begin + count]:
        size = len(base64.b64decode(line))
        new.append(base64.b64encode(at[:size]).decode())
        at = at[size:]
    return [*lines[:begin], *new, *lines[begin + count :]]


def put_gdb(folder: Path) -> None:
    """Put a gdb into ``folder`` that knows the recorded dump."""
    program = folder / "riscv32-esp-elf-gdb"
    program.write_text(_GDB.format(python=sys.executable))
    program.chmod(0o755)

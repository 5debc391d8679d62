# SPDX-License-Identifier: Apache-2.0
"""Which function and line of a build an address is in, by the ELF file's symbols and DWARF; needs no tool.

What gdb says of frames, and which gdb knows a chip.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from elftools.dwarf.ranges import BaseAddressEntry
from elftools.elf.elffile import ELFFile

SHOWN_FRAMES = 4
GDBS = {
    "EM_RISCV": ("riscv32-esp-elf-gdb", "gdb-multiarch"),
    "EM_XTENSA": ("xtensa-{chip}-elf-gdb", "xtensa-esp-elf-gdb"),
}
_GET = {
    "EM_RISCV": "python $IDF_PATH/tools/idf_tools.py install riscv32-esp-elf-gdb, or the system's "
    "gdb-multiarch",
    "EM_XTENSA": "python $IDF_PATH/tools/idf_tools.py install xtensa-esp-elf-gdb",
}
_GDB_FRAME = re.compile(r"^#\d+\s+(?:0x([0-9a-f]+) in )?([^\s(]+) \(.*?\)(?: at (.+):(\d+))?$")
# How ESP-IDF gets from what went wrong to the panic handler: true of every panic, so it tells nothing.
_HANDLER = re.compile(
    r"^(_*abort|__assert(_func)?|panic_\w+|esp_system_abort|_?esp_error_check_failed\w*|__stack_chk_fail|"
    r"vApplicationStackOverflowHook|task_wdt_\w+|esp_panic_handler\w*|xt_unhandled_exception)$"
)


@dataclass(frozen=True)
class Frame:
    """A place in a program; ``file`` is "" and ``line`` 0 where the build keeps no lines of it.

    ``address`` is 0 where it is not known.
    """

    address: int
    function: str
    file: str = ""
    line: int = 0

    @property
    def short(self) -> str:
        place = f" ({PurePosixPath(self.file).name}:{self.line})" if self.file else ""
        return f"{self.function}{place}"

    def __str__(self) -> str:
        place = f" at {self.file}:{self.line}" if self.file else ""
        at = f"0x{self.address:08x} in " if self.address else ""
        return f"{at}{self.function}{place}"


def frames_in(said: str) -> list[Frame]:
    """Return the frames of gdb's ``bt``, the innermost first, without those of which it knows no function."""
    found = (match for match in map(_GDB_FRAME.match, said.splitlines()) if match and match[2] != "??")
    return [Frame(int(at[1] or "0", 16), at[2], at[3] or "", int(at[4] or "0")) for at in found]


def innermost(frames: Sequence[Frame], *, calls: bool = True) -> str:
    """Describe in a sentence where a program was, without the panic handler's own functions.

    ``calls``: each was called by the next; else the next is a return address.
    """
    telling = [frame for frame in frames if not _HANDLER.match(frame.function)] or frames
    between = " < " if calls else ", return address in "
    return f"in {between.join(frame.short for frame in telling[:SHOWN_FRAMES])}" if telling else ""


def find_gdb(machine: str, chip: str = "") -> tuple[str, str]:
    """Return the path of the gdb for a ``machine`` (pyelftools' name); or "", and how to get one."""
    names = [name.format(chip=chip) for name in GDBS.get(machine, ())]
    path = next(filter(None, map(shutil.which, names)), "")
    return path or "", "" if path else _GET.get(machine, "there is none for it")


def machine_of(elf: Path) -> str:
    """Return pyelftools' name of a program's processor. Raises OSError, and what pyelftools raises."""
    with elf.open("rb") as file:
        content: Any = ELFFile(file)
        return str(content["e_machine"])


def locate(elf: Path, addresses: list[int]) -> list[Frame]:
    """Return the places of those ``addresses`` that are in a function of the program, in their order.

    A function that was inlined goes by the name of the one it is in. Raises OSError, and what pyelftools
    raises.
    """
    with elf.open("rb") as file:
        content: Any = ELFFile(file)
        functions = _functions(content, addresses)
        lines = _lines(content.get_dwarf_info(), set(functions)) if content.has_dwarf_info() else {}
    return [Frame(at, functions[at], *lines.get(at, ())) for at in addresses if at in functions]


def _functions(elf: Any, addresses: list[int]) -> dict[int, str]:
    table = elf.get_section_by_name(".symtab")
    found: dict[int, str] = {}
    for symbol in table.iter_symbols() if table else ():
        start, size = symbol["st_value"], symbol["st_size"]
        if symbol["st_info"]["type"] == "STT_FUNC":
            found.update({at: symbol.name for at in addresses if start <= at < start + size})
    return found


def _lines(dwarf: Any, addresses: set[int]) -> dict[int, tuple[str, int]]:
    # .debug_aranges would be faster, but ends early at the first function that the linker dropped
    found: dict[int, tuple[str, int]] = {}
    for unit in dwarf.iter_CUs():
        ranges = list(_ranges(dwarf, unit))
        inside = {at for at in addresses - set(found) if any(low <= at < high for low, high in ranges)}
        if inside:
            found.update(_lines_of(dwarf, unit, inside))
        if len(found) == len(addresses):
            break
    return found


def _ranges(dwarf: Any, unit: Any) -> Iterator[tuple[int, int]]:
    attributes = unit.get_top_DIE().attributes
    base = attributes["DW_AT_low_pc"].value if "DW_AT_low_pc" in attributes else 0
    if "DW_AT_high_pc" in attributes:
        high = attributes["DW_AT_high_pc"]
        yield base, high.value if high.form == "DW_FORM_addr" else base + high.value
    elif "DW_AT_ranges" in attributes:
        for entry in dwarf.range_lists().get_range_list_at_offset(attributes["DW_AT_ranges"].value, unit):
            if isinstance(entry, BaseAddressEntry):
                base = entry.base_address
            else:
                origin = 0 if entry.is_absolute else base
                yield origin + entry.begin_offset, origin + entry.end_offset


def _lines_of(dwarf: Any, unit: Any, addresses: set[int]) -> dict[int, tuple[str, int]]:
    program = dwarf.line_program_for_CU(unit)
    found: dict[int, tuple[str, int]] = {}
    before: Any = None
    for entry in program.get_entries() if program else ():
        state = entry.state
        if state is None:
            continue
        if before is not None:
            here = (at for at in addresses if before.address <= at < state.address)
            found.update({at: (_file(program, before.file), before.line) for at in here})
        before = None if state.end_sequence else state
    return found


def _file(program: Any, number: int) -> str:
    """Return the path of a line program's file; DWARF 5 counts files and folders from 0, DWARF 4 from 1."""
    header = program.header
    first = 0 if header["version"] >= 5 else 1
    file = header["file_entry"][number - first]
    folder = file.dir_index - first
    folders = header["include_directory"]
    parts = [folders[folder] if 0 <= folder < len(folders) else b"", file.name]
    return str(PurePosixPath(*(part.decode(errors="replace") for part in parts)))

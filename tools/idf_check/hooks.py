# SPDX-License-Identifier: Apache-2.0
"""FreeRTOS's trace macros: the kernel's own sources, with components/trace's header before them.

Compiling alone would not show that the macros are those of the header, so the calls that they expand to are
counted after the preprocessor, with the header and, as the control, without it. Where objects are made, what
the scheduler calls has to lie in internal RAM.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tools.idf_check import chips
from tools.idf_check.idf import Command
from tools.idf_check.process import run

COMPONENT = "trace"
KERNEL = "components/freertos/FreeRTOS-Kernel"
HEADER = "hooks.h"
CALLED = "hooks.c"
IN_RAM = ".iram1"
# Kernel sources and how many calls of the trace each has at least.
SOURCES = {"tasks.c": 20, "queue.c": 14, "event_groups.c": 6}

_CALL = re.compile(r"\btrace_hook_\w+\(")
_DECLARATION = re.compile(r"\bvoid trace_hook_\w+\(")
_FUNCTION = re.compile(r"^[0-9a-f]+ g +F (\S+)\s+[0-9a-f]+ (\w+)$", re.MULTILINE)


def wrong_kernel(commands: Sequence[Command], folder: Path, *, objects: bool) -> dict[str, str]:
    """Compile the kernel's sources as the build does; return what is wrong with each."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {command.source.name: command for command in commands}
    wrong = {name: "the build does not compile it" for name in SOURCES if name not in found}
    for name in found.keys() & SOURCES.keys():
        output = folder / f"{name}.o"
        said = chips.compile_source(found[name], found[name].source, output, objects=objects)
        if said := said or _few_calls(found[name]):
            wrong[name] = said
    return wrong


def outside_ram(commands: Sequence[Command], folder: Path) -> dict[str, str]:
    """Compile components/trace; return the functions that the scheduler calls and that lie in flash.

    Those are all global functions of hooks.c, and what they call of the other files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sections: dict[str, str] = {}
    called: set[str] = set()
    for command in sorted(commands, key=lambda command: command.source.name != CALLED):
        output = folder / f"{command.source.name}.o"
        if said := chips.compile_source(command, command.source, output, objects=True):
            return {command.source.name: said}
        functions = _functions(command, output)
        if command.source.name == CALLED:
            called = {*functions, *run((_tool(command, "nm"), "-u", str(output))).checked().split()}
        sections |= {name: at for name, at in functions.items() if name in called}
    if not sections:
        return {CALLED: "defines no function"}
    return {name: f"lies in {at}" for name, at in sections.items() if not at.startswith(IN_RAM)}


def _few_calls(command: Command) -> str:
    header = next((n for n, word in enumerate(command.argv) if word.endswith(f"/{HEADER}")), 0)
    if not header or command.argv[header - 1] != "-include":
        return f"the build does not put {HEADER} before it"
    least = SOURCES[command.source.name]
    with_header = _calls(command, command.argv)
    if with_header < least:
        return f"calls the trace {with_header} times, not {least} or more"
    without = _calls(command, command.argv[: header - 1] + command.argv[header + 1 :])
    return f"calls the trace {without} times without {HEADER}, too" if without else ""


def _calls(command: Command, argv: Sequence[str]) -> int:
    output = list(argv).index("-o")
    words = [word for word in [*argv[:output], *argv[output + 2 :]] if word != "-c"]
    text = run([*words, "-E"], cwd=command.folder).checked()
    return len(_CALL.findall(text)) - len(_DECLARATION.findall(text))


def _functions(command: Command, path: Path) -> dict[str, str]:
    table = run((_tool(command, "objdump"), "-t", str(path))).checked()
    return {name: section for section, name in _FUNCTION.findall(table)}


def _tool(command: Command, name: str) -> str:
    return command.argv[0].removesuffix("gcc") + name

# SPDX-License-Identifier: Apache-2.0
"""Each C file of the firmware, compiled as ESP-IDF would for a chip; a wrong call has to be refused."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.idf_check import stand_in
from tools.idf_check.idf import Command
from tools.idf_check.process import run

JOBS = 2
CONTROLS_BESIDE = "connect.c"  # its flags reach FreeRTOS and esp-mqtt alike

_INCLUDES = '#include "freertos/FreeRTOS.h"\n#include "freertos/task.h"\n#include "mqtt_client.h"\n'


@dataclass(frozen=True)
class Chip:
    """A chip and what compiles for it. Only objects for RISC-V are made without Espressif's own compiler."""

    name: str
    prefix: str
    is_riscv: bool


CHIPS = (
    Chip("esp32c3", "riscv32-esp-elf", True),
    Chip("esp32", "xtensa-esp32-elf", False),
    Chip("esp32s3", "xtensa-esp32s3-elf", False),
)


@dataclass(frozen=True)
class Compiler:
    """``tools`` holds what stands in for Espressif's compiler; None where that is on PATH itself."""

    name: str
    tools: Path | None
    makes_objects: bool


@dataclass(frozen=True)
class Control:
    """A piece of C. ``refused`` is what a compiler says of it; an empty text: it is right."""

    name: str
    body: str
    refused: str


CONTROLS = (
    Control("a right call", "vTaskDelay(1);", ""),
    Control("an undeclared function", "vTaskDelayForever();", "implicit declaration of function"),
    Control("a wrong number of arguments", "vTaskDelay(1, 2);", "too many arguments to function"),
    Control(
        "a missing member",
        "esp_mqtt_client_config_t config = {0}; config.brooker.address.port = 1;",
        "has no member named",
    ),
)


def choose(chip: Chip, folder: Path) -> Compiler | None:
    """Return Espressif's compiler where it is on PATH, else Debian's in its place, else None."""
    own = f"{chip.prefix}-gcc"
    if shutil.which(own):
        return Compiler(f"{own} {_version(own)}", None, makes_objects=True)
    other = f"{stand_in.generic(chip.prefix)}-gcc"
    if not shutil.which(other) or not stand_in.NEWLIB.is_dir():
        return None
    stand_in.install(folder, chip.prefix)
    return Compiler(f"{other} {_version(other)} for {own}", folder, makes_objects=chip.is_riscv)


def wanted_packages(chip: Chip) -> str:
    """Return the Debian packages that would do."""
    return "gcc-riscv64-unknown-elf libnewlib-dev" if chip.is_riscv else "gcc-xtensa-lx106 libnewlib-dev"


def refused_sources(commands: Sequence[Command], folder: Path, *, objects: bool) -> dict[str, str]:
    """Compile every source; return the first error of each that is refused."""
    folder.mkdir(parents=True, exist_ok=True)

    def compile_one(numbered: tuple[int, Command]) -> str:
        number, command = numbered
        return compile_source(command, command.source, folder / f"{number}.o", objects=objects)

    with ThreadPoolExecutor(JOBS) as pool:
        errors = list(pool.map(compile_one, enumerate(commands)))
    return {f"{c.source.parent.name}/{c.source.name}": e for c, e in zip(commands, errors, strict=True) if e}


def wrong_controls(commands: Sequence[Command], folder: Path) -> dict[str, str]:
    """Compile the controls with a source's own flags; return those that did not end as they have to."""
    folder.mkdir(parents=True, exist_ok=True)
    command = next((command for command in commands if command.source.name == CONTROLS_BESIDE), commands[0])
    found: dict[str, str] = {}
    for number, control in enumerate(CONTROLS):
        source = folder / f"control{number}.c"
        source.write_text(f"{_INCLUDES}void control(void);\nvoid control(void) {{\n    {control.body}\n}}\n")
        said = compile_source(command, source, folder / "control.o", objects=False)
        if not control.refused and said:
            found[control.name] = f"was refused: {said}"
        elif control.refused not in said or (control.refused and not said):
            found[control.name] = f"was refused for another reason: {said}" if said else "was not refused"
    return found


def compile_source(command: Command, source: Path, output: Path, *, objects: bool) -> str:
    """Compile ``source`` with the flags of ``command``; return the first error or warning, or "".

    With ``objects`` an object file has to come out of it; without, the syntax is looked at.
    """
    argv = [str(source) if word == str(command.source) else word for word in command.argv]
    argv[argv.index("-o") + 1] = str(output)
    output.unlink(missing_ok=True)
    extra = [] if objects else ["-fsyntax-only"]
    plain = ["-fdiagnostics-color=never"]
    done = run([*argv, *plain, *extra], cwd=command.folder)
    if done.status:
        errors = [line for line in done.errors.splitlines() if "error:" in line]
        return (errors or done.errors.strip().splitlines() or ["no words"])[0]
    if warnings := [line for line in done.errors.splitlines() if "warning:" in line]:
        return warnings[0]
    return "made no object file" if objects and not output.is_file() else ""


def _version(gcc: str) -> str:
    return run((gcc, "-dumpfullversion")).out.strip()

# SPDX-License-Identifier: Apache-2.0
"""What the check works on: an emulator, an image of a chip, and perhaps another one to compare with."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError
from hil.boards.firmware.build import build_all
from hil.boards.firmware.build_folder import Image, app_image
from hil.boards.firmware.bundle import idf_version
from hil.boards.firmware.selection import Firmware, find_firmware
from hil.virtual.emulator import drivers
from hil.virtual.emulator.driver import Emulator
from tools.idf_check import idf

CHIP = "esp32c3"
NAME = os.environ.get("EMULATOR") or next(iter(drivers.DRIVERS))
ESPRESSIF_S_QEMU = "esp_develop"
ESPRESSIF_S_COMPILER = "crosstool-NG esp"

_COMPILER = re.compile(rb"GCC: \(([^)\0]+)\) ([\d.]+)")


@dataclass(frozen=True)
class Inputs:
    """``base`` is None where nothing else is compared."""

    emulator: Emulator
    firmware: Firmware
    base: Firmware | None

    @property
    def counts(self) -> bool:
        """Whether the emulator counts instructions."""
        return CHIP in drivers.driver_of(NAME).ABILITIES.counting

    @property
    def places(self) -> dict[str, Path]:
        """The folders of the images, as the reader calls them."""
        found = {"$FIRMWARE": self.firmware.build_dir}
        return {**found, "$BASE": self.base.build_dir} if self.base else found


def find() -> Inputs:
    """Return what the variables EMULATOR, FIRMWARE and BASE name; without FIRMWARE the image is built.

    Raises:
        ConfigError: no such emulator or folder, or no ESP-IDF to build with.
        RigError: the emulator is not there.
    """
    emulator, image = drivers.find(NAME, CHIP), Image(CHIP)
    place, base = os.environ.get("FIRMWARE"), os.environ.get("BASE")
    if not place:
        _require_idf()
    built = Path(place) if place else build_all([image], say=lambda _line: None)[image]
    other = find_firmware(Path(base), image) if base else None
    return Inputs(emulator, find_firmware(built, image), other)


def _require_idf() -> None:
    try:
        idf.find()
    except ConfigError as error:
        raise ConfigError(
            f"there is no image of an {CHIP}, and {error.sentence}",
            next_step=f"{error.next_step or '. $IDF_PATH/export.sh'}; "
            "or name a bundle or a build folder: make emulated-check FIRMWARE=DIR.",
        ) from error


def emulator_words(emulator: Emulator) -> str:
    """Return how an emulator calls itself."""
    done = subprocess.run(
        [emulator.program, "--version"], capture_output=True, text=True, timeout=20, check=True
    )
    return done.stdout.splitlines()[0]


def compiler_of(build_dir: Path) -> str:
    """Return what compiled a build's program, "" where there is no program to ask."""
    for elf in sorted(build_dir.glob("*.elf")):
        if found := _COMPILER.search(elf.read_bytes()):
            return f"gcc {found[2].decode()} ({found[1].decode()})"
    return ""


def idf_of(build_dir: Path) -> str:
    """Return the ESP-IDF version that the image says it was built with."""
    return idf_version(app_image(build_dir))

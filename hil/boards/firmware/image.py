# SPDX-License-Identifier: Apache-2.0
"""Wrap the host build of the firmware into what ``idf.py build`` leaves behind, so that esptool flashes it.

The same ELF gives the same bytes. Images are written with esptool's own classes; the layout of the
folder is the one that esptool's ``@flash_args`` users and pytest-embedded expect.

What differs from chip to chip in the images that a build folder holds.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esptool.bin_image import ELFSection, ESP32FirmwareImage
from esptool.targets import CHIP_DEFS

from hil.base.errors import ConfigError
from hil.base.paths import TOOL_FIRMWARE
from hil.boards.firmware import app_image, partition_table
from hil.boards.firmware.build_folder import DEFAULT_TICK_HZ
from hil.boards.firmware.partition_table import Partition

FLASH_SIZE = "4MB"


@dataclass(frozen=True)
class ChipLayout:
    """A chip's image as ESP-IDF v5.5 makes it: load addresses (code that never runs has to lie somewhere
    valid), flash clock, the revisions of chip and eFuse block that the image is for, times 100, and whether
    its cores are RISC-V (else Xtensa)."""

    chip: str
    mapped_address: int
    data_address: int
    code_address: int
    bootloader_code_address: int
    flash_freq: str
    min_revision: int
    max_revision: int
    max_efuse_revision: int
    riscv: bool = False
    flash_size: str = FLASH_SIZE

    @property
    def rom(self) -> Any:
        """esptool's own description of the chip: its id, the bootloader's offset, flash codes."""
        return CHIP_DEFS[self.chip]

    @property
    def flash_settings(self) -> dict[str, str]:
        return {"flash_mode": "dio", "flash_size": self.flash_size, "flash_freq": self.flash_freq}


_LAYOUTS = {
    layout.chip: layout
    for layout in (
        ChipLayout(
            chip="esp32",
            mapped_address=0x3F400020,
            data_address=0x3FFF0030,
            code_address=0x40080000,
            bootloader_code_address=0x40078000,
            flash_freq="40m",
            min_revision=0,
            max_revision=399,
            max_efuse_revision=99,
        ),
        ChipLayout(
            chip="esp32s3",
            mapped_address=0x3C000020,
            data_address=0x3FCE2820,
            code_address=0x40374000,
            bootloader_code_address=0x403C8700,
            flash_freq="80m",
            min_revision=0,
            max_revision=99,
            max_efuse_revision=199,
        ),
        ChipLayout(
            chip="esp32c3",
            mapped_address=0x3C000020,
            data_address=0x3FCD5820,
            code_address=0x40380000,
            bootloader_code_address=0x403CBF10,
            flash_freq="80m",
            min_revision=3,
            max_revision=199,
            max_efuse_revision=199,
            riscv=True,
        ),
    )
}


def layout_of(chip: str) -> ChipLayout:
    """Return a chip's layout. Raises ConfigError listing the chips that have one."""
    if chip not in _LAYOUTS:
        raise ConfigError(f"Images can be made for {', '.join(_LAYOUTS)}, not for {chip!r}.")
    return _LAYOUTS[chip]


PARTITIONS_CSV = TOOL_FIRMWARE / "partitions.csv"
IDF_VERSION = "v5.5.4-virtual"
CONSOLE_BAUD = 921600

_FLASH_MODE_DIO = 2
_BOOTLOADER, _TABLE, _OTADATA = (
    "bootloader/bootloader.bin",
    "partition_table/partition-table.bin",
    "ota_data_initial.bin",
)


def build_image_dir(
    elf: Path,
    build_dir: Path,
    *,
    chip: str = "esp32",
    project: str = "hil-firmware",
    version: str,
    tick_hz: int = DEFAULT_TICK_HZ,
    partitions_csv: Path = PARTITIONS_CSV,
    console_baud: int = CONSOLE_BAUD,
    table_offset: int = partition_table.TABLE_OFFSET,
    flash_size: str = FLASH_SIZE,
) -> None:
    """Write the build directory of ``project`` around the host program ``elf``.

    ``console_baud`` is the rate at which bootloader and application talk; ``tick_hz`` is how the program was
    configured. Debug information stays in
    ``<project>.elf`` and is not flashed. Raises ConfigError where the ELF is missing or is none, the
    partition table is wrong, or the image does not fit its slot.
    """
    layout = dataclasses.replace(layout_of(chip), flash_size=flash_size)
    table = partition_table.read_csv(
        partitions_csv,
        flash_bytes=int(flash_size.removesuffix("MB")) << 20,
        table_offset=table_offset,
        bootloader=layout.rom.BOOTLOADER_FLASH_OFFSET,
    )
    slot = partition_table.first_app(table)
    if slot is None:
        raise ConfigError(f"{partitions_csv}: the partition table has no app partition (factory or ota_0).")
    full_elf = _read_elf(elf)
    app = _app_image(layout, full_elf, _without_debug_information(elf), project, version)
    if len(app) > slot.size_bytes:
        raise ConfigError(
            f"The image of {elf} has {len(app)} bytes; its slot {slot.name!r} in {partitions_csv} "
            f"has {slot.size_bytes} bytes.",
            next_step="Build the firmware smaller, or enlarge the slot in the partition table.",
        )
    files = {
        _BOOTLOADER: _bootloader_image(layout, console_baud, table_offset),
        _TABLE: partition_table.to_binary(table),
        f"{project}.bin": app,
        f"{project}.elf": full_elf,
        **_otadata_file(table),
        "flasher_args.json": _json(_flasher_args(layout, table, slot, project, table_offset)),
        "config/sdkconfig.json": _json(_sdkconfig(layout, tick_hz, console_baud)),
        "project_description.json": _json(_description(chip, project, version, console_baud)),
    }
    for name, data in files.items():
        _write_if_changed(build_dir / name, data)


def _write_if_changed(path: Path, data: bytes) -> None:
    """Put a file there in one step, and only where it differs: another run may be flashing from it."""
    if path.is_file() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        fresh.write_bytes(data)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _read_elf(elf: Path) -> bytes:
    try:
        data = elf.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"Reading the firmware {elf} failed: {error.strerror}.",
            next_step="Build the host firmware first (hil build --target virtual-esp32).",
        ) from error
    if data[:4] != b"\x7fELF":
        raise ConfigError(f"{elf} is not an ELF file: it begins with {data[:4]!r}.")
    return data


def _without_debug_information(elf: Path) -> bytes:
    """Return the ELF as flashed: a .bin holds no debug information on a real chip either."""
    strip = shutil.which("strip")
    if strip is None:
        raise ConfigError("'strip' is not installed.", next_step="Install binutils (apt install binutils).")
    with tempfile.TemporaryDirectory() as folder:
        stripped = Path(folder) / "stripped.elf"
        done = subprocess.run(
            [strip, "--strip-debug", "-o", str(stripped), str(elf)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ConfigError(f"Stripping {elf} failed: {done.stderr.strip()}.")
        return stripped.read_bytes()


def _app_image(layout: ChipLayout, full_elf: bytes, flashed_elf: bytes, project: str, version: str) -> bytes:
    description = app_image.pack_app_description(
        project=project,
        version=version,
        idf_version=IDF_VERSION,
        elf_sha256=hashlib.sha256(full_elf).digest(),
        max_efuse_revision=layout.max_efuse_revision,
    )
    mapped = description + app_image.pack_elf(flashed_elf)
    sections = ((layout.mapped_address, ".flash.appdesc", mapped), (layout.code_address, ".iram0", bytes(64)))
    return _save(layout, sections, entry=layout.code_address)


def _bootloader_image(layout: ChipLayout, console_baud: int, table_offset: int) -> bytes:
    description = app_image.pack_bootloader_description(
        idf_version=IDF_VERSION, console_baud=console_baud, table_offset=table_offset
    )
    code = layout.bootloader_code_address
    sections = ((layout.data_address, ".dram0.bootdesc", description), (code, ".iram_loader", bytes(64)))
    return _save(layout, sections, entry=code)


def _save(layout: ChipLayout, sections: Sequence[tuple[int, str, bytes]], *, entry: int) -> bytes:
    rom = layout.rom
    image: ESP32FirmwareImage = rom.BOOTLOADER_IMAGE()
    image.chip_id = rom.IMAGE_CHIP_ID
    image.entrypoint = entry
    image.flash_mode = _FLASH_MODE_DIO
    image.flash_size_freq = rom.parse_flash_size_arg(layout.flash_size) | rom.parse_flash_freq_arg(
        layout.flash_freq
    )
    image.min_rev_full = layout.min_revision
    image.max_rev_full = layout.max_revision
    image.append_digest = True
    image.segments = [ELFSection(name.encode(), address, data, 1) for address, name, data in sections]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "image.bin"
        image.save(str(path))
        return path.read_bytes()


def _otadata_file(table: Sequence[Partition]) -> dict[str, bytes]:
    otadata = partition_table.find_data(table, partition_table.DATA_OTA)
    return {_OTADATA: b"\xff" * otadata.size_bytes} if otadata else {}


def _flasher_args(
    layout: ChipLayout, table: Sequence[Partition], slot: Partition, project: str, table_offset: int
) -> dict[str, object]:
    parts = {
        "bootloader": (layout.rom.BOOTLOADER_FLASH_OFFSET, _BOOTLOADER),
        "partition-table": (table_offset, _TABLE),
        "app": (slot.offset, f"{project}.bin"),
    }
    otadata = partition_table.find_data(table, partition_table.DATA_OTA)
    if otadata:
        parts["otadata"] = (otadata.offset, _OTADATA)
    return {
        "write_flash_args": [
            word for key, value in layout.flash_settings.items() for word in (f"--{key}", value)
        ],
        "flash_settings": layout.flash_settings,
        "flash_files": {f"{offset:#x}": file for offset, file in sorted(parts.values())},
        **{
            name: {"offset": f"{offset:#x}", "file": file, "encrypted": "false"}
            for name, (offset, file) in parts.items()
        },
        "extra_esptool_args": {
            "after": "hard_reset",
            "before": "default_reset",
            "stub": True,
            "chip": layout.chip,
        },
    }


def _sdkconfig(layout: ChipLayout, tick_hz: int, console_baud: int) -> dict[str, object]:
    return {
        "ESPTOOLPY_MONITOR_BAUD": console_baud,
        "ESP_CONSOLE_UART_BAUDRATE": console_baud,
        "FREERTOS_HZ": tick_hz,
        "IDF_TARGET": layout.chip,
        "IDF_TARGET_ARCH_XTENSA": not layout.riscv,
        "IDF_TARGET_ARCH_RISCV": layout.riscv,
    }


def _description(chip: str, project: str, version: str, console_baud: int) -> dict[str, object]:
    return {
        "version": "1.2",
        "project_name": project,
        "project_version": version,
        "target": chip,
        "app_elf": f"{project}.elf",
        "app_bin": f"{project}.bin",
        "build_type": "flash_app",
        "monitor_baud": str(console_baud),
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=4) + "\n").encode()

# SPDX-License-Identifier: Apache-2.0
"""An emulated board with QEMU itself, where HIL_QEMU_RISCV32 names one: the real ROM, and esptool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.virtual.test_emulated_board import APP, EmulatedProcess
from tests.virtual.virtual_board_rig import MAC, console, is_alive, wait_until

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("HIL_QEMU_RISCV32"), reason="HIL_QEMU_RISCV32 names no QEMU"),
]


@pytest.fixture
def board(tmp_path: Path) -> Iterator[EmulatedProcess]:
    with EmulatedProcess(tmp_path / "e1") as process:
        yield process


def test_the_real_loader_writes_flash_and_reads_the_efuses(board: EmulatedProcess, tmp_path: Path) -> None:
    """esptool finds chip, revision and address by the chip's own ROM; what it writes is in the flash file,
    also after the reset that follows."""
    image = tmp_path / "app.bin"
    image.write_bytes(os.urandom(0x2000))
    said = board.esptool_ok("--no-stub", "write-flash", f"{APP:#x}", str(image))
    assert "ESP32-C3 (QFN32) (revision v0.3)" in said
    assert f"MAC:                {MAC}" in said
    assert "Hash of data verified." in said
    board.wait_for(lambda state: state["mode"] == "run")
    assert board.flash.read_bytes()[APP : APP + 0x2000] == image.read_bytes()


def test_the_stub_runs_on_the_emulated_chip(board: EmulatedProcess) -> None:
    """It is uploaded, started and asked; the baud rate changes."""
    said = board.esptool_ok("--baud", "921600", "flash-id")
    assert "Stub flasher running." in said
    assert "Detected flash size: 16MB" in said


def test_an_empty_flash_is_the_roms_to_complain_about(board: EmulatedProcess) -> None:
    """The chip starts over for ever; silent it says nothing, and without power there is no process."""
    with console(board, baud=115200) as monitor:
        monitor.reset("boot:0x8 (SPI_FAST_FLASH_BOOT)")
        monitor.expect("invalid header: 0xffffffff")
        pid = board.emulator_pid
        board.control.fault("silent")
        monitor.silence(0.5)
        monitor.seen = b""
        assert monitor.silence(0.3) == b""
        board.control.clear()
        monitor.expect("invalid header: 0xffffffff")
        board.control.power("off")
        wait_until(lambda: not is_alive(pid), "the end of QEMU")

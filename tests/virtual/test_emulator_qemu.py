# SPDX-License-Identifier: Apache-2.0
"""QEMU is found, asked what it can do, and run; a stand-in plays it."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, HilError, RigError
from hil.virtual.emulator import qemu_chips as chips
from hil.virtual.emulator.process import how_it_ended
from hil.virtual.emulator.qemu import FUNCTIONAL, SEALED, Machine, QemuSealedRun, command_line
from hil.virtual.emulator.qemu import find as find_qemu
from tests.virtual import stand_in_qemu

MAC = bytes.fromhex("020000000001")
FLASH_BYTES = 4 << 20
TIMEOUT_S = 20.0


@pytest.fixture(autouse=True)
def no_qemu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without QEMU, whatever this one has."""
    for variable in ("HIL_QEMU_RISCV32", "HIL_QEMU_XTENSA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("IDF_TOOLS_PATH", str(tmp_path / "espressif"))


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def answers(version: str, *, machine: str = "esp32c3") -> str:
    """Return what a QEMU does that answers questions only."""
    machines = f'printf "Supported machines are:\\n{machine} a machine\\n"'
    return f'test "$1" = --version && echo "QEMU emulator version {version}" || {machines}'


def test_a_variable_goes_before_path_and_path_before_the_tools_of_esp_idf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the tools' versions the newest is taken, 9.10 after 9.2."""
    tools = tmp_path / "espressif" / "tools" / "qemu-riscv32"
    for version in ("9.2.2", "9.10.0"):
        program = tools / f"esp_develop_{version}" / "qemu" / "bin" / "qemu-system-riscv32"
        script(program, answers(version))
    assert find_qemu("esp32c3").version == "9.10.0"
    on_path = script(tmp_path / "bin" / "qemu-system-riscv32", answers("8.1.3"))
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    assert find_qemu("esp32c3").program == on_path
    named = script(tmp_path / "own" / "qemu", answers("9.0.0"))
    monkeypatch.setenv("HIL_QEMU_RISCV32", str(named))
    assert find_qemu("esp32c3").program == named


@pytest.mark.parametrize(
    ("text", "chip", "error", "said"),
    [
        # The rig lacks it, and ESP-IDF has a command for it.
        (None, "esp32c3", RigError, r"qemu-system-riscv32.*PATH.*idf_tools\.py install qemu-riscv32"),
        (None, "esp32", RigError, r"qemu-system-xtensa.*idf_tools\.py install qemu-xtensa"),
        # A wrong variable is not passed over in favour of another QEMU; what a program said is told.
        ("", "esp32c3", ConfigError, "HIL_QEMU_RISCV32 names /.*/qemu"),
        ("exit 3", "esp32c3", RigError, "ended with status 3"),
        ("echo hello", "esp32c3", RigError, "is no QEMU"),
        ("echo no ROM >&2; exit 1", "esp32c3", RigError, "no ROM"),
        # A distribution's QEMU has the program's name and not the chip.
        (answers("7.2.1", machine="virt"), "esp32c3", RigError, r"7\.2\.1\) knows no machine esp32c3"),
        ("exit 3", "esp32h2", ConfigError, "'esp32h2'; .* esp32, esp32c3, esp32s3"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_way_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str | None,
    chip: str,
    error: type[HilError],
    said: str,
) -> None:
    """No QEMU, a variable that names none, a program that is none, and a chip that it does not emulate."""
    if text is not None:
        monkeypatch.setenv("HIL_QEMU_RISCV32", str(tmp_path / "qemu"))
    if text:
        script(tmp_path / "qemu", text)
    with pytest.raises(error, match=said):
        find_qemu(chip)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = stand_in_qemu.install(tmp_path / "bin")
    monkeypatch.setenv("HIL_QEMU_RISCV32", str(path))
    return path


@pytest.mark.slow
def test_a_record_says_what_emulated_it(stand_in: Path) -> None:
    """Version and way of counting time; a sealed run's time is another."""
    qemu = find_qemu("esp32c3")
    assert qemu.environment() == {"emulator": "qemu 9.2.2", "icount": "3,sleep=on"}
    assert qemu.sealed_environment() == {"emulator": "qemu 9.2.2", "icount": "3,sleep=off"}


@pytest.mark.slow
def test_a_machine_is_called_as_its_boot_needs_it(stand_in: Path, tmp_path: Path) -> None:
    """The strap is given only for the serial loader: left alone, a machine boots from flash. The watchdogs
    are off beside the host's clock, which would trip them, and on in a sealed run, whose time does not
    follow the host's. A comma in a path is not the end of a value."""
    qemu = find_qemu("esp32c3")
    machine = Machine(tmp_path / "a,b.flash", tmp_path / "efuses", "null")
    boot = command_line(qemu, machine)
    assert not any("strap_mode" in word for word in boot)
    assert f"file={tmp_path}/a,,b.flash,if=mtd,format=raw" in boot
    assert boot[boot.index("-icount") + 1] == FUNCTIONAL
    strap = "driver=esp32c3.gpio,property=strap_mode,value=0x02"
    assert strap in command_line(qemu, replace(machine, download=True))
    off = "driver=timer.esp32c3.timg,property=wdt_disable,value=true"
    assert off in boot
    assert off not in command_line(qemu, replace(machine, icount=SEALED))


def test_the_efuses_hold_the_address_of_the_board() -> None:
    """As esptool reads them: the last byte first, with a CRC-8 on the ESP32."""
    mac = bytes.fromhex("240ac4000001")
    assert chips.by_name("esp32c3").efuses(mac)[0x18:0x1E] == bytes.fromhex("010000c40a24")
    assert len(chips.by_name("esp32c3").efuses(mac)) == 1024
    esp32 = chips.by_name("esp32").efuses(mac)
    assert esp32[0x04:0x0A] == bytes.fromhex("010000c40a24")
    assert esp32[0x0A] != 0
    assert len(esp32) == 124


@pytest.mark.slow
def test_a_sealed_run_leaves_the_flash_that_it_is_a_copy_of_alone(stand_in: Path, tmp_path: Path) -> None:
    """What the chip says is in a file; time jumps over idleness, there is no network, the seed is fixed."""
    flash = tmp_path / "flash"
    flash.write_bytes(b"\xff" * FLASH_BYTES)
    before = flash.stat().st_mtime_ns
    run = QemuSealedRun(find_qemu("esp32c3"), flash, tmp_path / "sealed", mac=MAC)
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while b"hello" not in run.console.read_bytes():
            run.check()
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        run.close()
    assert b"from 02:00:00:00:00:01" in run.console.read_bytes()
    assert f"icount {SEALED} nic none".encode() in run.console.read_bytes()
    assert flash.stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_sealed_run_that_dies_says_what_qemu_said(stand_in: Path, tmp_path: Path) -> None:
    """A flash file of a size that no chip has: QEMU's own sentence is the rig's fault's."""
    flash = tmp_path / "flash"
    flash.write_bytes(b"\xff" * 1000)
    run = QemuSealedRun(find_qemu("esp32c3"), flash, tmp_path / "sealed", mac=MAC)
    run.process.wait(TIMEOUT_S)
    with pytest.raises(RigError, match=r"status 1 .*2, 4, 8, 16 MB") as caught:
        run.check()
    assert caught.value.log.endswith("qemu.log")


def test_the_end_of_a_process_is_told_with_its_last_line(tmp_path: Path) -> None:
    """Also where it said nothing."""
    log = tmp_path / "qemu.log"
    assert how_it_ended("QEMU", -9, log) == "QEMU was killed by signal 9"
    log.write_text("first\nERROR: assertion failed\n\n")
    assert re.fullmatch("QEMU .* 1 .*: ERROR: assertion failed", how_it_ended("QEMU", 1, log))

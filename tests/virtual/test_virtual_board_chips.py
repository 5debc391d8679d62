# SPDX-License-Identifier: Apache-2.0
"""What one chip does and another does not: identity, ROM and boot texts, foreign images, panics, builds."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hil.base.errors import FirmwareError
from hil.boards.firmware.build import FIRMWARE_DIR
from hil.session import trouble
from hil.virtual.board import reset as resets
from hil.virtual.board.chip import DETECTIONS
from hil.virtual.board.chips import CHIPS
from hil.virtual.board.loader import Registers
from tests.host_builds import PLAIN, build_programs
from tests.virtual.virtual_board_rig import MAC, OTA_0, BoardProcess, console, flash_files

NEWER = ("esp32s3", "esp32c3")


IDENTITIES = {
    "esp32": (
        "Detecting chip type... ESP32\n",
        "Chip type:          ESP32-D0WD-V3 (revision v3.1)\n",
        "Features:           Wi-Fi, BT, Dual Core + LP Core, 240MHz, Coding Scheme None\n",
        "Manufacturer: ef\nDevice: 4018\nDetected flash size: 16MB\n",
        "Flash voltage set by a strapping pin: 3.3V\n",
    ),
    "esp32s3": (
        "Detecting chip type... ESP32-S3\n",
        "Chip type:          ESP32-S3 (QFN56) (revision v0.2)\n",
        "Features:           Wi-Fi, BT 5 (LE), Dual Core + LP Core, 240MHz\n",
        "Manufacturer: ef\nDevice: 4018\nDetected flash size: 16MB\n",
        "Flash type set in eFuse: quad (4 data lines)\nFlash voltage set by a strapping pin: 3.3V\n",
    ),
    "esp32c3": (
        "Detecting chip type... ESP32-C3\n",
        "Chip type:          ESP32-C3 (QFN32) (revision v0.4)\n",
        "Features:           Wi-Fi, BT 5 (LE), Single Core, 160MHz\n",
        "Manufacturer: 20\nDevice: 4018\nDetected flash size: 16MB\n",
    ),
}


@pytest.mark.parametrize("chip", IDENTITIES)
def test_esptool_names_the_chip(board: BoardProcess, chip: str) -> None:
    """esptool detects the chip and reads revision, features, crystal, MAC address and flash out of it."""
    said = board.esptool_ok("flash-id")
    for text in (*IDENTITIES[chip], "Crystal frequency:  40MHz\n", f"MAC:                {MAC}\n"):
        assert text in said


@pytest.mark.parametrize(
    ("chip", "asked", "fault", "says"),
    [
        ("esp32", "esp32c3", (), "ESP32, not ESP32-C3"),
        ("esp32s3", "esp32", (), "ESP32-S3, not ESP32"),
        ("esp32c3", "esp32s3", (), "ESP32-C3, not ESP32-S3"),
        ("esp32", "esp32", ("wrong_chip",), "ESP32-S2, not ESP32"),
        ("esp32s3", "esp32s3", ("wrong_chip",), "ESP32-S2, not ESP32-S3"),
        ("esp32c3", "esp32c3", ("wrong_chip", "esp32"), "ESP32, not ESP32-C3"),
        ("esp32", "esp32", ("wrong_chip", "esp32s3"), "ESP32-S3, not ESP32"),
    ],
)
def test_another_chip_than_was_asked_for_is_named(
    board: BoardProcess, chip: str, asked: str, fault: tuple[str, ...], says: str
) -> None:
    """By word or by chip id; with the fault wrong_chip it is the one that the fault names."""
    if fault:
        board.control.fault(*fault)
    done = board.esptool("--chip", asked, "chip-id")
    assert done.returncode != 0
    assert f"This chip is {says}" in done.stdout
    board.control.clear()
    board.esptool_ok("--chip", chip, "chip-id")


@pytest.mark.parametrize("chip", NEWER)
def test_security_info(board: BoardProcess, chip: str) -> None:
    """The newer chips answer get-security-info, from ROM and stub alike: nothing is locked."""
    for before in ((), ("--no-stub",)):
        said = board.esptool_ok(*before, "get-security-info")
        assert f"Chip ID: {CHIPS[chip].image_chip_id}\n" in said
        assert said.count(": Disabled\n") == 2


@pytest.mark.parametrize("chip", CHIPS)
def test_stub_that_runs_is_found(board: BoardProcess, chip: str) -> None:
    """One left running names its chip; the newer chips' watchdog boots the application."""
    board.esptool_ok("--after", "no-reset-stub", "chip-id")
    assert board.control.state()["mode"] == "download"
    after = "watchdog-reset" if chip in NEWER else "no-reset-stub"
    assert "already running" in board.esptool_ok("--before", "no-reset", "--after", after, "chip-id")
    if chip in NEWER:
        assert board.wait_for(lambda state: state["app_pid"])["reset_reason"] == "WDT"


@pytest.mark.parametrize("chip", NEWER)
def test_watchdog_is_locked(chip: str) -> None:
    """Both words of the RTC watchdog's configuration need the key, and it counts with its enable bit only."""
    watchdog = CHIPS[chip].rtc_watchdog
    assert watchdog is not None
    registers = Registers(CHIPS[chip], bytes.fromhex(MAC.replace(":", "")), DETECTIONS[chip])
    for key, value, runs in (
        (0, watchdog.enable_bit, False),
        (watchdog.key, 1, False),
        (watchdog.key, watchdog.enable_bit, True),
    ):
        registers.write(watchdog.protect, key, 0xFFFFFFFF)
        registers.write(watchdog.config0, value, 0xFFFFFFFF)
        registers.write(watchdog.config1, value, 0xFFFFFFFF)
        assert registers.watchdog_runs == runs
        assert registers.read(watchdog.config1, uart_baud=115200) == (value if key else 0)


ROM_TEXTS = {
    "esp32": (
        "ets Jul 29 2019 12:21:46\r\n\r\nrst:0x1 (POWERON_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)\r\n"
        "configsip: 0, SPIWP:0xee\r\n"
        "clk_drv:0x00,q_drv:0x00,d_drv:0x00,cs0_drv:0x00,hd_drv:0x00,wp_drv:0x00\r\n"
        "mode:DIO, clock div:2\r\nload:0x3fff0030,len:88\r\nload:0x40078000,len:64\r\nentry 0x40078000\r\n",
        "rst:0xc (SW_CPU_RESET),boot:0x13 (SPI_FAST_FLASH_BOOT)\r\nconfigsip",
    ),
    "esp32s3": (
        "ESP-ROM:esp32s3-20210327\r\nBuild:Mar 27 2021\r\n"
        "rst:0x1 (POWERON),boot:0x8 (SPI_FAST_FLASH_BOOT)\r\n"
        "SPIWP:0xee\r\nmode:DIO, clock div:1\r\n"
        "load:0x3fce2820,len:0x58\r\nload:0x403c8700,len:0x40\r\nentry 0x403c8700\r\n",
        "rst:0x3 (RTC_SW_SYS_RST),boot:0x8 (SPI_FAST_FLASH_BOOT)\r\nSaved PC:0x00000000\r\nSPIWP",
    ),
    "esp32c3": (
        "ESP-ROM:esp32c3-api1-20210207\r\nBuild:Feb  7 2021\r\n"
        "rst:0x1 (POWERON),boot:0xc (SPI_FAST_FLASH_BOOT)\r\n"
        "SPIWP:0xee\r\nmode:DIO, clock div:1\r\n"
        "load:0x3fcd5820,len:0x58\r\nload:0x403cbf10,len:0x40\r\nentry 0x403cbf10\r\n",
        "rst:0x3 (RTC_SW_SYS_RST),boot:0xc (SPI_FAST_FLASH_BOOT)\r\nSaved PC:0x00000000\r\nSPIWP",
    ),
}


@pytest.mark.parametrize("chip", ROM_TEXTS)
def test_rom_texts(board: BoardProcess, chip: str) -> None:
    """At 115200 baud the ROM prints what the chip's ROM prints, after power-on and after a crash."""
    power_on, restart = ROM_TEXTS[chip]
    with console(board, baud=115200) as monitor:
        monitor.reset(power_on)
        board.wait_for(lambda state: state["app_pid"])
        board.control.fault("abort")
        monitor.expect(restart)


SECOND_STAGE = {
    "esp32": r"boot: Multicore bootloader\r\n.*chip revision: v3\.1\r\n"
    r".*boot\.esp32: SPI Speed      : 40MHz\r\n",
    "esp32s3": r"boot: Multicore bootloader\r\n.*chip revision: v0\.2\r\n.*efuse block revision: v1\.3\r\n"
    r".*boot\.esp32s3: Boot SPI Speed : 80MHz\r\n",
    "esp32c3": r"2nd stage bootloader\r\n.*chip revision: v0\.4\r\n.*efuse block revision: v1\.3\r\n"
    r".*boot\.esp32c3: SPI Speed      : 80MHz\r\n",
}


@pytest.mark.parametrize("chip", SECOND_STAGE)
def test_second_stage_names_the_chip(board: BoardProcess, chip: str) -> None:
    """The second stage says cores, revisions and flash clock; the application is told its chip."""
    with console(board) as monitor:
        log = monitor.reset("READY").decode("latin-1")
        assert re.search(SECOND_STAGE[chip], log), log
        assert re.search(r"segment 0: paddr=00010020 .* map\r\n", log)
        assert re.search(r"segment 1: paddr=0002\w{4} .* load\r\n", log)
        monitor.write("env VBOARD_CHIP")
        monitor.expect(f"VBOARD_CHIP={chip}\n")


@pytest.mark.parametrize(
    ("chip", "other"), [("esp32s3", "esp32c3"), ("esp32c3", "esp32"), ("esp32", "esp32s3")]
)
def test_application_of_another_chip_is_refused(
    board: BoardProcess, build: Path, build_of: Callable[..., Path], chip: str, other: str
) -> None:
    """The second stage names the image's chip id and its own, and boots nothing."""
    board.renew({**flash_files(build), OTA_0: build_of(other) / "testapp.bin"})
    with console(board) as monitor:
        ids = f"expected {CHIPS[chip].image_chip_id}, found {CHIPS[other].image_chip_id}"
        monitor.expect(f"boot_comm: mismatch chip ID, {ids}\r\n")
        monitor.expect("boot: No bootable app partitions in the partition table\r\n")
        assert board.control.state()["app_pid"] is None


@pytest.mark.parametrize(
    ("chip", "other", "says"),
    [
        (
            "esp32s3",
            "esp32c3",
            "Invalid chip id. Expected 9 read 5. Bootloader for wrong chip?\r\nets_main.c 329 \r\n",
        ),
        (
            "esp32c3",
            "esp32",
            "Invalid chip id. Expected 5 read 0. Bootloader for wrong chip?\r\nets_main.c 333 \r\n",
        ),
        (
            "esp32",
            "esp32s3",
            "entry 0x403c8700\r\nets Jul 29 2019 12:21:46\r\n\r\nrst:0x10 (RTCWDT_RTC_RESET)",
        ),
    ],
)
def test_bootloader_of_another_chip_does_not_run(
    board: BoardProcess, build_of: Callable[..., Path], chip: str, other: str, says: str
) -> None:
    """The newer ROMs refuse it by its chip id; the ESP32's jumps into it and is reset by a watchdog."""
    bootloader = build_of(other) / "bootloader" / "bootloader.bin"
    board.renew({CHIPS[chip].bootloader_offset: bootloader})
    with console(board, baud=115200) as monitor:
        monitor.expect(says)


XTENSA_TRACE = (
    "PC      : 0x00000000  PS      : 0x00000000  ",
    "\r\n\r\nBacktrace: 0x00000000:0x00000000\r\n",
)
RISCV_TRACE = (
    "MEPC    : 0x00000000  RA      : 0x00000000  ",
    "MHARTID : 0x00000000  \r\n\r\nStack memory:\r\n",
)
NO_DUMP = ("", XTENSA_TRACE[1])


@pytest.mark.parametrize(
    ("chip", "fault", "value", "head", "trace"),
    [
        ("esp32s3", "panic", "StoreProhibited", "panic'ed (StoreProhibited).", XTENSA_TRACE),
        ("esp32c3", "panic", "StoreProhibited", "panic'ed (Store access fault).", RISCV_TRACE),
        ("esp32s3", "abort", None, "abort() was called at PC", NO_DUMP),
        ("esp32c3", "abort", None, "abort() was called at PC", RISCV_TRACE),
        ("esp32s3", "watchdog", "task", "CPU 0: main\r\nCPU 1: IDLE1", NO_DUMP),
        ("esp32c3", "watchdog", "task", " - IDLE (CPU 0)", RISCV_TRACE),
        ("esp32c3", "watchdog", "interrupt", "Interrupt wdt timeout on CPU0", RISCV_TRACE),
    ],
)
def test_panic_is_that_of_the_architecture(
    board: BoardProcess, fault: str, value: str | None, head: str, trace: tuple[str, str]
) -> None:
    """Exception, registers and trace are Xtensa's or RISC-V's; the harness blames the firmware for each."""
    with console(board) as monitor:
        monitor.echo("hello")
        board.control.fault(fault, value)
        log = monitor.expect("Rebooting...\r\n").decode()
        monitor.expect("READY tag=one reset=")
    text = re.sub(r"E \(\d+\) task_wdt: ", "", log)
    assert head in text
    assert all(part in text for part in trace)
    assert ("register dump" in text) == (trace is not NO_DUMP)
    assert trouble.worst(log.splitlines()).error is FirmwareError


def test_every_chip_answers_as_itself() -> None:
    """Each chip's answer to detection carries its image's chip id, or none where it has only a word."""
    for chip in CHIPS.values():
        info = chip.detection.security_info
        assert (int.from_bytes(info[12:16], "little") if info else 0) == chip.image_chip_id


FIRMWARE, SYSTEM, CRASH = "hil-firmware-esp32c3.elf", "test_esp_system-esp32c3", "test_esp_crash-esp32c3"


@pytest.fixture(scope="module")
def c3_build() -> Path:
    """The programs built for the ESP32-C3."""
    return build_programs(PLAIN, FIRMWARE, SYSTEM, CRASH)


def run(program: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("VBOARD_")}
    return subprocess.run(
        ["timeout", "-k", "1", "2", str(program)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        env=environment | variables,
        check=False,
    )


@pytest.mark.slow
def test_the_host_build_is_that_of_the_chip(c3_build: Path) -> None:
    """Model, cores and the cycle counter's clock are the ESP32-C3's; an exception has RISC-V's name and
    registers, and no backtrace. What the board can say of its last reset the firmware says in its hello."""
    done = run(c3_build / "test" / SYSTEM, VBOARD_CHIP="esp32c3")
    assert done.returncode == 0, done.stdout + done.stderr
    said = run(c3_build / "test" / CRASH, CRASH="load").stdout
    for text in ("panic'ed (Load access fault).", "MEPC    : 0x", "MTVAL   : 0x00000010"):
        assert text in said
    assert "Backtrace:" not in said
    reasons = {reset.reason for reset in vars(resets).values() if isinstance(reset, resets.Reset)}
    assert {"POWERON", "PANIC", "WDT"} <= reasons
    for reason in reasons:
        hello = run(c3_build / FIRMWARE, VBOARD_RESET_REASON=reason).stdout
        assert re.findall(r" reset_reason=(\S+)", hello)[:1] == [reason]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "known"),
    [
        ("VBOARD_RESET_REASON=EXT", "POWERON, SW, PANIC, INT_WDT, TASK_WDT, WDT or BROWNOUT\n"),
        ("VBOARD_CHIP=esp32s3", "esp32c3"),
    ],
)
def test_a_board_that_the_program_is_not_for_is_refused(c3_build: Path, variable: str, known: str) -> None:
    """A reset reason that no board gives, and another chip, end the program with those that there are."""
    done = run(c3_build / FIRMWARE, **dict([variable.split("=")]))
    assert done.returncode == 2
    assert done.stderr.startswith(f"{variable} is not {known}")


@pytest.mark.slow
def test_unknown_chip_is_no_target(tmp_path: Path) -> None:
    """The host build names the file that a new target would need."""
    command = ["cmake", "-S", str(FIRMWARE_DIR / "host"), "-B", str(tmp_path), "-DIDF_TARGET=esp99"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "IDF_TARGET=esp99: there is no" in done.stderr

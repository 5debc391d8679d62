# SPDX-License-Identifier: Apache-2.0
"""The host build of the firmware for a chip of one core and another architecture: the ESP32-C3."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from hil.virtual.board import reset as resets
from tests.host_builds import PLAIN, build_programs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FIRMWARE, SYSTEM, CRASH = "hil-firmware-esp32c3.elf", "test_esp_system-esp32c3", "test_esp_crash-esp32c3"


@pytest.fixture(scope="module")
def build_dir() -> Path:
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


def test_system_is_that_of_the_chip(build_dir: Path) -> None:
    """Model, number of cores and the cycle counter's clock are the ESP32-C3's."""
    done = run(build_dir / "test" / SYSTEM, VBOARD_CHIP="esp32c3")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_reset_reason_of_the_board_is_in_the_hello(build_dir: Path) -> None:
    """What the board can say of its last reset the firmware knows, and says in its hello."""
    reasons = {reset.reason for reset in vars(resets).values() if isinstance(reset, resets.Reset)}
    assert {"POWERON", "PANIC", "WDT"} <= reasons
    assert {reason: hello(build_dir, reason) for reason in reasons} == {reason: reason for reason in reasons}


def hello(build_dir: Path, reason: str) -> str:
    """Return the reset reason that the firmware names when it is told ``reason``."""
    found = re.search(r" reset_reason=(\S+)", run(build_dir / FIRMWARE, VBOARD_RESET_REASON=reason).stdout)
    return found[1] if found else "no hello came"


def test_an_unknown_reset_reason_ends_the_program(build_dir: Path) -> None:
    """A reason that no board gives is refused with those that one gives."""
    done = run(build_dir / FIRMWARE, VBOARD_RESET_REASON="EXT")
    assert done.returncode == 2
    reasons = "POWERON, SW, PANIC, INT_WDT, TASK_WDT, WDT or BROWNOUT"
    assert done.stderr == f"VBOARD_RESET_REASON=EXT is not {reasons}\n"


def test_crash_reads_as_riscv(build_dir: Path) -> None:
    """An exception has RISC-V's name and registers, and no backtrace."""
    said = run(build_dir / "test" / CRASH, CRASH="load").stdout
    for text in ("panic'ed (Load access fault).", "MEPC    : 0x", "MTVAL   : 0x00000010"):
        assert text in said
    assert "Backtrace:" not in said


def test_program_of_another_chip_does_not_start(build_dir: Path) -> None:
    """The board says which chip it is; a program that is not built for it ends with a sentence."""
    done = run(build_dir / FIRMWARE, VBOARD_CHIP="esp32s3")
    assert done.returncode == 2
    assert done.stderr.startswith("VBOARD_CHIP=esp32s3 is not esp32c3")


def test_unknown_chip_is_no_target(tmp_path: Path) -> None:
    """The host build names the file that a new target would need."""
    command = ["cmake", "-S", str(ROOT / "firmware" / "host"), "-B", str(tmp_path), "-DIDF_TARGET=esp99"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "IDF_TARGET=esp99: there is no" in done.stderr

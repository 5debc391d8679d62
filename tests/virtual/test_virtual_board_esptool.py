# SPDX-License-Identifier: Apache-2.0
"""The real esptool command line and pytest-embedded work on a virtual board as on a real one.

Most of it goes over fastrfc2217://; what goes over pyserial's own rfc2217:// is slow and therefore little.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.virtual.virtual_board_rig import (
    OTA_0,
    BoardProcess,
    console,
    flash_files,
    make_build,
    python,
    write_flash_file,
)


def assert_flash_holds(board: BoardProcess, build: Path) -> None:
    content = board.flash.read_bytes()
    for offset, path in flash_files(build).items():
        data = path.read_bytes()
        if offset != 0xD000:  # the bootloader has written otadata since
            assert content[offset : offset + len(data)] == data, f"{path.name} at {offset:#x}"


@pytest.mark.slow
def test_stock_client(board: BoardProcess) -> None:
    """Unmodified esptool over unmodified pyserial finds the board, runs its stub, and resets it."""
    done = board.esptool_process("chip-id", scheme="rfc2217", timeout_s=120)
    assert done.returncode == 0, done.stdout
    for line in ("ESP32-D0WD-V3 (revision v3.1)", "Stub flasher running.", "Hard resetting via RTS pin..."):
        assert line in done.stdout
    board.wait_for(lambda state: state["app_partition"] == "ota_0")


@pytest.mark.parametrize(
    ("chip", "before", "options"),
    [
        ("esp32", (), ()),
        ("esp32", (), ("--no-compress",)),
        ("esp32", ("--no-stub",), ()),
        ("esp32", ("--no-stub",), ("--no-compress",)),
        ("esp32s3", (), ()),
        ("esp32s3", ("--no-stub",), ("--no-compress",)),
        ("esp32c3", (), ("--no-compress",)),
        ("esp32c3", ("--no-stub",), ()),
    ],
)
def test_every_way_to_write(
    board: BoardProcess, build: Path, before: tuple[str, ...], options: tuple[str, ...]
) -> None:
    """Compressed or not, with the stub or the ROM: what lies in flash is the build, and it boots."""
    board.renew({})
    words = [word for offset, path in flash_files(build).items() for word in (f"{offset:#x}", str(path))]
    board.esptool_ok(*before, "--baud", "460800", "write-flash", *options, *words)
    with console(board) as monitor:
        monitor.echo("hello")
    assert_flash_holds(board, build)


def test_bootloader_of_another_chip_is_not_written(
    board: BoardProcess, build_of: Callable[..., Path]
) -> None:
    """esptool compares a bootloader's chip id with the chip's, and leaves flash alone."""
    board.renew({})
    other = build_of("esp32c3") / "bootloader" / "bootloader.bin"
    done = board.esptool("write-flash", "0x1000", str(other))
    assert done.returncode != 0
    assert "is not an ESP32 image" in done.stdout
    assert board.flash.read_bytes() == b"\xff" * (16 << 20)


def test_verify_read_and_erase(board: BoardProcess, build: Path, tmp_path: Path) -> None:
    """verify-flash agrees, read-flash returns the bytes, erase-region and erase-flash leave 0xFF."""
    app = build / "testapp.bin"
    board.esptool_ok("verify-flash", f"{OTA_0:#x}", str(app))
    size = app.stat().st_size
    copy = tmp_path / "copy.bin"
    board.esptool_ok("read-flash", f"{OTA_0:#x}", str(size), str(copy))
    assert copy.read_bytes() == app.read_bytes()

    board.esptool_ok("erase-region", f"{OTA_0:#x}", "0x2000")
    content = board.flash.read_bytes()
    assert content[OTA_0 : OTA_0 + 0x2000] == b"\xff" * 0x2000
    assert content[OTA_0 + 0x2000 : OTA_0 + size] == app.read_bytes()[0x2000:]
    assert board.esptool("verify-flash", f"{OTA_0:#x}", str(app)).returncode != 0

    board.esptool_ok("erase-flash")
    assert board.flash.read_bytes() == b"\xff" * (16 << 20)


def test_read_flash_without_the_stub(board: BoardProcess, tmp_path: Path) -> None:
    """The ROM's slow read returns the same bytes, 64 at a time."""
    copy = tmp_path / "copy.bin"
    board.esptool_ok("--no-stub", "read-flash", "0x8000", "0x210", str(copy))
    assert copy.read_bytes() == board.flash.read_bytes()[0x8000:0x8210]


def test_run_leaves_the_loader(board: BoardProcess) -> None:
    """esptool run starts what is in flash without a pulse on EN."""
    board.esptool_ok("--after", "no-reset", "--no-stub", "run")
    assert board.wait_for(lambda state: state["app_pid"])["reset_reason"] == "SW"


TEST_MODULE = """\
def test_app(dut):
    dut.write("hello")
    dut.expect_exact("echo hello", timeout=20)
    dut.serial.hard_reset()
    dut.expect_exact("READY tag=one reset=POWERON", timeout=20)
    dut.write("abort")
    dut.expect_exact("Rebooting...", timeout=20)
    dut.expect_exact("READY tag=one reset=PANIC", timeout=20)
"""

REGISTER = "from hil.boards import serial_url\n\nserial_url.register()\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chip", "scheme", "is_flashed"),
    [
        ("esp32", "rfc2217", True),
        ("esp32", "fastrfc2217", False),
        pytest.param("esp32", "rfc2217", False, marks=pytest.mark.heavy),
        pytest.param("esp32s3", "fastrfc2217", False, marks=pytest.mark.heavy),
        pytest.param("esp32c3", "fastrfc2217", False, marks=pytest.mark.heavy),
    ],
)
def test_autoflash_expect_write_and_reset(
    tmp_path: Path, chip: str, scheme: str, *, is_flashed: bool
) -> None:
    """pytest-embedded, unmodified: an empty board is flashed with the build and runs it. Flashing over
    pyserial's own client takes half a minute: the board that is flashed before shows the rest."""
    build = make_build(tmp_path / "app", chip=chip, console_baud=115200)
    flash = write_flash_file(tmp_path / "flash.bin", flash_files(build) if is_flashed else {})
    project = tmp_path / "project"
    project.mkdir()
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "test_app.py").write_text(TEST_MODULE)
    (project / "conftest.py").write_text(REGISTER if scheme == "fastrfc2217" else "")
    with BoardProcess(tmp_path / "board", "--chip", chip, flash=flash) as board:
        done = python(
            *("-m", "pytest", "-x", "--embedded-services", "esp,idf", "--target", chip),
            *("--port", board.url(scheme), "--build-dir", str(build)),
            *("--root-logdir", str(tmp_path / "logs")),
            *("--cache-dir", str(project / "cache")),  # the temporary folder's may be another user's
            *(["--skip-autoflash", "y"] if is_flashed else []),
            cwd=project,
            timeout_s=150,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        assert board.control.state()["app_elf_sha256"] is not None

# SPDX-License-Identifier: Apache-2.0
"""pytest-embedded, unmodified, flashes a virtual board, reads and writes its console, and resets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.virtual.virtual_board_rig import BoardProcess, flash_files, make_build, python, write_flash_file

pytestmark = pytest.mark.slow

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
    """An empty board is flashed with the build and runs it. Flashing over pyserial's own client takes half a
    minute: the board that is flashed before shows the rest."""
    build = make_build(tmp_path / "app", chip=chip, console_baud=115200)
    flash = write_flash_file(tmp_path / "flash.bin", flash_files(build) if is_flashed else {})
    with BoardProcess(tmp_path / "board", "--chip", chip, flash=flash) as board:
        run_project(board, build, tmp_path, chip, scheme, *(["--skip-autoflash", "y"] if is_flashed else []))
        assert board.control.state()["app_elf_sha256"] is not None


def run_project(board: BoardProcess, build: Path, tmp_path: Path, chip: str, scheme: str, *more: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "test_app.py").write_text(TEST_MODULE)
    (project / "conftest.py").write_text(REGISTER if scheme == "fastrfc2217" else "")
    done = python(
        *("-m", "pytest", "-x", "--embedded-services", "esp,idf", "--target", chip),
        *("--port", board.url(scheme), "--build-dir", str(build), "--root-logdir", str(tmp_path / "logs")),
        *("--cache-dir", str(tmp_path / "cache")),  # the temporary folder's may be another user's
        *more,
        cwd=project,
        timeout_s=150,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]

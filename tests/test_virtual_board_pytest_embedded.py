"""pytest-embedded, unmodified, flashes a virtual board, reads and writes its console, and resets it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.virtual_board_rig import BoardProcess, make_build, python

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

REGISTER = "from hil import serial_url\n\nserial_url.register()\n"


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_build(tmp_path_factory.mktemp("app"), console_baud=115200)


@pytest.fixture
def board(tmp_path: Path) -> Iterator[BoardProcess]:
    with BoardProcess(tmp_path / "board") as process:
        yield process


@pytest.mark.parametrize("scheme", ["rfc2217", "fastrfc2217"])
def test_autoflash_expect_write_and_reset(
    board: BoardProcess, build: Path, tmp_path: Path, scheme: str
) -> None:
    """An empty board is flashed with the build and runs it, over pyserial's own client and over ours."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "test_app.py").write_text(TEST_MODULE)
    (project / "conftest.py").write_text(REGISTER if scheme == "fastrfc2217" else "")
    done = python(
        *("-m", "pytest", "-x", "--embedded-services", "esp,idf", "--target", "esp32"),
        *("--port", board.url(scheme), "--build-dir", str(build), "--root-logdir", str(tmp_path / "logs")),
        cwd=project,
        timeout_s=150,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert board.control.state()["app_elf_sha256"] is not None

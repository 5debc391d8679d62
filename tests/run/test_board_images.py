# SPDX-License-Identifier: Apache-2.0
"""What a run writes to a board, and to which board it does not."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.chip_state import file_name
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.selection import Firmware
from hil.boards.rack import Board, Power
from hil.run.board_images import BoardImages
from tests.boards.test_flash_known import ESPEFUSE
from tests.virtual.virtual_board_rig import MAC, REPOSITORY, BoardProcess, make_build

IMAGE = Image("virtual-esp32")


@pytest.mark.slow
def test_a_run_neither_finds_another_products_nvs_nor_writes_a_chip_that_was_changed(tmp_path: Path) -> None:
    """What the run before left in NVS is gone; once eFuses are burnt, the next run's flash is refused."""
    build = Firmware(make_build(tmp_path / "build"), "")
    with BoardProcess(tmp_path / "b") as process:
        board = Board("b1", "virtual", "esp32", process.url(), Power("virtual"), mac=MAC, where="rack.yaml:7")

        def run(name: str) -> None:
            images = BoardImages(
                {IMAGE: {"candidate": build}},
                run_id=name,
                folder=tmp_path / name,
                chips=tmp_path / "kept",
            )
            images.write(board, IMAGE, "candidate", stop=threading.Event())

        with process.flash.open("r+b") as file:
            file.seek(0x9000)
            file.write(b"another product's keys")
        run("first")
        assert process.flash.read_bytes()[0x9000:0xD000].strip(b"\xff") == b""
        run("second")
        assert (tmp_path / "kept" / file_name(MAC)).is_file()
        argv = [sys.executable, "-c", ESPEFUSE, "--port", process.url(), "--do-not-confirm"]
        burn = ["burn-efuse", "JTAG_DISABLE", "1"]
        subprocess.run([*argv, *burn], cwd=REPOSITORY, check=True, capture_output=True, timeout=60)
        with pytest.raises(ConfigError, match="its eFuses differ in BLOCK0;"):
            run("third")

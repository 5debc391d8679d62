# SPDX-License-Identifier: Apache-2.0
"""What a flash does to NVS, with the real esptool."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hil.boards.firmware.build_folder import FLASHER_ARGS
from hil.boards.flash import SlotFlasher, flash
from hil.boards.flash.tool import parts_of, with_empty_nvs
from hil.boards.rack import Board, Power
from tests.virtual.virtual_board_rig import BoardProcess, make_build

NVS = slice(0x9000, 0xD000)


@pytest.fixture(name="build", scope="module")
def build_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_build(tmp_path_factory.mktemp("build"))


@pytest.mark.slow
def test_nvs_of_the_run_before_does_not_reach_the_next(build: Path, tmp_path: Path) -> None:
    """What a product left in NVS is gone when a run flashes, one build or two; by hand it may stay."""
    with BoardProcess(tmp_path / "b") as process:
        board = Board("b1", "virtual", "esp32", process.url(), Power("virtual"), where="rack.yaml:7")
        log = tmp_path / "flash.log"
        for attempt, empty in (
            (lambda: flash(board, build, log=log), False),
            (lambda: flash(board, build, log=log, keeps_nvs=False), True),
            (lambda: slots(board, build, tmp_path).flash("a"), True),
        ):
            process.control.power("off")
            with process.flash.open("r+b") as file:
                file.seek(NVS.start)
                file.write(b"another product's keys")
            process.control.power("on")
            attempt()
            assert (process.flash.read_bytes()[NVS].strip(b"\xff") == b"") is empty


def slots(board: Board, build: Path, folder: Path) -> SlotFlasher:
    return SlotFlasher(board, {"a": build, "b": build}, order=("a", "b"), folder=folder / "slots")


@pytest.mark.slow
def test_what_a_build_says_of_its_nvs_goes_first(build: Path, tmp_path: Path) -> None:
    """NVS that the build writes itself is not emptied, nor any where all that is written is encrypted."""
    build = shutil.copytree(build, tmp_path / "build")
    parts = parts_of(build)
    added = [part for part in with_empty_nvs(build, parts, files=tmp_path / "b1") if part not in parts]
    assert [offset for offset, _name in added] == [NVS.start]
    assert Path(added[0][1]).read_bytes() == b"\xff" * (NVS.stop - NVS.start)
    own = [*parts, (NVS.start, "given-nvs.bin")]
    assert sorted(with_empty_nvs(build, own, files=tmp_path / "b1")) == sorted(own)
    described = json.loads((build / FLASHER_ARGS).read_text())
    described["write_flash_args"] = [*described.get("write_flash_args", []), "--encrypt"]
    (build / FLASHER_ARGS).write_text(json.dumps(described))
    assert with_empty_nvs(build, parts, files=tmp_path / "b1") == parts

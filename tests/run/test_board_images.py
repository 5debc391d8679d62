# SPDX-License-Identifier: Apache-2.0
"""What a run writes to a board, and to which board it does not."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.selection import Firmware
from hil.boards.rack import Board, Power
from hil.model import Role
from hil.run.board_images import BoardImages
from tests.virtual.virtual_board_rig import (
    MAC,
    OTA_0,
    OTA_1,
    BoardProcess,
    flash_files,
    make_build,
)

IMAGE = Image("virtual-esp32")
Builds = dict[Role, Firmware]


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    folder = tmp_path_factory.mktemp("builds")
    roles: tuple[Role, ...] = ("candidate", "base")
    return {role: Firmware(make_build(folder / role, tag=role), "") for role in roles}


@pytest.fixture(scope="module")
def board_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardProcess]:
    with BoardProcess(tmp_path_factory.mktemp("b")) as running:
        yield running


@pytest.fixture
def process(board_process: BoardProcess) -> BoardProcess:
    """A board whose flash is empty."""
    return board_process.renew({})


@pytest.fixture
def board(process: BoardProcess) -> Board:
    return Board("b1", "virtual", "esp32", process.url(), Power("virtual"), mac=MAC, where="rack.yaml:7")


@pytest.mark.slow
def test_a_run_neither_finds_another_products_nvs_nor_writes_another_board(
    process: BoardProcess, board: Board, builds: Builds, tmp_path: Path
) -> None:
    """What the run before left in NVS is gone; where another board hangs on the port, nothing is written."""
    images = BoardImages({IMAGE: {"candidate": builds["candidate"]}}, folder=tmp_path / "flash")
    with process.flash.open("r+b") as file:
        file.seek(0x9000)
        file.write(b"another product's keys")
    images.write(board, IMAGE, "candidate", stop=threading.Event())
    written = process.flash.read_bytes()
    assert written[0x9000:0xD000].strip(b"\xff") == b""
    process.control.fault("other_mac")
    for attempt in (
        lambda: images.write(board, IMAGE, "candidate", stop=threading.Event()),
        lambda: images.erase(board, stop=threading.Event()),
    ):
        with pytest.raises(ConfigError, match="another board answers than the rack file says"):
            attempt()
    assert process.flash.read_bytes() == written


@pytest.mark.slow
def test_a_build_alone_boots_with_its_own_boot_loader(
    process: BoardProcess, board: Board, builds: Builds, tmp_path: Path
) -> None:
    """Two builds lie side by side behind the candidate's boot loader; the base alone brings its own."""
    candidate = shutil.copytree(builds["candidate"].build_dir, tmp_path / "candidate")
    flash_files(candidate)[0x1000].write_bytes(bytes(4096))
    images = BoardImages({IMAGE: {**builds, "candidate": Firmware(candidate, "")}}, folder=tmp_path / "flash")
    images.write(board, IMAGE, "base", stop=threading.Event())
    assert process.flash.read_bytes()[0x1000:0x2000] == bytes(4096)
    images.write(board, IMAGE, "base", alone=True, stop=threading.Event())
    own = flash_files(builds["base"].build_dir)[0x1000].read_bytes()
    assert process.flash.read_bytes()[0x1000 : 0x1000 + len(own)] == own
    process.wait_for(lambda state: state["app_pid"])


@pytest.mark.slow
def test_the_record_names_the_slot_that_the_board_boots_from(
    process: BoardProcess, board: Board, builds: Builds, tmp_path: Path
) -> None:
    """Whichever slot the candidate is given, after a swap, a switch and an erased flash; one build alone lies
    in no slot to speak of."""
    addresses = {"ota_0": OTA_0, "ota_1": OTA_1}
    stop = threading.Event()
    images = BoardImages({IMAGE: builds}, folder=tmp_path / "flash")

    def check(role: Role, slot: str) -> None:
        assert images.facts(board)["slot"] == slot
        assert process.running() == f"{role} app=0x{addresses[slot]:x}"

    images.write(board, IMAGE, "base", slot=0, stop=stop)
    check("base", "ota_1")
    images.select(board, "candidate")
    check("candidate", "ota_0")
    images.write(board, IMAGE, "candidate", slot=1, stop=stop)
    check("candidate", "ota_1")
    images.erase(board, stop=stop)
    images.write(board, IMAGE, "base", slot=1, stop=stop)
    check("base", "ota_0")
    images.write(board, IMAGE, "base", alone=True, stop=stop)
    assert "slot" not in images.facts(board)

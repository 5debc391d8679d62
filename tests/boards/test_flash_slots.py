# SPDX-License-Identifier: Apache-2.0
"""Two builds on one board: flashed at once, switched by otadata, and what an interrupted switch leaves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hil.boards.firmware import otadata
from hil.boards.firmware.image import build_image_dir
from hil.boards.firmware.partition_table import read_csv, to_binary
from hil.boards.firmware.selection import same_flash
from hil.boards.flash import SlotFlasher, why_not_side_by_side
from hil.boards.rack import Board, Power
from tests.virtual.virtual_board_rig import (
    OTA_0,
    OTA_1,
    OTADATA,
    PARTITIONS,
    BoardProcess,
    compile_app,
    console,
    make_build,
)

SECTOR = 0x1000


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("builds")
    return {"candidate": make_build(folder, tag="one"), "base": make_build(folder, tag="two")}


@pytest.fixture(scope="module")
def board(process: BoardProcess) -> Board:
    return Board("b1", "virtual", "esp32", process.url(), Power("virtual"), where="rack.yaml:7")


def running(process: BoardProcess) -> str:
    """Reset the board; return the tag of the application that it runs, and its address."""
    with console(process) as monitor:
        monitor.reset()
        monitor.expect("READY tag=")
        line = monitor.expect("\n").decode().split()
    return f"{line[0]} {line[-1]}"


@pytest.mark.slow
def test_a_switch_writes_otadata_alone(
    process: BoardProcess, board: Board, builds: dict[str, Path], tmp_path: Path
) -> None:
    """Both images are there after one write; each switch starts the other and writes otadata alone."""
    flasher = SlotFlasher(board, builds, order=("base", "candidate"), folder=tmp_path / "flash")
    flasher.flash("candidate")
    assert running(process) == f"one app=0x{OTA_1:x}"
    before = process.flash.read_bytes()
    tags = []
    for role in ("base", "candidate", "base"):
        flasher.switch(role)
        tags.append(running(process))
    assert tags == [f"two app=0x{OTA_0:x}", f"one app=0x{OTA_1:x}", f"two app=0x{OTA_0:x}"]
    now = process.flash.read_bytes()
    otadata_end = OTADATA + 2 * SECTOR
    assert now[:OTADATA] == before[:OTADATA]
    assert now[otadata_end:] == before[otadata_end:]


@pytest.mark.slow
def test_an_interrupted_switch_leaves_the_other_image_in_force(
    process: BoardProcess, board: Board, builds: dict[str, Path], tmp_path: Path
) -> None:
    """Killed between erase and write the old image boots; the same switch again starts the new one."""
    flasher = SlotFlasher(board, builds, order=("candidate", "base"), folder=tmp_path)
    flasher.flash("candidate")
    flasher.switch("base")
    erased = process.esptool("erase-region", f"{OTADATA + SECTOR:#x}", f"{SECTOR:#x}")
    assert erased.returncode == 0, erased.stdout
    assert running(process) == f"one app=0x{OTA_0:x}"
    flasher.repeat()
    assert running(process) == f"two app=0x{OTA_1:x}"


@pytest.mark.parametrize("slot_count", [2, 3, 16])
def test_the_next_sequence_boots_its_slot_and_rules(slot_count: int) -> None:
    """It is above the one before by no more than the number of slots, and the boot loader's rule agrees."""
    for before in range(1, 40):
        for slot in range(slot_count):
            sequence = otadata.next_sequence(before, slot, slot_count=slot_count)
            assert before < sequence <= before + slot_count
            entries = [
                otadata.unpack(otadata.sector(one)[: otadata.ENTRY_BYTES]) for one in (before, sequence)
            ]
            assert otadata.select(entries, slot_count=slot_count) == slot


def test_builds_that_cannot_lie_side_by_side_say_why(builds: dict[str, Path], tmp_path: Path) -> None:
    """Another partition table, no second slot, an image beyond its slot: each has its sentence."""
    assert why_not_side_by_side(builds["candidate"], builds["base"]) == ""
    moved = build_with(tmp_path / "moved", PARTITIONS.replace("0x1f0000", "0x1e0000"))
    assert "partition table" in why_not_side_by_side(builds["candidate"], moved)
    single = build_with(
        tmp_path / "single", PARTITIONS.replace("ota_1,    app,  ota_1,   ,        0x1f0000\n", "")
    )
    assert "no two OTA slots" in why_not_side_by_side(single, builds["base"])
    small = PARTITIONS.replace("0x1f0000", "0x10000")
    pair = [build_with(tmp_path / name, small, padding) for name, padding in (("a", 0), ("b", 100_000))]
    assert "OTA slot of 65,536" in why_not_side_by_side(*pair)


def build_with(folder: Path, partitions: str, padding_bytes: int = 0) -> Path:
    """Make a build with a partition table of its own, whether its image fits or not."""
    elf = compile_app(folder, padding_bytes=padding_bytes)
    (folder / "partitions.csv").write_text(PARTITIONS)
    build_image_dir(
        elf,
        folder / "build",
        chip="esp32",
        project="a",
        version="1",
        partitions_csv=folder / "partitions.csv",
    )
    (folder / "own.csv").write_text(partitions)
    table = to_binary(read_csv(folder / "own.csv"))
    (folder / "build" / "partition_table" / "partition-table.bin").write_bytes(table)
    return folder / "build"


def test_builds_are_the_same_by_what_is_flashed(builds: dict[str, Path], tmp_path: Path) -> None:
    """A copy under another name is the same; one byte of the image more is not."""
    copy = tmp_path / "elsewhere"
    shutil.copytree(builds["candidate"], copy)
    assert same_flash(builds["candidate"], copy)
    assert not same_flash(builds["candidate"], builds["base"])

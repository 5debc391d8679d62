# SPDX-License-Identifier: Apache-2.0
"""What a chip was when it was last flashed: read by the real esptool, compared before anything is written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError
from hil.boards.chip_state import ChipState, efuse_blocks, file_name, unpack
from hil.boards.firmware.build_folder import FLASHER_ARGS
from hil.boards.flash import KnownChips, SlotFlasher, accept, erase, flash
from hil.boards.flash.tool import parts_of, with_empty_nvs
from hil.boards.rack import Board, Power
from tests.virtual.virtual_board_rig import MAC, REPOSITORY, BoardProcess, make_build, python

NVS = slice(0x9000, 0xD000)
ESPEFUSE = (
    "import sys, espefuse; from hil.boards.serial_url import register; register(); "
    "sys.argv[0] = 'espefuse'; espefuse.main()"
)


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("build")
    return {chip: make_build(folder, chip=chip) for chip in ("esp32", "esp32c3")}


@pytest.fixture(params=["esp32", "esp32c3"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BoardProcess]:
    with BoardProcess(tmp_path / "b", "--chip", request.param) as running:
        yield running


def board_of(process: BoardProcess) -> Board:
    chip = process.control.state()["chip"]
    return Board("b1", "virtual", chip, process.url(), Power("virtual"), where="rack.yaml:7")


def burn(process: BoardProcess, *command: str) -> None:
    """Program eFuses with Espressif's own tool."""
    argv = [sys.executable, "-c", ESPEFUSE, "--port", process.url(), "--do-not-confirm", *command]
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_chip_whose_efuses_changed_is_not_written(
    process: BoardProcess, builds: dict[str, Path], tmp_path: Path
) -> None:
    """The blocks are named, which a key was burnt to and which says so, and nothing is written or erased.

    Once a person accepts the chip, it is flashed and known as it is.
    """
    board, kept, log = board_of(process), tmp_path / "kept", tmp_path / "flash.log"
    build = builds[board.chip]
    flash(board, build, log=log, chips=KnownChips(kept))
    flash(board, build, log=log, chips=KnownChips(kept))
    key = tmp_path / "key.bin"
    key.write_bytes(bytes(range(32)))
    if board.chip == "esp32":
        burn(process, "burn-key", "--no-protect-key", "flash_encryption", str(key))
        blocks = "BLOCK1"
    else:
        burn(process, "burn-key", "BLOCK_KEY0", str(key), "USER")
        blocks = "BLOCK0, BLOCK4"
    before = process.flash.read_bytes()
    attempts = (
        lambda: flash(board, build, log=log, chips=KnownChips(kept)),
        lambda: erase(board, log=log, chips=KnownChips(kept)),
    )
    for attempt in attempts:
        with pytest.raises(ConfigError) as caught:
            attempt()
        for word in (f"its eFuses differ in {blocks};", "nothing was written", MAC, "hil board accept", "b1"):
            assert word in str(caught.value)
    assert process.flash.read_bytes() == before
    assert accept(kept, board) == 1
    flash(board, build, log=log, chips=KnownChips(kept))
    flash(board, build, log=log, chips=KnownChips(kept))


@pytest.mark.slow
def test_another_flash_chip_is_named_with_the_one_before(
    process: BoardProcess, builds: dict[str, Path], tmp_path: Path
) -> None:
    """A module that was replaced under the same MAC address is not written; both flash chips are told."""
    board, kept, log = board_of(process), tmp_path / "kept", tmp_path / "flash.log"
    flash(board, builds[board.chip], log=log, chips=KnownChips(kept))
    process.control.fault("other_flash")
    was = "ef 4016, 4MB" if board.chip == "esp32" else "20 4016, 4MB"
    with pytest.raises(ConfigError, match=rf"its flash chip is c8 4017, 8MB, and was {was};"):
        flash(board, builds[board.chip], log=log, chips=KnownChips(kept))


@pytest.mark.slow
def test_two_boards_that_are_one_chip_are_told(
    process: BoardProcess, builds: dict[str, Path], tmp_path: Path
) -> None:
    """The second board of a run that leads to a chip of the first is not written; the same board may be."""
    board, log = board_of(process), tmp_path / "flash.log"
    chips = KnownChips(tmp_path / "kept")
    flash(board, builds[board.chip], log=log, chips=chips)
    flash(board, builds[board.chip], log=log, chips=chips)
    before = process.flash.read_bytes()
    with pytest.raises(ConfigError, match=rf"board b2 .*board b1 of this run has the MAC address {MAC}, too"):
        flash(replace(board, id="b2"), builds[board.chip], log=log, chips=chips)
    assert process.flash.read_bytes() == before


@pytest.mark.slow
def test_nvs_of_the_run_before_does_not_reach_the_next(builds: dict[str, Path], tmp_path: Path) -> None:
    """What a product left in NVS is gone when a run flashes, one build or two; by hand it may stay."""
    with BoardProcess(tmp_path / "b") as process:
        board, build, log = board_of(process), builds["esp32"], tmp_path / "flash.log"
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
def test_what_a_build_says_of_its_nvs_goes_first(builds: dict[str, Path], tmp_path: Path) -> None:
    """NVS that the build writes itself is not emptied, nor any where all that is written is encrypted."""
    build = tmp_path / "build"
    shutil.copytree(builds["esp32"], build)
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


BLOCKS = """
import importlib, json, sys
import esptool
found = {}
for chip in sys.argv[1:]:
    theirs = importlib.import_module(f"espefuse.efuse.{chip}.mem_definition")
    base = theirs.EfuseDefineRegisters.DR_REG_EFUSE_BASE
    blocks = [[block[3] - base, block[7]] for block in theirs.EfuseDefineBlocks.BLOCKS]
    found[chip] = [esptool.CHIP_DEFS[chip].EFUSE_RD_REG_BASE - base, blocks]
print(json.dumps(found))
"""


@pytest.mark.slow
def test_the_blocks_are_where_espefuse_reads_them() -> None:
    """Of every chip that a rack may hold, by the addresses and lengths of Espressif's own tool."""
    done = python("-c", BLOCKS, *CHIPS)
    assert done.returncode == 0, done.stderr
    ours = {
        chip: [0 if chip == "esp32" else 0x30, [list(block) for block in efuse_blocks(chip)]]
        for chip in CHIPS
    }
    assert json.loads(done.stdout) == ours


STATE = ChipState(MAC, "ef 4016, 4MB", ("aa", "bb"), "b1", "2026-11-24T20:00:00+00:00")


def test_a_record_that_is_damaged_is_none(tmp_path: Path) -> None:
    """A record is read as it was written; half a record, or a word of something else, is as none."""
    assert unpack(STATE.pack().ljust(1000)) == STATE
    for text in ("", STATE.pack()[:-9], "[]", '{"mac": 1}', b"\xff\xfe"):
        assert unpack(text) is None


def test_a_board_without_a_mac_is_accepted_by_its_id(tmp_path: Path) -> None:
    """Only the chip that answered as this board is forgotten; with a MAC address only the chip of it."""
    other = replace(STATE, mac="24:0a:c4:00:00:02", board="b2")
    for state in (STATE, other):
        (tmp_path / file_name(state.mac)).write_text(state.pack())
    board = Board("b1", "physical", "esp32", "/dev/null", Power("none"))
    assert accept(tmp_path, replace(board, mac="24:0a:c4:00:00:03")) == 0
    assert accept(tmp_path, board) == 1
    assert accept(tmp_path, board) == 0
    assert accept(tmp_path, replace(board, id="any", mac=other.mac)) == 1


@pytest.mark.slow
def test_the_command_says_what_it_forgot(tmp_path: Path) -> None:
    """`hil board accept` forgets a board's chip once; then there is nothing to forget."""
    rack = tmp_path / "rack.yaml"
    rack.write_text(
        "schema: 1\nname: known\nhost: {interface: hil0, address: 10.77.0.1}\n"
        "access_point: {type: virtual, profile: lab, seed: 1}\n"
        f"boards:\n  - {{id: b1, kind: virtual, target: esp32, power: {{type: virtual}}, mac: '{MAC}'}}\n"
    )
    kept = tmp_path / "out" / "lock" / "known"
    kept.mkdir(parents=True)
    (kept / file_name(MAC)).write_text(STATE.pack())
    said = []
    for _ in range(2):
        done = python(
            "-m", "hil", "board", "accept", "b1", "--rack", str(rack), "--out", str(tmp_path / "out")
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said == [
        "b1: the next flash keeps its chip as it is then\n",
        "b1: nothing was kept of its chip\n",
    ]

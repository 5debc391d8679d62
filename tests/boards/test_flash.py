# SPDX-License-Identifier: Apache-2.0
"""Flashing a virtual board with the real esptool: one build or two, NVS, and whose a fault is."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, HilError, RigError
from hil.boards.firmware import otadata
from hil.boards.firmware.build_folder import FLASHER_ARGS, SDKCONFIG, check_burns_nothing
from hil.boards.firmware.image import build_image_dir
from hil.boards.firmware.partition_table import read_csv, to_binary
from hil.boards.firmware.selection import same_flash
from hil.boards.flash import SlotFlasher, flash, tool, why_not_side_by_side
from hil.boards.flash.tool import command, parts_of, with_empty_nvs, write_of
from hil.boards.rack import Board, Power
from hil.boards.supply import switch_power
from tests.boards.switch_rig import no_virtual_board
from tests.virtual.virtual_board_rig import (
    MAC,
    OTA_0,
    OTA_1,
    OTADATA,
    PARTITIONS,
    BoardProcess,
    compile_app,
    console,
    make_build,
)

PARTS = ("bootloader/bootloader.bin", "partition_table/partition-table.bin", "testapp.bin")


@pytest.fixture(scope="module")
def build_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_build(tmp_path_factory.mktemp("build"))


@pytest.fixture
def board(process: BoardProcess) -> Iterator[Board]:
    yield board_at(process.url())
    process.control.clear()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have esptool call a board that is silent once, and not four times."""
    monkeypatch.setattr(tool, "CONNECT_ATTEMPTS", 1)


def board_at(serial: str) -> Board:
    return Board("b1", "virtual", "esp32", serial, Power("virtual"), where="rack.yaml:7")


@pytest.mark.slow
def test_what_is_in_the_build_is_in_the_flash(
    board: Board, process: BoardProcess, build_dir: Path, tmp_path: Path
) -> None:
    """All parts land where flasher_args.json says, and the log has esptool's words."""
    result = flash(board, build_dir, log=tmp_path / "flash.log")
    assert (result.attempts, result.note) == (1, "")
    content = process.flash.read_bytes()
    assert all((build_dir / name).read_bytes() in content for name in PARTS)
    assert "Hash of data verified" in (tmp_path / "flash.log").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("name", "value", "mac", "error", "words"),
    [
        ("no_sync", True, "", RigError, ["boot loader", "hil board power"]),
        ("no_sync", True, MAC, RigError, ["boot loader", "hil board power"]),
        ("wrong_chip", "esp32s2", "", ConfigError, ["another chip", "ESP32-S2", "'target'"]),
        ("wrong_chip", "esp32s2", MAC, ConfigError, ["another chip", "ESP32-S2, not esp32", "'target'"]),
        ("other_mac", True, MAC, ConfigError, ["another board answers"]),
        ("bad_md5", True, "", RigError, ["differs from what was written", "cable"]),
        ("write_error", True, "", RigError, ["write-protected"]),
    ],
)
def test_a_faulty_board_has_an_owner(
    board: Board, process: BoardProcess, build_dir: Path, tmp_path: Path, name: str, value: Any, mac: str,
    error: type[Exception], words: list[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Each fault is a sentence with board, port, cause, log and what to do, also where the board's address is
    asked for first; a wrong chip is no rig fault."""
    monkeypatch.setattr(tool, "ATTEMPTS", 1)
    process.control.fault(name, value)
    log = tmp_path / "flash.log"
    with pytest.raises(error) as caught:
        flash(replace(board, mac=mac), build_dir, log=log)
    for word in ["board b1", process.url(), str(log), *words]:
        assert word in str(caught.value)


@pytest.mark.slow
def test_another_board_on_the_port_is_left_as_it_is(
    board: Board, process: BoardProcess, build_dir: Path, tmp_path: Path
) -> None:
    """Nothing is written to a board of another MAC address; both addresses are told, and it runs on."""
    flash(replace(board, mac=MAC), build_dir, log=tmp_path / "flash.log")
    before = process.flash.read_bytes()
    boots = process.control.state()["boots"]
    with pytest.raises(ConfigError) as caught:
        flash(replace(board, mac="02:00:00:00:00:99"), build_dir, log=tmp_path / "flash.log")
    for word in ("another board", MAC, "02:00:00:00:00:99", "'mac'", "nothing was written"):
        assert word in str(caught.value)
    assert process.flash.read_bytes() == before
    process.wait_for(lambda state: state["boots"] > boots and state["mode"] == "run")


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_fault_that_passes_costs_one_repetition(
    board: Board, process: BoardProcess, build_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A board that answers the second time costs one repetition, and the result says why."""
    attempt = tool._attempt

    def recovers(*arguments: Any) -> HilError | None:
        fault = attempt(*arguments)
        process.control.clear()
        return fault

    process.control.fault("no_sync")
    monkeypatch.setattr(tool, "_attempt", recovers)
    result = flash(board, build_dir, log=tmp_path / "flash.log")
    assert result.attempts == 2
    assert "attempt 2; before: flashing board b1" in result.note


@pytest.mark.slow
def test_a_port_that_nobody_serves(build_dir: Path, tmp_path: Path) -> None:
    """A port that cannot be opened is the rig's fault and names the port and the cause."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RigError, match=rf"{port} failed: its port could not be opened .*refused"):
        flash(board_at(f"fastrfc2217://127.0.0.1:{port}"), build_dir, log=tmp_path / "flash.log")


@pytest.mark.slow
def test_a_hanging_esptool_is_ended(build_dir: Path, tmp_path: Path) -> None:
    """A port that accepts and never speaks does not hold the run up: the deadline ends esptool."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        serial = f"fastrfc2217://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(RigError, match=r"esptool did not end within 0\.4 s"):
            flash(board_at(serial), build_dir, log=tmp_path / "flash.log", timeout_s=0.4)


@pytest.mark.slow
def test_a_stub_that_never_greets_is_not_waited_for(
    board: Board, process: BoardProcess, build_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """esptool waits for its stub without end; a board that does not run it is given up long before."""
    monkeypatch.setattr(tool, "STUB_S", 0.4)
    process.control.fault("no_stub")
    with pytest.raises(RigError, match=r"its stub did not answer within 0\.4 s"):
        flash(board, build_dir, log=tmp_path / "flash.log", timeout_s=600.0)


@pytest.mark.slow
def test_stop_ends_flashing_at_once(board: Board, build_dir: Path, tmp_path: Path) -> None:
    """A run that is being stopped does not wait for esptool, and does not repeat it."""
    stop = threading.Event()
    stop.set()
    with pytest.raises(RigError, match="the run was stopped"):
        flash(board, build_dir, log=tmp_path / "flash.log", stop=stop)


def test_a_build_that_lacks_a_file(tmp_path: Path) -> None:
    """A build folder without a file that it names is a configuration error before anything is written."""
    (tmp_path / "flasher_args.json").write_text('{"flash_files": {"0x1000": "gone.bin"}}')
    with pytest.raises(ConfigError, match=r"lacks gone\.bin"):
        flash(board_at("/dev/nowhere"), tmp_path, log=tmp_path / "flash.log")


def test_a_physical_board_is_flashed_by_the_stock_esptool(build_dir: Path) -> None:
    """Only virtual ports need our serial URL handler."""
    argv = command(board_at("/dev/ttyUSB0"), write_of(build_dir, parts_of(build_dir)))
    assert argv[argv.index("-m") + 1] == "esptool"
    assert "--flash-mode" in argv


@pytest.mark.slow
def test_power_of_a_virtual_board_goes_through_its_control(process: BoardProcess, board: Board) -> None:
    """`off` switches the board off, `on` on again."""
    switch_power(board, "off", virtual=lambda _board_id: process.control)
    assert process.control.state()["mode"] == "off"
    switch_power(board, "on", virtual=lambda _board_id: process.control)
    process.wait_for(lambda state: state["mode"] != "off")


def test_a_board_without_a_switch_says_so() -> None:
    """No power switch is the rack file's matter: exit 2 with its line."""
    board = replace(board_at("x"), power=Power("none"))
    with pytest.raises(ConfigError, match=r"rack\.yaml:7: board b1 has no power switch"):
        switch_power(board, "cycle", virtual=no_virtual_board)


@pytest.mark.parametrize(
    "option",
    [
        *("SECURE_BOOT", "SECURE_DISABLE_ROM_DL_MODE", "BOOTLOADER_APP_ANTI_ROLLBACK"),
        *(f"SECURE_FLASH_ENCRYPTION_MODE_{mode}" for mode in ("RELEASE", "DEVELOPMENT")),
    ],
)
def test_an_image_that_would_burn_efuses_is_refused(build_dir: Path, tmp_path: Path, option: str) -> None:
    """The board is not asked, alone or beside another image; the option and the way out are named."""
    burning = tmp_path / "build"
    shutil.copytree(build_dir, burning)
    options = json.loads((burning / SDKCONFIG).read_text())
    (burning / SDKCONFIG).write_text(json.dumps({**options, option: True}))
    board, log = board_at("/dev/nowhere"), tmp_path / "flash.log"
    slots = SlotFlasher(board, {"a": build_dir, "b": burning}, order=("a", "b"), folder=tmp_path / "slots")
    for attempt in (lambda: flash(board, burning, log=log), lambda: slots.flash("a")):
        with pytest.raises(ConfigError, match=f"CONFIG_{option}: .*Next: build it without CONFIG_{option}"):
            attempt()
    assert not log.exists()


def test_an_image_whose_efuses_are_simulated_burns_none(tmp_path: Path) -> None:
    """CONFIG_EFUSE_VIRTUAL keeps them in memory: it is flashed as any other."""
    (tmp_path / SDKCONFIG).parent.mkdir()
    (tmp_path / SDKCONFIG).write_text(json.dumps({"SECURE_BOOT": True, "EFUSE_VIRTUAL": True}))
    check_burns_nothing(tmp_path)


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


SECTOR = 0x1000


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("builds")
    return {"candidate": make_build(folder, tag="one"), "base": make_build(folder, tag="two")}


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

# SPDX-License-Identifier: Apache-2.0
"""A core dump is found, kept, and decoded with the ELF file of the build that left it and no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hil.base.errors import FirmwareError
from hil.boards.firmware.backtrace import decode_panic
from hil.boards.firmware.core_dump import decode_core_dump, take_core_dump
from hil.boards.firmware.symbols import GDBS
from hil.boards.flash import flash
from hil.boards.flash.tool import ask
from hil.boards.rack import Board, Power
from hil.run.crashes import Crashes
from hil.session.console import Lines
from hil.session.trouble import Incident
from tests.boards.core_dump_build import PARTITION, SHOWN, build, dump_of, printed, put_gdb
from tests.lab import path_without
from tests.virtual.virtual_board_rig import MAC, BoardProcess


@pytest.fixture(name="tools")
def only_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in front of PATH that alone may hold a gdb."""
    (tmp_path / "tools").mkdir()
    monkeypatch.setitem(GDBS, "EM_RISCV", ("riscv32-esp-elf-gdb",))
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}{os.pathsep}{path_without('riscv32-esp-elf-gdb')}")
    return tmp_path / "tools"


@pytest.mark.slow
def test_a_dump_on_the_console_is_decoded_beside_the_panic(tmp_path: Path, tools: Path) -> None:
    """The tasks go into a file of their own, the dump itself beside it; the panic's has no memory in it."""
    put_gdb(tools)
    folder = build(tmp_path / "build")
    for number in (1, 2):
        decoded = decode_panic(printed(folder), folder, tmp_path / "e1.log")
        assert decoded
        assert decoded.where == SHOWN
        assert f"e1.coredump-{number}.txt" in decoded.next_step
    text = (tmp_path / "e1.coredump-1.txt").read_text()
    assert text.startswith("#0  0x42006ec0 in read_sensor\n#1 ")
    assert "name: 'sensor'" in text
    assert (tmp_path / "e1.coredump-1.bin").read_bytes() == dump_of(folder)
    panic = (tmp_path / "e1.panic-1.txt").read_text()
    assert "written to uart" in panic
    assert "f0VMRg" not in panic


def test_what_cannot_be_decoded_says_why(tmp_path: Path, tools: Path) -> None:
    """Where there is no gdb the dump is kept, and how to get one is said. Another build's dump, one that came
    damaged, one that was cut off, and one whose ELF file is gone."""
    assert not list(tools.iterdir())
    folder = build(tmp_path / "build")
    dump = dump_of(folder)
    log = tmp_path / "e1.log"
    without = decode_core_dump(dump, folder, log)
    assert (without.where, "riscv32-esp-elf-gdb" in without.next_step) == ("", True)
    assert (tmp_path / "e1.coredump-1.bin").read_bytes() == dump
    put_gdb(tools)
    assert "1000 of 1996 bytes came" in decode_core_dump(dump[:1000], folder, log).next_step
    damaged = decode_core_dump(dump[:900] + b"\0\1\2\3" + dump[904:], folder, log)
    assert "Invalid core dump CRC" in damaged.next_step
    with (folder / "app.elf").open("ab") as elf:
        elf.write(b"\0")
    other = decode_core_dump(dump, folder, log)
    assert not other.where
    assert "Invalid application image" in other.next_step
    (folder / "app.elf").unlink()
    assert "app.elf is missing" in decode_core_dump(dump, folder, log).next_step
    assert len(list(tmp_path.glob("e1.coredump-*.bin"))) == 5


def test_an_incident_holds_the_whole_dump(tmp_path: Path) -> None:
    """However many lines it has, and however long the chip takes to save it; then the restart ends it. Of a
    dump that is cut off the restart's lines are no memory, nor what follows; a damaged line is left to the
    checksum."""
    lines = printed(build(tmp_path / "build"))
    begin = next(number for number, line in enumerate(lines) if "DUMP START" in line)
    longer = [*lines[: begin + 1], *["AAAA" * 16] * 3000, *lines[begin + 1 :]]
    coming = iter([*longer[1:], "never read"])
    incident = Incident([longer[0]])
    assert incident.finish(lambda _: next(coming)) == longer
    saving = Incident(["Guru Meditation Error"])
    patience = [saving.patience_s]
    for line in (
        "I (1) esp_core_dump_flash: Save core dump to flash...",
        "I (2) x: Core dump has been saved",
    ):
        saving.add(line)
        patience.append(saving.patience_s)
    assert patience[0] == patience[2] < patience[1]
    cut = [*lines[: begin + 3], "rst:0x1 (POWERON),boot:0xc", "ready"]
    rest, dump = take_core_dump(cut)
    assert rest == [*lines[:begin], *cut[-2:]]
    assert dump == dump_of(tmp_path / "build")[: len(dump or b"")] != b""
    assert take_core_dump([*lines[: begin + 1], "A", *lines[begin + 1 :]])[1] == dump_of(tmp_path / "build")


class _Console:
    def __init__(self, text: bytes) -> None:
        self.text = text

    def read(self, timeout_s: float) -> bytes:
        del timeout_s
        text, self.text = self.text, b""
        return text

    def write(self, data: bytes) -> None:
        raise AssertionError(data)


def test_no_log_takes_a_chips_memory(tmp_path: Path) -> None:
    """What is secret in it cannot be masked: the console log has the number of its lines instead."""
    lines = [*printed(build(tmp_path / "build")), "ready"]
    log: list[str] = []
    reader = Lines(
        _Console("".join(f"{line}\n" for line in lines).encode()), log=log.append, clock=lambda: 0.0
    )
    assert [reader.read(1.0) for _ in lines] == lines
    assert "(55 lines of a core dump)" in log
    assert len(log) == len(lines) - 54
    assert log[-1] == "ready"
    assert not any("f0VMRg" in line for line in (*log, *reader.last))


@pytest.fixture(name="board", scope="module")
def running_board(process: BoardProcess) -> Board:
    """Return a virtual board with a flash that esptool reads and writes."""
    return Board("b1", "virtual", "esp32", process.url(), Power("virtual"), mac=MAC, where="rack.yaml:7")


def leave_in_flash(board: Board, dump: bytes, folder: Path) -> None:
    """Do what a chip does when it panics: write the dump into its partition."""
    (folder / "left.bin").write_bytes(dump)
    words = ["write-flash", hex(PARTITION.offset), str(folder / "left.bin")]
    ask(board, words, doing="writing to", log=folder / "left.log")


@pytest.mark.slow
def test_a_dump_in_the_flash_is_read_once(board: Board, tmp_path: Path, tools: Path) -> None:
    """It is found in the partition table; the fault of a silent restart names the functions by it."""
    put_gdb(tools)
    folder = build(tmp_path / "build")
    flash(board, folder, log=tmp_path / "b1.log", keeps_nvs=False)
    leave_in_flash(board, dump_of(folder) + b"more", tmp_path)
    crashes = Crashes(board, folder, tmp_path / "console.log", tmp_path / "b1.log")
    with pytest.raises(FirmwareError) as caught, crashes.told():
        raise FirmwareError("Board b1 was reset: rst:0xc (SW_CPU_RESET).", next_step="look at it.")
    assert caught.value.sentence.endswith(f"(SW_CPU_RESET); by its core dump {SHOWN}.")
    assert caught.value.next_step.startswith("look at it; ")
    assert (tmp_path / "console.coredump-1.bin").read_bytes() == dump_of(folder)
    with pytest.raises(FirmwareError, match=r"^It said less\.$"), crashes.told():
        raise FirmwareError("It said less.")
    assert not (tmp_path / "console.coredump-2.bin").exists()


@pytest.mark.slow
def test_a_dump_of_an_earlier_image_is_none_of_this_one(
    board: Board, tmp_path: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that flashes empties the partition; what was counted while a case went on is decoded after it, up
    to a number."""
    monkeypatch.setattr("hil.run.crashes.MOST_DECODED", 2)
    put_gdb(tools)
    folder = build(tmp_path / "build")
    leave_in_flash(board, dump_of(folder), tmp_path)
    flash(board, folder, log=tmp_path / "b1.log", keeps_nvs=False)
    crashes = Crashes(board, folder, tmp_path / "console.log", tmp_path / "b1.log")
    crashes.counted = [printed(folder)]
    crashes.decode_counted()
    crashes.counted += [printed(folder)] * 2
    with pytest.raises(FirmwareError, match=r"^It failed\.$"), crashes.told():
        raise FirmwareError("It failed.")
    assert (tmp_path / "console.coredump-2.txt").read_text().startswith("#0  0x42006ec0 in read_sensor")
    assert len(list(tmp_path.glob("console.coredump-*.bin"))) == 2


@pytest.mark.slow
def test_a_dump_that_cannot_be_fetched_hides_no_fault(tmp_path: Path) -> None:
    """The fault stands as it was found, and says why there is no dump."""
    folder = build(tmp_path / "build")
    gone = Board("b1", "physical", "esp32", str(tmp_path / "no-port"), Power("none"), where="rack.yaml:7")
    crashes = Crashes(gone, folder, tmp_path / "console.log", tmp_path / "b1.log")
    with pytest.raises(FirmwareError, match=r"^It panicked\.") as caught, crashes.told():
        raise FirmwareError("It panicked.")
    assert "could not be fetched" in caught.value.next_step

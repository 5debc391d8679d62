# SPDX-License-Identifier: Apache-2.0
"""An emulated board's process: launch, reset, strap, esptool, faults and its end; a stand-in plays QEMU."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import serial

from hil.base.errors import ConfigError
from tests.virtual import stand_in_qemu
from tests.virtual.virtual_board_rig import MAC, BoardProcess, Console, console, is_alive, wait_until

APP = 0x10000


class EmulatedProcess(BoardProcess):
    module = "hil.virtual.emulator"

    def __init__(self, folder: Path, flash: Path | None = None) -> None:
        super().__init__(folder, "--chip", "esp32c3", "--emulator", "qemu", flash=flash)

    @property
    def emulator_pid(self) -> int:
        return int(self.control.state()["emulator_pid"])

    def died(self) -> str:
        """Wait for the end of the process that ends by itself; return what it said."""
        said = self.process.communicate(timeout=20)[1]
        assert self.process.returncode == 3
        return said


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = stand_in_qemu.install(tmp_path_factory.mktemp("bin"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HIL_QEMU_RISCV32", str(path))
        yield path


@pytest.fixture(scope="module")
def shared(stand_in: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedProcess]:
    with EmulatedProcess(tmp_path_factory.mktemp("e1")) as process:
        yield process


@pytest.fixture
def board(shared: EmulatedProcess) -> EmulatedProcess:
    """The shared board without a fault; tests reset it before they look at it."""
    shared.control.clear()
    return shared


def reset(monitor: Console) -> None:
    """Pulse EN; what the chip said before is forgotten."""
    monitor.reset("hello from")


def test_the_chip_boots_with_the_boards_address_and_answers(board: EmulatedProcess) -> None:
    """The address is in the eFuses; the record's words are in the state."""
    with console(board) as monitor:
        reset(monitor)
        monitor.expect(MAC)
        monitor.write("echo good morning")
        monitor.expect("good morning\r\n")
    state = board.control.state()
    emulation = {"emulator": "qemu 9.2.2", "icount": "3,sleep=on", "network": "openeth"}
    assert (state["mode"], state["emulation"]) == ("run", emulation)


def test_a_pulse_on_en_starts_the_chip_anew_and_power_is_the_process(board: EmulatedProcess) -> None:
    """Each time another process, and never two."""
    with console(board) as monitor:
        reset(monitor)
        first = board.emulator_pid
        reset(monitor)
        second = board.emulator_pid
        assert first != second
        assert not is_alive(first)
        assert board.control.power("off")["emulator_pid"] is None
        assert not is_alive(second)
        monitor.write("echo nobody hears it")
        board.control.power("on")
        monitor.expect("hello from")
        monitor.write("boots")
        assert b"nobody" not in monitor.expect("boots 1")


def test_esptool_flashes_the_image_and_starts_it(board: EmulatedProcess, tmp_path: Path) -> None:
    """DTR and RTS lead to the chip's serial loader and back, and the stub writes what it is given."""
    image = tmp_path / "app.bin"
    image.write_bytes(os.urandom(0x8000))
    said = board.esptool_ok("--chip", "esp32c3", "--baud", "921600", "write-flash", f"{APP:#x}", str(image))
    assert "Hash of data verified." in said
    board.wait_for(lambda state: state["mode"] == "run")
    assert board.flash.read_bytes()[APP : APP + 0x8000] == image.read_bytes()


@pytest.mark.slow
def test_flash_outlives_the_process_and_the_efuses_do(board: EmulatedProcess, tmp_path: Path) -> None:
    """Another process on the same files boots what the first one was given."""
    image = tmp_path / "app.bin"
    image.write_bytes(os.urandom(0x1000))
    board.esptool_ok("--chip", "esp32c3", "--no-stub", "write-flash", f"{APP:#x}", str(image))
    efuses = board.flash.with_suffix(".efuses")
    with efuses.open("r+b") as file:
        file.seek(0x100)
        file.write(b"burnt")
    with console(board) as monitor:
        reset(monitor)
        told = monitor.expect("\r\n")
    board.stop()
    board.start()
    with console(board) as monitor:
        reset(monitor)
        assert monitor.expect("\r\n") == told
    assert efuses.read_bytes()[0x100:0x105] == b"burnt"


def test_nothing_of_a_long_output_is_lost_though_the_client_reads_late(board: EmulatedProcess) -> None:
    """The chip waits for its cable; the cable waits for the client."""
    lines = 200_000
    with console(board) as monitor:
        reset(monitor)
        monitor.write(f"flood {16 * lines}")
        log = monitor.expect("end of flood\n")
    numbers = [int(line) for line in log.split(b"\n") if len(line) == 15 and line.isdigit()]
    assert numbers == list(range(lines))


def test_a_silent_chip_goes_on_where_it_stood(board: EmulatedProcess) -> None:
    """It is the same process, and reads afterwards what it was sent meanwhile. One that is switched on silent
    boots when the fault is cleared."""
    with console(board) as monitor:
        reset(monitor)
        monitor.write("echo before")
        monitor.expect("before\r\n")
        pid = board.emulator_pid
        board.control.fault("silent")
        monitor.write("echo meanwhile")
        assert b"meanwhile" not in monitor.silence(0.3)
        board.control.clear()
        monitor.expect("meanwhile\r\n")
        assert board.emulator_pid == pid
        board.control.fault("silent")
        board.control.power("cycle")
        assert b"hello" not in monitor.silence(0.3)
        board.control.clear()
        monitor.expect("hello from")


def test_a_brownout_noise_and_a_lost_connection(board: EmulatedProcess) -> None:
    """A brownout is a loss of power: the chip starts anew as often as asked for. The others are the cable's,
    as on a virtual board."""
    with console(board) as monitor:
        reset(monitor)
        boots = board.control.state()["boots"]
        board.control.fault("brownout", 2)
        board.wait_for(lambda state: state["boots"] == boots + 2 and state["faults"] == {})
        monitor.expect("hello from")
        board.control.fault("garbage", 50)
        monitor.silence(0.2)
        assert len(monitor.seen.partition(b"\r\n")[2]) >= 50
        board.control.clear()
        board.control.disconnect()
        with pytest.raises(serial.SerialException):
            monitor.silence(5)


@pytest.mark.parametrize("name", ["panic", "watchdog", "no_sync", "corrupt_image"])
def test_what_the_chips_own_code_does_is_not_played(board: EmulatedProcess, name: str) -> None:
    """The refusal names the faults that there are."""
    with pytest.raises(ConfigError, match=f"fault '{name}'.*disconnect, brownout, garbage, silent"):
        board.control.fault(name)
    assert set(board.control.faults()) == {"disconnect", "brownout", "garbage", "silent"}


def test_a_restart_of_the_firmware_is_counted(board: EmulatedProcess) -> None:
    """It happens within QEMU, which tells of it."""
    with console(board) as monitor:
        reset(monitor)
        state = board.control.state()
        monitor.write("restart")
        monitor.expect("hello from")
        after = board.wait_for(lambda now: now["boots"] == state["boots"] + 1)
        assert after["emulator_pid"] == state["emulator_pid"]


@pytest.mark.slow
def test_a_qemu_that_dies_is_the_rigs_fault_with_its_last_words(stand_in: Path, tmp_path: Path) -> None:
    """Status and last line are in the sentence, and the log is named."""
    board = EmulatedProcess(tmp_path / "e1").start()
    with console(board) as monitor:
        reset(monitor)
        monitor.write("die ERROR:target/riscv: assertion failed")
        said = board.died()
    assert re.search("QEMU .* 1 .*: ERROR:target/riscv: assertion failed", said)
    assert f"Log: {board.flash.with_suffix('.emulator.log')}" in said


@pytest.mark.slow
def test_a_board_has_flash_and_efuses_of_its_own(board: EmulatedProcess, tmp_path: Path) -> None:
    """Before QEMU is started: a file of another size is refused, and whoever comes second to flash or eFuses
    is told that another board has the file."""
    small = tmp_path / "small.flash"
    small.write_bytes(b"\xff" * 1000)
    other = board.flash.with_suffix(".other")  # another flash, the same eFuses
    refused = {
        small: "has 1000 bytes, not the 16777216",
        board.flash: "flash file .* in use",
        other: "eFuse file .* in use",
    }
    for flash, said in refused.items():
        with pytest.raises(AssertionError, match=said):
            EmulatedProcess(tmp_path / "e2", flash).start()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_board_whose_process_has_ended(
    stand_in: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Also after kill -9: QEMU goes with it, and another process can have the files at once."""
    board = EmulatedProcess(tmp_path / "e1").start()
    pid = board.emulator_pid
    board.process.send_signal(number)
    board.process.communicate(timeout=20)
    wait_until(lambda: not is_alive(pid), "the end of QEMU")
    with EmulatedProcess(tmp_path / "e1") as again:
        assert is_alive(again.emulator_pid)


@pytest.mark.slow
def test_a_board_without_qemu_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ESP-IDF's command, and nothing else is started."""
    monkeypatch.delenv("HIL_QEMU_RISCV32", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("IDF_TOOLS_PATH", str(tmp_path))
    with pytest.raises(AssertionError, match=r"idf_tools\.py install qemu-riscv32"):
        EmulatedProcess(tmp_path / "e1").start()

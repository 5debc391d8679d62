# SPDX-License-Identifier: Apache-2.0
"""esp-emu is found, and a board around it keeps what a chip keeps; a small program plays it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError, RigError
from hil.virtual.emulator import esp_emu
from hil.virtual.emulator.driver import EmulatedConfig
from tests.virtual.virtual_board_rig import (
    MAC,
    REPOSITORY,
    BoardProcess,
    Console,
    console,
    is_alive,
    run_esptool,
    wait_until,
)

APP = 0x10000
PEER = """
import argparse, os, signal, socket, sys, threading, time
from pathlib import Path
from hil.virtual.board import chips
from hil.virtual.board.faults import ActiveFaults
from hil.virtual.board.flash import NorFlash
from hil.virtual.board.flash_commands import LoaderActions
from hil.virtual.board.loader import SerialLoader

if sys.argv[1:] == ["--version"]:
    sys.exit(print("esp-emu 0.45.0"))
parser = argparse.ArgumentParser(allow_abbrev=False)
for flag in ("chip", "firmware", "efuse", "net", "strap-mode", "uart-tcp", "wifi-ssid", "wifi-password"):
    parser.add_argument(f"--{flag}")
parser.add_argument("--save-state", action="store_true")
given = parser.parse_args()
firmware = Path(given.firmware)
header = 0x2000 if given.chip in ("esp32c5", "esp32p4") else 0
content = firmware.read_bytes()
megabytes = 1 << (content[header + 3] >> 4) if content[header] == 0xE9 else 4
working = firmware.with_suffix(".working")
working.write_bytes(content[: megabytes << 20].ljust(megabytes << 20, b"\\xff"))
flash = NorFlash(working, megabytes << 20)  # in the process: the file is written at the end alone
mac = Path(given.efuse).read_bytes()[0x18:0x1E][::-1]
ending = ""

def save(*_):
    if ending == "deaf":
        return
    if ending == "full":
        os._exit(1)
    if given.save_state:
        firmware.write_bytes(b"" if ending == "torn" else flash.read(0, flash.size_bytes))
    os._exit(0)

signal.signal(signal.SIGINT, save)
if given.strap_mode == "0x02":
    host, _, port = given.uart_tcp.rpartition(":")
    connection = socket.create_server((host, int(port))).accept()[0]
    actions = LoaderActions(transmit=connection.sendall, baud=lambda: 115200, set_baud=lambda _: None,
        restart=lambda _: None, set_watchdog=lambda _: None, disconnect=lambda: None)
    loader = SerialLoader(chips.by_name(given.chip), flash, mac, ActiveFaults(), actions)
    while data := connection.recv(65536):
        loader.feed(data)
    signal.pause()
kept = flash.read(0x9000, 8).rstrip(b"\\xff").decode()
print("hello from", mac.hex(":"), "with", megabytes, "MB, kept", kept, given.net, flush=True)
def product():
    for number in range(1, 1 << 30):
        print(f"asked seq={number}", flush=True)
        time.sleep(0.005)
        print(f"done seq={number}", flush=True)

if flash.read(0x10000, 1) == b"\\xe9":
    threading.Thread(target=product, daemon=True).start()
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "keep":
        flash.erase(0x9000, 8)
        flash.program(0x9000, rest.encode())
    elif word in ("deaf", "full", "torn"):
        ending = word
    elif word == "die":
        sys.exit(f"thread 'main' panicked: {rest}")
    print("done", rest, flush=True)
"""


class EspEmuProcess(BoardProcess):
    module = "hil.virtual.emulator"

    def __init__(self, folder: Path, chip: str = "esp32c3") -> None:
        super().__init__(folder, "--chip", chip, "--emulator", "esp-emu")


def install(folder: Path) -> Path:
    """Write a program called esp-emu to ``folder``; return it."""
    folder.mkdir()
    (folder / "peer.py").write_text(PEER)
    program = folder / "esp-emu"
    run = f"PYTHONPATH={REPOSITORY} exec {sys.executable} {folder / 'peer.py'}"
    program.write_text(f'#!/bin/sh\n{run} "$@"\n')
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The emulator, on PATH."""
    program = install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin:/usr/sbin:/sbin")
    return program


@pytest.fixture
def board(tmp_path: Path) -> Iterator[EspEmuProcess]:
    with EspEmuProcess(tmp_path / "e1") as process:
        yield process


def tell(monitor: Console, line: str) -> None:
    monitor.write(line)
    monitor.expect(f"done {line.partition(' ')[2]}\n")


def reset(monitor: Console) -> str:
    """Pulse EN; return what the chip says first."""
    monitor.reset()
    monitor.expect("hello")
    return monitor.expect("\n").decode()


def test_it_is_found_on_path_and_where_its_installer_puts_it(
    peer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PATH goes first; its version is the last word of the first line."""
    found = esp_emu.find("esp32c6")
    assert (found.program, found.version) == (peer, "0.45.0")
    assert found.environment() == {"emulator": "esp-emu 0.45.0"}
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(RigError, match=r"neither on PATH nor at ~/\.local/bin/esp-emu") as caught:
        esp_emu.find("esp32c6")
    assert "esp-emu.sha256" in caught.value.next_step
    installed = tmp_path / ".local" / "bin" / "esp-emu"
    installed.parent.mkdir(parents=True)
    peer.rename(installed)
    assert esp_emu.find("esp32c6").program == installed


@pytest.mark.slow
@pytest.mark.parametrize("is_right", [True, False])
def test_the_command_that_installs_it_takes_an_archive_of_the_digest_that_the_project_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_right: bool
) -> None:
    """The project's file is a line of the release's SHA256SUMS; another archive is not unpacked."""
    name = f"esp-emu-0.45.0-{os.uname().machine}-unknown-linux-gnu"
    archive = tmp_path / f"{name}.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(tmp_path / "bin" / "esp-emu", f"{name}/esp-emu")
    curl = tmp_path / "bin" / "curl"  # a network that has this one address
    url = f"https://github.com/espressif/esp-emulator/releases/download/v0.45.0/{archive.name}"
    curl.write_text(f'#!/bin/sh\ntest "$2" = {url} && cp {archive} .\n')
    curl.chmod(0o755)
    digest = hashlib.sha256(archive.read_bytes() if is_right else b"another").hexdigest()
    pinned = tmp_path / "project" / "esp-emu.sha256"
    pinned.parent.mkdir()
    pinned.write_text(f"{'0' * 64}  esp-emu-0.45.0-wasm.tar.gz\n{digest}  {archive.name}\n")
    monkeypatch.setattr(esp_emu, "DIGESTS", pinned)
    monkeypatch.setenv("HOME", str(tmp_path))
    done = subprocess.run(["bash", "-c", esp_emu.install_command()], capture_output=True, check=False)
    installed = tmp_path / ".local" / "bin" / "esp-emu"
    assert (done.returncode == 0, installed.exists()) == (is_right, is_right), done.stderr


def test_a_program_without_a_version_is_another_one(peer: Path) -> None:
    """It is refused by its path."""
    peer.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(RigError, match=f"{peer} is no esp-emu"):
        esp_emu.find("esp32c3")


def test_a_chip_that_it_does_not_emulate_is_a_wrong_target() -> None:
    """The first ESP32 is none of its chips."""
    with pytest.raises(ConfigError, match="emulates no 'esp32'; it emulates esp32c3, esp32c5"):
        esp_emu.find("esp32")
    assert set(esp_emu.ABILITIES.chips) <= set(CHIPS)


def test_wifi_is_called_as_the_racks(tmp_path: Path) -> None:
    """Name and pass phrase are the rack's; frames go to the tap of the board's namespace in any case."""
    tap = ["--net", "tap,ifname=eth0"]
    cable = EmulatedConfig("e1", "esp32c6", bytes(6), tmp_path)
    assert esp_emu.network_words(cable) == tap
    wifi = replace(cable, network="wifi", ssid="lab", password="twelve words")
    assert esp_emu.network_words(wifi) == [*tap, "--wifi-ssid", "lab", "--wifi-password", "twelve words"]


@pytest.mark.slow
def test_the_chip_boots_with_the_boards_address_and_answers(board: EspEmuProcess) -> None:
    """The address is in an eFuse file of 336 bytes. Without a namespace it has no way to the host."""
    with console(board) as monitor:
        said = reset(monitor)
        tell(monitor, "say good morning")
    assert MAC in said
    assert "user,restrict=yes" in said
    assert len(board.flash.with_suffix(".efuses").read_bytes()) == 336
    emulation = {"emulator": "esp-emu 0.45.0", "network": "openeth"}
    assert board.control.state()["emulation"] == emulation


@pytest.mark.slow
def test_a_reset_and_a_loss_of_power_keep_what_was_written(board: EspEmuProcess) -> None:
    """The process saves its flash when it ends in order, and each end is in order; so is the board's."""
    with console(board) as monitor:
        reset(monitor)
        tell(monitor, "keep one")
        first = int(board.control.state()["emulator_pid"])
        assert "kept one" in reset(monitor)
        assert not is_alive(first)
        tell(monitor, "keep two")
        board.control.power("cycle")
        monitor.expect("kept two")
        tell(monitor, "keep three")
    assert board.stop() == ""
    board.start()
    with console(board) as monitor:
        assert "kept three" in reset(monitor)


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["esp32c3", "esp32c6", "esp32p4"])
def test_a_flash_that_is_empty_is_as_large_in_the_loader_as_the_boards(tmp_path: Path, chip: str) -> None:
    """The emulator sizes it by an image's header, which is not there yet; the header that says so is taken
    away again."""
    with EspEmuProcess(tmp_path / "e1", chip) as board, console(board) as monitor:
        monitor.port.rts, monitor.port.dtr = True, False  # EN low
        monitor.port.dtr = True
        monitor.port.rts = False  # EN high with IO0 low
        board.wait_for(lambda state: state["mode"] == "download")
        wait_until(lambda: board.flash.with_suffix(".emulator.working").exists(), "the emulator starts")
        working = board.flash.with_suffix(".emulator.working")
        wait_until(lambda: working.stat().st_size == 16 << 20, "it has 16 MB")
        monitor.port.dtr = False
        reset(monitor)
    assert board.flash.read_bytes() == b"\xff" * (16 << 20)


@pytest.mark.slow
def test_esptool_flashes_an_empty_chip_and_starts_it(board: EspEmuProcess, tmp_path: Path) -> None:
    """DTR and RTS lead to another process in the serial loader, and back."""
    image = tmp_path / "app.bin"
    image.write_bytes(os.urandom(0x8000))
    status, said = run_esptool(
        "--port", board.url(), "--chip", "esp32c3", "write-flash", f"{APP:#x}", str(image)
    )
    assert status == 0, said
    assert "Hash of data verified." in said
    board.wait_for(lambda state: state["mode"] == "run")
    assert board.flash.read_bytes()[APP : APP + 0x8000] == image.read_bytes()
    assert board.flash.read_bytes()[:4] == b"\xff" * 4


@pytest.mark.slow
def test_a_silent_chip_goes_on_where_it_stood(board: EspEmuProcess) -> None:
    """What it was sent meanwhile it reads afterwards; a chip that stands still can be switched off."""
    with console(board) as monitor:
        reset(monitor)
        board.control.fault("silent")
        monitor.write("say meanwhile")
        assert b"meanwhile" not in monitor.silence(0.3)
        board.control.clear()
        monitor.expect("done meanwhile\n")
        board.control.fault("silent")
        board.control.power("off")
        board.control.clear()
        board.control.power("on")
        monitor.expect("hello")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("deaf", "it was killed by signal 9"),
        ("full", "it ended with status 1"),
        ("torn", "its file is empty"),
    ],
)
def test_flash_that_is_not_saved_is_the_rigs_fault(tmp_path: Path, word: str, why: str) -> None:
    """A process that had to be killed, that failed, or that wrote nothing: the board does not go on with an
    older flash."""
    board = EspEmuProcess(tmp_path / "e1").start()
    with console(board) as monitor:
        reset(monitor)
        tell(monitor, "keep one")
        monitor.write(word)
        monitor.expect("done")
        board.control.power("off")
    said = board.process.communicate(timeout=20)[1]
    assert board.process.returncode == 3
    assert f"esp-emu has not saved the flash of board b1, which is as at its last start: {why}." in said


def test_a_uart_that_does_not_listen_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its port, rather than that esptool is left without a word."""
    monkeypatch.setattr(esp_emu, "CONNECT_TIMEOUT_S", 0.1)

    async def wait() -> str:
        said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        console = esp_emu.SocketConsole(None, esp_emu.free_port(None), lambda _data: True, said.set_result)
        console.write(b"sync")
        try:
            return await asyncio.wait_for(said, 20)
        finally:
            console.close()

    assert "esp-emu has not listened at port" in asyncio.run(wait())


@pytest.mark.slow
def test_an_emulator_that_dies_is_the_rigs_fault_with_its_last_words(tmp_path: Path) -> None:
    """Status and last line are in the sentence."""
    board = EspEmuProcess(tmp_path / "e1").start()
    with console(board) as monitor:
        reset(monitor)
        monitor.write("die out of memory")
        said = board.process.communicate(timeout=20)[1]
    assert board.process.returncode == 3
    assert "esp-emu ended with status 1 and said: thread 'main' panicked: out of memory" in said


@pytest.mark.slow
def test_nothing_is_left_of_a_board_whose_process_is_killed(tmp_path: Path) -> None:
    """The emulator goes with it, and another process can have the files at once."""
    board = EspEmuProcess(tmp_path / "e1").start()
    pid = int(board.control.state()["emulator_pid"])
    board.process.send_signal(signal.SIGKILL)
    board.process.communicate(timeout=20)
    wait_until(lambda: not is_alive(pid), "the end of the emulator")
    with EspEmuProcess(tmp_path / "e1") as again:
        assert is_alive(int(again.control.state()["emulator_pid"]))

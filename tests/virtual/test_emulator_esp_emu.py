# SPDX-License-Identifier: Apache-2.0
"""esp-emu is found, and a board around it keeps what a chip keeps; a stand-in plays it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
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
from hil.boards.firmware.image import build_image_dir
from hil.virtual.emulator import esp_emu
from hil.virtual.emulator.driver import EmulatedConfig
from tests.virtual import esp_emu_standin
from tests.virtual.virtual_board_rig import (
    MAC,
    BoardProcess,
    Console,
    console,
    flash_files,
    is_alive,
    run_esptool,
    wait_until,
    write_flash_file,
)

END = 0xFF8000
PROGRAM = """\
#!{python} -IS
import os, sys
flash = int(os.environ["VBOARD_FLASH_FD"])
kept, size = os.pread(flash, 8, 0x9000).rstrip(b"\\xff").decode(), os.fstat(flash).st_size >> 20
print("hello from", os.environ["VBOARD_MAC"], "with", size, "MB, kept", kept, flush=True)
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "keep":
        os.pwrite(flash, rest.encode().ljust(8, b"\\xff"), 0x9000)
    print("done", rest, flush=True)
"""


class EspEmuProcess(BoardProcess):
    module = "hil.virtual.emulator"

    """A board that runs an image for 4 MB of flash; of another chip than an ESP32-C3 it is empty."""

    def __init__(self, folder: Path, chip: str = "esp32c3") -> None:
        super().__init__(folder, "--chip", chip, "--emulator", "esp-emu")
        if chip == "esp32c3" and not self.flash.exists():
            build_image_dir(Path("/bin/true"), folder / "build", chip=chip, version="1")
            write_flash_file(self.flash, {**flash_files(folder / "build"), END: b"behind"})


def install(folder: Path, **tricks: object) -> Path:
    """Write a program called esp-emu to ``folder`` that plays PROGRAM; return it."""
    folder.mkdir(exist_ok=True)
    (folder / "program").write_text(PROGRAM.format(python=sys.executable))
    return esp_emu_standin.install(folder, program=folder / "program", **tricks)


@pytest.fixture(autouse=True)
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    monitor.reset("hello")
    return monitor.expect("\n").decode()


def test_it_is_found_on_path_and_where_its_installer_puts_it(
    emulator: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PATH goes first; its version is the last word of the first line."""
    found = esp_emu.find("esp32c6")
    assert (found.program, found.version) == (emulator, "0.45.0")
    assert found.environment() == {"emulator": "esp-emu 0.45.0"}
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(RigError, match=r"PATH .*~/\.local/bin/esp-emu") as caught:
        esp_emu.find("esp32c6")
    assert "esp-emu.sha256" in caught.value.next_step
    installed = tmp_path / ".local" / "bin" / "esp-emu"
    installed.parent.mkdir(parents=True)
    emulator.rename(installed)
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


def test_another_program_and_another_chip_are_refused(emulator: Path) -> None:
    """A program without a version by its path; the first ESP32 is none of the chips, which are named."""
    with pytest.raises(ConfigError, match="'esp32'; it emulates esp32c3, esp32c5"):
        esp_emu.find("esp32")
    assert set(esp_emu.ABILITIES.chips) <= set(CHIPS)
    emulator.write_text("#!/bin/sh\necho hello\n")
    with pytest.raises(RigError, match=f"{emulator} is no esp-emu"):
        esp_emu.find("esp32c3")


def test_wifi_is_called_as_the_racks(tmp_path: Path) -> None:
    """Name and pass phrase are the rack's, or it is open; frames go to the tap of the board's namespace."""
    tap = ["--net", "tap,ifname=eth0"]
    cable = EmulatedConfig("e1", "esp32c6", bytes(6), tmp_path)
    assert esp_emu.network_words(cable) == tap
    wifi = replace(cable, network="wifi", ssid="lab", password="twelve words")
    assert esp_emu.network_words(wifi) == [*tap, "--wifi-ssid", "lab", "--wifi-password", "twelve words"]
    without = esp_emu.network_words(replace(wifi, password=""))
    start = ["--chip", "esp32c6", "--firmware", str(esp_emu_standin.__file__)]
    assert esp_emu_standin.parse([*start, *without]).wifi_auth == "open"


@pytest.mark.slow
def test_the_chip_boots_with_the_boards_address_and_answers(board: EspEmuProcess) -> None:
    """The address is in an eFuse file of 336 bytes. Without a namespace it has no way to the host."""
    with console(board) as monitor:
        said = reset(monitor)
        tell(monitor, "say good morning")
    assert MAC in said
    command = Path(f"/proc/{board.control.state()['emulator_pid']}/cmdline").read_text().split("\0")
    assert command[command.index("--net") + 1] == "user,restrict=yes"
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
@pytest.mark.parametrize("chip", ["esp32c6", "esp32p4"])
def test_esptool_flashes_an_empty_chip_to_its_end_and_starts_it(
    tmp_path: Path, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DTR and RTS lead to another process in the serial loader, and back. The emulator sizes its flash by an
    image's header, which is not there yet: the header that says so is taken away again."""
    monkeypatch.setattr("esptool.loader.SYNC_TIMEOUT", 2.0)  # s; a busy host starts that process late
    image = tmp_path / "data"
    image.write_bytes(os.urandom(0x8000))
    with EspEmuProcess(tmp_path / "e1", chip) as board:
        words = ("--port", board.url(), "--chip", chip, "write-flash", f"{END:#x}", str(image))
        status, said = run_esptool(*words)
        assert status == 0, said
        assert "Hash of data verified." in said
        board.wait_for(lambda state: state["mode"] == "run")
    assert board.flash.read_bytes() == b"\xff" * END + image.read_bytes()


@pytest.mark.slow
def test_flash_is_as_large_as_its_image_says_and_keeps_what_lies_behind(board: EspEmuProcess) -> None:
    """The file that the emulator gets is not longer than the flash that it makes of it."""
    with console(board) as monitor:
        tell(monitor, "keep one")
        assert "with 4 MB, kept one" in reset(monitor)
    content = board.flash.read_bytes()
    assert len(content) == 16 << 20
    assert content[END : END + 6] == b"behind"


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
    ("tricks", "why"),
    [
        ({"hang": "done one"}, "it was killed by signal 9"),
        ({"lose": 1}, "it ended with status 1"),
        ({"lose": 0}, "it has not written its file"),
        ({"lose": "torn"}, "its file is empty"),
    ],
)
def test_flash_that_is_not_saved_is_the_rigs_fault(
    tmp_path: Path, tricks: dict[str, object], why: str
) -> None:
    """A process that had to be killed, that failed, or that wrote nothing: the board does not go on with an
    older flash."""
    install(tmp_path / "bin", **tricks)
    board = EspEmuProcess(tmp_path / "e1").start()
    with console(board) as monitor:
        monitor.expect("hello")
        tell(monitor, "keep one")
        board.control.power("off")
    said = board.process.communicate(timeout=20)[1]
    assert board.process.returncode == 3
    assert re.search(f"flash of board b1.*: {why}", said)


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

    assert re.search(r"not listened at port \d+", asyncio.run(wait()))


@pytest.mark.slow
def test_an_emulator_that_dies_is_the_rigs_fault_with_its_last_words(tmp_path: Path) -> None:
    """Status and last line are in the sentence."""
    install(tmp_path / "bin", die="done out")
    board = EspEmuProcess(tmp_path / "e1").start()
    with console(board) as monitor:
        reset(monitor)
        monitor.write("say out")
        said = board.process.communicate(timeout=20)[1]
    assert board.process.returncode == 3
    assert re.search("esp-emu .* 101 .* panicked", said)


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

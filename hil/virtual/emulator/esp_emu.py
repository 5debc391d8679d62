# SPDX-License-Identifier: Apache-2.0
"""Espressif's esp-emu: where it is, its command line, and a process of it.

It keeps flash in its process and saves it when it ends in order (Ctrl-C). So each start gets a copy of the
board's flash, and each end, by EN or by power, is in order: what is saved then is what a chip has kept. A
process that does not save leaves the board with the flash of its last start, and that is an error.

While the chip runs from flash its UART is stdin and stdout, of which nothing is lost from the first byte on;
stdin is handed over by the line. In the serial loader, which speaks binary, it is a socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import Protocol

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError, RigError
from hil.base.paths import PROJECT_RACK, PROJECT_ROOT
from hil.base.process import how_ended
from hil.virtual import rack_namespace
from hil.virtual.board.flash import NorFlash
from hil.virtual.emulator import process
from hil.virtual.emulator.console import READ_BYTES, EmulatorConsole
from hil.virtual.emulator.driver import Abilities, EmulatedConfig, Hooks, Start, timeline_of

NAME = "esp-emu"
PROGRAM = "esp-emu"
ABILITIES = Abilities(
    chips=("esp32c3", "esp32c5", "esp32c6", "esp32h2", "esp32p4", "esp32s3"),
    networks=("openeth", "wifi"),
    traces=True,
)
DOWNLOAD_STRAP = "0x02"  # of each chip; it is translated
EFUSE_BYTES = 336
MAC_AT = 0x18  # block 1, the last byte first; revisions that are all zero are the emulator's own
_IN_ORDER = (0, 128 + signal.SIGINT)  # its status; the latter is a shell's word for Ctrl-C
END_TIMEOUT_S = 1.5  # less than the rack gives a board to end
CONNECT_TIMEOUT_S = 10.0
CONNECT_GAP_S = 0.01
_INSTALLED = Path(".local", "bin", PROGRAM)
DIGESTS = PROJECT_RACK.with_name("esp-emu.sha256")  # as sha256sum writes it: of a release's archives
RELEASES = "https://github.com/espressif/esp-emulator/releases"
_ARCHIVE = re.compile(r"esp-emu-(\d+(?:\.\d+)+)-")
_VERSION = re.compile(r"(\d+(?:\.\d+)+)\s*$")
# a header of an image for 16 MB of flash, as much as a board has: the emulator sizes its own by the header
_HEADER_OF_16_MB = b"\xe9\x01\x02\x4f"


@dataclass(frozen=True)
class EspEmu:
    """A program that emulates a chip; ``version`` is as in 0.45.0."""

    program: Path
    version: str
    chip_name: str

    def environment(self) -> Mapping[str, str]:
        """Return what a record says of what it ran on."""
        return {"emulator": f"{NAME} {self.version}"}

    def efuses(self, mac: bytes) -> bytes:
        """Return the content of a new eFuse file."""
        content = bytearray(EFUSE_BYTES)
        content[MAC_AT : MAC_AT + len(mac)] = mac[::-1]
        return bytes(content)

    def mac_of(self, efuses: bytes) -> bytes:
        """Return the MAC address that an eFuse file holds."""
        return efuses[MAC_AT : MAC_AT + 6][::-1]

    def start(self, start: Start, hooks: Hooks) -> EspEmuRun:
        """Start the chip. Raises RigError, OSError."""
        return EspEmuRun(self, start, hooks)


def find(chip_name: str) -> EspEmu:
    """Return the emulator of a chip.

    Raises:
        ConfigError: it emulates no such chip.
        RigError: it is not there, or is another program.
    """
    if chip_name not in ABILITIES.chips:
        raise ConfigError(f"{NAME} emulates no {chip_name!r}; it emulates {', '.join(ABILITIES.chips)}.")
    place = shutil.which(PROGRAM) or shutil.which(Path.home() / _INSTALLED)
    if place is None:
        raise RigError(f"{PROGRAM} is neither on PATH nor at ~/{_INSTALLED}.", next_step=install_command())
    said = process.ask(Path(place), "--version").splitlines()[:1]
    version = _VERSION.search(said[0]) if said else None
    if version is None:
        raise RigError(f"{place} is no {NAME}: it does not tell its version.", next_step=install_command())
    return EspEmu(Path(place).absolute(), version[1], chip_name)


def _platform() -> str:
    return f"{os.uname().machine}-unknown-linux-gnu.tar.gz"


def pinned_archive(digests: Path) -> str:
    """Return the archive for this machine of which a project pins the digest, "" where it pins none."""
    names = digests.read_text(encoding="utf-8").split() if digests.is_file() else []
    return next((name for name in names if name.endswith(_platform()) and _ARCHIVE.match(name)), "")


def install_command(digests: Path | None = None) -> str:
    """Return the command that installs it: an archive of its release, of the digest that the project pins."""
    digests = digests or DIGESTS
    archive, platform = pinned_archive(digests), _platform()
    found = _ARCHIVE.match(archive)
    if found is None:
        return (
            f"put the line of esp-emu-VERSION-{platform} from {RELEASES}'s SHA256SUMS into "
            f"{DIGESTS.relative_to(PROJECT_ROOT)}, and ask again; docs/operate/emulated-boards.md."
        )
    return (
        f'cd "$(mktemp -d)" && curl -fLO {RELEASES}/download/v{found[1]}/{archive} && '
        f"sha256sum --check --ignore-missing {shlex.quote(str(digests))} && tar -xzf {archive} && "
        f"install -D {archive.removesuffix('.tar.gz')}/{PROGRAM} ~/{_INSTALLED}"
    )


def command_line(emulator: EspEmu, start: Start, firmware: Path, uart_port: int = 0) -> list[str]:
    """Return the command that runs a chip; with ``uart_port``, in its loader."""
    argv = [str(emulator.program), "--chip", emulator.chip_name]
    argv += ["--firmware", str(firmware), "--save-state", "--efuse", str(start.efuses)]
    if uart_port:
        argv += ["--strap-mode", DOWNLOAD_STRAP, "--uart-tcp", f"127.0.0.1:{uart_port}"]
    if start.elf:  # which alone would end the chip at its first panic
        argv += ["--trace", str(timeline_of(start.flash.path)), "--elf", str(start.elf)]
        argv += ["--no-panic-intercept"]
    return [*argv, *network_words(start.board)]


def network_words(board: EmulatedConfig) -> list[str]:
    """Return the options of a board's network; without any the emulator would take the host's."""
    if board.netns is None:
        return ["--net", "user,restrict=yes"]
    tap = ["--net", f"tap,ifname={rack_namespace.EMULATOR_DEVICE}"]
    if not board.ssid:
        return tap
    security = ["--wifi-password", board.password] if board.password else ["--wifi-auth", "open"]
    return [*tap, "--wifi-ssid", board.ssid, *security]


class FlashCopy:
    """The copy of a board's flash that one process of the emulator has, at ``path``.

    In the serial loader nothing boots from it. Its header says then how large the board's flash is, for what
    is there may be smaller than what is about to be written, or nothing at all.
    """

    def __init__(self, flash: NorFlash, chip: str, *, download: bool) -> None:
        self.path = flash.path.with_suffix(".emulator.bin")
        self._flash = flash
        self._header = slice(CHIPS[chip].bootloader, CHIPS[chip].bootloader + len(_HEADER_OF_16_MB))
        content = bytearray(flash.read(0, flash.size_bytes))
        self._own = bytes(content[self._header])
        if download:
            content[self._header] = _HEADER_OF_16_MB
        self._given = bytes(content[self._header])
        self.path.write_bytes(content[: _flash_bytes(self._given)])
        self._state = self._file_state()

    def take_back(self) -> None:
        """Give the board what the emulator saved. Raises OSError, ValueError: it saved nothing."""
        if self._file_state() == self._state:
            raise ValueError("it has not written its file")
        content = bytearray(self.path.read_bytes()[: self._flash.size_bytes])
        if not content:
            raise ValueError("its file is empty")
        if content[self._header] == self._given:
            content[self._header] = self._own
        self._flash.erase(0, len(content))
        self._flash.program(0, bytes(content))

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def _file_state(self) -> tuple[int, int]:
        state = self.path.stat()
        return state.st_ino, state.st_mtime_ns


def _flash_bytes(header: bytes) -> int | None:
    """Return the size of flash that an image's header asks for: its file must not be longer."""
    return 1 << 20 + (header[3] >> 4) if header[:1] == b"\xe9" else None


class Uart(Protocol):
    """Where the chip's UART is."""

    def write(self, data: bytes) -> None: ...
    def resume(self) -> None: ...
    def drain(self) -> bytes: ...
    def close(self) -> None: ...


class EspEmuRun:
    """One process of esp-emu. Raises RigError, OSError."""

    def __init__(self, emulator: EspEmu, start: Start, hooks: Hooks) -> None:
        self._start, self._hooks = start, hooks
        self._has_spoken = False
        self._copy = FlashCopy(start.flash, emulator.chip_name, download=start.download)
        begin = self._in_loader if start.download else self._from_flash
        self._uart: Uart = begin(emulator)

    def _from_flash(self, emulator: EspEmu) -> Uart:
        console = EmulatorConsole(self._start.flash.path.with_suffix(".uart"), self._output)
        stdin, stdout = console.open_for_chip()
        try:
            self._launch(command_line(emulator, self._start, self._copy.path), stdin, stdout)
        finally:
            os.close(stdin)
            os.close(stdout)
        return console

    def _in_loader(self, emulator: EspEmu) -> Uart:
        netns = self._start.board.netns
        port = free_port(netns)
        self._launch(command_line(emulator, self._start, self._copy.path, port))
        return SocketConsole(netns, port, self._output, self._hooks.ended)

    def _launch(self, argv: list[str], stdin: int = DEVNULL, stdout: int | None = None) -> None:
        with self._start.log.open("ab") as log:
            started = process.start(
                argv,
                log=log,
                netns=self._start.board.netns,
                env={"RUST_LOG": "warn", **os.environ},  # its own words are not to stand among the chip's
                stdin=stdin,
                stdout=stdout,
            )
        self._watched = process.EmulatorProcess(started, self._exited)
        if self._start.frozen:
            self.freeze()

    def _output(self, data: bytes) -> bool:
        self._has_spoken = True
        return self._hooks.output(data)

    @property
    def pid(self) -> int:
        return self._watched.process.pid

    def write(self, data: bytes) -> None:
        self._uart.write(data)

    def resume(self) -> None:
        self._uart.resume()

    def freeze(self) -> None:
        """Stop the process: what becomes of its clocks is not known."""
        self._watched.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._watched.process.send_signal(signal.SIGCONT)

    def end(self, *, power_lost: bool) -> None:
        """End it in order, whatever ends it, and take over the flash. Raises RigError where it was not saved.

        A chip that has said nothing has not left its ROM, and has written nothing.
        """
        del power_lost
        status = self._watched.end(signal.SIGINT, END_TIMEOUT_S)
        has_begun = self._has_spoken or bool(self._uart.drain())
        self._uart.close()
        try:
            if status in _IN_ORDER:
                self._copy.take_back()
            elif has_begun:
                raise self._not_saved(f"it {how_ended(status)}")
        except (OSError, ValueError) as error:
            raise self._not_saved(str(error)) from error
        finally:
            self._copy.remove()

    def _not_saved(self, why: str) -> RigError:
        return RigError(
            f"{NAME} has not saved the flash of board {self._start.board.id}, which is as at its last start: "
            f"{why}.",
            log=str(self._start.log),
        )

    def _exited(self, status: int) -> None:
        how = process.how_it_ended(NAME, status, self._start.log)
        self._hooks.output(self._uart.drain())
        self._uart.close()
        self._copy.remove()
        self._hooks.ended(how)


@contextlib.contextmanager
def _network(netns: Path | None) -> Iterator[None]:
    """Make sockets of a board's namespace: they stay in it."""
    with rack_namespace.inside(netns) if netns else contextlib.nullcontext():
        yield


def free_port(netns: Path | None) -> int:
    """Return a port of a board's loopback that nobody has."""
    with _network(netns), socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class SocketConsole:
    """The UART at a port where the emulator will listen; until then what is written waits."""

    def __init__(
        self, netns: Path | None, port: int, on_output: Callable[[bytes], bool], fail: Callable[[str], None]
    ) -> None:
        self._on_output = on_output
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._socket: socket.socket | None = None
        self._connecting = self._loop.create_task(self._connect(netns, port, fail))

    async def _connect(self, netns: Path | None, port: int, fail: Callable[[str], None]) -> None:
        deadline = self._loop.time() + CONNECT_TIMEOUT_S
        while self._loop.time() < deadline:
            with _network(netns):
                found = socket.socket()
            try:
                found.setblocking(False)
                await self._loop.sock_connect(found, ("127.0.0.1", port))
            except OSError:
                found.close()
                await asyncio.sleep(CONNECT_GAP_S)
                continue
            self._socket = found
            self.resume()
            self.write(b"")
            return
        fail(f"{NAME} has not listened at port {port}, its UART, for {CONNECT_TIMEOUT_S:g} s")

    def write(self, data: bytes) -> None:
        self._waiting += data
        if self._socket is None:
            return
        with contextlib.suppress(BlockingIOError, ConnectionError):  # its end is noticed by its process
            del self._waiting[: self._socket.send(self._waiting)]
        if self._waiting:
            self._loop.add_writer(self._socket, self.write, b"")
        else:
            self._loop.remove_writer(self._socket)

    def resume(self) -> None:
        if self._socket:
            self._loop.add_reader(self._socket, self._readable)

    def drain(self) -> bytes:
        output = bytearray()
        while data := self._read():
            output += data
        return bytes(output)

    def close(self) -> None:
        self._connecting.cancel()
        if self._socket:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
            self._socket = None

    def _readable(self) -> None:
        data = self._read()
        if self._socket and (not data or not self._on_output(data)):
            self._loop.remove_reader(self._socket)

    def _read(self) -> bytes:
        try:
            return self._socket.recv(READ_BYTES) if self._socket else b""
        except (BlockingIOError, ConnectionError):
            return b""

# SPDX-License-Identifier: Apache-2.0
"""The stand-in for esp-emu is judged by what it refuses, and by what a kill takes with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.image import build_image_dir
from tests.virtual import esp_emu_standin
from tests.virtual.virtual_board_rig import flash_files, run_esptool, write_flash_file

TIMEOUT_S = 20.0
EFUSES = bytes(0x18) + bytes.fromhex("0300c40a2460") + bytes(0x132)
MAC = "60:24:0a:c4:00:03"
ECHO = '#!/bin/sh\necho here\nwhile read -r line; do echo "got $line"; done\n'


def image(folder: Path, size: int = 4 << 20) -> Path:
    """Write an erased image whose header says 4 MB."""
    path = folder / "merged.bin"
    path.write_bytes((b"\xe9\x00\x02\x20" + b"\xff" * 4092).ljust(size, b"\xff"))
    return path


def bootable(folder: Path) -> Path:
    """Write an image of an ESP32-C3 that its ROM and boot loader take."""
    build_image_dir(Path("/bin/true"), folder / "build", chip="esp32c3", version="1")
    return write_flash_file(folder / "merged.bin", flash_files(folder / "build"), 4 << 20)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Process:
    """A stand-in that plays a script which echoes lines, and the sockets to it."""

    def __init__(self, folder: Path, *flags: str, chip: str = "esp32c3", **asked: object) -> None:
        (folder / "echo.sh").write_text(ECHO)
        self.firmware = bootable(folder) if chip == "esp32c3" else image(folder)
        self.efuses = folder / "efuse.bin"
        self.efuses.write_bytes(EFUSES)
        self.uart, self.control = free_port(), free_port()
        self.log = folder / "log"
        program = esp_emu_standin.install(folder / "bin", program=folder / "echo.sh", **asked)
        argv = [program, "--chip", chip, "--firmware", self.firmware, "--efuse", self.efuses]
        argv += ["--uart-tcp", f"127.0.0.1:{self.uart}", "--control-tcp", f"127.0.0.1:{self.control}", *flags]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(argv, stderr=log)

    def connect(self, port: int) -> socket.socket:
        """Connect once the process listens; there is no sign of it but that."""
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                return socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
            assert self.process.poll() is None, self.log.read_text()

    def ask(self, *lines: str) -> list[str]:
        with self.connect(self.control) as control, control.makefile("rw") as file:
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            return [file.readline().strip() for _ in lines]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Start a stand-in, which ends with the test whatever becomes of it."""
    with contextlib.ExitStack() as stack:

        def started(*flags: str, **more: Any) -> Process:
            process = Process(tmp_path, *flags, **more)
            stack.callback(process.process.wait, TIMEOUT_S)
            stack.callback(process.process.kill)
            return process

        yield started


@pytest.fixture
def emulator(start: Callable[..., Process]) -> Process:
    return start("--save-state")


def until(connection: socket.socket, text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        data = connection.recv(4096)
        assert data, seen
        seen += data
    return seen


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--chip", "esp32"], "unknown chip 'esp32'"),
        (["--chip", "esp32s31"], "in bring-up"),
        (["--icount", "4"], "unrecognized arguments: --icount 4"),
        (["--efuse", "merged.bin"], "an eFuse file has 336"),
        (["--efuse", "none.bin"], "cannot read none.bin"),
        (["--strap-mode", "0x03"], "unknown strap mode"),
        (["--trace", "trace.json"], "--trace needs --elf"),
        (["--elf", "merged.bin"], "is not an ELF file"),
        (["--net", "tap"], "unknown network"),
        (["--net", "tap,ifname=none0"], "no interface 'none0'"),
        (["--net", "user,dhcp=no"], "unknown network"),
        (["--wifi-auth", "wep"], "unknown --wifi-auth"),
        (["--wifi-password", "short"], "8 to 63 characters"),
        (["--timeout", "5"], "invalid duration"),
        (["--uart-tcp", "5555"], "invalid HOST:PORT"),
        (["--firmware", "odd.bin"], "no flash size in its header"),
    ],
)
def test_refused_starts(
    flags: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A start that esp-emu does not know, or whose file is none of its kind, ends with the reason."""
    monkeypatch.chdir(tmp_path)
    image(tmp_path)
    Path("odd.bin").write_bytes(b"\xff" * 100)
    with pytest.raises(SystemExit, match="2"):
        asyncio.run(esp_emu_standin.emulate(["--chip", "esp32c6", "--firmware", "merged.bin", *flags], {}))
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_console_and_control(emulator: Process) -> None:
    """A reset keeps process, client and flash; a command is answered by one line, an unknown one by err."""
    data = emulator.firmware.parent / "data"
    data.write_bytes(b"kept")
    with emulator.connect(emulator.uart) as console:
        answers = emulator.ask(
            *("ping", f"write-region 0x9000 {data}", "reset", "reset --soft", "reset --hard"),
            *("erase-region 0x9000 5", f"write-region 0x3fffff {data}", "erase-region", "quit", ""),
        )
        assert answers[:4] == ["ok"] * 4
        assert all(answer.startswith("err: ") for answer in answers[4:]), answers
        assert b"no image runs, echo.sh is played" in until(console, b"here\n")
        console.sendall(b"ping\n")
        until(console, b"got ping\n")
    assert emulator.end() == 0
    assert emulator.firmware.read_bytes()[0x9000:0x9004] == b"kept"


@pytest.mark.slow
def test_one_client_without_lines(emulator: Process) -> None:
    """A second client of the console is cut off, the listener stays; a client that wants DTR is cut off."""
    with emulator.connect(emulator.uart) as first:
        assert emulator.ask("reset") == ["ok"]
        until(first, b"here\n")
        with emulator.connect(emulator.uart) as second:
            second.settimeout(TIMEOUT_S)
            with contextlib.suppress(ConnectionResetError):
                assert second.recv(1) == b""
        first.sendall(b"\xff\xfb\x2c")
        until_end = b"".join(iter(lambda: first.recv(4096), b""))
        assert b"got" not in until_end
    with emulator.connect(emulator.uart) as third:
        third.sendall(b"again\n")
        until(third, b"got again\n")
    assert "second client" in emulator.log.read_text()
    assert "RFC 2217" in emulator.log.read_text()


@pytest.mark.slow
def test_kill_loses_flash(emulator: Process) -> None:
    """What was written since the start is gone with the process."""
    data = emulator.firmware.parent / "data"
    data.write_bytes(b"lost")
    assert emulator.ask(f"write-region 0x9000 {data}") == ["ok"]
    assert emulator.end(signal.SIGKILL) == -signal.SIGKILL
    assert emulator.firmware.read_bytes()[0x9000:0x9004] == b"\xff" * 4


@pytest.mark.slow
@pytest.mark.parametrize(("chip", "before"), [("esp32s3", ("--no-stub",)), ("esp32h2", ())])
def test_esptool(chip: str, before: tuple[str, ...], start: Callable[..., Process], tmp_path: Path) -> None:
    """The real esptool writes flash over the socket, by stub and ROM, once the strap says download."""
    process = start("--strap-mode", "0x02", "--save-state", chip=chip)
    (tmp_path / "data").write_bytes(os.urandom(5000))
    process.connect(process.control).close()
    port = f"socket://127.0.0.1:{process.uart}"
    common = ("--chip", chip, "--port", port, "--before", "no-reset", "--after", "no-reset", *before)
    status, said = run_esptool(*common, "write-flash", "0x10000", str(tmp_path / "data"))
    assert status == 0, said
    assert MAC in said
    assert process.end() == 0
    assert process.firmware.read_bytes()[0x10000:].startswith((tmp_path / "data").read_bytes())


@pytest.mark.slow
def test_misbehaviour(start: Callable[..., Process], tmp_path: Path) -> None:
    """It dies at a word, answers an error, tears lines and says another version, as asked."""
    process = start(die="got", err="ping", torn_lines=1, version="9.9.9")
    erased, pinged = process.ask("erase-region 0x9000 0x1000", "ping")
    assert (erased, pinged[:9]) == ("ok", "err: ping")
    said = subprocess.run(
        [tmp_path / "bin" / "esp-emu", "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout == "esp-emu 9.9.9\n"
    with process.connect(process.uart) as console:
        assert process.ask("reset") == ["ok"]
        assert b"no image runs" not in until(console, b"stand-in: no")
        console.sendall(b"now\n")
        assert process.process.wait(TIMEOUT_S) == 101


CRASH = "#!/bin/sh\necho here\nread -r line\nkill -SEGV $$\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "status", "said"),
    [
        (["--exit-on", "here"], 0, b"here\n"),
        (["--elf", "/bin/true", "--trace", "trace.json"], 1, b"Guru Meditation Error"),
        (["--elf", "/bin/true", "--no-panic-intercept", "--exit-on", "rst:0x3"], 0, b"Rebooting..."),
        (["--timeout", "300ms"], 0, b""),
    ],
)
def test_ends(flags: list[str], status: int, said: bytes, tmp_path: Path) -> None:
    """Over stdin and stdout: at a text, at the first panic of an ELF unless that is told off, and in time.
    Each is graceful: the trace is written."""
    (tmp_path / "crash.sh").write_text(CRASH)
    firmware = bootable(tmp_path)
    program = esp_emu_standin.install(tmp_path / "bin", program=tmp_path / "crash.sh")
    argv = [program, "--chip", "esp32c3", "--firmware", firmware, *flags]
    done = subprocess.run(
        argv, input=b"now\n", capture_output=True, cwd=tmp_path, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == status, done.stderr
    assert said in done.stdout
    assert (tmp_path / "trace.json").exists() == ("--trace" in flags)


@pytest.mark.slow
def test_interrupted_before_it_listens_to_signals(tmp_path: Path) -> None:
    """An interrupt that comes that early kills it at once: no chip speaks in a process that will not save."""
    early = (
        "import os, signal\n"
        "from tests.virtual import esp_emu_standin as standin\n"
        "find = standin.chip_of\n"
        "standin.chip_of = lambda name: (os.kill(os.getpid(), signal.SIGINT), find(name))[1]\n"
        "standin.main()\n"
    )
    argv = [sys.executable, "-c", early, "--chip", "esp32c3", "--firmware", str(bootable(tmp_path))]
    done = subprocess.run(
        argv, cwd=PROJECT_ROOT, stdin=subprocess.PIPE, capture_output=True, timeout=TIMEOUT_S, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (-signal.SIGINT, b"")

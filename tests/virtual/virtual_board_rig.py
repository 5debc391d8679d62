# SPDX-License-Identifier: Apache-2.0
"""What the virtual board's tests share: a small application, its build, a board process, a console."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import serial

from hil.boards import serial_url
from hil.boards.firmware.image import build_image_dir
from hil.boards.serial_url import esptool
from hil.virtual.board.client import BoardControl
from tests.lab import read_process, wait_for

REPOSITORY = Path(__file__).resolve().parents[2]
MAC = "24:0a:c4:00:00:01"
CONSOLE_BAUD = 921600
TIMEOUT_S = 20.0
OTA_0, OTA_1, OTADATA = 0x10000, 0x200000, 0xD000

PARTITIONS = """\
# Name,   Type, SubType, Offset,  Size
nvs,      data, nvs,     0x9000,  0x4000
otadata,  data, ota,     0xd000,  0x2000
phy_init, data, phy,     0xf000,  0x1000
ota_0,    app,  ota_0,   0x10000, 0x1f0000
ota_1,    app,  ota_1,   ,        0x1f0000
"""

APP_SOURCE = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *get(const char *name) { const char *value = getenv(name); return value ? value : "-"; }

int main(void)
{
    char line[256];
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("READY tag=%s reset=%s app=%s\n", TAG, get("VBOARD_RESET_REASON"), get("VBOARD_APP_OFFSET"));
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = 0;
        if (!strcmp(line, "panic")) raise(SIGSEGV);
        else if (!strcmp(line, "illegal")) raise(SIGILL);
        else if (!strcmp(line, "divide")) raise(SIGFPE);
        else if (!strcmp(line, "abort")) abort();
        else if (!strcmp(line, "restart")) return 0;
        else if (!strcmp(line, "exit")) return 3;
        else if (!strncmp(line, "env ", 4)) printf("%s=%s\n", line + 4, get(line + 4));
        else if (!strncmp(line, "flood ", 6)) {
            long count = atol(line + 6);
            for (long i = 0; i < count; i++) printf("%063ld\n", i);
            printf("FLOOD END\n");
        }
        else if (!strcmp(line, "store")) {
            pwrite(atoi(get("VBOARD_FLASH_FD")), "kept", 4, 0x9000);
            printf("STORED\n");
        }
        else printf("echo %s\n", line);
    }
    return 0;
}
"""


def compile_app(folder: Path, *, tag: str = "one", padding_bytes: int = 0) -> Path:
    """Compile the test application; ``padding_bytes`` that do not compress make it larger."""
    folder.mkdir(parents=True, exist_ok=True)
    source, elf, padding = folder / "app.c", folder / f"{tag}.elf", folder / "padding.bin"
    source.write_text(APP_SOURCE)
    padding.write_bytes(os.urandom(padding_bytes))
    assembly = folder / "padding.S"
    stack_note = '.section .note.GNU-stack,"",@progbits'
    assembly.write_text(f'.section .rodata\n.globl padding\npadding: .incbin "{padding}"\n{stack_note}\n')
    argv = ["gcc", "-O1", "-g", "-w", f'-DTAG="{tag}"', "-o", str(elf), str(source), str(assembly)]
    subprocess.run(argv, check=True, timeout=60)
    return elf


def make_build(
    folder: Path,
    *,
    tag: str = "one",
    chip: str = "esp32",
    padding_bytes: int = 0,
    console_baud: int = CONSOLE_BAUD,
) -> Path:
    """Return a build directory around the test application."""
    csv = folder / "partitions.csv"
    elf = compile_app(folder, tag=tag, padding_bytes=padding_bytes)
    csv.write_text(PARTITIONS)
    build = folder / f"build-{tag}-{chip}"
    build_image_dir(
        elf,
        build,
        chip=chip,
        project="testapp",
        version="1.2.3",
        partitions_csv=csv,
        console_baud=console_baud,
    )
    return build


def flash_files(build: Path) -> Mapping[int, Path]:
    """Return what goes where, from the build's flasher_args.json."""
    files = json.loads((build / "flasher_args.json").read_text())["flash_files"]
    return {int(offset, 0): build / name for offset, name in files.items()}


def write_flash_file(path: Path, parts: Mapping[int, Path | bytes], size_bytes: int = 16 << 20) -> Path:
    """Make a flash file that holds ``parts``, as if they had been flashed."""
    content = bytearray(b"\xff" * size_bytes)
    for offset, part in parts.items():
        data = part if isinstance(part, bytes) else part.read_bytes()
        content[offset : offset + len(data)] = data
    path.write_bytes(content)
    return path


def run_esptool(*arguments: str) -> tuple[int, str]:
    """Run the esptool command line in this process; return its exit status and what it said."""
    said, status = io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["esptool", *arguments]),
        redirect_stdout(said),
        redirect_stderr(said),
    ):
        try:
            esptool.main()
        except SystemExit as end:
            status = int(end.code or 0)
    return status, said.getvalue()


class BoardProcess:
    """A board process in ``folder``; leave the context to stop it."""

    module = "hil.virtual.board"

    def __init__(self, folder: Path, *arguments: str, flash: Path | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.flash = flash or folder / "flash.bin"
        self.log = folder / "board.log"
        self.arguments = arguments
        self.control = BoardControl(folder / "control")
        self.port = 0

    def __enter__(self) -> BoardProcess:
        return self.start()

    def start(self, **options: Any) -> BoardProcess:
        argv = [sys.executable, "-m", self.module, "--id", "b1", "--port", str(self.port)]
        argv += ["--control", str(self.folder / "control"), "--flash", str(self.flash), "--mac", MAC]
        argv += ["--log", str(self.log), *self.arguments]
        self.process = subprocess.Popen(
            argv, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
        )
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], TIMEOUT_S)
        ready = self.process.stdout.readline() if readable else ""
        assert ready, f"the board did not start: {self.stop()}"
        self.port = int(ready.split()[1].rsplit(":", 1)[1])
        return self

    def stop(self) -> str:
        """Stop the process and return what it said on stderr."""
        self.process.terminate()
        return self.process.communicate(timeout=TIMEOUT_S)[1]

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            assert self.stop() == ""

    def url(self, scheme: str = "fastrfc2217") -> str:
        return f"{scheme}://127.0.0.1:{self.port}"

    def wait_for(self, condition: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """Poll the board's state until ``condition`` holds, and return it."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition(state := self.control.state()):
            assert time.monotonic() < deadline, f"the board stays in {state}"
            time.sleep(0.01)
        return state

    def renew(self, parts: Mapping[int, Path | bytes]) -> BoardProcess:
        """Give the board back as another test expects it: no fault, ``parts`` in its flash, just booted."""
        self.control.clear()
        self.control.power("off")
        write_flash_file(self.flash, parts)
        self.control.power("on")
        return self

    def running(self) -> str:
        """Reset the board; return the tag of the application that it runs, and its address."""
        with console(self) as monitor:
            monitor.reset("READY tag=")
            line = monitor.expect("\n").decode().split()
        return f"{line[0]} {line[-1]}"

    def esptool(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the esptool command line on this board, in this process."""
        status, said = run_esptool("--port", self.url(), *arguments)
        return subprocess.CompletedProcess(arguments, status, said, "")

    def esptool_ok(self, *arguments: str) -> str:
        """Run esptool, which has to do what it is asked for; return what it said."""
        done = self.esptool(*arguments)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def esptool_process(
        self, *arguments: str, scheme: str = "fastrfc2217", timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run esptool as a user does: the real one over pyserial's own rfc2217://."""
        module = "hil.boards.serial_url.esptool" if scheme == "fastrfc2217" else "esptool"
        return python("-m", module, "--port", self.url(scheme), *arguments, timeout_s=timeout_s)

    def write_flash(self, parts: Mapping[int, Path], *options: str) -> str:
        """Flash ``parts`` and return esptool's output."""
        words = [word for offset, path in parts.items() for word in (f"{offset:#x}", str(path))]
        return self.esptool_ok("--baud", "921600", "write-flash", *options, *words)


def own_board(folder: Path) -> BoardProcess:
    """Return a board that no other process's tests have: boards of other sessions have other locks."""
    mac = f"24:0a:c4:{os.getpid() % 2**24:06x}"
    return BoardProcess(folder / "board", "--mac", f"{mac[:11]}:{mac[11:13]}:{mac[13:]}")


class Console:
    """A serial monitor: opens the port as pyserial does, resets nothing by itself."""

    def __init__(self, url: str, baud: int = CONSOLE_BAUD) -> None:
        serial_url.register()
        self.port = serial.serial_for_url(url, baudrate=baud, timeout=0.05)
        self.seen = b""

    def reset(self, until: str = "") -> bytes:
        """Pulse EN, as ``idf.py monitor`` does; return what comes up to the end of ``until``."""
        self.port.dtr = False
        self.port.rts = True
        self.port.rts = False
        return self.expect(until)

    def write(self, line: str) -> None:
        self.port.write(line.encode() + b"\n")

    def echo(self, line: str) -> bytes:
        """Write a line that the application sends back; return everything up to its end."""
        self.write(line)
        return self.expect(f"echo {line}\n")

    def expect(self, text: str) -> bytes:
        """Read until ``text`` comes; return everything up to its end, and keep the rest."""
        deadline = time.monotonic() + TIMEOUT_S
        while (at := self.seen.find(text.encode())) < 0:
            assert time.monotonic() < deadline, f"{text!r} did not come; this did: {self.seen[-2000:]!r}"
            self.seen += self.port.read(self.port.in_waiting or 1)
        end = at + len(text)
        head, self.seen = self.seen[:end], self.seen[end:]
        return head

    def silence(self, seconds: float) -> bytes:
        """Return what comes within ``seconds``."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.seen += self.port.read(self.port.in_waiting or 1)
        return self.seen


@contextlib.contextmanager
def console(
    board: BoardProcess, *, scheme: str = "fastrfc2217", baud: int = CONSOLE_BAUD
) -> Iterator[Console]:
    monitor = Console(board.url(scheme), baud)
    try:
        yield monitor
    finally:
        monitor.port.close()


def is_alive(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    return read_process(pid) is not None


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Poll until ``condition`` holds."""
    wait_for(condition, lambda: f"{what} did not happen", TIMEOUT_S)


def python(
    *arguments: str, cwd: Path = REPOSITORY, timeout_s: float = 60.0
) -> subprocess.CompletedProcess[str]:
    """Run Python where ``import hil`` works."""
    argv: Sequence[str] = [sys.executable, *arguments]
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout_s, check=False
    )

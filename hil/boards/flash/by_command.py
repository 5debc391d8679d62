# SPDX-License-Identifier: Apache-2.0
"""Flash a board by its product's own command: one that is signed or encrypted with keys that only it has.

The chip is asked first who it is, as by each flash of ours. What the command writes is its own business;
which image runs then is proven by what the board says of itself.
"""

from __future__ import annotations

import os
import selectors
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hil.base.errors import ConfigError, HilError, NoAnswerError, RigError
from hil.base.flash_command import LABEL, FlashCommand
from hil.base.process import DIE_WITH_PARENT, kill_group
from hil.boards.firmware.build_folder import check_burns_nothing
from hil.boards.flash.tool import (
    ATTEMPTS,
    FLASH_BAUD,
    FlashResult,
    ask,
    parts_of,
)
from hil.boards.flash.words import Write, fault_in, last_words
from hil.boards.rack import Board

_SLICE_S = 0.2
Masked = Callable[[str], str]  # returns a text without secrets


def is_by_command(board: Board) -> bool:
    """Return whether the product's own command flashes a board, one build at a time."""
    return LABEL in board.labels


@dataclass
class CommandFlasher:
    """Builds of one board by name, each written by the command when it is its turn; as SlotFlasher.

    ``where`` is the folder in which the command runs, ``folder`` takes the log, ``masked`` secrets out of it.
    """

    board: Board
    builds: Mapping[str, Path]
    command: FlashCommand
    where: Path
    folder: Path
    masked: Masked
    stop: threading.Event
    selected: str = ""

    def flash(self, name: str) -> FlashResult:
        """Write a build; what can be chance is tried once more. Raises HilError as flash() does."""
        build_dir = self.builds[name]
        check_burns_nothing(build_dir, has_keys=True)
        log = self.folder / f"{self.board.id}.log"
        ask(self.board, ["read-mac"], doing="asking who it is of", log=log)
        note = ""
        for attempt in range(1, ATTEMPTS + 1):
            status, fault = self._run(build_dir.resolve(), log)
            if fault is None:
                break
            if status is None or isinstance(fault, ConfigError) or attempt == ATTEMPTS:
                raise fault
            note = f"written at attempt {attempt + 1}; before: {fault.sentence}"
        self.selected = name
        return FlashResult(self.board.id, attempt, note)

    switch = flash

    def repeat(self) -> FlashResult:
        """Write the last build again: another one runs."""
        return self.flash(self.selected)

    def _run(self, build_dir: Path, log: Path) -> tuple[int | None, HilError | None]:
        """Run the command; return its status, None where it was killed, and its fault, None for none."""
        board = self.board
        argv = self.command.argv(
            {
                "port": board.stock_serial,
                "build": str(build_dir),
                "baud": str(FLASH_BAUD),
                "target": board.chip,
                "mac": board.mac,
            }
        )
        said: list[str] = []
        with log.open("a", encoding="utf-8", errors="replace") as out:

            def take(line: str) -> None:
                said.append(line)
                out.write(line)
                out.flush()

            out.write(self.masked(f"$ {shlex.join(argv)}\n"))
            status = self._follow(argv, take)
        if status == 0:
            return 0, None
        attempt = f"flashing board {board.id} on {board.serial} by '{self.masked(shlex.join(argv))}' failed"
        what = Write(build_dir, parts_of(build_dir))
        return status, self._fault(attempt, status, "".join(said), log, what)

    def _follow(self, argv: Sequence[str], take: Callable[[str], object]) -> int | None:
        """Run the command and hand on its lines, masked; return its status, None where it was killed.

        Nothing that it started outlives it. Raises ConfigError where it cannot be started.
        """
        try:
            process = subprocess.Popen(
                [*DIE_WITH_PARENT, *argv], cwd=self.where, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise ConfigError(f"{argv[0]!r} could not be started: {error.strerror}.") from error
        with process:
            try:
                assert process.stdout
                for line in _lines(process, process.stdout, self.command.timeout_s, self.stop):
                    take(self.masked(line))
                return process.poll()
            finally:
                kill_group(process)

    def _fault(self, attempt: str, status: int | None, said: str, log: Path, what: Write) -> HilError:
        if self.stop.is_set():
            return RigError(f"{attempt}: the run was stopped.", log=str(log))
        if status is None:
            return NoAnswerError(
                f"{attempt}: it did not end within {self.command.timeout_s:g} s; it was ended, with all that "
                "it had started.",
                log=str(log),
                next_step="run it by hand; give it more time by flash.timeout_s in hil.toml.",
            )
        if status in (126, 127) and said.startswith("setpriv: failed to execute"):  # which starts it
            return ConfigError(
                f"{attempt}: {self.command.words[0]!r} is not an executable program.",
                log=str(log),
                next_step="correct [flash] in hil.toml, or put it on PATH (ESP-IDF's export.sh).",
            )
        return fault_in(attempt, said, log, what) or RigError(
            f"{attempt}: it ended with status {status} ({last_words(said)}).",
            log=str(log),
            next_step="read its output; run it by hand in the folder of hil.toml.",
        )


def _lines(
    process: subprocess.Popen[bytes], stream: IO[bytes], timeout_s: float, stop: threading.Event
) -> Iterator[str]:
    """Yield what a process says, line by line, until it ends, the time is up, or ``stop`` is set.

    What it started may hold its output open longer: that is not waited for.
    """
    deadline = time.monotonic() + timeout_s
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not stop.is_set() and time.monotonic() < deadline:
            ended = process.poll() is not None
            data = os.read(stream.fileno(), 1 << 16) if selector.select(0 if ended else _SLICE_S) else b""
            *whole, rest = (rest + data).split(b"\n")
            yield from (f"{line.decode(errors='replace')}\n" for line in whole)
            if ended and not data:
                break
            if not data and not ended:  # it closed its output, or has nothing to say
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_SLICE_S)
    if rest:
        yield f"{rest.decode(errors='replace')}\n"

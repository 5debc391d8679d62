# SPDX-License-Identifier: Apache-2.0
"""esptool as a process of its own, with a deadline, a log, and errors that have an owner.

Writing one build to a board, as its ``flasher_args.json`` says.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.build_folder import flash_files, flasher_args
from hil.boards.firmware.otadata import SECTOR_BYTES
from hil.boards.flash.wear import WearCounter
from hil.boards.rack import Board

FLASH_BAUD = 460800
FLASH_TIMEOUT_S = 180.0
CONNECT_ATTEMPTS = 4  # of esptool's own; all of them twice
ATTEMPTS = 2
# A killed run must not leave an esptool behind that holds the port.
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")


@dataclass(frozen=True)
class FlashResult:
    """What flashing took: ``note`` says why it had to be repeated, if it was."""

    board: str
    attempts: int
    note: str


@dataclass(frozen=True)
class _Symptom:
    pattern: str
    error: type[HilError]
    meaning: str
    next_step: str


_SYMPTOMS = (
    _Symptom(
        r"exclusively lock|Device or resource busy|Resource temporarily unavailable",
        RigError,
        "its port is taken by another program",
        "close that program (fuser -v PORT names it).",
    ),
    _Symptom(
        r"This chip is |[Uu]nexpected chip|[Ww]rong (?:--)?chip|not (?:the )?expected chip"
        r"|does not match the (?:selected )?chip",
        ConfigError,
        "another chip answers than the rack file says",
        "correct 'target' or 'serial' of this board in the rack file.",
    ),
    _Symptom(
        r"MD5|[Hh]ash of data (?:not verified|mismatch)|digest mismatch",
        RigError,
        "what was read back differs from what was written",
        "change the cable or the power supply; if it stays, the flash chip is worn.",
    ),
    _Symptom(
        r"[Cc]ould not open|No such file or directory|Connection refused|No route to host",
        RigError,
        "its port could not be opened",
        "check the cable and the 'serial' of this board in the rack file; hil rack check looks at all.",
    ),
    _Symptom(
        r"Failed to connect|No serial data received|Timed out waiting|Wrong boot mode|Invalid head of packet"
        r"|[Cc]onnection (?:was )?(?:failed|lost|closed)|disconnected|device reports readiness to read",
        RigError,
        "the board does not answer its boot loader",
        "switch its power (hil board power BOARD cycle) and look at its cable.",
    ),
)


@dataclass(frozen=True)
class Write:
    """What esptool is to write: pairs of flash offset and file; names are relative to ``folder``.

    ``doing`` is what it is called in sentences: "flashing", or "switching the slot of".
    """

    folder: Path
    parts: Sequence[tuple[int, str]]
    options: Sequence[str] = ()
    before: str = "default-reset"
    after: str = "hard-reset"
    doing: str = "flashing"

    @property
    def sectors(self) -> tuple[int, ...]:
        """The offset of each sector that is erased for it."""
        ends = ((offset, offset + (self.folder / name).stat().st_size) for offset, name in self.parts)
        found = (range(start - start % SECTOR_BYTES, end, SECTOR_BYTES) for start, end in ends)
        return tuple(sector for sectors in found for sector in sectors)


def write(
    board: Board,
    what: Write,
    *,
    log: Path,
    timeout_s: float = FLASH_TIMEOUT_S,
    stop: threading.Event | None = None,
    wear: WearCounter | None = None,
) -> FlashResult:
    """Write to a board; a failed attempt that can be chance is repeated once, with a note.

    ``stop`` ends it early: the process is killed and the fault says so. ``wear`` counts what is erased.

    Raises:
        ConfigError: the board carries another chip.
        RigError: port taken, no answer, no end within ``timeout_s``, damaged content.
    """
    argv = command(board, what)
    log.parent.mkdir(parents=True, exist_ok=True)
    note = ""
    for attempt in range(1, ATTEMPTS + 1):
        if wear:
            wear.count(board, what.sectors)  # before, so that no crash hides an erase
        fault = _attempt(board, argv, what, log, timeout_s, stop or threading.Event())
        if fault is None:
            return FlashResult(board.id, attempt, note)
        if isinstance(fault, ConfigError) or attempt == ATTEMPTS or (stop and stop.is_set()):
            raise fault
        note = f"written at attempt {attempt + 1}; before: {fault.sentence}"
    raise AssertionError("unreachable: the last attempt returns or raises")


def command(board: Board, what: Write) -> list[str]:
    """Return the esptool command that writes ``what``."""
    argv = [
        *DIE_WITH_PARENT,
        *_esptool(board),
        *("--chip", board.chip, "--port", board.serial, "--baud", str(FLASH_BAUD)),
        *("--connect-attempts", str(CONNECT_ATTEMPTS)),
        *("--before", what.before, "--after", what.after),
        *("write-flash", *what.options),
    ]
    for offset, name in what.parts:
        argv += [f"{offset:#x}", name]
    return argv


def _esptool(board: Board) -> list[str]:
    module = "hil.boards.serial_url.esptool" if board.serial.startswith("fastrfc2217://") else "esptool"
    return [sys.executable, "-m", module]


def _attempt(
    board: Board, argv: Sequence[str], what: Write, log: Path, timeout_s: float, stop: threading.Event
) -> HilError | None:
    offset = log.stat().st_size if log.exists() else 0
    with log.open("ab") as out:
        process = subprocess.Popen(
            argv, cwd=what.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            env=_environment(), start_new_session=True,
        )  # fmt: skip
        status = _wait(process, timeout_s, stop)
    if status == 0:
        return None
    said = log.read_bytes()[offset:].decode(errors="replace")
    attempt = f"{what.doing} board {board.id} on {board.serial} failed"
    return _fault(attempt, status, said, log, timeout_s, stopped=stop.is_set())


def _environment() -> dict[str, str]:
    root = str(PROJECT_ROOT)
    paths = [root, os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUNBUFFERED": "1"}


def _wait(process: subprocess.Popen[bytes], timeout_s: float, stop: threading.Event) -> int | None:
    """Return the exit status; None where the time was up or ``stop`` was set, and the process was killed."""
    slices = max(1, int(timeout_s / 0.2))
    for _ in range(slices):
        if stop.is_set():
            break
        try:
            return process.wait(timeout=0.2)
        except subprocess.TimeoutExpired:
            continue
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=5.0)
    return None


def _fault(
    attempt: str, status: int | None, said: str, log: Path, timeout_s: float, *, stopped: bool
) -> HilError:
    if stopped:
        return RigError(f"{attempt}: the run was stopped.", log=str(log))
    if status is None:
        return RigError(
            f"{attempt}: esptool did not end within {timeout_s:g} s.",
            log=str(log),
            next_step="switch the board's power (hil board power BOARD cycle) and run again.",
        )
    last = _last_words(said)
    for symptom in _SYMPTOMS:
        if re.search(symptom.pattern, said):
            return symptom.error(
                f"{attempt}: {symptom.meaning} (esptool: {last}).", log=str(log), next_step=symptom.next_step
            )
    return RigError(f"{attempt}: esptool ended with status {status} ({last}).", log=str(log))


def _last_words(said: str) -> str:
    """Return esptool's own error and, where it adds one in brackets, the cause."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if line.startswith(("ERROR:", "A fatal error occurred")):
            cause = [more for more in lines[number + 1 : number + 2] if more.startswith("(")]
            words = line.removeprefix("ERROR: ").removeprefix("A fatal error occurred: ")
            return " ".join([words.rstrip("."), *cause])
    return lines[-1].rstrip(".") if lines else "no message"


def flash(
    board: Board,
    build_dir: Path,
    *,
    log: Path,
    timeout_s: float = FLASH_TIMEOUT_S,
    stop: threading.Event | None = None,
    wear: WearCounter | None = None,
) -> FlashResult:
    """Write a build to a board; see hil.boards.flash.tool.write.

    Raises:
        ConfigError: no build there, or the board carries another chip.
        RigError: port taken, no answer, no end within ``timeout_s``, damaged content.
    """
    what = write_of(build_dir, parts_of(build_dir))
    return write(board, what, log=log, timeout_s=timeout_s, stop=stop, wear=wear)


def flash_command(board: Board, build_dir: Path) -> list[str]:
    """Return the esptool command that writes ``build_dir``; its file names are relative to that folder."""
    return command(board, write_of(build_dir, parts_of(build_dir)))


def parts_of(build_dir: Path) -> list[tuple[int, str]]:
    """Return the offset and the name of each file that a build has flashed. Raises ConfigError."""
    return [(int(offset, 0), name) for offset, name in flash_files(build_dir)]


def write_of(build_dir: Path, parts: Sequence[tuple[int, str]]) -> Write:
    """Return how these files are written with a build's own settings. Raises ConfigError."""
    description = flasher_args(build_dir)
    extra = description.get("extra_esptool_args", {})
    options = [str(option) for option in description.get("write_flash_args", [])]
    return Write(
        build_dir,
        tuple(parts),
        options=[_dashed(option) if option.startswith("--") else option for option in options],
        before=_dashed(extra.get("before", "default-reset")),
        after=_dashed(extra.get("after", "hard-reset")),
    )


def _dashed(word: object) -> str:
    """Spell an option as esptool 5 does; ESP-IDF's builds still write underscores."""
    return str(word).replace("_", "-")

# SPDX-License-Identifier: Apache-2.0
"""esptool as a process of its own, with a deadline, a log, and errors that have an owner.

Writing one build to a board, as its ``flasher_args.json`` says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import ConfigError, HilError, NoAnswerError, RigError
from hil.base.paths import python_path
from hil.base.process import DIE_WITH_PARENT, kill_group
from hil.base.reading import IMAGE_MOST_BYTES, read_at_most
from hil.boards.firmware.build_folder import check_burns_nothing, flash_files, flasher_args
from hil.boards.firmware.core_dump import SUBTYPE as CORE_DUMP
from hil.boards.firmware.core_dump import keeps_core_dumps
from hil.boards.firmware.otadata import SECTOR_BYTES
from hil.boards.firmware.partition_table import (
    DATA,
    DATA_SUBTYPES,
    TABLE_OFFSET,
    Partition,
    TableError,
    from_binary,
)
from hil.boards.flash.words import Write, fault_in, last_words, warnings_in
from hil.boards.rack import Board
from hil.boards.serial_url import OWN

EXPECT = "--expect"  # of hil.boards.serial_url.esptool, which only its own process imports
FLASH_BAUD = 460800
FLASH_TIMEOUT_S = 180.0
_COLUMNS = 240  # of what esptool prints: a path that it quotes is not broken into lines
WAIT_S = 0.2  # between two looks at esptool
STUB_S = 15.0  # the stub greets within milliseconds; esptool 5.6 waits for it without end
STARTS_STUB = "Running stub flasher..."
CONNECT_ATTEMPTS = 4  # of esptool's own; all of them twice
ATTEMPTS = 2
_NVS = DATA_SUBTYPES["nvs"]


@dataclass(frozen=True)
class FlashResult:
    """What flashing took: ``note`` says why it had to be repeated, and what esptool warned of."""

    board: str
    attempts: int
    note: str


def write(
    board: Board,
    what: Write,
    *,
    log: Path,
    timeout_s: float = FLASH_TIMEOUT_S,
    stop: threading.Event | None = None,
) -> FlashResult:
    """Write to a board; a failed attempt that can be chance is repeated once, with a note.

    ``stop`` ends it early: the process is killed and the fault says so.

    Raises:
        ConfigError: another board, or another chip, answers; or esptool refuses what it is to write.
        RigError: port taken, no answer, no end within ``timeout_s``, damaged content.
    """
    argv = command(board, what)
    log.parent.mkdir(parents=True, exist_ok=True)
    note = ""
    for attempt in range(1, ATTEMPTS + 1):
        begin = log.stat().st_size if log.exists() else 0
        fault = _attempt(board, argv, what, log, timeout_s, stop or threading.Event())
        if fault is None:
            warned = warnings_in(log.read_bytes()[begin:].decode(errors="replace"))
            return FlashResult(board.id, attempt, "; ".join([*filter(None, [note]), *warned]))
        if isinstance(fault, ConfigError) or attempt == ATTEMPTS or (stop and stop.is_set()):
            raise fault
        note = f"written at attempt {attempt + 1}; before: {fault.sentence}"
    raise AssertionError("unreachable: the last attempt returns or raises")


def erase(board: Board, *, log: Path, stop: threading.Event | None = None) -> None:
    """Erase the whole flash of a board. Raises HilError as write() does."""
    ask(board, ["erase-flash"], doing="erasing", log=log, stop=stop)


def ask(
    board: Board, words: Sequence[str], *, doing: str, log: Path, stop: threading.Event | None = None
) -> None:
    """Run another command of esptool on a board. Raises HilError as write()."""
    what = Write(log.parent, (), doing=doing)
    log.parent.mkdir(parents=True, exist_ok=True)
    argv = [*_connection(board, what), *words]
    if fault := _attempt(board, argv, what, log, FLASH_TIMEOUT_S, stop or threading.Event()):
        raise fault


def command(board: Board, what: Write) -> list[str]:
    """Return the esptool command that writes ``what``."""
    argv = [*_connection(board, what), "write-flash", *what.options]
    for offset, name in what.parts:
        argv += [f"{offset:#x}", name]
    return argv


def _connection(board: Board, what: Write) -> list[str]:
    return [
        *DIE_WITH_PARENT,  # a killed run must not leave an esptool behind that holds the port
        *_esptool(board),
        *("--chip", board.chip, "--port", board.serial, "--baud", str(FLASH_BAUD)),
        *("--connect-attempts", str(CONNECT_ATTEMPTS)),
        *("--before", what.before, "--after", what.after),
        *(() if what.stub else ("--no-stub",)),
    ]


def _esptool(board: Board) -> list[str]:
    options = (EXPECT, board.mac) if board.mac else ()
    ours = options or board.serial.startswith(OWN)
    return [sys.executable, "-m", "hil.boards.serial_url.esptool" if ours else "esptool", *options]


def _attempt(
    board: Board,
    argv: Sequence[str],
    what: Write,
    log: Path,
    timeout_s: float,
    stop: threading.Event,
) -> HilError | None:
    offset = log.stat().st_size if log.exists() else 0
    with log.open("ab") as out:
        process = subprocess.Popen(
            argv, cwd=what.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            env=_environment(), start_new_session=True,
        )  # fmt: skip
        status = _wait(process, timeout_s, stop, lambda: _starts_stub(log, offset))
    said = log.read_bytes()[offset:].decode(errors="replace")
    if status == 0:
        return None
    attempt = f"{what.doing} board {board.id} on {board.serial} failed"
    if status is not None and not stop.is_set():
        ended = f"{attempt}: esptool ended with status {status} ({last_words(said)})."
        return fault_in(attempt, said, log, what) or RigError(ended, log=str(log))
    return _killed(attempt, said, log, timeout_s, stopped=stop.is_set())


def _environment() -> dict[str, str]:
    settings = {"PYTHONUNBUFFERED": "1", "COLUMNS": str(_COLUMNS)}
    return {**os.environ, "PYTHONPATH": python_path(), **settings}


def _starts_stub(log: Path, begin: int) -> bool:
    """Return whether the last that esptool said from ``begin`` on is that it has started the stub."""
    with log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - len(STARTS_STUB) - 2))  # and the end of the line
        return file.read().decode(errors="replace").rstrip().endswith(STARTS_STUB)


def _wait(
    process: subprocess.Popen[bytes], timeout_s: float, stop: threading.Event, starts_stub: Callable[[], bool]
) -> int | None:
    """Return the exit status; None where the process was killed: the time was up, that of the stub, too, or
    ``stop`` was set."""
    stub_s = 0.0
    for _ in range(max(1, int(timeout_s / WAIT_S))):
        if stop.is_set() or stub_s >= STUB_S:
            break
        try:
            return process.wait(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            stub_s = stub_s + WAIT_S if starts_stub() else 0.0
    kill_group(process)
    process.wait(timeout=5.0)
    return None


def _killed(attempt: str, said: str, log: Path, timeout_s: float, *, stopped: bool) -> HilError:
    if stopped:
        return RigError(f"{attempt}: the run was stopped.", log=str(log))
    mute = said.rstrip().endswith(STARTS_STUB)
    why = (
        f"its stub did not answer within {STUB_S:g} s"
        if mute
        else f"esptool did not end within {timeout_s:g} s"
    )
    return NoAnswerError(
        f"{attempt}: {why}.",
        log=str(log),
        next_step="switch the board's power (hil board power BOARD cycle) and run again.",
    )


def flash(
    board: Board,
    build_dir: Path,
    *,
    log: Path,
    timeout_s: float = FLASH_TIMEOUT_S,
    stop: threading.Event | None = None,
    keeps_nvs: bool = True,
) -> FlashResult:
    """Write a build to a board; see hil.boards.flash.tool.write.

    ``keeps_nvs`` leaves NVS as it is; without it the program finds it empty, or as its build writes it.

    Raises:
        ConfigError: no build there, one that would burn eFuses, another chip, or esptool refuses the build.
        RigError: port taken, no answer, no end within ``timeout_s``, damaged content.
    """
    check_burns_nothing(build_dir)
    parts = parts_of(build_dir)
    if not keeps_nvs:
        parts = with_empty_nvs(build_dir, parts, files=log.parent / board.id)
    what = write_of(build_dir, parts)
    return write(board, what, log=log, timeout_s=timeout_s, stop=stop)


def with_empty_nvs(
    build_dir: Path, parts: Sequence[tuple[int, str]], *, files: Path
) -> list[tuple[int, str]]:
    """Return these parts and, where a build has NVS that none of them writes, what empties it.

    Else what one product keeps there is what the next one starts from. A core dump of an earlier image goes,
    too. ``files`` begins the names of what is written for it.
    Where all that is written is encrypted, nothing is added: emptiness would be, too. Raises ConfigError.
    """
    if "--encrypt" in write_of(build_dir, parts).options:
        return list(parts)
    added = []
    emptied = {_NVS: None, **({CORE_DUMP: SECTOR_BYTES} if keeps_core_dumps(build_dir) else {})}
    for partition in table_of(build_dir):
        room = range(partition.offset, partition.offset + partition.size_bytes)
        is_emptied = partition.type == DATA and partition.subtype in emptied
        if is_emptied and not any(at in room for at, _ in parts):
            path = files.with_name(f"{files.name}.empty-{partition.offset:#x}.bin").resolve()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"\xff" * (emptied[partition.subtype] or partition.size_bytes))
            added.append((partition.offset, str(path)))
    return sorted([*parts, *added])


def table_of(build_dir: Path) -> tuple[Partition, ...]:
    """Return a build's partition table, () where it flashes none that is right. Raises ConfigError."""
    named = flasher_args(build_dir).get("partition-table", {}).get("offset", hex(TABLE_OFFSET))
    names = [name for offset, name in parts_of(build_dir) if offset == int(str(named), 0)]
    content = read_at_most(build_dir / names[0], IMAGE_MOST_BYTES) if names else b""
    try:
        return from_binary(content)
    except TableError:
        return ()


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
        stub=extra.get("stub") is not False,
    )


def _dashed(word: object) -> str:
    """Spell an option as esptool 5 does; ESP-IDF's builds still write underscores."""
    return str(word).replace("_", "-")

"""Writing one build to a board, as its ``flasher_args.json`` says."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from hil.boards.firmware.build_folder import flash_files, flasher_args
from hil.boards.flash.tool import FLASH_TIMEOUT_S, FlashResult, Write, command, write
from hil.boards.flash.wear import WearCounter
from hil.boards.rack import Board


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

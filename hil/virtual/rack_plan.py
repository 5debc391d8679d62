"""What the supervisor is told to start: the air and the boards, as command lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.virtual import rack_namespace
from hil.virtual.rack_state import RackPaths, VirtualBoardSpec
from hil.virtual.supervisor_child import AIR_CONTROL_FD, FIRST_BOARD_FD

AIR_PRIORITY = 60
BOARD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,29}")
RESERVED_IDS = ("rack", "all")


@dataclass(frozen=True)
class BoardLaunch:
    """What a virtual board's process is told."""

    spec: VirtualBoardSpec
    listen_fd: int
    control_path: Path
    flash_path: Path
    netns_path: Path
    log_path: Path


BoardCommand = Callable[[BoardLaunch], Sequence[str]]


def default_board_command(board: BoardLaunch) -> Sequence[str]:
    """The virtual board of hil.virtual.board."""
    argv = [sys.executable, "-m", "hil.virtual.board", "--id", board.spec.id]
    argv += ["--listen-fd", str(board.listen_fd), "--control", str(board.control_path)]
    argv += ["--flash", str(board.flash_path), "--mac", board.spec.mac, "--chip", board.spec.chip]
    argv += ["--netns", str(board.netns_path)]
    return [*argv, "--pace"] if board.spec.pace else argv


def check_boards(boards: Sequence[VirtualBoardSpec]) -> None:
    """Raise ConfigError for ids that are no file names, reserved, or given twice, and for no boards."""
    ids = [board.id for board in boards]
    for board_id in ids:
        if BOARD_ID.fullmatch(board_id) is None or board_id in RESERVED_IDS:
            raise ConfigError(f"{board_id!r} is not a board id: letters, digits, - and _; not rack or all.")
        if ids.count(board_id) > 1:
            raise ConfigError(f"the board id {board_id!r} appears twice.")
    if not ids:
        raise ConfigError("a virtual rack needs at least one board.")


def make_plan(
    paths: RackPaths,
    air: Path,
    boards: Sequence[VirtualBoardSpec],
    seed: int,
    board_command: BoardCommand | None,
) -> Mapping[str, Any]:
    """Return the plan that the supervisor executes, as a JSON object."""
    launches = [_board_launch(paths, index, board) for index, board in enumerate(boards)]
    return {
        "air": {"argv": _air_argv(air, boards, seed), "log": str(paths.air_log)},
        "boards": [_board_plan(board, board_command) for board in launches],
    }


def _board_plan(board: BoardLaunch, board_command: BoardCommand | None) -> dict[str, object]:
    return {
        "id": board.spec.id,
        "mac": board.spec.mac,
        "listen_fd": board.listen_fd,
        "argv": [str(word) for word in board_command(board)] if board_command else [],
        "log": str(board.log_path),
    }


def _board_launch(paths: RackPaths, index: int, board: VirtualBoardSpec) -> BoardLaunch:
    return BoardLaunch(
        spec=board,
        listen_fd=FIRST_BOARD_FD + index,
        control_path=paths.board_socket(board.id),
        flash_path=paths.board_flash(board.id),
        netns_path=rack_namespace.netns_path(board.id),
        log_path=paths.board_log(board.id),
    )


def _air_argv(air: Path, boards: Sequence[VirtualBoardSpec], seed: int) -> list[str]:
    argv = [
        str(air),
        "--seed",
        str(seed),
        "--priority",
        str(AIR_PRIORITY),
        "--control-fd",
        str(AIR_CONTROL_FD),
    ]
    for index, board in enumerate(boards):
        device, path = rack_namespace.access_point_device(index), rack_namespace.netns_path(board.id)
        argv += ["--link", f"{board.id},{device},{path},{rack_namespace.BOARD_DEVICE}"]
    return argv

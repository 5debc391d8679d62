# SPDX-License-Identifier: Apache-2.0
"""Power: switch a board's supply, whatever switches it."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from typing import Literal, Protocol

from hil.base.errors import ConfigError, RigError
from hil.boards.rack import Board

Action = Literal["on", "off", "cycle"]


class VirtualSwitch(Protocol):
    """The part of a virtual board's control socket that switches its supply."""

    def power(self, state: str) -> object: ...


def switch_power(board: Board, action: Action, *, virtual: Callable[[str], VirtualSwitch]) -> None:
    """Switch a board ``on``, ``off``, or off and on again (``cycle``).

    ``virtual`` returns the control of a virtual board by its id.

    Raises:
        ConfigError: the rack file gives the board no power switch.
        RigError: the command failed, or did not end in time.
    """
    if board.power.type == "none":
        raise ConfigError(
            f"{board.where}: board {board.id} has no power switch, so it cannot be switched {action}.",
            next_step="add 'power: {type: command, command: …}' to its entry, or pull the plug by hand.",
        )
    if board.power.type == "virtual":
        virtual(board.id).power(action)
        return
    _run_command(board, action)


def _run_command(board: Board, action: Action) -> None:
    argv = shlex.split(board.power.command.replace("{action}", action))
    attempt = f"power {action} of board {board.id} by '{shlex.join(argv)}'"
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=board.power.timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise RigError(
            f"{attempt} failed: there is no program {argv[0]!r}.",
            next_step=f"install it, or mend {board.where}.",
        ) from error
    except OSError as error:
        raise RigError(
            f"{attempt} failed: {argv[0]!r} could not be started: {error.strerror}.",
            next_step=f"make it executable (chmod +x) for this user, or mend {board.where}.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RigError(
            f"{attempt} did not end within {board.power.timeout_s:g} s.",
            next_step="run it by hand; look at the hub.",
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RigError(
            f"{attempt} ended with status {done.returncode}: {said[-1] if said else 'no message'}.",
            next_step="run it by hand; look at the hub and its permissions.",
        )

# SPDX-License-Identifier: Apache-2.0
"""Does a power switch really switch? Proven at the board: off, nothing answers; on, the same board does.

A hub that only says that it cut the power is the commonest lie of a rack: the recovery of a hung board rests
on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from hil.base.errors import HilError, NoAnswerError, RigError
from hil.base.finding import Finding
from hil.boards.flash.identify import Identity, identify
from hil.boards.rack import Board
from hil.boards.serial_url.usb import is_gone
from hil.boards.supply import VirtualSwitch, switch_power

BACK_DEADLINE_S = 20.0  # a hub that had no power is enumerated again within seconds
_BACK_POLL_S = 0.5
_CAPACITORS_S = 2.0  # what is stored in a module keeps it up for a while


def prove_power(board: Board, *, virtual: Callable[[str], VirtualSwitch]) -> Finding:
    """Switch a board off and on, and see whether it follows; it is on at the end, as far as that works."""
    subject = f"power of {board.id}"
    if board.power.type == "none":
        return Finding(
            subject, ok=True, sentence="it has no switch, which a hung board cannot be helped without"
        )
    try:
        before = identify(board)
        took_s = _prove(board, before, virtual)
    except HilError as error:
        return Finding(subject, ok=False, sentence=error.sentence, mend=error.next_step)
    return Finding(subject, ok=True, sentence=f"off, it is gone; on, it is back after {took_s:.1f} s")


def _prove(board: Board, before: Identity, virtual: Callable[[str], VirtualSwitch]) -> float:
    try:
        switch_power(board, "off", virtual=virtual)
        if not board.is_process:
            time.sleep(_CAPACITORS_S)
        _check_gone(board)
    finally:
        began = time.monotonic()
        switch_power(board, "on", virtual=virtual)
    return _wait_back(board, before, began)


def _check_gone(board: Board) -> None:
    if is_gone(board.serial):
        return  # it hangs on the supply that was cut
    try:
        found = identify(board)
    except RigError:  # nothing answers, or the port is gone with its host's supply
        return
    raise RigError(
        f"the power of board {board.id} lies: switched off, its boot loader still answers "
        f"(MAC address {found.mac}).",
        next_step="use a hub that really switches its ports; check that the board is on the named port "
        "and that nothing else powers it (a second cable, a programmer).",
    )


def _wait_back(board: Board, before: Identity, began: float) -> float:
    while True:
        try:
            found = identify(board)
            break
        except RigError as error:
            if time.monotonic() - began >= BACK_DEADLINE_S:
                raise NoAnswerError(
                    f"board {board.id} did not come back within {BACK_DEADLINE_S:g} s of being switched on: "
                    f"{error.sentence}",
                    next_step="switch it by hand: hil board power BOARD on; look at cable and hub.",
                ) from error
            time.sleep(_BACK_POLL_S)
    if found != before:
        raise RigError(
            f"another board came back in place of board {board.id}: {found.chip} {found.mac} "
            f"instead of {before.chip} {before.mac}.",
            next_step="name the port by path or by id, so that it does not change.",
        )
    return time.monotonic() - began

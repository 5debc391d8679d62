# SPDX-License-Identifier: Apache-2.0
"""Supply: switch a board off and on, by the driver that its rack file names.

A switch that says that it did and did not is the rig's fault, as far as it tells its state. Whether the
board went off is proven by hil.boards.supply_proof.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Literal, Protocol

from hil.base.errors import ConfigError, HilError, RigError
from hil.boards.drivers import errors_of
from hil.boards.power import PowerDriver
from hil.boards.rack import Board, Power
from hil.boards.serial_url.usb import is_gone

Action = Literal["on", "off", "cycle"]


class VirtualSwitch(Protocol):
    """The part of a virtual board's control socket that switches its supply."""

    def power(self, state: str) -> object: ...


def switch_power(
    board: Board,
    action: Action,
    *,
    virtual: Callable[[str], VirtualSwitch | None],
    power: Power | None = None,
) -> None:
    """Switch a board ``on``, ``off``, or off and on again (``cycle``).

    ``virtual`` returns the control of a virtual board by its id. ``power`` is what switches it, the board's
    own unless said: that of its hub switches whatever else hangs there, too.

    Raises:
        ConfigError: the rack file gives the board no power switch; a password or a terminal is missing.
        RigError: it failed, did not end in time, or says afterwards that the supply is as it was.
    """
    power = power or board.power
    if power.type == "virtual":
        switch = virtual(board.id)
        if switch is None:
            raise RigError(f"board {board.id} is virtual, and its rack is not running to switch it {action}.")
        switch.power(action)
    elif power.type == "none":
        raise ConfigError(
            f"{board.where}: board {board.id} has no power switch, so it cannot be switched {action}.",
            next_step="add 'power: {type: …}' to its entry, or pull the plug by hand.",
        )
    elif action == "cycle":
        _switch(board, power, on=False)
        time.sleep(power.off_time_s)
        _switch(board, power, on=True)
    else:
        _switch(board, power, on=action == "on")


PORT_DEADLINE_S = 20.0  # a hub that had no power is enumerated again within seconds
_PORT_POLL_S = 0.2


def await_port(board: Board) -> None:
    """Wait until the port of a board that was switched on is there again, as far as that is seen here."""
    deadline = time.monotonic() + PORT_DEADLINE_S
    while is_gone(board.serial) and time.monotonic() < deadline:
        time.sleep(_PORT_POLL_S)


def _switch(board: Board, power: Power, *, on: bool) -> None:
    action = "on" if on else "off"
    try:
        if power.driver is None:
            _ask_person(f"Switch board {board.id} {action} by hand, then press Enter. ")
        else:
            _drive(power.driver, on=on)
    except HilError as error:
        attempt = f"{board.where}: power {action} of board {board.id} by {power.driver or 'hand'} failed"
        raise type(error)(f"{attempt}: {error.sentence}", next_step=error.next_step) from error


def _drive(driver: PowerDriver, *, on: bool) -> None:
    with errors_of(type(driver), RigError):
        driver.switch(on=on)
        state = driver.is_on()
    if state is not None and state != on:
        raise RigError(
            f"it accepted the command but reports that it is still {'on' if state else 'off'}.",
            next_step="use a switch that really switches; uhubctl's README lists hubs.",
        )


def _ask_person(question: str) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            "there is no terminal to ask at.",
            next_step="run the command in a terminal, or give the board a switch.",
        )
    print(question, end="", file=sys.stderr, flush=True)
    if not sys.stdin.readline():
        raise RigError("the terminal was closed.")

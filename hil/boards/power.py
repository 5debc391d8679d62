# SPDX-License-Identifier: Apache-2.0
"""Power: switch a board's supply, whatever switches it.

A switch that says that it did and did not is the rig's fault, as far as it can be asked: a hub's port and a
smart plug tell their state. Whether the board went off is proven by hil.boards.power_proof.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from hil.base.errors import ConfigError, RigError
from hil.base.process import run_group
from hil.base.secret import secret, way_out
from hil.boards.power_plugs import PlugError, switch_shelly, switch_tasmota
from hil.boards.rack import Board
from hil.boards.rack.power import Power
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
    if power.type == "none":
        raise ConfigError(
            f"{board.where}: board {board.id} has no power switch, so it cannot be switched {action}.",
            next_step="add 'power: {type: …}' to its entry, or pull the plug by hand.",
        )
    if power.type == "virtual":
        switch = virtual(board.id)
        if switch is None:
            raise RigError(f"board {board.id} is virtual, and its rack is not here to switch it {action}.")
        switch.power(action)
    elif action == "cycle" and (power.off_time_s is not None or power.type == "manual"):
        _switch(board, power, "off")
        time.sleep(power.off_time_s or 0.0)
        _switch(board, power, "on")
    else:
        _switch(board, power, action)


PORT_DEADLINE_S = 20.0  # a hub that had no power is enumerated again within seconds
_PORT_POLL_S = 0.2


def await_port(board: Board) -> None:
    """Wait until the port of a board that was switched on is there again, as far as that is seen here."""
    deadline = time.monotonic() + PORT_DEADLINE_S
    while is_gone(board.serial) and time.monotonic() < deadline:
        time.sleep(_PORT_POLL_S)


def _switch(board: Board, power: Power, action: Action) -> None:
    if power.type == "command":
        argv = shlex.split(power.command.replace("{action}", action))
        _run(board, action, argv, power.timeout_s)
    elif power.type == "uhubctl":
        _switch_port(board, power, action)
    elif power.type == "manual":
        _ask_person(board, action)
    else:
        _switch_plug(board, power, action)


def _run(board: Board, action: Action, argv: Sequence[str], timeout_s: float) -> str:
    """Run a program and return what it printed; one that does not end is killed with all that it started."""
    attempt = f"power {action} of board {board.id} by '{shlex.join(argv)}'"
    try:
        done = run_group(argv, timeout_s)  # also the user's interrupt ends it: it could switch at any time
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
            f"{attempt} did not end within {timeout_s:g} s; it was ended, with all that it had started.",
            next_step="run it by hand; look at the hub.",
        ) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RigError(
            f"{attempt} ended with status {done.returncode}: {said[-1] if said else 'no message'}.",
            next_step="run it by hand; look at the hub and its permissions.",
        )
    return done.stdout


_HUB = re.compile(r"(Current|New) status for hub (\S+) ")
_PORT = re.compile(r"\s+Port (\d+): [0-9a-f]{4}(.*)")


def _switch_port(board: Board, power: Power, action: Action) -> None:
    """Switch a port of a hub, or all of them, by uhubctl, and compare its state afterwards.

    A USB 3 hub is two, which uhubctl switches both; each has to say so.
    """
    ports = ["-p", str(power.port)] if power.port else []
    argv = ["uhubctl", "-l", power.location, *ports, "-a", action]
    said = _run(board, action, argv, power.timeout_s)
    states = port_states(said)
    contradicting = [
        f"port {port} of hub {hub} says {' '.join(words) or 'nothing'}"
        for hub, port, words in states
        if ("power" in words) != (action == "on")
    ]
    if contradicting or not states:
        what = "; ".join(contradicting) or "uhubctl told no state of it"
        raise RigError(
            f"power {action} of board {board.id} by '{shlex.join(argv)}' did nothing: {what}.",
            next_step="take a hub whose ports really switch (uhubctl's README lists some), and check with a "
            "meter.",
        )


def port_states(said: str) -> list[tuple[str, int, tuple[str, ...]]]:
    """Return what uhubctl says of ports after it has switched: hub, port, and the words of its state."""
    found: list[tuple[str, int, tuple[str, ...]]] = []
    hub = ""
    for line in said.splitlines():
        if match := _HUB.match(line):
            hub = match[2] if match[1] == "New" else ""
        elif hub and (match := _PORT.match(line)):
            words = match[2].partition("[")[0]  # in brackets stands what is plugged in, in words of its own
            found.append((hub, int(match[1]), tuple(words.split())))
    return found


def _ask_person(board: Board, action: Action) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(
            f"{board.where}: the power of board {board.id} is switched by hand, and nobody is at a terminal "
            f"to switch it {action}.",
            next_step="run the command in a terminal, or give the board a switch.",
        )
    print(
        f"Switch board {board.id} {action} by hand, then press Enter. ", end="", file=sys.stderr, flush=True
    )
    if not sys.stdin.readline():
        raise RigError(f"power {action} of board {board.id} by hand: the terminal was closed.")


def _switch_plug(board: Board, power: Power, action: Action) -> None:
    password = secret(power.password_env)
    if power.password_env and not password:
        raise ConfigError(
            f"{board.where}: the password of the plug of board {board.id} is not in the environment variable "
            f"{power.password_env}.",
            next_step=way_out(power.password_env),
        )
    switch = switch_tasmota if power.type == "tasmota" else switch_shelly
    try:
        switch(power.url, power.relay, on=action == "on", password=password, timeout_s=power.timeout_s)
    except PlugError as error:
        raise RigError(
            f"power {action} of board {board.id} by the {power.type.capitalize()} plug at {power.url} "
            f"failed: {error}.",
            next_step=f"open {power.url} in a browser; mend {board.where}.",
        ) from error

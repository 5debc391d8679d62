# SPDX-License-Identifier: Apache-2.0
"""How a board's supply is switched: the section ``power`` of its entry in a rack file."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

from hil.base.errors import ConfigError
from hil.base.secret import read_variable
from hil.base.yamlfile import Node

TYPES = ("virtual", "command", "uhubctl", "tasmota", "shelly", "manual", "none")
OFF_TIME_S = 2.0  # what a module's capacitors hold up is gone by then

_LOCATION = re.compile(r"\d+(-\d+(\.\d+)*)?")
_URL_PARTS = "an address such as http://192.168.77.20, without user, query or fragment"


@dataclass(frozen=True)
class Power:
    """How a supply is switched. ``command`` holds ``{action}``: on, off or cycle.

    ``location`` and ``port`` name a port of a USB hub as uhubctl does; port 0 is all of the hub's. ``url`` is
    a smart plug's, ``relay`` the one that is meant: from 1 on a Tasmota, from 0 on a Shelly. A password comes
    from the environment variable ``password_env``, "" where none is asked for. ``off_time_s`` is how long a
    cycle leaves it off; None leaves the cycle to the command.
    """

    type: str
    command: str = ""
    timeout_s: float = 20.0
    location: str = ""
    port: int = 0
    url: str = ""
    relay: int = 0
    password_env: str = ""
    off_time_s: float | None = None

    @property
    def is_automatic(self) -> bool:
        """Whether a run can use it: nobody has to be there."""
        return self.type not in ("none", "manual")


NO_POWER = Power("none")


def read_power(node: Node | None, *, whole_hub: bool = False) -> Power:
    """Read the section; without one there is no switch. Raises ConfigError."""
    if node is None:
        return NO_POWER
    kind = node.choice("type", TYPES)
    if kind in ("none", "virtual", "manual"):
        return Power(kind)
    timeout_s = node.quantity("timeout", "s", default=20.0, minimum=1.0, maximum=300.0)
    default = None if kind == "command" else OFF_TIME_S
    off_time_s = node.quantity("off_time", "s", default=default, minimum=0.5, maximum=60.0)
    if kind == "command":
        return Power(kind, _read_command(node), timeout_s, off_time_s=off_time_s)
    if kind == "uhubctl":
        port = 0 if whole_hub else node.integer("port", minimum=1, maximum=14)
        location = _read_location(node)
        return Power(kind, timeout_s=timeout_s, location=location, port=port, off_time_s=off_time_s)
    first = 1 if kind == "tasmota" else 0
    return Power(
        kind,
        timeout_s=timeout_s,
        url=_read_url(node),
        relay=node.integer("relay", default=first, minimum=first, maximum=32),
        password_env=read_variable(node, "password_env"),
        off_time_s=off_time_s,
    )


def read_hub(node: Node | None) -> Power | None:
    """Read what switches the whole hub that a board hangs on, None where nothing does. Raises ConfigError."""
    if node is None:
        return None
    node.choice("type", ("uhubctl", "command"))
    return read_power(node, whole_hub=True)


def _read_command(node: Node) -> str:
    command = node.text("command")
    if "{action}" not in command:
        raise node.error(
            "command",
            f"the power command {command!r} lacks {{action}}, which becomes on, off or cycle.",
            next_step="write it like: kasa --host plug-1 {action}",
        )
    try:
        shlex.split(command)
    except ValueError as error:
        raise node.error(
            "command",
            f"the power command {command!r} cannot be split into words: {error}.",
            next_step="close the quotation, or leave the quotes out.",
        ) from None
    return command


def _read_location(node: Node) -> str:
    location = node.text("location")
    if not _LOCATION.fullmatch(location):
        raise node.error(
            "location",
            f"{location!r} is no hub's location as uhubctl lists them, such as 1-1.2.",
            next_step="run uhubctl: it lists each hub that it can switch, with its location.",
        )
    return location


def _read_url(node: Node) -> str:
    url = node.text("url")
    try:
        parts = urlsplit(url)
        ok = parts.scheme == "http" and parts.hostname and (parts.port or 80) > 0
        ok = ok and not (parts.query or parts.fragment or parts.username or parts.path.strip("/"))
    except ValueError:
        ok = False
    if not ok:
        raise _bad_url(node, url)
    return url.rstrip("/")


def _bad_url(node: Node, url: str) -> ConfigError:
    shown = url.rpartition("@")[2]  # whatever stands before it may be a password
    return node.error(
        "url",
        f"the plug's url {shown!r} is not {_URL_PARTS}.",
        next_step="write it like: http://192.168.77.20; a password belongs into password_env.",
    )

# SPDX-License-Identifier: Apache-2.0
"""Writes the configuration with which labgrid-exporter offers a rack's boards to a coordinator.

Each board is a group: its serial port and, where labgrid has a driver for its supply, a power port, as
labgrid knows them; and beside them a ``HilBoard``, which labgrid passes on unread: the board's entry in the
rack file. So a board that moves to another exporter stays itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML

from hil.base.errors import ConfigError
from hil.boards.power.tasmota import Tasmota
from hil.boards.power.uhubctl import Uhubctl
from hil.boards.rack import Board, Rack
from hil.boards.serial_url import NETWORK_PORT
from hil.boards.serial_url.usb import UsbPort, from_url

BOARD_CLASS = "HilBoard"
BOARD_SCHEMA = 1  # of a HilBoard's parameters; whoever leases the board refuses another
PORT_CLASS = "NetworkSerialPort"
_OWN = ("serial", "usb", "power")  # of this host: whoever leases the board reaches both over the network


def exporter_config(rack: Rack, served: Mapping[str, Board]) -> str:
    """Return the configuration, YAML as labgrid-exporter reads it.

    ``served`` holds the virtual and emulated boards that are up, by id, each at the port where it is.
    Raises ConfigError: a board that is a process has no port, or a serial port is of an unknown kind.
    """
    entries = _entries(rack.path)
    groups = {}
    for board in rack.boards:
        entry = {key: value for key, value in entries[board.id].items() if key not in _OWN}
        told = {"cls": BOARD_CLASS, "schema": BOARD_SCHEMA, "entry": json.dumps(entry, ensure_ascii=False)}
        groups[board.id] = {**_port(served.get(board.id, board)), **_power(board), BOARD_CLASS: told}
    text = StringIO()
    YAML().dump(groups, text)
    return text.getvalue()


def place_commands(rack: Rack, coordinator: str) -> list[str]:
    """Return what to type, once, for a coordinator to know each board as a place of its name and target."""
    client = f"labgrid-client -x {coordinator}"
    return [
        line
        for board in rack.boards
        for line in (
            f"{client} -p {board.id} create",
            *(f"{client} -p {board.id} add-match '*/{board.id}/{cls}'" for cls in _classes(board)),
            f"{client} -p {board.id} set-tags board={board.id} target={board.target} rack={rack.name}",
        )
    ]


def _classes(board: Board) -> list[str]:
    """Return what labgrid calls a board's ports at the coordinator."""
    return [PORT_CLASS, *(cls if cls.startswith("Network") else f"Network{cls}" for cls in _power(board))]


def _power(board: Board) -> dict[str, dict[str, object]]:
    """Return a power port by its class; nothing of a supply that labgrid 26 has no driver for."""
    power = board.power.driver
    if isinstance(power, Uhubctl) and "-" in power.location:  # a root hub has another name at labgrid
        return {"USBPowerPort": {"match": {"sys_name": f"{power.location}:1.0"}, "index": power.port}}
    if isinstance(power, Tasmota) and not power.password_env:  # labgrid's own is for plugs at an MQTT broker
        host = f"{power.url}/cm?cmnd=Power{{index}}%20{{value}}"
        return {"NetworkPowerPort": {"model": "simplerest", "host": host, "index": power.relay}}
    return {}


def _entries(path: Path) -> dict[str, dict[str, object]]:
    boards = YAML(typ="safe").load(path.read_text(encoding="utf-8"))["boards"]
    return {str(entry["id"]): entry for entry in boards}


def _port(board: Board) -> dict[str, dict[str, object]]:
    """A port that is served already is passed on; a device is what labgrid's exporter hands to ser2net."""
    if board.is_process and not board.serial:
        raise ConfigError(
            f"{board.where}: board {board.id} is {board.kind} and not running, so it has no port to export.",
            next_step="start it in another terminal (hil virtual up), or give it a fixed port: serial: "
            "fastrfc2217://127.0.0.1:7101",
        )
    if "://" not in board.serial:
        return {"RawSerialPort": {"port": board.serial, "speed": board.baud}}
    if board.serial.startswith("usb://"):
        return {"USBSerialPort": {"match": _usb_match(from_url(board.serial)), "speed": board.baud}}
    match = NETWORK_PORT.fullmatch(board.serial)
    assert match  # the rack file takes no other address
    protocol = "raw" if match.group(1) == "socket" else "rfc2217"
    told = {"host": match.group(2), "port": int(match.group(3)), "speed": board.baud, "protocol": protocol}
    return {PORT_CLASS: told}


def _usb_match(port: UsbPort) -> dict[str, str]:
    """Return the udev properties by which labgrid finds a port; those with @ belong to its parent device."""
    number = "" if port.interface is None else f"{port.interface:02x}"
    words = {"@sys_name": port.path, "@serial": port.serial, "ID_USB_INTERFACE_NUM": number}
    return {name: word for name, word in words.items() if word}

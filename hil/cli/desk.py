# SPDX-License-Identifier: Apache-2.0
"""``hil run --port``: a run on the board at a serial port; the rack file is written where there is none."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.paths import PROJECT_RACK
from hil.base.secret import keep, secret
from hil.boards.desk import ALONE, PASSWORD, SSID, rack_file, route
from hil.boards.ports import Port, named, owners, who_answers
from hil.boards.rack import load_rack
from hil.boards.serial_url import port_at
from hil.cli.options import write_text
from hil.network.access_point import check_password
from hil.run.campaign import read_campaign
from hil.run.options import DEFAULT_RACK, RunOptions


def at_port(options: RunOptions, address: str) -> RunOptions:
    """Return the options of a run on the board at a port: with its rack file, and its id there.

    A rack file that names the port is used as it is. Another one stays, and the new one lies in OUT.

    Raises HilError: nothing answers there, somebody else has the port, or its network is not known.
    """
    if options.boards:
        raise ConfigError(
            "--port with --board: the port already selects the board.", next_step="leave one out."
        )
    file = PROJECT_RACK if options.rack == DEFAULT_RACK else options.rack
    port = named(address)
    if known := _board_at(port, file):
        found = replace(options, rack=file, boards=(known,))
        point = load_rack(file).access_point
        if (point.ssid_env, point.psk_env) == (SSID, PASSWORD) and read_campaign(found).joins_network:
            _know_network()
        return found
    return _new(options, port, file)


def _board_at(port: Port, file: Path) -> str:
    """Return the board that a rack file has at a port, "" for none. Raises ConfigError: the file is wrong."""
    for board in load_rack(file).boards if file.is_file() else ():
        with suppress(HilError):  # not plugged in
            if port_at(board.stock_serial) == port_at(port.address):
                return board.id
    return ""


def _new(options: RunOptions, port: Port, file: Path) -> RunOptions:
    if owner := owners([]).get(port_at(port.address)):  # of a run under way
        raise RigError(f"port {port.address} belongs to {owner.describe()}.", next_step="wait for that run.")
    found = who_answers(port)
    click.echo(f"At {port.address}: {found.chip}, {found.mac}, {found.size or 'unknown'} flash")
    joins = _joins_network(options, rack_file(port, found, ALONE), found.board_id)
    text = rack_file(port, found, _host(joins=joins))
    if joins:
        _know_network()
    kept = file.is_file()
    path = options.out / "rack.yaml" if kept else file
    write_text(path, text, otherwise=", or name another file: --rack FILE")
    click.echo(f"Wrote {_short(path)}" + (f", as {_short(file)} has no board at this port" if kept else ""))
    return replace(options, rack=path, boards=(found.board_id,))


def _host(*, joins: bool) -> tuple[str, str]:
    """Return interface and address of this host. Raises RigError: it has none, and a board is to reach it."""
    try:
        return route()
    except RigError:
        if joins:
            raise
        return ALONE


def _joins_network(options: RunOptions, text: str, board: str) -> bool:
    """Return whether the board is told a network, by what the run measures. Raises HilError."""
    with tempfile.TemporaryDirectory(prefix="hil-desk-") as folder:
        path = Path(folder, "rack.yaml")
        path.write_text(text, encoding="utf-8")
        return read_campaign(replace(options, rack=path, boards=(board,))).joins_network


def _know_network() -> None:
    """Ask for the network's name and password where neither environment nor this user's file has them."""
    if secret(SSID) and secret(PASSWORD):
        return
    if not sys.stdin.isatty():
        raise ConfigError(
            "the board's Wi-Fi is not known, and there is no terminal to ask at.",
            next_step=f"export {SSID}=… and {PASSWORD}=…",
        )
    ssid = click.prompt("Wi-Fi that the board joins", default=secret(SSID) or None)
    password = click.prompt("Its password (not shown)", hide_input=True)
    check_password(ssid, password, "what was typed")
    click.echo(f"Kept for this project in {keep({SSID: ssid, PASSWORD: password})}")


def _short(path: Path) -> str:
    return os.path.relpath(path)

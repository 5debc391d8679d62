# SPDX-License-Identifier: Apache-2.0
"""``hil board``: one board by hand."""

from __future__ import annotations

import getpass
import os
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import click

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.untrusted import terminal_page
from hil.boards.firmware.build import BUILD_ROOT
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.selection import find_firmware
from hil.boards.flash import flash
from hil.boards.flash.identify import Identity
from hil.boards.lease import lease_boards, lock_dir
from hil.boards.places.settings import rack_with_places
from hil.boards.ports import Port, PortOwner, entry_of, named, owners, ports_here, who_answers
from hil.boards.quarantine import describe, folder_of, put, read_quarantine, release, way_out
from hil.boards.rack import Board, Rack, load_rack
from hil.boards.serial_url import port_at
from hil.boards.supply import VirtualSwitch, switch_power
from hil.cli.options import DEFAULT_RACK, aligned, board_argument, out_option, rack_option
from hil.cli.status import HOST_RACKS
from hil.model import Quarantine
from hil.run.builds import image_in
from hil.store.run_info import utc_now
from hil.virtual.virtual_rack import VirtualRack, boards_up, up_dir


@click.group("board")
def command() -> None:
    """Handle one board."""


@command.command("flash")
@board_argument
@click.option(
    "--firmware",
    type=click.Path(path_type=Path),
    help="Bundle or build, hil's or a product's. [default: out/firmware/TARGET]",
)
@rack_option
@out_option
def flash_board(board_id: str, firmware: Path | None, rack: Path, out: Path) -> None:
    """Write a build to a board."""
    with _leased(rack, out, board_id, disturbs=True) as leased:
        board = _with_port(leased, rack, out)
        target = board.firmware_target
        image = image_in(firmware, target) if firmware else Image(target)
        build_dir = find_firmware(firmware or BUILD_ROOT / str(image), image).build_dir
        log = out / "flash" / f"{board.id}.log"
        result = flash(board, build_dir, log=log)
        click.echo(f"{board.id}: flashed {build_dir}{'; ' + result.note if result.note else ''} (log: {log})")


@command.command("power")
@board_argument
@click.argument("action", type=click.Choice(["on", "off", "cycle"]))
@rack_option
@out_option
def power_board(board_id: str, action: str, rack: Path, out: Path) -> None:
    """Switch a board's supply."""
    loaded = load_rack(rack)
    with _leased(rack, out, board_id, disturbs=True) as board:
        switch_power(board, action, virtual=lambda name: virtual_switch(loaded, out, name))  # type: ignore[arg-type]
        click.echo(f"{board.id}: power {action}")


@command.command("console")
@board_argument
@rack_option
@out_option
def console_board(board_id: str, rack: Path, out: Path) -> None:
    """Talk to a board (Ctrl-] ends it). Type `help` and Enter."""
    with _leased(rack, out, board_id) as leased:
        board = _with_port(leased, rack, out)
        if not sys.stdin.isatty():
            raise ConfigError(
                f"the console of board {board.id} needs a terminal, but stdin is not a terminal.",
                next_step="run it in a terminal, by ssh with -t; a run's console logs are in "
                "OUT/RUN/console.",
            )
        argv = [sys.executable, "-m", "serial.tools.miniterm", "--raw", "--eol", "LF"]
        status = subprocess.run([*argv, board.stock_serial, str(board.baud)], check=False).returncode
        if status:
            raise RigError(
                f"the console of board {board.id} on {board.stock_serial} ended with status {status}.",
                next_step="a virtual board needs its rack up: hil virtual up.",
            )


@command.command("quarantine")
@board_argument
@click.option("--why", required=True, metavar="TEXT", help="Why, for those who find it missing.")
@rack_option
@out_option
def quarantine_board(board_id: str, why: str, rack: Path, out: Path) -> None:
    """Keep a board out of all runs, until it is released.

    A run that has started continues to use it.
    """
    if not (reason := " ".join(why.split())):
        raise ConfigError(
            "--why is empty.", next_step="give the reason, for those who find the board missing."
        )
    loaded = load_rack(rack)
    board = loaded.board(board_id)
    put(folder_of(loaded, out), Quarantine(board.id, utc_now(), _user(), reason))
    click.echo(f"{board.id}: takes part in no run from now on; {way_out(board.id, rack)}")


@command.command("release")
@board_argument
@rack_option
@out_option
def release_board(board_id: str, rack: Path, out: Path) -> None:
    """Take a board out of quarantine."""
    loaded = load_rack(rack_with_places(rack), unleased=True)
    folder = folder_of(loaded, out)
    if loaded.boards and board_id not in read_quarantine(folder):  # one that is may have left the rack file
        loaded.board(board_id)
    found = release(folder, board_id)
    click.echo(f"{board_id}: {'released; it was ' + describe(found) if found else 'was in no quarantine'}")


@command.command("scan")
@click.argument("ports", metavar="[PORT]...", nargs=-1)
def scan_ports(ports: tuple[str, ...]) -> None:
    """List the serial ports of this host, or those named: what answers, whose it is, the entry to paste.

    It resets each board that it asks. It skips ports that a rack file of the project or in /etc/hil names,
    that a run has leased, or that another program has open.
    """
    found = [named(address) for address in ports] or ports_here()
    if not found:
        raise RigError(
            "this host has no serial port.",
            next_step="connect a board with a data cable; hil board scan rfc2217://HOST:PORT asks a port "
            "on another host.",
        )
    owned = owners([DEFAULT_RACK, *sorted(HOST_RACKS.glob("*.yaml"))])
    with ThreadPoolExecutor(len(found)) as pool:
        answers = list(pool.map(lambda port: _answer(port, owned), found))
    for line in scanned(found, answers):
        click.echo(terminal_page(line))  # a device names itself


def _answer(port: Port, owned: Mapping[str, PortOwner]) -> Identity | str:
    """Return who is at a port, or why nobody was asked or nothing answers."""
    if owner := owned.get(port_at(port.address)):
        return owner.describe()
    try:
        return who_answers(port)
    except HilError as error:
        return str(error)


def scanned(ports: Sequence[Port], answers: Sequence[Identity | str]) -> list[str]:
    """Return a line for each port; of boards that no rack file names those to paste."""
    rows = [
        (port.address, one.chip, one.mac, one.size, port.device, "in no rack file")
        if isinstance(one, Identity)
        else (port.address, "-", "", "", port.device, one)
        for port, one in zip(ports, answers, strict=True)
    ]
    return [*aligned(rows), *_to_paste(list(zip(ports, answers, strict=True)))]


def _to_paste(found: Sequence[tuple[Port, Identity | str]]) -> Iterator[str]:
    """Yield the command that measures the first board which no rack file names, and an entry of each."""
    new = [(port, one) for port, one in found if isinstance(one, Identity)]
    if new:
        yield from ("", f"Measure it: hil run --port {shlex.quote(new[0][0].address)}")
        yield "Or, below boards: of a rack file:"
        yield from (entry_of(port, one) for port, one in new)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


@contextmanager
def _leased(rack: Path, out: Path, board_id: str, *, disturbs: bool = False) -> Iterator[Board]:
    """Hold a board; what ``disturbs`` others waits until no case is measured that is to be alone."""
    loaded = load_rack(rack)
    board = loaded.board(board_id)
    folder = lock_dir(loaded, out)
    run_id = f"by-hand-{os.getpid()}-{secrets.token_hex(2)}"
    with lease_boards(folder, [board_id], run_id=run_id, disturbs=disturbs):
        yield board


def _with_port(board: Board, rack: Path, out: Path) -> Board:
    """Return a board with a serial port: of a virtual one without, where `hil virtual up` serves it."""
    if board.serial:
        return board
    loaded = load_rack(rack)
    served = boards_up(loaded, out).get(board.id)
    if served is None:
        raise RigError(
            f"board {board.id} of rack {loaded.name} has no port, because `hil virtual up` is not running.",
            next_step="hil virtual up, in another terminal.",
        )
    return served


def virtual_switch(rack: Rack, out: Path, board_id: str) -> VirtualSwitch:
    """Return what switches a virtual board's supply. Raises RigError where its rack is not up."""
    running = VirtualRack.attach(name=rack.name, state_dir=up_dir(rack, out))
    if running is None:
        raise RigError(
            f"the virtual rack {rack.name} is not up, so board {board_id} has no power to switch.",
            next_step="hil virtual up, in another terminal.",
        )
    return running.board_control(board_id)

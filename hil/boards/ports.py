# SPDX-License-Identifier: Apache-2.0
"""Serial ports of this host: which there are, whose each is, and which board answers there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from serial.tools.list_ports import comports

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError, HilError, RigError
from hil.boards.flash.identify import Identity, ask
from hil.boards.lease import PHYSICAL_LOCK_DIR, Holder, lock_dir, read_holder
from hil.boards.rack import Board, load_rack
from hil.boards.rack.check import check_port
from hil.boards.rack.power import NO_POWER
from hil.boards.serial_url import by_fast_client, port_at, problem_of

BY_ID = Path("/dev/serial/by-id")  # udev's links, which stay when a cable is moved to another socket

MOST_OPENERS = 3
_LOCAL = 0x02  # of a MAC address's first byte, IEEE 802: given by us; Espressif's are registered


@dataclass(frozen=True)
class Port:
    """``name`` is what a rack file calls the port ``address``; ``device`` what hangs there, "" if unknown."""

    address: str
    name: str
    device: str = ""


@dataclass(frozen=True)
class PortOwner:
    """The rack file that names a port, the board that it is there, and who holds that now."""

    file: Path
    board: str
    holder: Holder | None

    def describe(self) -> str:
        held = f", held by {self.holder.describe()}" if self.holder else ""
        return f"board {self.board} of {self.file}{held}"


def ports_here() -> list[Port]:
    """Return the serial ports that hang on this host."""
    return [named(found.device, found.product or "") for found in sorted(comports())]


def named(address: str, device: str = "") -> Port:
    """Return a port by its address, with the name that stays."""
    links = {os.path.realpath(link): str(link) for link in sorted(BY_ID.glob("*"))}
    name = links.get(os.path.realpath(address), address) if address.startswith("/dev/tty") else address
    return Port(address, name, device)


def owners(files: Iterable[Path]) -> Mapping[str, PortOwner]:
    """Return who has which port, by port_at(): boards of these rack files, as far as they can be read, and of
    those that runs under way name."""
    found: dict[str, PortOwner] = {}
    for file in (*files, *_in_use()):
        with suppress(HilError):
            rack = load_rack(file)
            for board in rack.boards:
                with suppress(HilError):  # it is not plugged in
                    holder = read_holder(lock_dir(rack, Path()), board.id) if not board.is_process else None
                    found.setdefault(port_at(board.stock_serial), PortOwner(file, board.id, holder))
    return found


def _in_use() -> Iterator[Path]:
    """Yield the rack files of the runs that hold boards of this host, by their command lines."""
    for lock in PHYSICAL_LOCK_DIR.glob("*/*.lock"):
        holder = read_holder(lock.parent, lock.stem)
        with suppress(OSError):
            process = Path("/proc", str(holder.pid if holder else 0))
            words = (process / "cmdline").read_text(errors="replace").split("\0")
            for word, following in pairwise(words):
                if word == "--rack" or word.startswith("--rack="):
                    yield (process / "cwd").readlink() / (word.partition("=")[2] or following)


def openers(address: str) -> list[str]:
    """Return the programs that have a device file open, of those that this user may look at."""
    device, found = os.path.realpath(address), []
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            if str(entry.readlink()) == device:
                pid = entry.parts[2]
                found.append(f"{Path('/proc', pid, 'comm').read_text().strip()} (pid {pid})")
    return sorted(set(found))


def who_answers(port: Port) -> Identity:
    """Reset the board at a port and return who it is.

    Raises:
        ConfigError: that is no serial port, or a chip that hil does not know.
        RigError: another program has it, this user may not open it, or nothing answers.
    """
    if problem := problem_of(port.address):
        raise ConfigError(problem, next_step="hil board scan lists the ports of this host.")
    serial = by_fast_client(port.address)
    finding = check_port(Board("", "physical", "", serial, NO_POWER))
    if not finding.ok:
        raise RigError(finding.sentence, next_step=finding.mend)
    if programs := openers(port.address):
        raise RigError(
            f"port {port.address} is open in {', '.join(programs[:MOST_OPENERS])}.",
            next_step="end that program, then try again.",
        )
    found = ask(serial, f"the board at {port.address}")
    if int(found.mac[:2], 16) & _LOCAL:
        raise ConfigError(
            f"the board at {port.address} is virtual ({found.mac}) and reachable only in its rack's network.",
            next_step="hil run measures virtual boards, without --port.",
        )
    if found.chip not in CHIPS:
        raise ConfigError(
            f"the chip at {port.address} is an {found.chip}, which hil does not know.",
            next_step=f"hil measures {', '.join(CHIPS)}.",
        )
    return found


def entry_of(port: Port, found: Identity) -> str:
    """Return a board's entry of a rack file, to which keys are added a line each."""
    return "\n".join(
        (
            f"  - id: {found.board_id}",
            "    kind: physical",
            f"    target: {found.chip}",
            f"    serial: '{port.name}'",
            f"    mac: '{found.mac}'",
            "    power: {type: none} # or a switch: docs/start/build-a-rack.md",
        )
    )

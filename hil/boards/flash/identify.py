# SPDX-License-Identifier: Apache-2.0
"""Which board is it: chip, MAC address and flash chip, as its boot loader tells them. Nothing is written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass

from hil.base.errors import ConfigError, NoAnswerError, RigError
from hil.base.paths import python_path
from hil.base.process import run_group
from hil.boards.flash.words import last_words
from hil.boards.rack import Board
from hil.boards.serial_url import OWN

TIMEOUT_S = 40.0
CONNECT_ATTEMPTS = 2  # of esptool's own: a board that is there answers the first
_NO_PORT = re.compile(r"[Cc]ould not open|No such file or directory|Connection refused|No route to host")


@dataclass(frozen=True)
class Identity:
    """``flash`` is the flash chip's id, manufacturer and device, as in "ef 4016", ``size`` its size, as in
    "4 MB"; both are "" where they are not told."""

    chip: str
    mac: str
    flash: str
    size: str = ""

    @property
    def board_id(self) -> str:
        """What a board is called that nobody has named: no other has the name, whatever its port."""
        return f"{self.chip}-{self.mac[-8:].replace(':', '')}"


def identify(board: Board) -> Identity:
    """Ask a board who it is, whatever the rack file says of it; it is reset. Raises RigError as ask()."""
    return ask(board.serial, f"board {board.id} on {board.serial}")


def ask(serial: str, who: str) -> Identity:
    """Ask ``who`` is at a port which board it is; it is reset.

    Raises:
        NoAnswerError: its boot loader does not answer.
        RigError: its port cannot be opened, or another program has it.
    """
    module = "hil.boards.serial_url.esptool" if serial.startswith(OWN) else "esptool"
    argv = [sys.executable, "-m", module, "--port", serial, "--no-stub"]
    argv += ["--connect-attempts", str(CONNECT_ATTEMPTS), "flash-id"]
    said = _run(argv)
    attempt = f"asking {who} who it is failed"
    if said is None:
        raise NoAnswerError(f"{attempt}: its port took no end within {TIMEOUT_S:g} s.", next_step=_LOOK)
    identity = identity_in(said)
    if identity:
        return identity
    cause = last_words(said).rstrip(".")
    if _NO_PORT.search(said):
        raise RigError(f"{attempt}: its port could not be opened ({cause}).", next_step=_LOOK)
    if re.search(r"exclusively lock|Device or resource busy", said):
        raise RigError(
            f"{attempt}: another program has its port ({cause}).", next_step="fuser -v PORT names it."
        )
    raise NoAnswerError(f"{attempt}: its boot loader does not answer ({cause}).", next_step=_LOOK)


_LOOK = "check its supply and cable, and that this is its port."


def _run(argv: list[str]) -> str | None:
    """Return what esptool said, None where it did not end in time, and was killed."""
    environment = {**os.environ, "PYTHONPATH": python_path()}
    try:
        return run_group(argv, TIMEOUT_S, stderr=subprocess.STDOUT, env=environment).stdout
    except subprocess.TimeoutExpired:
        return None


def identity_in(said: str) -> Identity | None:
    """Return what esptool's output tells of a board, None where it did not get so far."""
    chip = re.search(r"^Connected to (\S+) on ", said, re.MULTILINE)
    mac = re.search(r"^(?:BASE )?MAC: +([0-9a-f:]{17})$", said, re.MULTILINE)
    if not chip or not mac:
        return None
    maker = re.search(r"^Manufacturer: (\w+)$", said, re.MULTILINE)
    device = re.search(r"^Device: (\w+)$", said, re.MULTILINE)
    size = re.search(r"^Detected flash size: (\d+)(\w+)$", said, re.MULTILINE)
    flash = f"{maker[1]} {device[1]}" if maker and device else ""
    return Identity(chip[1].lower().replace("-", ""), mac[1], flash, f"{size[1]} {size[2]}" if size else "")


def check_identity(board: Board, found: Identity) -> None:
    """Raises ConfigError where another board answers than the rack file says."""
    differences = [
        f"its {name} is {is_}, and the rack file says {said}"
        for name, is_, said in (("chip", found.chip, board.chip), ("MAC address", found.mac, board.mac))
        if said and is_ != said
    ]
    if differences:
        raise ConfigError(
            f"{board.where}: another board answers on {board.serial}: {'; '.join(differences)}.",
            next_step="put its cable back, or correct 'serial', 'mac' or 'target' of this board.",
        )

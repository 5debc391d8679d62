"""A rack: the boards and the network around them.

A virtual, an emulated and a physical board differ only in their entry; everything above this module
treats them alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean
from hil.boards.rack.noise import NoiseSettings
from hil.model import Kind

DEFAULT_BAUD = 921600

_FAST, _STOCK = "fastrfc2217://", "rfc2217://"
_VIRTUAL_PORT = re.compile(rf"{_FAST}127\.0\.0\.1:(\d{{1,5}})")


def virtual_port(serial: str) -> int:
    """Return the port of a virtual board's address; 0 where that is no such address."""
    match = _VIRTUAL_PORT.fullmatch(serial)
    return int(match.group(1)) if match else 0


@dataclass(frozen=True)
class Host:
    """The machine that runs broker and peers, as the boards see it."""

    interface: str
    address: str


@dataclass(frozen=True)
class AccessPoint:
    """``virtual``: an air profile, its seed, and the simulated noise if any. ``external``: an SSID and where
    its password comes from."""

    type: str
    profile: str = ""
    seed: int = 0
    ssid: str = ""
    psk_env: str = ""
    psk_file: str = ""
    noise: NoiseSettings | None = None


@dataclass(frozen=True)
class BrokerSettings:
    """Settings of the broker that each run starts; recorded with every sample set."""

    tcp_nodelay: bool = True


@dataclass(frozen=True)
class CaptureSettings:
    """Where captures see what came through the air: an interface of the host, "" where it has none."""

    access_point: str = ""


@dataclass(frozen=True)
class Power:
    """How a board's supply is switched. ``command`` holds ``{action}``: on, off or cycle."""

    type: str
    command: str = ""
    timeout_s: float = 20.0


@dataclass(frozen=True)
class Board:
    """One board of a rack. ``where`` is file and line of its entry, for error sentences.

    ``serial`` is "" for a virtual board without a port of its own: each rack that is started gives it a free
    one, and ``at`` says which.
    """

    id: str
    kind: Kind
    chip: str
    serial: str
    power: Power
    baud: int = DEFAULT_BAUD
    mac: str = ""
    labels: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=dict)
    where: str = ""

    @property
    def target(self) -> str:
        """The target's name in records: the chip, with the kind in front unless physical."""
        return self.chip if self.kind == "physical" else f"{self.kind}-{self.chip}"

    @property
    def tcp_port(self) -> int:
        """The RFC2217 port of a virtual board; 0 where it has none yet."""
        return virtual_port(self.serial)

    @property
    def stock_serial(self) -> str:
        """The serial port as an unmodified esptool or serial monitor takes it."""
        return self.serial.replace(_FAST, _STOCK, 1)

    def at(self, port: int) -> Board:
        """Return this virtual board where it is served: at an RFC2217 port of this machine."""
        return replace(self, serial=f"{_FAST}127.0.0.1:{port}")


@dataclass(frozen=True)
class Rack:
    """One rack file. ``path`` is where it was read from, ``pushgateway`` an address or "".

    ``quarantine_after`` is how many runs in a row the rig may fail on a board before it is put into
    quarantine, 0 where only people do that.
    """

    name: str
    path: Path
    host: Host
    access_point: AccessPoint
    broker: BrokerSettings
    boards: tuple[Board, ...]
    pushgateway: str = ""
    capture: CaptureSettings = CaptureSettings()
    quarantine_after: int = 0

    @property
    def is_virtual(self) -> bool:
        return self.access_point.type == "virtual"

    def board(self, board_id: str) -> Board:
        """Return one board. Raises ConfigError with the nearest id."""
        for board in self.boards:
            if board.id == board_id:
                return board
        known = [board.id for board in self.boards]
        hint = did_you_mean(board_id, known)
        raise ConfigError(
            f"rack {self.name} has no board {board_id!r}{hint} Boards: {', '.join(known)}.",
            next_step=f"name one of these, or add it to {self.path}.",
        )

    def select(self, board_ids: Sequence[str], target: str = "") -> tuple[Board, ...]:
        """Return the boards named, in the file's order, all of them where none is; of a target, where one is.

        Raises:
            ConfigError: an unknown board, or none of these has the target.
        """
        wanted = {self.board(board_id).id for board_id in board_ids}
        boards = tuple(board for board in self.boards if not wanted or board.id in wanted)
        found = tuple(board for board in boards if target in ("", board.target))
        if not found:
            targets = ", ".join(sorted({board.target for board in boards}))
            raise ConfigError(f"{self.path}: no board has the target {target!r}; there is {targets}.")
        return found

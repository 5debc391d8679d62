# SPDX-License-Identifier: Apache-2.0
"""Reads a rack from its YAML file; unknown keys and wrong values are errors with file and line.

A rack: the boards and the network around them.

A virtual, an emulated and a physical board differ only in their entry; everything above this module
treats them alike.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError
from hil.base.gateway_url import problem_of
from hil.base.yamlfile import Node, load
from hil.base.yamlvalue import did_you_mean
from hil.boards.rack.noise import NoiseSettings, read_noise
from hil.model import KINDS, Kind

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


SCHEMA_VERSION = 1
POWER_TYPES = ("virtual", "command", "none")
ACCESS_POINT_TYPES = ("virtual", "external")

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def load_rack(path: Path) -> Rack:
    """Read a rack file. Raises ConfigError naming file, line, value and the way out."""
    root = load(path)
    _check_schema(root)
    boards = _read_boards(root)
    rack = Rack(
        name=_name(root, "name"),
        path=path,
        host=_read_host(root.section("host")),
        access_point=_read_access_point(root.section("access_point"), [board.id for board in boards]),
        broker=_read_broker(root.section("broker", default=None)),
        boards=boards,
        pushgateway=_read_pushgateway(root.section("metrics", default=None)),
        capture=_read_capture(root.section("capture", default=None)),
        quarantine_after=root.integer("quarantine_after", default=0, minimum=1, maximum=100),
    )
    root.finish()
    _check_kinds(root, rack)
    return rack


def _check_schema(root: Node) -> None:
    schema = root.integer("schema")
    if schema != SCHEMA_VERSION:
        raise root.error("schema", f"schema is {schema}; this version reads schema {SCHEMA_VERSION}.")


def _name(node: Node, key: str) -> str:
    name = node.text(key)
    if not _NAME.fullmatch(name):
        raise node.error(key, f"{key} {name!r} must be small letters, digits, '-' and '_'.")
    return name


def _read_host(node: Node) -> Host:
    return Host(interface=node.text("interface"), address=node.text("address"))


def _read_access_point(node: Node, boards: Collection[str]) -> AccessPoint:
    if node.choice("type", ACCESS_POINT_TYPES) == "virtual":
        seed = node.integer("seed", default=1, minimum=0)
        noise = read_noise(node.section("noise", default=None), boards)
        return AccessPoint(type="virtual", profile=node.text("profile"), seed=seed, noise=noise)
    if "noise" in node:
        raise node.error(
            "noise",
            "noise is simulated on a virtual rack's air; an external access point has its own.",
            next_step="delete the section.",
        )
    access_point = AccessPoint(
        type="external",
        ssid=node.text("ssid"),
        psk_env=node.text("psk_env", default=""),
        psk_file=node.text("psk_file", default=""),
    )
    if bool(access_point.psk_env) == bool(access_point.psk_file):
        raise node.error(
            "",
            "an external access point takes its password from exactly one of psk_env and psk_file.",
            next_step="name the environment variable (psk_env) or the file (psk_file) that holds it.",
        )
    return access_point


def _read_broker(node: Node | None) -> BrokerSettings:
    if node is None:
        return BrokerSettings()
    return BrokerSettings(tcp_nodelay=node.boolean("tcp_nodelay", default=True))


def _read_capture(node: Node | None) -> CaptureSettings:
    return CaptureSettings() if node is None else CaptureSettings(access_point=node.text("access_point"))


def _read_pushgateway(node: Node | None) -> str:
    if node is None:
        return ""
    url = node.text("pushgateway")
    if problem := problem_of(url):
        raise node.error("pushgateway", problem)
    return url


def _read_boards(root: Node) -> tuple[Board, ...]:
    nodes = root.sections("boards")
    if not nodes:
        raise root.error("boards", "a rack needs at least one board.")
    boards = tuple(_read_board(node) for node in nodes)
    _check_unique(nodes, boards, "id", lambda board: board.id)
    _check_unique(nodes, boards, "serial", lambda board: board.serial)
    _check_unique(nodes, boards, "mac", lambda board: board.mac)
    return boards


def _read_board(node: Node) -> Board:
    kind = next(kind for kind in KINDS if kind == node.choice("kind", KINDS))
    return Board(
        id=_name(node, "id"),
        kind=kind,
        chip=node.choice("target", CHIPS),
        serial=_read_serial(node, virtual=kind == "virtual"),
        power=_read_power(node.section("power", default=None)),
        baud=node.integer("baud", default=DEFAULT_BAUD, minimum=9600, maximum=3_000_000),
        mac=_read_mac(node, required=kind == "virtual"),
        labels=tuple(node.texts("labels", default=[])),
        limits=_read_limits(node.section("limits", default=None)),
        where=node.where(),
    )


def _read_serial(node: Node, *, virtual: bool) -> str:
    """A virtual board needs none: whoever starts its rack gives it a free port."""
    if not virtual:
        return node.text("serial")
    serial = node.text("serial", default="")
    if serial and not 1024 <= virtual_port(serial) <= 65535:
        raise node.error(
            "serial",
            f"a virtual board's serial is fastrfc2217://127.0.0.1:PORT, PORT 1024..65535; {serial!r} is not.",
            next_step="delete the line: then the board gets a free port whenever its rack is started.",
        )
    return serial


def _read_power(node: Node | None) -> Power:
    if node is None:
        return Power(type="none")
    power_type = node.choice("type", POWER_TYPES)
    if power_type != "command":
        return Power(type=power_type)
    command = node.text("command")
    if "{action}" not in command:
        raise node.error(
            "command",
            f"the power command {command!r} lacks {{action}}, which becomes on, off or cycle.",
            next_step="write it like: uhubctl -l 1-1 -p 2 -a {action}",
        )
    try:
        shlex.split(command)
    except ValueError as error:
        raise node.error(
            "command",
            f"the power command {command!r} cannot be split into words: {error}.",
            next_step="close the quotation, or leave the quotes out.",
        ) from None
    return Power("command", command, node.quantity("timeout", "s", default=20.0, minimum=1.0, maximum=300.0))


def _read_mac(node: Node, *, required: bool) -> str:
    mac = node.text("mac") if required else node.text("mac", default="")
    if mac and not _MAC.fullmatch(mac):
        raise node.error(
            "mac", f"mac {mac!r} is not six hexadecimal pairs in small letters, as in '02:…:01'."
        )
    return mac


def _read_limits(node: Node | None) -> dict[str, int]:
    if node is None:
        return {}
    for key in node.keys:
        if not key.startswith(("max_", "min_")):
            sentence = f"limit {key!r} must be max_ or min_ and a bench's parameter, as in max_payload_bytes."
            raise node.error(key, sentence)
    return {key: node.integer(key) for key in node.keys}


def _check_unique(
    nodes: Sequence[Node], boards: Sequence[Board], key: str, value_of: Callable[[Board], str]
) -> None:
    first: dict[str, str] = {}
    for node, board in zip(nodes, boards, strict=True):
        value = value_of(board)
        if value and value in first:
            sentence = f"duplicate {key} {value!r}: the board at {first[value]} has it already."
            raise node.error(key, sentence, next_step=f"give each board a {key} of its own.")
        first[value] = board.where


def _check_kinds(root: Node, rack: Rack) -> None:
    """A virtual board lives in the virtual air and nowhere else."""
    if rack.is_virtual and "capture" in root:
        raise root.error(
            "capture",
            "a virtual rack finds the access point's side of each board's air by itself.",
            next_step="delete the section.",
        )
    for board in rack.boards:
        if (board.kind == "virtual") != rack.is_virtual:
            raise root.error(
                "boards",
                f"board {board.id!r} is {board.kind} but the access point is {rack.access_point.type}.",
                next_step="keep virtual and physical boards in racks of their own.",
            )
        if board.power.type == "virtual" and board.kind != "virtual":
            raise root.error("boards", f"board {board.id!r} is {board.kind}; its power cannot be virtual.")

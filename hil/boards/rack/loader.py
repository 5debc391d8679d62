# SPDX-License-Identifier: Apache-2.0
"""Reads a rack from its YAML file; unknown keys and wrong values are errors with file and line.

A rack: the boards and the network around them.

A virtual, an emulated and a physical board differ only in their entry; everything above this module
treats them alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from pathlib import Path

from hil.base.chips import CHIPS, MODELLED
from hil.base.errors import ConfigError
from hil.base.gateway_url import problem_of
from hil.base.yamlfile import Node, load
from hil.base.yamlvalue import did_you_mean
from hil.boards.drivers import FOLDER
from hil.boards.places.settings import check_leased, is_unleased
from hil.boards.rack.access_point import AccessPoint, read_access_point
from hil.boards.rack.current import Current, read_current
from hil.boards.rack.network import WIFI, Network, read_network
from hil.boards.rack.power import Power, read_hub, read_power
from hil.boards.serial_url import by_fast_client, port_at
from hil.boards.serial_url import problem_of as problem_of_port
from hil.boards.serial_url.usb import PATH, UsbPort, from_url
from hil.model import IMPORTED, KINDS, SUITE_RACK, UNREAL, Kind

DEFAULT_BAUD = 921600

_FAST, _STOCK, _USB = "fastrfc2217://", "rfc2217://", "usb://"
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
class BrokerSettings:
    """Settings of the broker that each run starts; recorded with every sample set."""

    tcp_nodelay: bool = True


@dataclass(frozen=True)
class CaptureSettings:
    """The interface where captures see the air's frames: an interface of the host, "" where it has none."""

    access_point: str = ""


@dataclass(frozen=True)
class Board:
    """One board of a rack. ``where`` is file and line of its entry, for error sentences.

    ``serial`` is a device file or an address; of a board that is known by its place on USB ``usb://…``, which
    is looked for whenever it is opened.

    ``serial`` is "" for a process (``is_process``) without a port of its own: each rack that is started gives
    it a free one, and ``at`` says which. ``emulator`` is "" where the board is not emulated, and writes a
    timeline of tasks where ``trace``. ``baud`` counts where no build says its console's rate. ``hub_power``
    switches the hub that it hangs on, and all else there with it. ``current`` measures what it draws.
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
    emulator: str = ""
    trace: bool = False
    where: str = ""
    network: Network = WIFI
    hub_power: Power | None = None
    current: Current | None = None

    @property
    def is_process(self) -> bool:
        """Whether the board is a process that its rack starts, behind a virtual access point."""
        return self.kind in UNREAL

    @property
    def firmware_target(self) -> str:
        """The target whose build it runs: an emulated board runs what the chip itself gets."""
        return self.chip if self.kind == "emulated" else self.target

    @property
    def target(self) -> str:
        """The target's name in records: the chip, with the kind in front unless physical."""
        return self.chip if self.kind == "physical" else f"{self.kind}-{self.chip}"

    @property
    def tcp_port(self) -> int:
        """The RFC2217 port of a board that is a process; 0 where it has none yet."""
        return virtual_port(self.serial)

    @property
    def stock_serial(self) -> str:
        """The serial port as an unmodified esptool or serial monitor takes it.

        Raises HilError where a board that is known by its place on USB is not there.
        """
        if self.serial.startswith(_USB):
            return str(from_url(self.serial).find().file)
        return self.serial.replace(_FAST, _STOCK, 1)

    def at(self, port: int) -> Board:
        """Return this board, a process, where it is served: at an RFC2217 port of this machine."""
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

    @property
    def access_point_interface(self) -> str:
        """The host's interface at a real access point, "" where there is none or the file names none."""
        return self.capture.access_point or self.access_point.interface

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

    def select(
        self, board_ids: Sequence[str], target: str = "", labels: Sequence[str] = ()
    ) -> tuple[Board, ...]:
        """Return the boards named, in the file's order, all of them where none is; of these those of a target
        and with all ``labels``, where there are any.

        Raises:
            ConfigError: an unknown board, or none is left; those that lack one thing alone are named.
        """
        wanted = {self.board(board_id).id for board_id in board_ids}
        lacking = [(board, _lacks(board, wanted, target, labels)) for board in self.boards]
        found = tuple(board for board, lacks in lacking if not lacks)
        if not found:
            asked = [f"has the target {target!r}"] if target else []
            asked += [f"has the label {label!r}" for label in labels]
            asked += [f"is one of {', '.join(board_ids)}"] if board_ids else []
            near = [f"{board.id} {lacks[0]}" for board, lacks in lacking if len(lacks) == 1]
            there = f"nearest: {'; '.join(near)}" if near and len(asked) > 1 else f"there is {self._kinds()}"
            raise ConfigError(f"{self.path}: no board {' and '.join(asked)}; {there}.")
        return found

    def _kinds(self) -> str:
        """Return the targets and the labels that boards have."""
        targets = sorted({board.target for board in self.boards})
        labels = sorted({label for board in self.boards for label in board.labels})
        return ", ".join(targets) + (f", with the labels {', '.join(labels)}" if labels else "")


def _lacks(board: Board, wanted: set[str], target: str, labels: Sequence[str]) -> list[str]:
    """Return what a board has not of what is asked for, as words that follow its name."""
    has = f", but {', '.join(board.labels)}" if board.labels else ""
    return [
        *(["is not among the boards that are named"] if wanted and board.id not in wanted else []),
        *([f"is {board.target}"] if target not in ("", board.target) else []),
        *(f"has not the label {label!r}{has}" for label in labels if label not in board.labels),
    ]


SCHEMA_VERSION = 1
_REQUIRED = {
    "": ("name", "host", "access_point", "boards"),
    "host": ("interface", "address"),
    "access_point": ("type",),
    "boards": ("id", "kind", "target"),
}

_A: Mapping[Kind, str] = {"physical": "a physical", "emulated": "an emulated", "virtual": "a virtual"}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def load_rack(path: Path, *, unleased: bool = False) -> Rack:
    """Read a rack file. Raises ConfigError naming file, line, value and the way out.

    ``unleased`` reads one whose boards are at a coordinator, too: without any board.
    """
    root = load(path)
    root.schema(SCHEMA_VERSION)
    if "places" not in root:
        root.require(_REQUIRED)
    if not (unleased and is_unleased(root)):
        check_leased(root)
    boards = () if unleased and is_unleased(root) else _read_boards(root, path.parent / FOLDER)
    host = _read_host(root.section("host"))
    rack = Rack(
        name=_rack_name(root),
        path=path,
        host=host,
        access_point=read_access_point(
            root.section("access_point"), [board.id for board in boards], host.address
        ),
        broker=_read_broker(root.section("broker", default=None)),
        boards=boards,
        pushgateway=_read_pushgateway(root.section("metrics", default=None)),
        capture=_read_capture(root.section("capture", default=None)),
        quarantine_after=root.integer("quarantine_after", default=0, minimum=1, maximum=100),
    )
    root.finish()
    _check_kinds(root, rack)
    return rack


def _name(node: Node, key: str) -> str:
    name = node.text(key)
    if not _NAME.fullmatch(name):
        raise node.error(key, f"{key} {name!r} must be small letters, digits, '-' and '_'.")
    return name


def _rack_name(root: Node) -> str:
    name = _name(root, "name")
    if name in (IMPORTED, SUITE_RACK):
        raise root.error("name", f"{name!r} is reserved for `hil import`; give the rack another name.")
    return name


def _read_host(node: Node) -> Host:
    address = node.text("address")
    if not _is_of_a_host(address):
        raise node.error(
            "address",
            f"{address!r} is not the IPv4 address of a host.",
            next_step="write the address of 'interface' without a mask, as `ip -brief address` shows it.",
        )
    return Host(interface=node.text("interface"), address=address)


def _is_of_a_host(address: str) -> bool:
    try:
        read = IPv4Address(address)
    except ValueError:
        return False
    return not (read.is_unspecified or read.is_multicast or read.is_reserved)


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


def _read_boards(root: Node, drivers: Path) -> tuple[Board, ...]:
    nodes = root.sections("boards")
    if not nodes:
        raise root.error("boards", "a rack needs at least one board.")
    boards = tuple(_read_board(node, drivers) for node in nodes)
    _check_unique(nodes, boards, "id", lambda board: board.id)
    for key in ("serial", "usb"):
        by_key = [(node, board) for node, board in zip(nodes, boards, strict=True) if key in node]
        _check_unique(
            [node for node, _ in by_key],
            [board for _, board in by_key],
            key,
            lambda board: port_at(board.serial),
        )
    _check_unique(nodes, boards, "mac", lambda board: board.mac)
    _check_unique(nodes, boards, "address", lambda board: board.network.host)
    _check_unique(nodes, boards, "current", lambda board: board.current.place if board.current else "")
    return boards


def _read_board(node: Node, drivers: Path) -> Board:
    kind = next(kind for kind in KINDS if kind == node.choice("kind", KINDS))
    is_process = kind in UNREAL
    chip = node.choice("target", MODELLED if kind == "virtual" else tuple(CHIPS))
    return Board(
        id=_name(node, "id"),
        kind=kind,
        chip=chip,
        serial=_read_serial(node, kind, is_process=is_process),
        power=read_power(node.section("power", default=None), drivers),
        baud=node.integer("baud", default=DEFAULT_BAUD, minimum=9600, maximum=3_000_000),
        mac=_read_mac(node, required=is_process),
        labels=tuple(node.texts("labels", default=[])),
        limits=_read_limits(node.section("limits", default=None)),
        emulator=_read_emulator(node, kind),
        trace=kind == "emulated" and node.boolean("trace", default=False),
        where=node.where(),
        network=read_network(node.section("network", default=None), kind=kind, chip=chip, where=node.where()),
        hub_power=read_hub(node.section("hub_power", default=None), drivers),
        current=read_current(node.section("current", default=None), kind, drivers),
    )


def _read_emulator(node: Node, kind: Kind) -> str:
    """Read the name of an emulator; whether there is such and what it can do is known where it is driven."""
    if kind == "emulated":
        return node.text("emulator")
    if "emulator" in node:
        raise node.error(
            "emulator",
            f"a {kind} board has no emulator.",
            next_step="delete the line, or write kind: emulated.",
        )
    return ""


def _read_serial(node: Node, kind: Kind, *, is_process: bool) -> str:
    """A process needs none: whoever starts its rack gives it a free port."""
    if not is_process:
        return _read_usb(node) if "usb" in node else _read_port(node)
    serial = node.text("serial", default="")
    if serial and not 1024 <= virtual_port(serial) <= 65535:
        raise node.error(
            "serial",
            f"{_A[kind]} board's serial is fastrfc2217://127.0.0.1:PORT, PORT 1024..65535; {serial!r} is "
            "not.",
            next_step="delete the line; the board then gets a free port whenever its rack starts.",
        )
    return serial


def _read_port(node: Node) -> str:
    serial = node.text("serial")
    if problem := problem_of_port(serial):
        next_step = "`ls -l /dev/serial/by-id /dev/serial/by-path` lists the ports of this host."
        raise node.error("serial", problem, next_step=next_step)
    return by_fast_client(serial)


def _read_usb(node: Node) -> str:
    """Return the address of a port that is known by its place on USB, its serial number, or both."""
    if "serial" in node:
        raise node.error(
            "serial",
            "'serial' (a device file or an address) and 'usb' exclude each other.",
            next_step="delete one of them.",
        )
    usb = node.section("usb")
    interface = usb.integer("interface", default=None, minimum=0, maximum=255)
    port = UsbPort(usb.text("path", default=""), usb.text("serial", default=""), interface)
    if port.path and not PATH.fullmatch(port.path):
        raise usb.error(
            "path",
            f"USB path {port.path!r} is not bus-port.port…, as in '1-1.2'.",
            next_step="uhubctl and ls /sys/bus/usb/devices show them.",
        )
    if not (port.path or port.serial):
        raise usb.error(
            "",
            "'usb' needs a path, a serial number, or both.",
            next_step="write usb: {path: …} or usb: {serial: …}.",
        )
    return port.url


def _read_mac(node: Node, *, required: bool) -> str:
    mac = node.text("mac") if required else node.text("mac", default="")
    if mac and not _MAC.fullmatch(mac):
        raise node.error(
            "mac",
            f"mac {mac!r} is not six hexadecimal pairs in small letters, as in '02:…:01'.",
            next_step=_meant_mac(mac),
        )
    return mac


def _meant_mac(mac: str) -> str:
    """Return the way out; of a chip with 802.15.4 esptool tells its EUI-64 first, two bytes longer."""
    digits = re.sub(r"[^0-9a-f]", "", mac.lower())
    digits = digits[:6] + digits[10:] if len(digits) == 16 else digits
    pairs = ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))
    return f"write {pairs}." if _MAC.fullmatch(pairs) else "esptool read-mac tells it (BASE MAC)."


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
    """A virtual or emulated board lives in the virtual air and nowhere else."""
    if rack.is_virtual and "capture" in root:
        raise root.error(
            "capture",
            "a virtual rack finds the access point's interfaces by itself.",
            next_step="delete the section.",
        )
    if rack.access_point.shapes and not rack.access_point_interface:
        raise root.error(
            "access_point",
            "'shapes' needs an interface of this host at the access point.",
            next_step="name it (capture: {access_point: IFACE}), or delete the line.",
        )
    for board in rack.boards:
        if board.is_process != rack.is_virtual:
            raise root.error(
                "boards",
                f"board {board.id!r} is {board.kind} but the access point is {rack.access_point.type}.",
                next_step="keep physical boards in racks of their own, apart from virtual and emulated ones.",
            )
        if rack.access_point.type == "wired" and board.network.is_wifi:
            raise root.error(
                "access_point",
                f"the rack has no access point (type wired), but board {board.id!r} has Wi-Fi.",
                next_step="write the board's cable (network: {type: …}), or set the access point's type.",
            )
        if board.kind == "emulated" and board.network.is_wifi and not rack.access_point.ssid:
            raise root.error(
                "access_point",
                f"board {board.id!r} has Wi-Fi, but its emulator's access point has no name.",
                next_step="name it: access_point: {…, ssid: lab, password: eight characters at least}.",
            )
        radio = rack.access_point.radio
        if radio and radio.channel > 14 and board.network.is_wifi and not CHIPS[board.chip].five_ghz:
            raise root.error(
                "access_point",
                f"channel {radio.channel} is in the 5 GHz band, which board {board.id!r} "
                f"({board.chip}) does not support.",
                next_step="choose a channel from 1 to 13.",
            )
        if board.power.type == "virtual" and not board.is_process:
            raise root.error("boards", f"board {board.id!r} is {board.kind}, so its power cannot be virtual.")

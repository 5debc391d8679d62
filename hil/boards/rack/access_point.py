# SPDX-License-Identifier: Apache-2.0
"""A rack's access point as its file describes it: the section ``access_point``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from hil.base.secret import read_variable, secret
from hil.base.yamlfile import Node
from hil.boards.rack.noise import NoiseSettings, read_noise

TYPES = ("virtual", "hostapd", "external", "wired")
SSID_BYTES_MAX, PASSWORD_CHARACTERS = 32, range(8, 64)  # IEEE 802.11
TIMEOUT_S = 30.0
SHAPES = ("rate", "delay", "loss")  # by tc: htb, and netem for the other two

_INTERFACE = re.compile(r"[A-Za-z0-9._@-]{1,15}")  # IFNAMSIZ, and nothing that a shell or a path would read
_COUNTRY = re.compile(r"[A-Z]{2}")
_NAME_COUNTRY = "name the country that the rack stands in, such as CH: its law says what may be sent."
_NO_COUNTRIES = {"EU": "each member has its own, such as DE", "UK": "they are those of GB"}


@dataclass(frozen=True)
class Radio:
    """How an access point of ours sends. ``power_dbm`` None leaves the driver's own, the most it may.

    ``dtim_period`` is in beacons, one each 102.4 ms. ``power_save`` offers U-APSD: a station may fetch what
    waits for it when it likes. Whether a station sleeps is its own to say.
    """

    country: str
    channel: int
    width_mhz: int = 20
    hw_mode: str = "g"
    power_dbm: int | None = None
    dtim_period: int = 2
    power_save: bool = False

    @property
    def second_channel(self) -> int:
        """The channel that makes it 40 MHz: 4 above or below, as the band's pairs are; 0 for 20 MHz."""
        if self.width_mhz == 20:
            return 0
        if self.channel <= 13:
            return self.channel + (4 if self.channel <= 7 else -4)
        first = 36 if self.channel <= 144 else 149
        return self.channel + (-4 if (self.channel - first) // 4 % 2 else 4)

    @property
    def centre_channel(self) -> int:
        """The middle of 80 MHz, 0 for less."""
        if self.width_mhz < 80:
            return 0
        first = 36 if self.channel <= 144 else 149
        return self.channel - (self.channel - first) % 16 + 6


@dataclass(frozen=True)
class Commands:
    """What drives an access point that hil knows nothing of; "" where there is no such command.

    ``station`` prints what ``iw dev IFACE station dump`` would, ``survey`` what ``survey dump`` would.
    """

    up: str = ""
    down: str = ""
    station: str = ""
    survey: str = ""


@dataclass(frozen=True)
class Dhcp:
    """Addresses that the run gives out where boards come in: ``first`` to ``last``, boards get the first."""

    first: str
    last: str
    bits: int
    lease_s: float

    @property
    def netmask(self) -> str:
        return str(IPv4Interface(f"{self.first}/{self.bits}").netmask)


@dataclass(frozen=True)
class AccessPoint:
    """``virtual``: an air profile, its seed, the simulated noise if any, and the network's name and password
    ("": any name, any password). ``hostapd``: a radio of the host, ``interface``;
    ``external``: somebody else's, perhaps with commands. Both have an SSID and a place where the password
    comes from; where the variable ``ssid_env`` is to hold the SSID and does not, it is "".
    ``wired``: there is none, every board has a cable.
    ``shapes`` is what tc may change of its air, of SHAPES.
    """

    type: str
    profile: str = ""
    seed: int = 0
    ssid: str = ""
    ssid_env: str = ""
    psk_env: str = ""
    psk_file: str = ""
    noise: NoiseSettings | None = None
    password: str = ""
    interface: str = ""
    radio: Radio | None = None
    commands: Commands = Commands()
    timeout_s: float = TIMEOUT_S
    dhcp: Dhcp | None = None
    shapes: tuple[str, ...] = ()

    @property
    def is_driven(self) -> bool:
        """Whether a run changes it, so that no other may use it meanwhile."""
        return self.type == "hostapd" or self.commands != Commands()

    @property
    def lease_name(self) -> str:
        """What runs of this host must not share: the radio, or the network that is driven."""
        return re.sub(r"[^A-Za-z0-9.-]", "_", f"{self.type}-{self.interface or self.ssid}")


def read_access_point(node: Node, boards: Collection[str], host_address: str) -> AccessPoint:
    """Read the section. Raises ConfigError naming file, line, value and the way out."""
    point_type = node.choice("type", TYPES)
    if point_type == "virtual":
        return _read_virtual(node, boards)
    if "noise" in node:
        raise node.error(
            "noise",
            f"noise is simulated on a virtual rack's air, not at an access point of type {point_type}.",
            next_step="delete the section.",
        )
    if point_type == "wired":
        dhcp = _read_dhcp(node.section("dhcp", default=None), boards, host_address)
        return AccessPoint("wired", dhcp=dhcp, shapes=_read_shapes(node))
    ssid_env = read_variable(node, "ssid_env")
    point = AccessPoint(
        type=point_type,
        ssid=_checked_ssid(node, secret(ssid_env) if ssid_env else node.text("ssid")),
        ssid_env=ssid_env,
        psk_env=read_variable(node, "psk_env"),
        psk_file=node.text("psk_file", default=""),
        interface=_read_interface(node) if point_type == "hostapd" else "",
        radio=_read_radio(node) if point_type == "hostapd" else None,
        commands=_read_commands(node) if point_type == "external" else Commands(),
        dhcp=_read_dhcp(node.section("dhcp", default=None), boards, host_address),
        shapes=_read_shapes(node),
        timeout_s=node.quantity("timeout", "s", default=TIMEOUT_S, minimum=1.0, maximum=300.0),
    )
    if bool(point.psk_env) == bool(point.psk_file):
        raise node.error(
            "",
            f"an access point of type {point_type} takes its password from exactly one of psk_env and "
            "psk_file.",
            next_step="name the environment variable (psk_env) or the file (psk_file) that holds it.",
        )
    return point


def _read_virtual(node: Node, boards: Collection[str]) -> AccessPoint:
    seed = node.integer("seed", default=1, minimum=0)
    noise = read_noise(node.section("noise", default=None), boards)
    ssid, password = _read_virtual_network(node)
    return AccessPoint("virtual", node.text("profile"), seed, ssid, noise=noise, password=password)


def _read_virtual_network(node: Node) -> tuple[str, str]:
    """Return name and password of a virtual network, "" where each name is answered, or it is open."""
    ssid = _checked_ssid(node, node.text("ssid", default=""))
    password = node.text("password", default="")
    if password and not ssid:
        raise node.error(
            "password",
            "a virtual network with a password needs a name.",
            next_step="set ssid: …, or delete the password, so that the network answers to any name.",
        )
    if password and len(password) not in PASSWORD_CHARACTERS:
        raise node.error("password", f"the password has {len(password)} characters; expected 8 to 63.")
    return ssid, password


def _checked_ssid(node: Node, ssid: str) -> str:
    if len(ssid.encode()) > SSID_BYTES_MAX:
        raise node.error("ssid", f"the name {ssid!r} has {len(ssid.encode())} bytes; the maximum is 32.")
    return ssid


def _read_interface(node: Node) -> str:
    interface = node.text("interface")
    if not _INTERFACE.fullmatch(interface):
        raise node.error(
            "interface",
            f"{interface!r} is not the name of a network interface.",
            next_step="write an interface that `iw dev` lists there, such as wlan0.",
        )
    return interface


def _read_radio(node: Node) -> Radio:
    country = node.text("country")
    if not _COUNTRY.fullmatch(country):
        raise node.error(
            "country",
            f"country {country!r} is not a code of two capital letters; 00, the world's domain, "
            "allows no access point on most channels.",
            next_step=_NAME_COUNTRY,
        )
    if country in _NO_COUNTRIES:
        raise node.error(
            "country", f"country {country!r} has no regulatory domain: {_NO_COUNTRIES[country]}."
        )
    channel = node.integer("channel", minimum=1, maximum=165)
    width_mhz = node.integer("width_mhz", default=20, minimum=20, maximum=80)
    hw_mode = node.choice("hw_mode", ("b", "g", "a"), default="g" if channel <= 14 else "a")
    _check_channel(node, channel, width_mhz, hw_mode)
    return Radio(
        country=country,
        channel=channel,
        width_mhz=width_mhz,
        hw_mode=hw_mode,
        power_dbm=node.integer("power_dbm", default=None, minimum=0, maximum=30),
        dtim_period=node.integer("dtim_period", default=2, minimum=1, maximum=255),
        power_save=node.boolean("power_save", default=False),
    )


BAND_2 = tuple(range(1, 14))
BAND_5 = (*range(36, 65, 4), *range(100, 145, 4), *range(149, 166, 4))


def _check_channel(node: Node, channel: int, width_mhz: int, hw_mode: str) -> None:
    """Refuse what no radio can do, and hostapd would refuse with fewer words."""
    possible = BAND_5 if hw_mode == "a" else BAND_2
    if channel not in possible:
        raise node.error(
            "channel",
            f"hw_mode {hw_mode} has no channel {channel}; it has {', '.join(map(str, possible))}.",
            next_step="use g (or b, without 802.11n) for 2.4 GHz, a for 5 GHz.",
        )
    widths = {"b": (20,), "g": (20, 40), "a": (20,) if channel == 165 else (20, 40, 80)}[hw_mode]
    if width_mhz not in widths:
        raise node.error(
            "width_mhz",
            f"channel {channel} in hw_mode {hw_mode} has no width of {width_mhz} MHz: "
            f"{', '.join(map(str, widths))}.",
        )


def _read_shapes(node: Node) -> tuple[str, ...]:
    return tuple(node.choices("shapes", SHAPES, default=[]))


def _read_dhcp(node: Node | None, boards: Collection[str], host_address: str) -> Dhcp | None:
    if node is None:
        return None
    bits = node.integer("bits", default=24, minimum=16, maximum=29)
    lease_s = node.quantity("lease_time", "s", default=3600.0, minimum=120.0, maximum=86400.0)
    network = IPv4Interface(f"{host_address}/{bits}").network
    ends = [_read_end(node, key, network) for key in ("first", "last")]
    first, last = ends
    if first <= IPv4Address(host_address) <= last:
        raise node.error("first", f"{first} to {last} holds the host's own address, {host_address}.")
    if last < first or int(last) - int(first) + 1 < len(boards):
        raise node.error(
            "last",
            f"{first} to {last} has fewer addresses than the rack has boards ({len(boards)}).",
            next_step="choose a later end.",
        )
    return Dhcp(str(first), str(last), bits, lease_s)


def _read_end(node: Node, key: str, network: IPv4Network) -> IPv4Address:
    text = node.text(key)
    try:
        address = IPv4Address(text)
    except ValueError:
        address = IPv4Address(0)
    if address not in network or address in (network.network_address, network.broadcast_address):
        raise node.error(key, f"{text!r} is not a board address in {network}, the network of host.address.")
    return address


def _read_commands(node: Node) -> Commands:
    commands = {key: node.text(key, default="") for key in ("up", "down", "station", "survey")}
    for key, command in commands.items():
        try:
            shlex.split(command)
        except ValueError as error:
            raise node.error(
                key,
                f"the command {command!r} cannot be split into words: {error}.",
                next_step="close the quotation, or leave the quotes out.",
            ) from None
    return Commands(**commands)

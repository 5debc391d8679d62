# SPDX-License-Identifier: Apache-2.0
"""How a board is on the network: Wi-Fi, or a cable and its wiring. The firmware is told by one text."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hil.base.chips import CHIPS, Chip
from hil.base.errors import ConfigError
from hil.base.yamlfile import Node
from hil.model import Kind

TYPES = ("wifi", "openeth", "rmii", "w5500")
PHYS = ("lan87xx", "ip101", "rtl8201", "dp83848", "ksz80xx", "generic")
_TYPES_OF: Mapping[Kind, tuple[str, ...]] = {
    "physical": ("wifi", "rmii", "w5500"),
    "emulated": ("openeth", "wifi"),
}
_LACKS = {"wifi": "Wi-Fi", "rmii": "Ethernet controller of its own, which 'rmii' needs"}
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


@dataclass(frozen=True)
class Network:
    """A board's network. ``address`` is ``10.0.0.2/24`` or "" for DHCP; a ``mac`` of "" is the chip's own."""

    type: str = "wifi"
    wiring: tuple[tuple[str, int | str], ...] = ()
    address: str = ""
    gateway: str = ""
    mac: str = ""

    @property
    def is_wifi(self) -> bool:
        return self.type == "wifi"

    @property
    def host(self) -> str:
        """The address alone."""
        return self.address.partition("/")[0]

    @property
    def link(self) -> str:
        """What the board is told by the field ``link`` (docs/reference/provisioning.md)."""
        said = (*self.wiring, ("address", self.address), ("gateway", self.gateway), ("mac", self.mac))
        return " ".join((self.type, *(f"{key}={value}" for key, value in said if value != "")))


WIFI = Network()


def read_network(node: Node | None, *, kind: Kind, chip: str, where: str) -> Network:
    """Read a board's section ``network``; ``where`` is the board's.

    Raises ConfigError naming file, line, value and the way out.
    """
    types = _types_of(kind, CHIPS[chip])
    if node is None:
        if kind == "physical" and "wifi" not in types:
            raise ConfigError(
                f"{where}: target {chip} has no Wi-Fi, so its board needs a cable.",
                next_step=f"add a section 'network' with the type {' or '.join(types)}.",
            )
        return Network(types[0] if types else "wifi")
    if not types:
        raise node.error(
            "", "a virtual board is on the virtual air and has no other network.", next_step="delete it."
        )
    network_type = node.choice("type", TYPES)
    if network_type not in _TYPES_OF[kind]:
        raise _no_such_network(node, f"a board of kind {kind} has no {network_type!r}", types)
    if network_type not in types:
        raise _no_such_network(node, f"target {chip} has no {_LACKS[network_type]}", types)
    if network_type == "wifi":
        return WIFI
    wiring = _READERS[network_type](node, CHIPS[chip]) if network_type in _READERS else {}
    address = _read_address(node)
    return Network(
        network_type, tuple(wiring.items()), address, _read_gateway(node, address), _read_mac(node)
    )


def _types_of(kind: Kind, chip: Chip) -> tuple[str, ...]:
    lacking = {"wifi": not chip.wifi, "rmii": chip.rmii_clocks is None}
    return tuple(name for name in _TYPES_OF.get(kind, ()) if not lacking.get(name))


def _no_such_network(node: Node, sentence: str, types: tuple[str, ...] | list[str]) -> ConfigError:
    return node.error("type", f"{sentence}.", next_step=f"choose from: {', '.join(types)}.")


def _gpio(node: Node, key: str, chip: Chip, default: int | None = None) -> int:
    if default is None:
        return node.integer(key, minimum=0, maximum=chip.gpio_max)
    return node.integer(key, default=default, minimum=min(default, 0), maximum=chip.gpio_max)


def _read_rmii(node: Node, chip: Chip) -> dict[str, int | str]:
    clocks = chip.rmii_clocks or {}
    mdc, mdio = chip.smi
    wiring: dict[str, int | str] = {
        "phy": node.choice("phy", PHYS),
        "addr": node.integer("addr", default=-1, minimum=-1, maximum=31),
        "mdc": _gpio(node, "mdc", chip, mdc),
        "mdio": _gpio(node, "mdio", chip, mdio),
        "reset": _gpio(node, "reset", chip, -1),
    }
    clock = node.choice("clock", tuple(clocks))
    gpio = _gpio(node, "clock_gpio", chip, clocks[clock][0])
    if gpio not in clocks[clock]:
        possible = ", ".join(map(str, clocks[clock]))
        raise node.error(
            "clock_gpio",
            f"the {chip.name} has no clock {clock!r} at GPIO {gpio}.",
            next_step=f"choose from {possible}.",
        )
    return {**wiring, "clock": clock, "clock_gpio": gpio}


def _read_w5500(node: Node, chip: Chip) -> dict[str, int | str]:
    return {
        "host": node.integer("host", default=1, minimum=1, maximum=2),
        **{key: _gpio(node, key, chip) for key in ("sclk", "mosi", "miso", "cs", "int")},
        "reset": _gpio(node, "reset", chip, -1),
        "mhz": node.integer("mhz", default=20, minimum=1, maximum=80),
    }


_READERS = {"rmii": _read_rmii, "w5500": _read_w5500}


def _read_address(node: Node) -> str:
    text = node.text("address", default="")
    if not text:
        return ""
    try:
        found = ipaddress.IPv4Interface(text)
    except ValueError:
        found = None
    if found is None or "/" not in text or not 1 <= found.network.prefixlen <= 30:
        raise node.error(
            "address",
            f"address {text!r} is not an IPv4 address with a prefix length.",
            next_step="write it like 192.168.77.11/24, or leave it out to use DHCP.",
        )
    return found.with_prefixlen


def _read_gateway(node: Node, address: str) -> str:
    text = node.text("gateway", default="")
    if not text:
        return ""
    if not address:
        raise node.error(
            "gateway",
            "'gateway' needs a static address.",
            next_step="add the address, or delete the line: DHCP provides the gateway.",
        )
    network = ipaddress.IPv4Interface(address).network
    try:
        inside = ipaddress.IPv4Address(text) in network
    except ValueError:
        inside = False
    if not inside:
        raise node.error("gateway", f"gateway {text!r} is not an IPv4 address in {network}.")
    return text


def _read_mac(node: Node) -> str:
    mac = node.text("mac", default="")
    if mac and not _MAC.fullmatch(mac):
        raise node.error(
            "mac", f"mac {mac!r} is not six hexadecimal pairs in small letters, as in '02:…:01'."
        )
    return mac

# SPDX-License-Identifier: Apache-2.0
"""The rack file of one board on a desk: what the chip and this host tell, as a person would write it."""

from __future__ import annotations

import re

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError, RigError
from hil.base.process import output_of
from hil.boards.flash.identify import Identity
from hil.boards.ports import Port

SSID, PASSWORD = "HIL_WIFI_SSID", "HIL_WIFI_PSK"
ALONE = ("lo", "127.0.0.1")  # of a host that no board has to reach
_SOMEWHERE = "203.0.113.1"  # RFC 5737: nobody's, and nothing is sent to it
_IP_TIMEOUT_S = 5.0

_RACK = """\
# One board on a desk, as `hil run --port` found it. docs/start/build-a-rack.md has every key.
schema: 1
name: desk # of the rack, in each record

host: # this machine, as the board reaches it: each run starts broker and peers here
  interface: {interface}
  address: {address} # `ip -brief address` lists others

access_point:
  type: external # somebody else's network
  ssid_env: {ssid} # its name and password are in the environment,
  psk_env: {password} # or in a file of yours outside of the project

boards:
  - id: {id} # of the board, in each record
    kind: physical
    target: {chip} # with {size} of flash
    serial: {port}
    mac: {mac} # another board at this port is never flashed
    power: {{type: none}} # a switch brings a hung board back: uhubctl, tasmota, shelly or command
"""


def rack_file(port: Port, found: Identity, host: tuple[str, str]) -> str:
    """Return the rack file of the board at a port; ``host`` is an interface and its address.

    Raises ConfigError where the chip joins no network without more that a person has to say.
    """
    if not CHIPS[found.chip].wifi:
        raise ConfigError(
            f"the board at {port.address} is an {found.chip}, which has no Wi-Fi.",
            next_step="write a rack file that says how its cable is wired: docs/start/build-a-rack.md.",
        )
    return _RACK.format(
        interface=host[0],
        address=host[1],
        ssid=SSID,
        password=PASSWORD,
        id=found.board_id,
        chip=found.chip,
        size=found.size or "an unknown size",
        port=port.name,
        mac=found.mac,
    )


def route() -> tuple[str, str]:
    """Return the interface by which this host reaches its network, and its address there. Raises RigError."""
    argv = ["ip", "-4", "-oneline", "route", "get", _SOMEWHERE]
    try:
        said = output_of(argv, _IP_TIMEOUT_S)
    except RigError:  # no ip, or no route
        said = ""
    found = re.search(r" dev (\S+) .*\bsrc (\S+)", said)
    if not found:
        raise RigError(
            "this host has no route to a network, so no board could reach the broker of a run.",
            next_step="connect it to the network that the board joins (`ip route` shows the routes).",
        )
    return found[1], found[2]

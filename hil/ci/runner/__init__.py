# SPDX-License-Identifier: Apache-2.0
"""A rack's host as the runner of GitHub Actions: the files that set it up, made from the rack file.

For whoever keeps the rack to read and to install: systemd's units, udev's rules, and the root helper
(hil.network.root_helper) that does what a job's user may not do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from string import Template

from hil.base.errors import ConfigError
from hil.boards.power.uhubctl import Uhubctl
from hil.boards.rack import Board, Rack
from hil.boards.serial_url.usb import UsbPort, from_url
from hil.network import root_helper
from hil.network.name_server import dhcp_range

DOCS = "docs/operate/runner.md"
GROUP = USER = "hil-runner"
MINTER = "hil-mint"
HOME = "/opt/hil"
MEMORY_PERCENT = 80  # of the host's, which jobs share

_TEMPLATES = ("hil-runner@.service", "hil-runner@.path", "hil-helper.socket", "hil-helper@.service")
_SCRIPTS = ("install.sh", "uninstall.sh")
_BY_ID = re.compile(r"/dev/serial/by-id/usb-(?P<serial>.+?)-if(?P<number>[0-9a-f]{2})(-port(?P<port>\d+))?")
_BY_PATH = re.compile(r"/dev/serial/by-path/(?P<path>.+?)(-port(?P<port>\d+))?")


def host_files(rack: Rack, rack_file: str, instances: int = 1) -> dict[str, str]:
    """Return the files for a rack's host by name; ``rack_file`` is where the rack file is to be there.

    ``instances`` runners take as many jobs at once.

    Raises ConfigError where the rack has no board on a cable of its own, or jobs cannot share it.
    """
    physical = [board for board in rack.boards if board.kind == "physical"]
    if not physical:
        raise ConfigError(
            f"{rack.path} has no physical board, so its host needs no extra rights: a job's user "
            "can start it.",
            next_step="pass the rack file of boards on USB: --rack FILE.",
        )
    if instances > 1 and (why := _why_one_at_a_time(rack)):
        raise ConfigError(
            f"{rack.path}: {why}, one job at a time; of {instances} parallel jobs the others would fail.",
            next_step="leave --instances out, or give the rack a network that runs do not create or change.",
        )
    names = {
        "rack": rack.name,
        "instances": str(instances),
        "serving": f" --instances {instances}" if instances > 1 else "",
        "memory": str(MEMORY_PERCENT // instances),
        "rack_file": rack_file,
        "docs": DOCS,
        "user": USER,
        "group": GROUP,
        "minter": MINTER,
        "home": HOME,
        "labels": " ".join(f"--label {chip}" for chip in sorted({board.chip for board in physical})),
        # uhubctl switches by files of the hub's ports, which udev's rule gives to the group
        "writable": " /sys/devices" if _hubs(physical) else "",
    }
    source = files(__package__) / "files"
    found = {
        name: Template((source / name).read_text(encoding="utf-8")).substitute(names)
        for name in (*_TEMPLATES, *_SCRIPTS)
    }
    found["70-hil.rules"] = "".join(f"{line}\n" for line in udev_rules(rack.name, physical))
    dhcp = rack.access_point.dhcp
    may = {
        "interfaces": interfaces_of(rack),
        "address": rack.host.address,
        "dhcp_range": dhcp_range(dhcp) if dhcp else "",
    }
    found["helper.json"] = json.dumps(may) + "\n"
    found["hil-helper"] = Path(root_helper.__file__).read_text(encoding="utf-8")
    return found


def _why_one_at_a_time(rack: Rack) -> str:
    """Return what of the rack's network two runs cannot have at once, "" where they can."""
    point = rack.access_point
    if point.is_driven:
        return f"a run makes or changes the access point {point.ssid!r}"
    if point.shapes:
        return "a run shapes the air (shapes:)"
    return "a run gives out addresses (dhcp:)" if point.dhcp else ""


def interfaces_of(rack: Rack) -> list[str]:
    """Return the host's interfaces that the rack file names: what the root helper may touch."""
    radio = rack.access_point.interface if rack.access_point.type == "hostapd" else ""
    return sorted({name for name in (rack.host.interface, rack.capture.access_point, radio) if name})


def udev_rules(name: str, boards: list[Board]) -> Iterator[str]:
    """Yield udev's rules (udev(7)): a name and a group for each port, where no modem is looked for."""
    yield f"# Boards of the rack {name}. /dev/hil/BOARD is a board's port, whatever number it gets."
    yield 'ACTION=="remove", GOTO="hil_end"'
    for board in boards:
        match = _port_match(board)
        if match:
            yield (
                f'SUBSYSTEM=="tty", {match}, SYMLINK+="hil/{board.id}", GROUP="{GROUP}", MODE="0660", '
                'ENV{ID_MM_PORT_IGNORE}="1"'
            )
        else:
            yield f"# {board.id}: {board.serial} says neither by-id, by-path nor usb, so no rule finds it."
    for location in _hubs(boards):
        # as in uhubctl's README: the device for older kernels, the ports' files since Linux 6.0
        yield (
            f'SUBSYSTEM=="usb", KERNEL=="{location}", GROUP="{GROUP}", MODE="0660", '
            f"RUN+=\"/bin/sh -c 'chgrp -f {GROUP} $sys$devpath/*-port*/disable; "
            "chmod -f 660 $sys$devpath/*-port*/disable; true'\""
        )
    yield 'LABEL="hil_end"'


def _port_match(board: Board) -> str:
    """Return what udev knows a board's port by; "" where the rack file does not say enough.

    The names below /dev/serial are made of these properties by systemd's 60-serial.rules.
    """
    if found := _BY_ID.fullmatch(board.serial):
        match = f'ENV{{ID_SERIAL}}=="{found["serial"]}", ENV{{ID_USB_INTERFACE_NUM}}=="{found["number"]}"'
    elif found := _BY_PATH.fullmatch(board.serial):
        match = f'ENV{{ID_PATH}}=="{found["path"]}"'
    elif board.serial.startswith("usb://"):
        return _usb_match(from_url(board.serial))
    else:
        return ""
    return match + (f', ATTRS{{port_number}}=="{found["port"]}"' if found["port"] else "")


def _usb_match(port: UsbPort) -> str:
    number = "" if port.interface is None else f"{port.interface:02x}"
    words = (
        ('KERNELS=="{}"', port.path),
        ('ATTRS{{serial}}=="{}"', port.serial),
        ('ENV{{ID_USB_INTERFACE_NUM}}=="{}"', number),
    )
    return ", ".join(match.format(value) for match, value in words if value)


def _hubs(boards: list[Board]) -> list[str]:
    """Return the hubs that uhubctl switches, by their place on the bus."""
    switches = [switch.driver for board in boards for switch in (board.power, board.hub_power) if switch]
    return sorted({driver.location for driver in switches if isinstance(driver, Uhubctl)})

# SPDX-License-Identifier: Apache-2.0
"""pyserial URL handlers of this project: ``fastrfc2217://host:port``, ``usb://place?serial=…``."""

from __future__ import annotations

import os
import re

import serial

_PACKAGE = __name__
NETWORK_PORT = re.compile(r"(?:fast)?(rfc2217|socket)://([^:/?#\s]+|\[[^\]\s]+\]):(\d{1,5})/?(?:\?\S*)?")
_DEVICE = re.compile(r"/\S(?:.*\S)?")
OWN = ("fastrfc2217://", "usb://")  # what an unmodified esptool cannot open


def register() -> None:
    """Make ``serial.serial_for_url`` understand this package's URLs. May be called again."""
    if _PACKAGE not in serial.protocol_handler_packages:
        serial.protocol_handler_packages.append(_PACKAGE)


def problem_of(address: str) -> str:
    """Return one sentence on why nobody can open a serial port of this address, "" where somebody can."""
    network = NETWORK_PORT.fullmatch(address)
    if _DEVICE.fullmatch(address) or (network and 1 <= int(network[3]) <= 65535):
        return ""
    return f"serial port {address!r} is neither a device file (/dev/…) nor rfc2217:// or socket://HOST:PORT."


def by_fast_client(address: str) -> str:
    """Return an address as this project opens it.

    pyserial's own RFC 2217 client polls: it takes minutes to flash, and loses what a board says at its boot.
    """
    return f"fast{address}" if address.startswith("rfc2217://") else address


def port_at(address: str) -> str:
    """Return the port that an address leads to. Links and options of one port give the same port."""
    network = NETWORK_PORT.fullmatch(address)
    if network:
        return f"{network[2].lower()}:{network[3]}"
    return os.path.realpath(address) if address.startswith("/") else address

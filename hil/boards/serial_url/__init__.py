# SPDX-License-Identifier: Apache-2.0
"""pyserial URL handlers of this project: ``fastrfc2217://host:port``, ``usb://place?serial=…``."""

from __future__ import annotations

import serial

_PACKAGE = __name__
OWN = ("fastrfc2217://", "usb://")  # what an unmodified esptool cannot open


def register() -> None:
    """Make ``serial.serial_for_url`` understand this package's URLs. May be called again."""
    if _PACKAGE not in serial.protocol_handler_packages:
        serial.protocol_handler_packages.append(_PACKAGE)

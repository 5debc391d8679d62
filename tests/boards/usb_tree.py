# SPDX-License-Identifier: Apache-2.0
"""A file tree as Linux shows USB devices with serial ports, and pseudo terminals behind their names."""

from __future__ import annotations

import os
import shutil
import tty
from collections.abc import Mapping
from pathlib import Path


class UsbTree:
    """``root`` holds ``sys`` and ``dev``; a serial port is a pseudo terminal, its other end in ``ends``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._bus = root / "sys" / "bus" / "usb" / "devices"
        self._hub = root / "sys" / "devices" / "pci0000:00" / "0000:00:14.0" / "usb1"
        self._dev = root / "dev"
        for folder in (self._bus, self._hub, self._dev):
            folder.mkdir(parents=True)
        (self._bus / "usb1").symlink_to(self._hub)
        self.ends: dict[str, int] = {}

    def plug(
        self,
        place: str,
        ids: str,
        *,
        serial: str = "",
        ports: Mapping[int, str],
        others: tuple[int, ...] = (),
    ) -> None:
        """Plug a device in; ``ports`` are its serial ports by interface, ``others`` further interfaces."""
        device = self._hub / place
        device.mkdir()
        (device / "idVendor").write_text(ids[:4] + "\n")
        (device / "idProduct").write_text(ids[5:] + "\n")
        if serial:
            (device / "serial").write_text(serial + "\n")
        for number in (*ports, *others):
            interface = device / f"{place}:1.{number}"
            interface.mkdir()
            (interface / "bInterfaceNumber").write_text(f"{number:02x}\n")
            (self._bus / interface.name).symlink_to(interface)
        for number, name in ports.items():
            interface = device / f"{place}:1.{number}"
            below = interface if name.startswith("ttyACM") else interface / name
            (below / "tty" / name).mkdir(parents=True)
            self._open(name)
        (self._bus / place).symlink_to(device)

    def _open(self, name: str) -> None:
        end, port = os.openpty()
        tty.setraw(port)
        (self._dev / name).symlink_to(os.ttyname(port))
        os.close(port)
        self.ends[name] = end

    def unplug(self, place: str) -> None:
        """Take a device away, as at its reset or by hand."""
        for link in self._bus.glob(f"{place}*"):
            if link.name == place or link.name.startswith(f"{place}:"):
                link.unlink()
        names = {path.name for path in (self._hub / place).rglob("tty?*")}
        shutil.rmtree(self._hub / place)
        for name in names & self.ends.keys():
            (self._dev / name).unlink()
            os.close(self.ends.pop(name))

    def close(self) -> None:
        for end in self.ends.values():
            os.close(end)
        self.ends.clear()

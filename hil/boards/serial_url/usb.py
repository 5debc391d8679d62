# SPDX-License-Identifier: Apache-2.0
"""Which serial port a board on USB has now: found by its place on the bus, its serial number, or both.

Linux numbers ports as they appear; place and serial number stay. They are read in sysfs each time a port is
opened, so that neither a renumbered port nor one that vanished at a reset matters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from hil.base.errors import ConfigError, NoAnswerError

SCHEME = "usb"
ESPRESSIF = "303a"  # its chips are USB devices themselves, and vanish at a reset
PATH = re.compile(r"\d+-\d+(\.\d+)*")  # bus-port.port…, as sysfs and uhubctl name it
_LOOK = "plug the board in, or mend 'usb' in the rack file."


@dataclass(frozen=True)
class UsbDevice:
    """A device that the kernel has: ``ports`` are its serial ports' names by interface number."""

    path: str
    ids: str
    serial: str
    ports: Mapping[int, str]

    @property
    def is_native(self) -> bool:
        """Whether the chip is the device itself, with no bridge between."""
        return self.ids.startswith(ESPRESSIF)

    def describe(self) -> str:
        serial = f", serial {self.serial}" if self.serial else ""
        ports = "".join(f", {name}" for name in self.ports.values())
        return f"{self.path} ({self.ids}{serial}{ports})"


@dataclass(frozen=True)
class FoundPort:
    """A serial port's device file, and the device that it belongs to."""

    file: Path
    device: UsbDevice


@dataclass(frozen=True)
class UsbPort:
    """Where to look for a board: ``path`` and ``serial`` both hold where both are given.

    ``interface`` is needed of a device with several serial ports alone. ``root`` holds ``sys`` and ``dev``.
    """

    path: str = ""
    serial: str = ""
    interface: int | None = None
    root: Path = Path("/")

    @property
    def url(self) -> str:
        """The address under which a port is opened."""
        words = {"serial": self.serial, "interface": "" if self.interface is None else str(self.interface)}
        words["root"] = "" if self.root == Path("/") else str(self.root)
        query = urlencode({name: word for name, word in words.items() if word}, quote_via=quote)
        return f"{SCHEME}://{self.path}{'?' if query else ''}{query}"

    def find(self) -> FoundPort:
        """Return the port as it is called now.

        Raises:
            NoAnswerError: it is not there, which may pass; what is there is named.
            ConfigError: more than one device or port is meant.
        """
        devices = usb_devices(self.root)
        found = [device for device in devices if self._is_meant(device)]
        if not found:
            raise NoAnswerError(f"{self._missing(devices)}.", next_step=_LOOK)
        if len(found) > 1:
            places = ", ".join(device.describe() for device in found)
            raise ConfigError(
                f"{len(found)} USB devices have the serial number {self.serial}: {places}.",
                next_step="add the path (usb: {path: …}).",
            )
        return FoundPort(self.root / "dev" / self._port_of(found[0]), found[0])

    def _is_meant(self, device: UsbDevice) -> bool:
        return self.path in ("", device.path) and self.serial in ("", device.serial)

    def _missing(self, devices: list[UsbDevice]) -> str:
        """Describe what is missing, and what is there instead."""
        at_place = [device for device in devices if device.path == self.path]
        elsewhere = [device for device in devices if self.serial and device.serial == self.serial]
        with_ports = [device.describe() for device in devices if device.ports]
        there = f"with serial ports there is {', '.join(with_ports) or 'none'}"
        places = f"the serial number {self.serial} is at {', '.join(one.describe() for one in elsewhere)}"
        if at_place:
            other = places if elsewhere else f"nothing has the serial number {self.serial}"
            return f"at USB path {self.path} is {at_place[0].describe()}; {other}"
        if elsewhere:
            return f"no USB device is at {self.path}; {places}"
        what = f"is at {self.path}" if self.path else f"has the serial number {self.serial}"
        return f"no USB device {what}; {there}"

    def _port_of(self, device: UsbDevice) -> str:
        ports = ", ".join(f"{number} ({name})" for number, name in device.ports.items())
        if not device.ports:
            raise NoAnswerError(
                f"the USB device {device.describe()} has no serial port.",
                next_step="see that the kernel has its driver (dmesg) and that its firmware does not use USB "
                "otherwise; hold BOOT while you plug it in.",
            )
        if self.interface is None:
            if len(device.ports) > 1:
                raise ConfigError(
                    f"the USB device {device.describe()} has several serial ports, at the "
                    f"interfaces {ports}.",
                    next_step="name one (usb: {interface: …}).",
                )
            return next(iter(device.ports.values()))
        if self.interface not in device.ports:
            raise NoAnswerError(
                f"the USB device {device.describe()} has no serial port at interface {self.interface}, "
                f"but at {ports}.",
                next_step=_LOOK,
            )
        return device.ports[self.interface]


def from_url(url: str) -> UsbPort:
    """Return where an address says to look. Raises ValueError."""
    parts = urlsplit(url)
    words = {
        name: values[0] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()
    }
    interface = words.get("interface")
    return UsbPort(
        unquote(parts.netloc),
        words.get("serial", ""),
        None if interface is None else int(interface),
        Path(words.get("root", "/")),
    )


def usb_devices(root: Path) -> list[UsbDevice]:
    """Return the USB devices that sysfs shows, by their places; hubs are among them."""
    folder = root / "sys" / "bus" / "usb" / "devices"
    places = sorted(entry for entry in folder.glob("*-*") if PATH.fullmatch(entry.name))
    return [device for device in map(_device, places) if device]


def _device(place: Path) -> UsbDevice | None:
    """Return a device by its folder; None where it vanishes meanwhile."""
    try:
        ids = f"{_read(place / 'idVendor')}:{_read(place / 'idProduct')}"
        return UsbDevice(place.name, ids, _read(place / "serial"), dict(sorted(_ports(place).items())))
    except OSError:
        return None


def _ports(place: Path) -> dict[int, str]:
    """Return a device's serial ports: cdc_acm puts ``tty/ttyACM0`` into an interface's folder, a converter's
    driver ``ttyUSB0/tty/ttyUSB0``."""
    found = {}
    for interface in place.glob(f"{place.name}:*"):
        names = [path.name for pattern in ("tty/*", "tty*/tty/*") for path in interface.glob(pattern)]
        if names and (number := _read(interface / "bInterfaceNumber")):
            found[int(number, 16)] = names[0]
    return found


def _read(path: Path) -> str:
    """Return an attribute, "" where there is none any more."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def is_gone(port: str) -> bool:
    """Whether a port of this machine is not there now; of a remote one nothing is known."""
    if port.startswith(f"{SCHEME}://"):
        try:
            return not from_url(port).find().file.exists()
        except NoAnswerError:
            return True
    return "://" not in port and not Path(port).exists()

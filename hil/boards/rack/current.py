# SPDX-License-Identifier: Apache-2.0
"""What measures a board's current: the section ``current`` of its entry in a rack file."""

from __future__ import annotations

from dataclasses import dataclass

from hil.base.yamlfile import Node
from hil.model import UNREAL, Kind

TYPES = ("ppk2", "ina226")
MODES = ("source", "ampere")
PPK2_MV = (800, 5000)
INA226_ADDRESSES = (0x40, 0x4F)


@dataclass(frozen=True)
class Current:
    """A meter in a board's supply.

    A ``ppk2`` has ``serial``, a port's path or its USB serial number, and ``voltage_mv``, which it gives to
    the board (``mode`` source) or which the supply gives that it is wired into (ampere). An ``ina226`` is at
    an ``address`` of an I2C ``bus``, over a shunt of ``shunt_mohm``; it measures the voltage itself.
    """

    type: str
    serial: str = ""
    voltage_mv: int = 0
    mode: str = ""
    bus: int = 0
    address: int = 0
    shunt_mohm: int = 0

    @property
    def place(self) -> str:
        """Where it is, in words: ``PPK2 /dev/ttyACM0``, ``INA226 1-0040``."""
        return f"PPK2 {self.serial}" if self.type == "ppk2" else f"INA226 {self.i2c_device}"

    @property
    def i2c_device(self) -> str:
        """The name that Linux gives the device: ``1-0040``."""
        return f"{self.bus}-{self.address:04x}"

    @property
    def feeds(self) -> bool:
        """Whether the board has no supply but the meter."""
        return self.mode == "source"


def read_current(node: Node | None, kind: Kind) -> Current | None:
    """Read the section; None without one: nothing measures the board's current. Raises ConfigError."""
    if node is None:
        return None
    if kind in UNREAL:
        raise node.error(
            "", f"a {kind} board draws no current that could be measured.", next_step="delete the section."
        )
    if node.choice("type", TYPES) == "ina226":
        low, high = INA226_ADDRESSES
        return Current(
            "ina226",
            bus=node.integer("bus", minimum=0, maximum=255),
            address=node.integer("address", default=low, minimum=low, maximum=high),
            shunt_mohm=node.integer("shunt_mohm", minimum=1, maximum=10_000),
        )
    low, high = PPK2_MV
    return Current(
        "ppk2",
        serial=node.text("serial"),
        voltage_mv=node.integer("voltage_mv", minimum=low, maximum=high),
        mode=node.choice("mode", MODES),
    )

# SPDX-License-Identifier: Apache-2.0
"""What measures a board's current: the section ``current`` of its entry in a rack file."""

from __future__ import annotations

from dataclasses import dataclass

from hil.base.yamlfile import Node
from hil.model import UNREAL, Kind

TYPES = ("ppk2",)
MODES = ("source", "ampere")
PPK2_MV = (800, 5000)


@dataclass(frozen=True)
class Current:
    """A meter in a board's supply.

    ``serial`` is a port's path or a USB serial number. ``voltage_mv`` is what the meter gives to the board
    (``mode`` source), or what the supply gives that the meter is wired into (ampere).
    """

    type: str
    serial: str
    voltage_mv: int
    mode: str

    @property
    def place(self) -> str:
        """Where it is, in words: ``PPK2 /dev/ttyACM0``."""
        return f"PPK2 {self.serial}"

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
    low, high = PPK2_MV
    return Current(
        node.choice("type", TYPES),
        serial=node.text("serial"),
        voltage_mv=node.integer("voltage_mv", minimum=low, maximum=high),
        mode=node.choice("mode", MODES),
    )

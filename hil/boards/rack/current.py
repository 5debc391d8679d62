# SPDX-License-Identifier: Apache-2.0
"""What measures a board's current: the section ``current`` of its entry in a rack file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import RigError
from hil.base.yamlfile import Node
from hil.boards import current as ours
from hil.boards.current import Meter, MeterDriver
from hil.boards.drivers import errors_of, read_driver
from hil.model import UNREAL, Kind


@dataclass(frozen=True)
class Current:
    """A meter in a board's supply."""

    type: str
    driver: MeterDriver

    @property
    def place(self) -> str:
        """Where it is, in words: ``PPK2 /dev/ttyACM0``."""
        return str(self.driver)

    def open(self) -> Meter:
        """Open the meter. Raises RigError."""
        with errors_of(type(self.driver), RigError):
            return self.driver.open()


def read_current(node: Node | None, kind: Kind, drivers: Path) -> Current | None:
    """Read the section; None without one: nothing measures the board's current. Raises ConfigError."""
    if node is None:
        return None
    if kind in UNREAL:
        raise node.error(
            "", f"the current of a {kind} board cannot be measured.", next_step="delete the section."
        )
    name, driver = read_driver(node, MeterDriver, ours, drivers)  # type: ignore[type-abstract]
    assert driver
    with errors_of(driver):
        return Current(name, driver.read(node))

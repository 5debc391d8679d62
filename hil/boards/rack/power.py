# SPDX-License-Identifier: Apache-2.0
"""How a board's supply is switched: the sections ``power`` and ``hub_power`` of its entry in a rack file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hil.base.yamlfile import Node
from hil.boards import power as ours
from hil.boards.drivers import errors_of, read_driver
from hil.boards.power import PowerDriver

UNDRIVEN = ("none", "virtual", "manual")  # no switch, that of the running virtual rack, a person
OFF_TIME_S = 2.0  # what a module's capacitors hold up is gone by then


@dataclass(frozen=True)
class Power:
    """How a supply is switched. ``off_time_s`` is how long a cycle leaves it off."""

    type: str
    driver: PowerDriver | None = None  # of UNDRIVEN
    off_time_s: float = 0.0

    @property
    def is_automatic(self) -> bool:
        """Whether a run can use it: nobody has to be there."""
        return self.type not in ("none", "manual")


NO_POWER = Power("none")


def read_power(node: Node | None, drivers: Path) -> Power:
    """Read the section; without one there is no switch. ``drivers`` is the lab's. Raises ConfigError."""
    return _read(node, drivers, hub=False) if node else NO_POWER


def read_hub(node: Node | None, drivers: Path) -> Power | None:
    """Read what switches the whole hub that a board hangs on, None where nothing does. Raises ConfigError."""
    return _read(node, drivers, hub=True) if node else None


def _read(node: Node, drivers: Path, *, hub: bool) -> Power:
    others = () if hub else UNDRIVEN
    name, driver = read_driver(node, PowerDriver, ours, drivers, others=others)  # type: ignore[type-abstract]
    if driver is None:
        return Power(name)
    with errors_of(driver):
        off_time_s = node.quantity("off_time", "s", default=OFF_TIME_S, minimum=0.5, maximum=60.0)
        return Power(name, driver.read_hub(node) if hub else driver.read(node), off_time_s)

# SPDX-License-Identifier: Apache-2.0
"""The faults that an emulated board can be given: those of its supply, its cable and its clock.

What a virtual board plays of a chip's program or its ROM is the real one's business here: a panic is provoked
in the firmware, and the serial loader is the chip's own.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from hil.base.errors import ConfigError
from hil.virtual.board import faults
from hil.virtual.board.faults import FAULTS
from hil.virtual.emulator.machine import EmulatedBoard

_KNOWN = {
    "disconnect": dataclasses.replace(FAULTS["disconnect"], summary="the connection drops", value="now"),
    "brownout": dataclasses.replace(
        FAULTS["brownout"], summary="the supply fails: now, and in the next N-1 boots"
    ),
    "garbage": FAULTS["garbage"],
    "silent": dataclasses.replace(FAULTS["silent"], summary="the chip stands still"),
}


class EmulatedFaults:
    """The faults of ``board``."""

    known = tuple(_KNOWN.values())

    def __init__(self, board: EmulatedBoard) -> None:
        self._board = board

    def inject(self, name: str, value: Any) -> None:
        """Switch on a fault. Raises ConfigError for one that an emulated board does not have."""
        fault, value = faults.check(name, value)
        if name not in _KNOWN or (name == "disconnect" and value != "now"):
            what = name if name not in _KNOWN else f"{name} {value}"
            raise ConfigError(
                f"An emulated board cannot be given the fault {what!r}: it runs the chip's own ROM and "
                f"firmware. Its faults: {', '.join(_KNOWN)}.",
                next_step="provoke it in the firmware, or take a virtual board.",
            )
        board = self._board
        if fault.lasting and value != "now":
            board.faults.switch_on(name, value)
        effect = {
            "disconnect": board.disconnect,
            "brownout": board.brown_out,
            "garbage": board.make_noise,
            "silent": board.freeze,
        }
        effect[name]()

    def clear(self) -> None:
        """Switch off every fault; a frozen chip goes on."""
        self._board.faults.values.clear()
        self._board.thaw()

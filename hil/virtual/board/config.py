# SPDX-License-Identifier: Apache-2.0
"""Who a board is, and what is at the other end of its cable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hil.virtual.board.chip import VirtualChip


@dataclass(frozen=True)
class BoardConfig:
    """Who the board is. ``paced``: bytes take their time on the wire. ``network``: name and password of the
    only one in its air, None where each that is asked for is there. ``strict``: what fails on a chip fails
    here too, or is said; None leaves it to the program."""

    id: str
    chip: VirtualChip
    mac: bytes
    netns: Path | None = None
    paced: bool = False
    network: tuple[str, str] | None = None
    strict: bool | None = None

    @property
    def mac_text(self) -> str:
        return ":".join(f"{byte:02x}" for byte in self.mac)


class CableHost(Protocol):
    """The other end of the USB cable."""

    @property
    def baud(self) -> int: ...
    @property
    def has_room(self) -> bool: ...
    def receive(self, data: bytes) -> None: ...
    def disconnect(self) -> None: ...

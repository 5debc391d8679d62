# SPDX-License-Identifier: Apache-2.0
"""The drivers of current meters: a type of the rack file is a file here, or a lab's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, Self

from hil.base.yamlfile import Node
from hil.boards.current_track import Spans


class MeterDriver(ABC):
    """A meter in a board's supply, as its section says. ``str(driver)`` is its place, where no other is."""

    feeds = False  # whether the board has no supply but the meter

    @classmethod
    @abstractmethod
    def read(cls, node: Node) -> Self:
        """Read the keys of its section. Raises ConfigError (``node.error``)."""

    @abstractmethod
    def open(self) -> Meter:
        """Return the meter, ready to sample, and feeding its board where it does. Raises RigError."""


class Meter(Protocol):
    """A current meter. One thread at a time uses it."""

    resolution_ua: float

    @property
    def origin_s(self) -> float:
        """What time.monotonic() said at second 0 of the spans, as well as it is known by now."""

    def begin(self) -> None:
        """Start sampling; return once something has come. Raises RigError."""

    def read(self) -> Spans:
        """Return the bytes that arrive within a tenth of a second. Raises RigError: the meter is gone."""

    def end(self) -> Spans:
        """Stop sampling; return what was still on its way. Raises RigError."""

    def close(self) -> None:
        """Let go of it. Never raises."""

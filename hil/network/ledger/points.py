# SPDX-License-Identifier: Apache-2.0
"""The points that a message passes, in their order, and who owns a loss."""

from __future__ import annotations

from enum import IntEnum


class _Worded(IntEnum):
    @property
    def word(self) -> str:
        """Return the name as facts and files write it: ``broker_in``."""
        return self.name.lower()


class LossPoint(_Worded):
    """A point where a message can be seen; a loss is owned by the first point where it is missing."""

    DEVICE_CALL = 1
    DEVICE_TCP = 2
    ACCESS_POINT = 3
    BROKER_IN = 4
    BROKER_OUT = 5
    SUBSCRIBER = 6


class Owner(_Worded):
    """Values of the column ``owner``; those of points are the points' own numbers."""

    ARRIVED = 0
    DEVICE_CALL = 1
    DEVICE_TCP = 2
    ACCESS_POINT = 3
    BROKER_IN = 4
    BROKER_OUT = 5
    SUBSCRIBER = 6
    UNDETERMINED = 7


POINTS = tuple(LossPoint)


OWNERS = tuple(Owner)

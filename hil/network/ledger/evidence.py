# SPDX-License-Identifier: Apache-2.0
"""What is known of a case's messages at each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum


class Outcome(IntEnum):
    """Values of the board's column ``outcome``."""

    OK = 0
    TIMEOUT = 1
    REFUSED = 2
    OUTBOX_FULL = 3
    OVERRUN = 4


NOT_ACCEPTED = frozenset({Outcome.REFUSED, Outcome.OUTBOX_FULL, Outcome.OVERRUN})


class Tcp(IntEnum):
    """Values of the board's column ``tcp``: what its TCP did with a message's last byte, as far as known."""

    NOT_WRITTEN = 0
    NEVER_TRANSMITTED = 1
    TRANSMITTED = 2
    ACKNOWLEDGED = 3
    UNKNOWN = 4


@dataclass(frozen=True, slots=True)
class Handed:
    """One message by its number, as its row tells it: columns planned_us, outcome, connection, tcp."""

    number: int
    planned_us: int
    outcome: int
    connection: int
    tcp: int
    qos: int

    @property
    def refused(self) -> bool:
        """True where the client certainly has nothing of it. A QoS 1 or 2 message that the call failed to
        write may wait in the client's outbox all the same, for the next connection."""
        stored = self.outcome == Outcome.REFUSED and self.qos > 0 and self.tcp == Tcp.UNKNOWN
        return self.outcome in NOT_ACCEPTED and not stored


@dataclass(frozen=True)
class Sighting:
    """What a capture showed at one point: number → when it was first seen whole (µs, wall clock).

    ``complete`` is False where frames were dropped or could not be read (TLS without keys): then what is not
    here may have been there. ``empty_count`` are PUBLISH packets without payload, ``acknowledged`` the
    numbers that the broker answered (PUBACK, PUBREC), which proves that it had them.
    """

    seen: Mapping[int, int]
    complete: bool
    empty_count: int = 0
    acknowledged: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message at the subscriber's application, in the order of arrival; ``time_us`` is the wall clock."""

    number: int
    time_us: int
    qos: int
    dup: bool
    retain: bool


@dataclass(frozen=True)
class LossEvidence:
    """All points of one case; a sighting that is None: nobody looked there."""

    handed: Sequence[Handed]
    access_point: Sighting | None
    broker_in: Sighting | None
    broker_out: Sighting | None
    arrivals: Sequence[Arrival] = field(default=())

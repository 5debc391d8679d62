# SPDX-License-Identifier: Apache-2.0
"""The loss ledger: every message has a number, and each that is missing has an owner."""

from hil.network.ledger.attribution import Ledger, Line, attribute
from hil.network.ledger.evidence import Arrival, Evidence, Handed, Sighting
from hil.network.ledger.points import OWNERS, POINTS, Owner, Point

__all__ = [
    "OWNERS",
    "POINTS",
    "Arrival",
    "Evidence",
    "Handed",
    "Ledger",
    "Line",
    "Owner",
    "Point",
    "Sighting",
    "attribute",
]

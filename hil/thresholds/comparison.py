"""What of a bench is compared with the base and may block: the rules of ``compare:`` in a thresholds file."""

from __future__ import annotations

from dataclasses import dataclass

from hil.thresholds.limits import Where


@dataclass(frozen=True)
class CompareRule:
    """A comparison that blocks; ``source`` is file:line.

    ``tolerance`` and ``min_effect`` are relative on the scale ``log``, else in the metric's unit.
    """

    where: Where
    tolerance: float
    min_effect: float
    why: str
    source: str

"""TCP's sequence numbers: 32 bits that begin again at 0 (RFC 9293, 3.4)."""

from __future__ import annotations

SEQUENCE_SPAN = 1 << 32
_HALF = SEQUENCE_SPAN >> 1


def after(one: int, other: int) -> bool:
    """True where sequence number ``one`` lies beyond ``other`` (RFC 1982)."""
    return 0 < (one - other) % SEQUENCE_SPAN < _HALF


def unwrapped(number: int, near: int) -> int:
    """Return the number without wraps that is nearest to ``near``, which has none either."""
    ahead = (number - near) % SEQUENCE_SPAN
    return near + ahead - (SEQUENCE_SPAN if ahead >= _HALF else 0)

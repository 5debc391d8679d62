# SPDX-License-Identifier: Apache-2.0
"""Count on where a sequence number wraps. docs/reference/probes.md states the rules."""

from __future__ import annotations

from dataclasses import dataclass

MODULI = (2**8, 2**12, 2**16, 2**24, 2**32)  # of the counters that firmware has
LOST_WHERE_FOUND, LOST_WHERE_GIVEN = 3, 31  # numbers that may lack around a wrap: a restart jumps farther


@dataclass
class SequenceNumbers:
    """Turns numbers, in the order in which they come, into numbers that do not wrap.

    ``modulus``: how many numbers the product counts before it begins anew, from 0 or 1 on; 0 where nobody
    knows. It is found at the first wrap. A counter may be signed: 127 is followed by -128.
    """

    modulus: int = 0
    highest: int | None = None
    _written: int = 0  # the highest, as the product wrote it
    _has_wrapped: bool = False

    def is_beyond(self, number: int) -> bool:
        """Return whether a number contradicts the modulus."""
        return self.modulus > 0 and not -self.modulus // 2 <= number <= self.modulus

    def place(self, number: int) -> int:
        """Return the number without wraps: above ``highest``, or where it was before."""
        if self.highest is None:
            self.highest, self._written = number, number
            return number
        ahead = number - self._written
        if ahead < 0 and (modulus := self._wraps_at(number)):
            self.modulus, self._has_wrapped, ahead = modulus, True, ahead % modulus
        elif self._has_wrapped and ahead > self.modulus // 2:
            ahead -= self.modulus  # late: from before the wrap
        placed = self.highest + ahead
        if ahead > 0:
            self.highest, self._written = placed, number
        return placed

    def _wraps_at(self, number: int) -> int:
        """Return the modulus where a lower number is close behind a wrap, else 0."""
        lost = LOST_WHERE_GIVEN if self.modulus else LOST_WHERE_FOUND
        for modulus in [self.modulus] if self.modulus else MODULI:
            if self._written <= modulus and (number - self._written) % modulus <= min(lost + 1, modulus // 2):
                return modulus
        return 0

# SPDX-License-Identifier: Apache-2.0
"""One thing that a check of the machine or of a rack looked at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What was looked at, whether it is well, and what to do where it is not.

    ``sentence`` says what was found, good or bad. ``mend`` is a command, or in words what to do. ``needed``
    tells a fault from advice: without what is not needed everything works, if less well.
    """

    subject: str
    ok: bool
    sentence: str
    mend: str = ""
    needed: bool = True

    @property
    def mark(self) -> str:
        return "ok  " if self.ok else "FAIL" if self.needed else "note"

    @property
    def line(self) -> str:
        mend = f" Next: {self.mend}" if self.mend and not self.ok else ""
        return f"{self.mark} {self.subject}: {self.sentence}{mend}"

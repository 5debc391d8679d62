# SPDX-License-Identifier: Apache-2.0
"""Why a leg that left nothing is undecided, and not a rig that failed: GitHub's word, never the leg's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Excuses:
    """``unwanted`` is why nobody waits for the verdict any more, "" where somebody may.

    It holds for each leg that left nothing, and for each job that was cancelled. ``legs`` are the reasons of
    single legs, by name.
    """

    unwanted: str = ""
    legs: Mapping[str, str] = field(default_factory=dict)

    def of(self, leg: str) -> str:
        """Return why a leg that left nothing is undecided, "" where nothing excuses it."""
        return self.unwanted or self.legs.get(leg, "")


NONE = Excuses()

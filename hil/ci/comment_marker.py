"""The hidden line by which our comment is found again; the run in it keeps an older one from replacing it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MARKER = re.compile(
    r"<!-- hil-verdict run=(\d{1,18}) number=(\d{1,12}) attempt=(\d{1,6}) head=([0-9a-f]{40}) -->(?=\r?\n|\Z)"
)


@dataclass(frozen=True)
class Marker:
    """A run of pr.yml; ``number`` grows from run to run, ``attempt`` where one is run again."""

    run_id: int
    number: int
    attempt: int
    head: str

    def __str__(self) -> str:
        return (
            f"<!-- hil-verdict run={self.run_id} number={self.number} attempt={self.attempt} "
            f"head={self.head} -->"
        )

    def is_older_than(self, other: Marker) -> bool:
        return (self.number, self.attempt) < (other.number, other.attempt)


def find_marker(body: str) -> Marker | None:
    """Return the marker that a comment begins with, None where it is not one of ours."""
    found = _MARKER.match(body)
    return Marker(int(found[1]), int(found[2]), int(found[3]), found[4]) if found else None

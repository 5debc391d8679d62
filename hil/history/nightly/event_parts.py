"""A group of findings, and what groups are made with."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from hil.history.nightly.survey import Finding

EventCause = Literal["firmware", "environment", "board", "unclear"]
MINORITY = 0.1  # what fewer series than this share of an event say does not decide about it


@dataclass(frozen=True)
class Group:
    """Findings that are one event. ``good`` and ``bad`` are commits, "" where none is named."""

    cause: EventCause
    findings: tuple[Finding, ...]
    good: str = ""
    bad: str = ""

    @property
    def night(self) -> datetime.date:
        """The night that most findings name; the first of several."""
        return most_common_night(self.findings)


def most_common_night(findings: Sequence[Finding]) -> datetime.date:
    """Return the night that most findings name; the first of several."""
    counts = Counter(finding.point.night for finding in findings)
    return min(counts, key=lambda night: (-counts[night], night))


def split(findings: Iterable[Finding], key: Callable[[Finding], object]) -> list[list[Finding]]:
    """Return the findings in parts of one key each, in the order of the first of each."""
    parts: dict[object, list[Finding]] = {}
    for finding in findings:
        parts.setdefault(key(finding), []).append(finding)
    return list(parts.values())


def one_a_series(findings: Iterable[Finding], night: datetime.date) -> list[Finding]:
    """Return the finding of each series that lies nearest to a night: two steps of one are two events."""
    nearest: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda one: abs((one.point.night - night).days)):
        nearest.setdefault(finding.point.series_id, finding)
    return list(nearest.values())


def near(finding: Finding, night: datetime.date, nights: int) -> bool:
    """Whether a finding lies at most ``nights`` nights from a night."""
    return abs((finding.point.night - night).days) <= nights


def without(findings: Iterable[Finding], taken: Sequence[Finding]) -> list[Finding]:
    """Return the findings that were not taken."""
    gone = set(map(id, taken))
    return [finding for finding in findings if id(finding) not in gone]

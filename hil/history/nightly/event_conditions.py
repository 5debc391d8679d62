"""What changed on the rack in the nights of an event, in words: "Access point: channel 6 → 11".

A group of findings, and what groups are made with.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from hil.history.nightly.survey import Finding

_SAID = re.compile(r"(?:.*?\.)?(?P<key>[a-z0-9_]+): (?P<old>.*?) → (?P<new>.*) on \d{4}-\d\d-\d\d", re.DOTALL)
_WORDS = {  # the first that changed is told: whose it is, and what of it
    "channel": ("Access point", "channel"),
    "bssid": ("Access point", "BSSID"),
    "access_point": ("Access point", "type"),
    "ssid": ("Access point", "SSID"),
    "broker": ("Broker", "version"),
    "broker_config": ("Broker", "configuration"),
    "kernel": ("Host", "kernel"),
    "harness": ("Harness", "version"),
    "air": ("Air", "profile"),
    "governor": ("Host", "governor"),
    "cpu_count": ("Host", "processors"),
}
_SHARE = 0.5  # of the findings that must name a change, so that it tells for all
_MOST_SHOWN = 20


@dataclass(frozen=True)
class Told:
    """A condition that changed: whose (``what``), which, and from what to what; "" where boards differ."""

    what: str
    key: str
    old: str = ""
    new: str = ""

    @property
    def text(self) -> str:
        """Return "channel 6 → 11", or "channel changed"."""
        return f"{self.key} {self.old} → {self.new}" if self.old or self.new else f"{self.key} changed"


def all_conditions(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the conditions that changed, those first that most series saw change."""
    counts = Counter(said for finding in findings for said in dict.fromkeys(finding.point.conditions))
    return tuple(sorted(counts, key=lambda said: (-counts[said], said)))


def told_by(findings: Sequence[Finding]) -> Told | None:
    """Return what the conditions tell of an event, None where too few of its series saw the same change."""
    changes: dict[str, Counter[tuple[str, str]]] = {}
    for finding in findings:
        own = {}
        for said in finding.point.conditions:
            match = _SAID.fullmatch(said)
            if match:
                own[match["key"]] = (short(match["old"]), short(match["new"]))
        for key, change in own.items():
            changes.setdefault(key, Counter())[change] += 1
    for key, (what, word) in _WORDS.items():
        seen = changes.get(key, Counter())
        if seen and sum(seen.values()) >= _SHARE * len(findings):
            (old, new), count = seen.most_common(1)[0]
            return Told(what, word, old, new) if count == sum(seen.values()) else Told(what, word)
    return None


def short(text: str, most: int = _MOST_SHOWN) -> str:
    """Return one line of at most ``most`` printable characters; what others wrote may hold anything."""
    clean = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    return clean if len(clean) <= most else f"{clean[: most - 1]}…"


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


EventCause = Literal["firmware", "environment", "board", "unclear"]

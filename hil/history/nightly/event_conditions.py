# SPDX-License-Identifier: Apache-2.0
"""What changed on the rack in the nights of an event, in words: "Access point: channel 6 → 11".

And what groups of findings are made with: steps that noise puts some nights beside the others belong to an
event where their series' own figures allow its night.

Series of one board share its boots, so they stray together; that is why a board counts once, however many of
its series stray.
"""

from __future__ import annotations

import datetime
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from hil.base import special
from hil.base.numeric import np
from hil.history.nightly.divisive import (
    chain,
    loss_at,
)
from hil.history.nightly.nights import Night
from hil.history.nightly.survey import NightFinding, Survey

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
    "emulator": ("Emulator", "version"),
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


def all_conditions(findings: Sequence[NightFinding]) -> tuple[str, ...]:
    """Return the conditions that changed, those first that most series saw change."""
    counts = Counter(str(changed) for finding in findings for changed in finding.point.conditions)
    return tuple(sorted(counts, key=lambda said: (-counts[said], said)))


def told_by(findings: Sequence[NightFinding]) -> Told | None:
    """Return what the conditions tell of an event, None where too few of its series saw the same change."""
    changes: dict[str, Counter[tuple[str, str]]] = {}
    for finding in findings:
        own = {one.key.rpartition(".")[2]: one for one in finding.point.conditions}
        for key, one in own.items():
            changes.setdefault(key, Counter())[short(str(one.old)), short(str(one.new))] += 1
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
class FindingGroup:
    """Findings that are one event. ``good`` and ``bad`` are commits, "" where none is named."""

    cause: EventCause
    findings: tuple[NightFinding, ...]
    good: str = ""
    bad: str = ""

    @property
    def night(self) -> datetime.date:
        """The night that most findings name; the first of several."""
        return most_common_night(self.findings)


def most_common_night(findings: Sequence[NightFinding]) -> datetime.date:
    """Return the night that most findings name; the first of several."""
    counts = Counter(finding.point.night for finding in findings)
    return min(counts, key=lambda night: (-counts[night], night))


def split(
    findings: Iterable[NightFinding], key: Callable[[NightFinding], object]
) -> list[list[NightFinding]]:
    """Return the findings in parts of one key each, in the order of the first of each."""
    parts: dict[object, list[NightFinding]] = {}
    for finding in findings:
        parts.setdefault(key(finding), []).append(finding)
    return list(parts.values())


def one_a_series(findings: Iterable[NightFinding], night: datetime.date) -> list[NightFinding]:
    """Return the finding of each series that lies nearest to a night: two steps of one are two events."""
    nearest: dict[str, NightFinding] = {}
    for finding in sorted(findings, key=lambda one: abs((one.point.night - night).days)):
        nearest.setdefault(finding.point.series_id, finding)
    return list(nearest.values())


def near(finding: NightFinding, night: datetime.date, nights: int) -> bool:
    """Whether a finding lies at most ``nights`` nights from a night."""
    return abs((finding.point.night - night).days) <= nights


def without(findings: Iterable[NightFinding], taken: Sequence[NightFinding]) -> list[NightFinding]:
    """Return the findings that were not taken."""
    gone = set(map(id, taken))
    return [finding for finding in findings if id(finding) not in gone]


EventCause = Literal["firmware", "environment", "board", "unclear"]


STRAY_NIGHTS = 10


STRAY_LOSS = 8.0  # logarithm of a likelihood ratio; chance reaches it in one step of some thousand (e^-8)


_Line = tuple[Sequence[Night], Sequence[float]]


class Straying:
    """Looks up what a step would cost at another night."""

    def __init__(self, survey: Survey) -> None:
        self._judged = survey.judged
        self._steps: dict[str, list[NightFinding]] = {}
        for finding in survey.findings:
            self._steps.setdefault(finding.point.series_id, []).append(finding)

    def allows(self, findings: Iterable[NightFinding], night: datetime.date) -> bool:
        """Return whether boards that are independent of each other can all have their steps at ``night``.

        What chance makes each of them lose is about exponential, so their sum has a gamma distribution.
        """
        losses = self.board_losses(findings, night)
        return sum(losses) <= special.gammainccinv(len(losses), math.exp(-STRAY_LOSS))

    def allows_together(self, findings: Iterable[NightFinding], night: datetime.date) -> bool:
        """Return the same for boards that share a cause of drift: each board must allow it alone."""
        return max(self.board_losses(findings, night)) <= STRAY_LOSS

    def board_losses(self, findings: Iterable[NightFinding], night: datetime.date) -> list[float]:
        """Return for each board how much less likely its steps are at ``night`` than where they were found.

        In units of the logarithm, the mean over its series; infinite where the night lies too far away.
        """
        boards = split(findings, lambda finding: (finding.name.rack, finding.name.board))
        return [fmean(self._loss(finding, night) for finding in part) for part in boards]

    def _loss(self, finding: NightFinding, night: datetime.date) -> float:
        point = finding.point
        if abs((point.night - night).days) > STRAY_NIGHTS:
            return math.inf
        for nights, logs in self._lines(finding):
            dates = [one.date for one in nights]
            if not dates[0] < point.night <= dates[-1]:
                continue
            own, other = bisect_left(dates, point.night), bisect_left(dates, night)
            start, end = self._edges(finding, dates)
            if start < other < end and start < own < end:
                return loss_at(np.asarray(logs[start:end]), own - start, other - start)
        return math.inf

    def _lines(self, finding: NightFinding) -> list[_Line]:
        nights = self._judged.get(finding.point.series_id, ())
        if finding.point.of_ratio:
            return [(part.nights, part.ratios) for part in chain(nights)]
        return [(nights, [night.level for night in nights])] if nights else []

    def _edges(self, finding: NightFinding, dates: Sequence[datetime.date]) -> tuple[int, int]:
        """Return where the levels before and after a step begin and end, by the series' other steps."""
        others = [
            bisect_left(dates, other.point.night)
            for other in self._steps.get(finding.point.series_id, ())
            if other is not finding and (other.point.of_ratio or not finding.point.of_ratio)
        ]
        own = bisect_left(dates, finding.point.night)
        before = [other for other in others if other < own]
        after = [other for other in others if other > own]
        return max(before, default=0), min(after, default=len(dates))

# SPDX-License-Identifier: Apache-2.0
"""The messages in the records of the bench ``echo``: by setting, by the study's estimator and by ours.

The study's mean: the message with the id 000000 is left out, a message counts with its first echo, one
without an echo does not count, both times are cut to whole ms, a difference of 0 ms does not count either,
and each difference is R's difftime() without units=: from 60 s on its number is one of minutes, from an hour
on one of hours, and all numbers are averaged as if they were seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hil.metrics.stats import mean, quantile_interval
from hil.model import RunRecord, Scalar
from hil.reports.studies.declaration import Comparison, Row
from hil.reports.studies.document import NOT_MEASURED
from hil.reports.studies.estimate import ALPHA, SHARES, Estimate, estimate, median
from hil.reports.studies.layout import Figures
from hil.reports.studies.records import (
    BoardRun,
    boots,
    facts,
    greatest,
    grouped,
    mean_fact,
    rate_text,
    whole,
)

BENCH = "echo"
OK = 0
_NEVER_SENT = (2, 3, 4)  # refused, outbox full, overrun: no call took the message
_PLAIN: Mapping[str, Scalar] = {
    "transport": "tcp",
    "nodelay": 1,
    "broker_nodelay": 1,
    "echo_nodelay": 1,
    "inflight": 0,
    "broker_inflight": 20,
    "clean_session": 1,
    "persistence": "off",
    "air": "rack",
    "delay_us": -1,
    "rate_up_kbit": 0,
    "rate_down_kbit": 0,
    "loss_up_ppm": 0,
    "loss_down_ppm": 0,
    "cut_every_ms": 0,
}
RATE_US = "interval_us"


@dataclass(frozen=True)
class Echoes:
    """Records of one setting. Figures are of the messages after the warm-up; without an echo they are inf."""

    records: tuple[RunRecord, ...]

    @cached_property
    def response_ms(self) -> list[float]:
        """From when each message was planned to its whole echo."""
        return self._since("planned_us")

    @cached_property
    def round_trip_ms(self) -> list[float]:
        """From when each message was sent, which leaves out what it waited for the one before."""
        return self._since("sent_us")

    def _since(self, column: str) -> list[float]:
        return [
            (done - begun) / 1000 if outcome == OK else math.inf
            for record in self.records
            for begun, done, outcome in _rows(record, column, "done_us", "outcome")
        ]

    @cached_property
    def boot_of_each(self) -> list[int]:
        return [record.boot_index for record in self.records for _ in _rows(record, "outcome")]

    @property
    def n(self) -> int:
        return len(self.response_ms)

    @property
    def answered(self) -> int:
        return sum(map(math.isfinite, self.response_ms))

    @property
    def lost(self) -> int:
        """How many messages had no echo in time, or were never sent."""
        return self.n - self.answered

    @property
    def boots(self) -> int:
        return boots(self.records)

    def p50(self, alpha: float = ALPHA) -> Estimate:
        """Return the median response in ms, with bounds that allow for messages that wait behind others."""
        return self._median(self.response_ms, alpha)

    def round_trip(self) -> Estimate:
        """Return the median round trip from the sending, in ms."""
        return self._median(self.round_trip_ms, ALPHA)

    def quantile(self, name: str) -> Estimate:
        """Return p95 or p99 of the response in ms, without bounds."""
        return estimate(self.response_ms, SHARES[name])

    @property
    def theirs(self) -> TheirMean:
        """What the study's estimator makes of the first boot."""
        first = min((record.boot_index for record in self.records), default=0)
        return pooled(_log_of(record) for record in self.records if record.boot_index == first)

    def fact(self, name: str) -> float | None:
        """Return the mean of a number that the peer told; None where no record has it."""
        return mean_fact(self.records, name)

    def most(self, name: str) -> float | None:
        """Return the largest of a number that the peer told; None where no record has it."""
        return greatest(self.records, name)

    def total(self, name: str) -> float | None:
        """Return the sum of a count that the peer told; None where a record lacks it."""
        found = facts(self.records, name)
        return sum(found) if found and len(found) == len(self.records) else None

    def told(self, name: str) -> str:
        """Return a word that the peer told in the first record; "" where it told none."""
        value = self.records[0].environment.get("peer", {}).get(name) if self.records else None
        return value if isinstance(value, str) else ""

    def _median(self, values: Sequence[float], alpha: float) -> Estimate:
        found = median(values, self.boot_of_each, alpha)
        if found.value is None:
            return found
        depends = quantile_interval(values, 0.5, alpha, self._done_us())
        low, high = min(found.low, depends.low), max(found.high, depends.high)
        return Estimate(found.n, found.needed, found.value, low, high, "no echo")

    def _done_us(self) -> list[int]:
        """Return when each message was done with, one record after another."""
        found: list[int] = []
        for record in self.records:
            begin, timeout_us = max(found, default=0), whole(record, "timeout_ms") * 1000
            found += [
                begin + (done if outcome == OK else planned + timeout_us)
                for planned, done, outcome in _rows(record, "planned_us", "done_us", "outcome")
            ]
        return found


NO_ECHOES = Echoes(())


def _rows(record: RunRecord, *names: str) -> Iterable[tuple[int, ...]]:
    """Return these columns of the rows after the warm-up."""
    return zip(*(record.columns[name][record.warmup_rows :] for name in names), strict=True)


def _log_of(record: RunRecord) -> tuple[list[Noted], list[Noted]]:
    """Return what the study would have logged of a record, its warm-up included."""
    sent, received = [], []
    columns = (record.columns[name] for name in ("sent_us", "done_us", "outcome"))
    for position, (sent_us, done_us, outcome) in enumerate(zip(*columns, strict=True)):
        if outcome not in _NEVER_SENT:
            sent.append(Noted(position, sent_us))
        if outcome == OK:
            received.append(Noted(position, done_us))
    return sent, received


def selected(run: BoardRun, wanted: Comparison | None) -> Echoes:
    """Return the messages that a row compares with."""
    return Echoes(run.select(wanted)) if wanted else NO_ECHOES


def by_setting(records: Iterable[RunRecord], *names: str) -> dict[tuple[Scalar, ...], Echoes]:
    """Return the messages by the values of these parameters, in ascending order."""
    found = grouped(records, lambda record: tuple(record.parameters.get(name) for name in names))
    return {key: Echoes(tuple(found[key])) for key in sorted(found, key=_order)}


def _order(key: Sequence[Scalar]) -> tuple[tuple[bool, float, str], ...]:
    return tuple(
        (
            not isinstance(value, int | float),
            float(value) if isinstance(value, int | float) else 0,
            str(value),
        )
        for value in key
    )


def others(record: RunRecord, *names: str) -> bool:
    """Return whether anything but these parameters, payload, QoS and rate is not as usual."""
    return any(
        str(record.parameters.get(name, usual)) != str(usual)
        for name, usual in _PLAIN.items()
        if name not in names
    )


def plain(records: Iterable[RunRecord]) -> list[RunRecord]:
    """Return the records in which nothing but payload, QoS and rate varies."""
    return [record for record in records if not others(record)]


DROPPED_NUMBER = 0  # the sample with the cold start
_IDS = 1_000_000  # an id is six digits
# R picks the largest unit of which the difference has one at least
_R_UNITS_MS = (86_400_000, 3_600_000, 60_000)


@dataclass(frozen=True)
class Noted:
    """One line of a log: a message's number and the time in µs at which it was sent or came back."""

    number: int
    time_us: int


@dataclass(frozen=True)
class TheirMean:
    """``as_published_ms`` holds the error of units, ``true_ms`` is the mean of the same ``n`` round trips.

    Both are None without samples. ``wrong_unit_count`` of the samples were not in seconds, ``lost_count``
    messages had no echo. Round trips of 0 ms and the message 000000 are in none.
    """

    as_published_ms: float | None
    true_ms: float | None
    n: int
    wrong_unit_count: int
    lost_count: int


def difftime_number(milliseconds: int) -> float:
    """Return the number that R's difftime() holds without ``units=``: seconds, or the unit that R picks."""
    unit_ms = next((unit for unit in _R_UNITS_MS if abs(milliseconds) >= unit), 1000)
    return milliseconds / unit_ms


def whole_ms_differences(sent: Iterable[Noted], received: Iterable[Noted]) -> Mapping[int, int]:
    """Return each message's round trip in ms by its number, between times that are cut to whole ms.

    A number that was sent or came back several times counts with the first; the dropped one does not.
    """
    left, came = _first_by_number(sent), _first_by_number(received)
    return {
        number: came[number] // 1000 - at // 1000
        for number, at in left.items()
        if number in came and number != DROPPED_NUMBER
    }


def pooled(runs: Iterable[tuple[Sequence[Noted], Iterable[Noted]]]) -> TheirMean:
    """Return the study's mean over several runs, each round trip with the same weight."""
    differences: list[int] = []
    sent_count = 0
    for sent, received in runs:
        differences += whole_ms_differences(sent, received).values()
        sent_count += len({one.number % _IDS for one in sent} - {DROPPED_NUMBER})
    kept = [one for one in differences if one > 0]
    lost = sent_count - len(differences)
    if not kept:
        return TheirMean(None, None, 0, 0, lost)
    wrong = sum(one >= _R_UNITS_MS[-1] for one in kept)
    as_published_ms = 1000 * mean([difftime_number(one) for one in kept])
    return TheirMean(as_published_ms, mean(kept), len(kept), wrong, lost)


def _first_by_number(noted: Iterable[Noted]) -> dict[int, int]:
    found: dict[int, int] = {}
    for one in noted:
        found.setdefault(one.number % _IDS, one.time_us)
    return found


def published_ms(row: Row | None) -> float | None:
    """Return a published number of seconds in ms."""
    return None if row is None or row.published is None else 1000 * row.published


def echo_line(found: Echoes, missing: str = NOT_MEASURED) -> Figures:
    """Return the figures of a row, in ms; ``missing`` stands for them where there are none."""
    theirs = found.theirs
    return {
        "way": theirs.as_published_ms if found.n else missing,
        "their_way_ms": theirs.as_published_ms,
        "their_way_true_ms": theirs.true_ms,
        "wrong_unit_count": theirs.wrong_unit_count,
        "p50": found.p50(),
        "p95": found.quantile("p95"),
        "p99": found.quantile("p99"),
        "n": found.n,
        "lost": found.lost if found.n else None,
        "boots": found.boots,
    }


def rates_note(found: Iterable[Echoes]) -> list[str]:
    """Return a note of the rates at which ours were measured, none where nothing was."""
    intervals_us = sorted({whole(record, "interval_us") for own in found for record in own.records})
    if not intervals_us:
        return []
    rates = ", ".join(rate_text(interval_us) for interval_us in intervals_us)
    return [f"ours: messages planned at {rates}, on average"]


def missing_notes(missing: Sequence[tuple[str, str]]) -> list[str]:
    """Return a note for each reason, with all the rows that it is the reason of: "10 KB, QoS 0, 1, 2"."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for label, why in missing:
        head, _, level = label.partition(", QoS ")
        reasons.setdefault(why.rstrip("."), {}).setdefault(head, []).append(level)
    return [
        f"Not measured: {'; '.join(_levels(head, found) for head, found in rows.items())}: {why}."
        for why, rows in reasons.items()
    ]


def _levels(head: str, levels: Sequence[str]) -> str:
    return f"{head}, QoS {', '.join(levels)}"


def in_ms(found: Estimate) -> str:
    """Return "3.43 [2.99, 3.72] ms", or how many samples are missing."""
    return f"{found.text} ms" if found.value is not None and math.isfinite(found.value) else found.text

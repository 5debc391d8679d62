"""The mean round trip as the study mqtt-qos computed it, the same mean with its unit right, and what differs.

Their way: the message with the id 000000 is left out, a message counts with its first echo, one without an
echo does not count, both times are cut to whole ms, a difference of 0 ms does not count either, and each
difference is R's difftime() without units=: from 60 s on its number is one of minutes, from an hour on one of
hours, and all numbers are averaged as if they were seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hil.metrics.stats import mean

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

    Both are None without samples. ``wrong_unit_count`` of the samples were not in seconds, ``zero_count``
    round trips of 0 ms were left out, ``lost_count`` messages had no echo. The message 000000 is in none.
    """

    as_published_ms: float | None
    true_ms: float | None
    n: int
    wrong_unit_count: int
    zero_count: int
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


def mean_r_difftime(sent: Sequence[Noted], received: Iterable[Noted]) -> TheirMean:
    """Return the study's mean of one run, and the true one."""
    return pooled([(sent, received)])


def pooled(runs: Iterable[tuple[Sequence[Noted], Iterable[Noted]]]) -> TheirMean:
    """Return the study's mean over several runs, each round trip with the same weight."""
    differences: list[int] = []
    sent_count = 0
    for sent, received in runs:
        differences += whole_ms_differences(sent, received).values()
        sent_count += len({one.number % _IDS for one in sent} - {DROPPED_NUMBER})
    kept = [one for one in differences if one > 0]
    left_out = (len(differences) - len(kept), sent_count - len(differences))
    if not kept:
        return TheirMean(None, None, 0, 0, *left_out)
    wrong = sum(one >= _R_UNITS_MS[-1] for one in kept)
    as_published_ms = 1000 * mean([difftime_number(one) for one in kept])
    return TheirMean(as_published_ms, mean(kept), len(kept), wrong, *left_out)


def _first_by_number(noted: Iterable[Noted]) -> dict[int, int]:
    found: dict[int, int] = {}
    for one in noted:
        found.setdefault(one.number % _IDS, one.time_us)
    return found

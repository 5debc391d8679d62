# SPDX-License-Identifier: Apache-2.0
"""Which verdicts of a run this version of the gate would give otherwise than they were given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hil.model import ComparedSeries, SeriesVerdict, Verdict

NONE = "–"  # the word of what one of the two verdicts does not know


@dataclass(frozen=True)
class Otherwise:
    """One verdict: of the ``subject``, with the word of then and of now, and why it is today's."""

    subject: str
    before: str
    now: str
    reason: str


def judged_otherwise(before: Verdict, now: Verdict) -> tuple[Otherwise, ...]:
    """Return what two verdicts on one journal say differently: the run, its series, its comparisons.

    Numbers may differ without a word of it: who reads a verdict goes by its words and by whether it blocks.
    """
    return (
        *_of_run(before, now),
        *_of_items(before.series, now.series, "judged against a limit"),
        *_of_items(before.compared, now.compared, "compared"),
    )


def _of_run(before: Verdict, now: Verdict) -> Iterator[Otherwise]:
    words = [f"{verdict.outcome} (exit {verdict.exit_code})" for verdict in (before, now)]
    if words[0] != words[1]:
        yield Otherwise("the run", words[0], words[1], now.sentence)


_Item = SeriesVerdict | ComparedSeries


def _of_items(before: Iterable[_Item], now: Iterable[_Item], how: str) -> Iterator[Otherwise]:
    then, today = ({item.series_id: item for item in items} for items in (before, now))
    for series_id in sorted(then.keys() | today.keys()):
        old, new = then.get(series_id), today.get(series_id)
        words = _word(old), _word(new)
        if words[0] != words[1]:
            reason = (new.reason or new.sentence) if new else f"it is not {how} any more"
            yield Otherwise(series_id, *words, reason)


def _word(item: _Item | None) -> str:
    if item is None:
        return NONE
    return item.outcome if item.blocking else f"{item.outcome} (advice)"

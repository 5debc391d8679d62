# SPDX-License-Identifier: Apache-2.0
"""The limits of a run as a person reads them: signs, quantities, and the worst case of each limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hil.base.units import find_unit, format_value, format_values
from hil.history.from_run import outcome_of
from hil.model import SeriesVerdict
from hil.reports.names import named_metric

SIGNS = {"regressed": "✗", "improved": "↑", "pass": "✓", "undecided": "?", "no-baseline": "–"}
LEGEND = (
    "✓ kept · ✗ broken · ? beyond the limit, but its interval does not prove it, or too little to decide · "
    "↑ improved · – no limit · advice never fails a run"
)


@dataclass(frozen=True)
class LimitRow:
    """One limit of one metric: the worst of its cases, how many there are, and the share that it uses."""

    worst: SeriesVerdict
    cases: int
    share: float | None

    @property
    def blocking(self) -> bool:
        return self.worst.blocking

    @property
    def broken(self) -> bool:
        return self.worst.outcome == "regressed"

    @property
    def marginal(self) -> bool:
        return is_marginal(self.worst)


def is_blocked(item: SeriesVerdict) -> bool:
    return item.blocking and item.outcome == "regressed"


def is_bad_advice(item: SeriesVerdict) -> bool:
    return not item.blocking and item.outcome == "regressed"


def is_marginal(item: SeriesVerdict) -> bool:
    return item.note == "marginal"


def limit_share(item: SeriesVerdict) -> float | None:
    """Return which share of its limit a value uses, on whichever side the limit is; beyond 1 it is exceeded.

    None where either is missing, or a limit of 0 leaves no share.
    """
    if item.value is None or not item.limit:
        return None
    if item.direction == "lower":
        return item.value / item.limit
    return item.limit / item.value if item.value else math.inf


def sign(item: SeriesVerdict) -> str:
    """Return the sign that LEGEND explains."""
    return SIGNS[outcome_of(item)]


def limit_rows(series: Iterable[SeriesVerdict]) -> list[LimitRow]:
    """Return one row a (metric of a bench, limit): what blocks first, then what is broken or nearest."""
    groups: dict[tuple[object, ...], list[SeriesVerdict]] = {}
    for item in series:
        if item.limit is not None:
            groups.setdefault((item.blocking, named_metric(item), item.limit, item.kind), []).append(item)
    return sorted(map(_limit_row, groups.values()), key=_order)


def _limit_row(items: Sequence[SeriesVerdict]) -> LimitRow:
    worst = max(items, key=lambda item: (item.outcome == "regressed", is_marginal(item), _badness(item)))
    return LimitRow(worst, len({item.case_id for item in items}), limit_share(worst))


def _order(row: LimitRow) -> tuple[object, ...]:
    return not row.blocking, not row.broken, not row.marginal, -_share(row.worst), row.worst.series_id


def _badness(item: SeriesVerdict) -> float:
    value = -math.inf if item.value is None else item.value
    return value if item.direction == "lower" or item.value is None else -value


def _share(item: SeriesVerdict) -> float:
    return limit_share(item) or 0.0


def quantity(item: SeriesVerdict, value: float | None) -> str:
    return "–" if value is None else format_value(value, find_unit(item.unit))


def limit_words(item: SeriesVerdict) -> str:
    """Return "≤ 25 ms", "≥ 4 Mbit/s": the limit with the side on which it is kept."""
    return f"{'≤' if item.direction == 'lower' else '≥'} {quantity(item, item.limit)}"


def interval(item: SeriesVerdict) -> str:
    """Return "7.73 ms [7.42, 9.11]", "–" for a bound or a value that there is not; "640 B" without bounds."""
    if item.value is None:
        return "–"
    prefix = "≥ " if item.at_least else ""
    if item.value == item.low == item.high or item.low is item.high is None:
        return f"{prefix}{quantity(item, item.value)}"
    bounds = [bound for bound in (item.low, item.high) if bound is not None]
    value, *texts = format_values([item.value, *bounds], find_unit(item.unit))
    low = texts.pop(0) if item.low is not None else "–"
    high = texts.pop(0) if item.high is not None else "–"
    return f"{prefix}{value} [{low}, {high}]"


def samples(item: SeriesVerdict) -> str:
    """Return "988 (3 failed, 12 void)"."""
    told = ", ".join(f"{n} {word}" for n, word in ((item.failed, "failed"), (item.void, "void")) if n)
    return f"{item.samples} ({told})" if told else str(item.samples)


def undecided(series: Iterable[SeriesVerdict]) -> list[SeriesVerdict]:
    """Return the series that may fail a run and came to no decision, those beyond their limit too."""
    return [item for item in series if item.blocking and outcome_of(item) == "undecided"]


def by_severity(series: Iterable[SeriesVerdict]) -> list[SeriesVerdict]:
    """Return the broken, blocking series, the largest excess relative to its limit first."""
    return sorted((item for item in series if is_blocked(item)), key=excess, reverse=True)


def excess(item: SeriesVerdict) -> float:
    """Return the excess of a value over its limit, as a share of the limit."""
    if not item.value or not item.limit:
        return math.inf
    return abs(item.value - item.limit) / abs(item.limit)

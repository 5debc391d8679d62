# SPDX-License-Identifier: Apache-2.0
"""What both the terminal and the markdown summary show: the table's rows and the short sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hil.base.units import find_unit, format_difference, format_relative, format_value, format_values
from hil.model import Outcome, SeriesVerdict, Verdict
from hil.reports.names import human_metric, named_metric, place, short_metric

SIGNS = {"regressed": "✗", "improved": "↑", "pass": "✓", "undecided": "?", "no-baseline": "–"}
LEGEND = (
    "✓ kept · ✗ broken · ? beyond the limit, but its interval does not prove it, or too little to decide · "
    "↑ improved · – no limit · advice never fails a run"
)


@dataclass(frozen=True)
class Cell:
    """The worst case of one board against one limit; the larger ``badness``, the worse."""

    text: str
    broken: bool = False
    marginal: bool = False
    badness: float = -math.inf


@dataclass(frozen=True)
class LimitRow:
    """One limit of one metric: how many cases it covers, and the worst of them on each board.

    ``name`` is the metric with its bench, where the metric alone does not name it.
    """

    metric: str
    name: str
    limit: str
    cases: int
    cells: tuple[Cell, ...]
    blocking: bool
    words: str  # the name as words: "publish latency p95"
    share: float | None  # of the limit that the worst of all uses

    @property
    def broken(self) -> bool:
        return any(cell.broken for cell in self.cells)

    @property
    def marginal(self) -> bool:
        return any(cell.marginal for cell in self.cells)


def is_blocked(item: SeriesVerdict) -> bool:
    return item.blocking and item.outcome == "regressed"


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


def outcome(item: SeriesVerdict) -> Outcome:
    """Return what a series comes to; what is beyond its limit, though not provably, has not passed."""
    return "undecided" if is_marginal(item) else item.outcome


def sign(item: SeriesVerdict) -> str:
    """Return the sign that LEGEND explains."""
    return SIGNS[outcome(item)]


def boards(verdict: Verdict) -> list[str]:
    """Return the boards that measured, sorted."""
    return sorted({item.board for item in verdict.series})


def kinds(verdict: Verdict) -> list[str]:
    return sorted({item.kind for item in verdict.series})


def limit_rows(verdict: Verdict) -> list[LimitRow]:
    """Return one row a (metric of a bench, limit): those that block first, the broken ones on top."""
    names = list(dict.fromkeys(map(named_metric, verdict.series)))
    groups: dict[tuple[bool, int, float, str], list[SeriesVerdict]] = {}
    for item in verdict.series:
        if item.limit is not None:
            key = (not item.blocking, names.index(named_metric(item)), item.limit, item.kind)
            groups.setdefault(key, []).append(item)
    rows = [_limit_row(groups[key], boards(verdict)) for key in sorted(groups)]
    return sorted(rows, key=lambda row: (not row.blocking, not row.broken, not row.marginal))


def _limit_row(items: Sequence[SeriesVerdict], columns: Sequence[str]) -> LimitRow:
    first = items[0]
    by_board = {board: [item for item in items if item.board == board] for board in columns}
    cases = len({item.case_id for item in items})
    cells = tuple(_worst_cell(by_board[board]) for board in columns)
    shares = [share for item in items if (share := limit_share(item)) is not None]
    return LimitRow(
        short_metric(first),
        named_metric(first),
        limit_words(first),
        cases,
        cells,
        first.blocking,
        human_metric(first),
        max(shares, default=None),
    )


def _worst_cell(items: Iterable[SeriesVerdict]) -> Cell:
    measured = [item for item in items if item.value is not None]
    if not measured:
        return Cell("–")
    worst = max(measured, key=lambda item: (item.outcome == "regressed", _badness(item)))
    at_least = "≥ " if worst.at_least else ""
    return Cell(
        at_least + quantity(worst, worst.value),
        broken=worst.outcome == "regressed",
        marginal=is_marginal(worst),
        badness=_badness(worst),
    )


def _badness(item: SeriesVerdict) -> float:
    value = item.value if item.value is not None else -math.inf
    return value if item.direction == "lower" else -value


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


def breach(item: SeriesVerdict) -> str:
    """Return "publish_latency_p95 36.8 ms, limit 25 ms: 11.8 ms (47 %) too much"."""
    assert item.value is not None
    assert item.limit is not None
    unit = find_unit(item.unit)
    excess = format_difference(abs(item.value - item.limit), unit)
    at_least = "at least " if item.at_least else ""
    relative = format_relative(item.value, item.limit, unit)
    share = f" ({relative})" if relative else ""
    over = "too much" if item.direction == "lower" else "too little"
    return (
        f"{short_metric(item)} {'≥ ' if item.at_least else ''}{quantity(item, item.value)}, "
        f"limit {quantity(item, item.limit)}: {at_least}{excess}{share} {over}"
    )


def broken_cases(verdict: Verdict) -> list[tuple[SeriesVerdict, str]]:
    """Return the worst series of each board and case, with its breach and what else broke there."""
    groups = _by_place(by_severity(verdict.series))
    return [(items[0], f"{place(items[0])}: {breach(items[0])}{_also(items[1:])}") for items in groups]


def _by_place(series: Iterable[SeriesVerdict]) -> list[list[SeriesVerdict]]:
    groups: dict[str, list[SeriesVerdict]] = {}
    for item in series:
        groups.setdefault(place(item), []).append(item)
    return list(groups.values())


def _also(items: Sequence[SeriesVerdict]) -> str:
    return f"; also {', '.join(short_metric(item) for item in items)}" if items else ""


def notable_metrics(verdict: Verdict) -> list[tuple[str, list[SeriesVerdict]]]:
    """Return for each metric that the verdict warns of a short line, and its series, the worst first."""
    warned = set(verdict.warnings)
    groups: dict[tuple[str, str], list[SeriesVerdict]] = {}
    for item in verdict.series:
        if item.sentence in warned:
            mark = f"{sign(item)}{'' if item.blocking else ' advice'}"
            groups.setdefault((human_metric(item), mark), []).append(item)
    return [(_notable(name, mark, items), items) for (name, mark), items in groups.items()]


def _notable(name: str, mark: str, items: list[SeriesVerdict]) -> str:
    """Return "? publish latency p95: 3 cases on 2 boards, at worst 143 ms, limit 25 ms"; sort ``items``."""
    items.sort(key=lambda item: (-(limit_share(item) or 0.0), item.series_id))
    worst = items[0]
    cases, boards = len({item.case_id for item in items}), len({item.board for item in items})
    counts = f"{cases} case{'' if cases == 1 else 's'} on {boards} board{'' if boards == 1 else 's'}"
    at_least = "≥ " if worst.at_least else ""
    limit = "" if worst.limit is None else f", limit {quantity(worst, worst.limit)}"
    return f"{mark} {name}: {counts}, at worst {at_least}{quantity(worst, worst.value)}{limit}"


def general_warnings(verdict: Verdict) -> list[str]:
    """Return the verdict's warnings that are of no single figure."""
    told = {item.sentence for item in verdict.series} | {item.sentence for item in verdict.compared}
    return [sentence for sentence in verdict.warnings if sentence not in told]


def by_severity(series: Iterable[SeriesVerdict]) -> list[SeriesVerdict]:
    """Return the broken, blocking series, the largest excess relative to its limit first."""
    return sorted((item for item in series if is_blocked(item)), key=_relative_excess, reverse=True)


def _relative_excess(item: SeriesVerdict) -> float:
    if not item.value or not item.limit:
        return math.inf
    return abs(item.value - item.limit) / abs(item.limit)

# SPDX-License-Identifier: Apache-2.0
"""The few figures that matter of a run: what decides it, or else what is nearest to its limit."""

from __future__ import annotations

from collections.abc import Iterable

from hil.model import ComparedSeries, SeriesVerdict, Verdict, bench_of
from hil.reports import compared, rows
from hil.reports.names import case_name, human_metric
from hil.reports.view.marks import Code, Fixed, Tone, Words

_MOST_FIGURES = 5
_MOST_CHANGES = 2  # of comparisons that passed, beside limits
_TENFOLD = 10.0  # from here on times are read, not per cent


def figures_of(verdict: Verdict) -> tuple[tuple[Words, ...], ...]:
    """Return at most five rows of sign, metric, case, board, value, and what it is held against.

    What regressed or broke its limit stands first, then what is open; where nothing is, what is nearest to
    its limit, a metric once.
    """
    ranked = [item for item in compared.ranked(verdict) if item.blocking]
    found: list[SeriesVerdict | ComparedSeries] = [*filter(compared.is_blocked, ranked)]
    found += rows.by_severity(verdict.series)
    found += [item for item in verdict.series if item.blocking and rows.is_marginal(item)]
    found += [item for item in ranked if item.outcome in ("undecided", "improved")]
    calm = not found
    if calm:
        changed = [item for item in ranked if item.change is not None]
        changed.sort(key=lambda item: (-abs(item.change or 0.0), item.series_id))
        room = _MOST_FIGURES - min(len(changed), _MOST_CHANGES)
        found = [*_nearest(verdict.series)[:room], *changed]
    short = _short_cases(verdict)
    return tuple(
        _limit_figure(item, short, calm=calm)
        if isinstance(item, SeriesVerdict)
        else _compared_figure(item, short, calm=calm)
        for item in found[:_MOST_FIGURES]
    )


def _nearest(series: Iterable[SeriesVerdict]) -> list[SeriesVerdict]:
    """Return the kept figure of each metric that uses most of its limit, the nearest first."""
    nearest: dict[str, SeriesVerdict] = {}
    for row in rows.limit_rows(series):
        if row.blocking and row.share is not None:
            nearest.setdefault(human_metric(row.worst), row.worst)
    return list(nearest.values())


def _limit_figure(item: SeriesVerdict, short: dict[str, str], *, calm: bool) -> tuple[Words, ...]:
    value = f"{'≥ ' if item.at_least else ''}{rows.quantity(item, item.value)}"
    share = rows.limit_share(item)
    limit = f"limit {rows.limit_words(item)}"
    if share is not None:
        limit += f", {share * 100:.0f} % used" if share < _TENFOLD else f", {share:,.0f} times"
    tone: Tone = "" if calm else "open" if rows.is_marginal(item) else "bad"
    sign = Fixed(rows.sign(item), tone)
    return sign, human_metric(item), short[item.case_id], Code(item.board), Fixed(value), limit


def _compared_figure(item: ComparedSeries, short: dict[str, str], *, calm: bool) -> tuple[Words, ...]:
    tones: dict[str, Tone] = {"regressed": "bad", "improved": "good"}
    change = compared.change(item)
    against = f"{compared.interval(item)} vs {item.role}"
    sign = Fixed(rows.SIGNS[item.outcome], "" if calm else tones.get(item.outcome, "open"))
    return sign, human_metric(item), short[item.case_id], Code(item.target), Fixed(change), against


def _short_cases(verdict: Verdict) -> dict[str, str]:
    """Return for each case, by its id, the parameters that distinguish it from others of its bench."""
    benches: dict[str, dict[str, list[str]]] = {}
    judged: list[SeriesVerdict | ComparedSeries] = [*verdict.series, *verdict.compared]
    for item in judged:
        label = case_name(item).partition("/")[2]
        benches.setdefault(bench_of(item.case_id), {})[item.case_id] = label.split(",")
    short: dict[str, str] = {}
    for cases in benches.values():
        shared = set.intersection(*map(set, cases.values()))
        for case_id, parameters in cases.items():
            short[case_id] = ",".join(one for one in parameters if one not in shared)
    return short

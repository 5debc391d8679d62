# SPDX-License-Identifier: Apache-2.0
"""trend.json: from runs, the figures and boot values of the history to one object.

A series in it is columns over its points, and limits as steps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError
from hil.history.nightly.events import events_of
from hil.history.nightly.survey import Survey, survey
from hil.metrics.words import metric_words
from hil.reports.boards import noise_remark
from hil.reports.history import comparable, with_runs
from hil.reports.kinds import unreal
from hil.reports.trend.choosing import Choice, choose, choose_series
from hil.reports.trend.details import CaseKey, Detail, Wanted, details_of
from hil.reports.trend.happenings import LAST_NIGHTS, add_levels_and_changes, events_json
from hil.reports.trend.naming import Number, label_of, metric_of, tidy, tidy_all
from hil.reports.trend.points import Point, TrendSeries, series_of
from hil.reports.trend.runs import ReportedRun, TrendRun, TrendSources, comparable_history, runs_of
from hil.store.files import replace_file
from hil.thresholds import Thresholds

_OPTIONAL = ("low", "high", "reference")


def series_json(
    series: TrendSeries, runs: Sequence[TrendRun], thresholds: Mapping[str, Thresholds]
) -> dict[str, Any]:
    """Return a series without levels, changes and the id of its Allure result."""
    key, words = series.key, metric_words(series.key.metric)
    return {
        "id": key.series_id,
        **({"product": key.product} if key.product else {}),
        "rack": key.rack,
        "board": key.board,
        "kind": key.kind,
        "simulated": "noise" if series.noise else "",
        "target": series.target,
        "bench": key.bench,
        "case_id": key.case_id,
        "label": str((series.case or {}).get("label") or label_of(key.case_id, thresholds)),
        "metric": key.metric,
        "quantity": words.quantity,
        "stat": words.stat,
        "unit": words.unit,
        "direction": direction_of(series, thresholds),
        "blocking": _blocking(series, thresholds),
        "profile": key.profile,
        "points": points_json(series.points),
        "now": now_of(series, runs),
        "levels": [],
        "changes": [],
        "test": "",
    }


def now_of(series: TrendSeries, runs: Sequence[TrendRun]) -> int | None:
    """Return the position of the newest reported run among the points; None where none measured it."""
    positions = [n for n, point in enumerate(series.points) if runs[point.run].reported]
    return positions[-1] if positions else None


def direction_of(series: TrendSeries, thresholds: Mapping[str, Thresholds]) -> str:
    """Return which way is better: as the newest line says, else as the thresholds do."""
    if series.metric is not None:
        return str(series.metric.get("direction", "lower"))
    metric = metric_of(series.key, thresholds)
    return metric.direction if metric else "lower"


def _blocking(series: TrendSeries, thresholds: Mapping[str, Thresholds]) -> bool:
    if series.limited is not None:
        return bool(series.limited["blocking"])
    metric = metric_of(series.key, thresholds)
    return bool(metric and metric.blocking)


def points_json(points: Sequence[Point]) -> dict[str, Any]:
    """Return the columns; those that no point has anything for are left out."""
    found: dict[str, Any] = {
        "run": [point.run for point in points],
        "value": tidy_all(point.value for point in points),
        "outcome": "".join(point.outcome for point in points),
    }
    for name in _OPTIONAL:
        column = tidy_all(getattr(point, name) for point in points)
        if any(value is not None for value in column):
            found[name] = column
    if any(point.boots is not None for point in points):
        found["boots"] = [point.boots for point in points]
    if steps := limit_steps(points):
        found["limit"] = steps
    if at_least := [position for position, point in enumerate(points) if point.at_least]:
        found["at_least"] = at_least
    return found


def limit_steps(points: Sequence[Point]) -> list[list[Number]]:
    """Return [position, limit] wherever the limit changed; null from where there is none any more.

    A run that only the history knows says nothing of limits: the one before it goes on.
    """
    steps: list[list[Number]] = []
    last: Number = None
    for position, point in enumerate(points):
        limit = tidy(point.limit)
        if point.judged and limit != last:
            steps.append([position, limit])
            last = limit
    return steps


SCHEMA = 1
LINKS = {"home": "../index.html", "tests": "../tests/index.html"}

Tests = Mapping[str, Mapping[CaseKey, str]]  # by run id: Allure's id of each case's result


@dataclass(frozen=True)
class Trend:
    """``data`` is what trend.json holds, ``nights`` how many nights were judged at most."""

    data: Mapping[str, Any]
    nights: int

    @property
    def measured_runs(self) -> int:
        """How many of the runs have a point."""
        return len({run for series in self.data["series"] for run in series["points"]["run"]})


def trend_of(
    runs: Sequence[ReportedRun],
    lines: Sequence[Mapping[str, Any]],
    sources: TrendSources,
    *,
    title: str,
    remark: str,
    most: int,
) -> Trend:
    """Compute the trend of the reported ``runs``; the same input gives the same bytes.

    ``lines`` are figures of earlier runs; of them and of the history count the runs that the reported ones
    are compared with. At most ``most`` runs of a rack are drawn, and all are judged. ``remark`` is said where
    a figure is virtual, and none emulated.
    """
    own = [run.line for run in runs]
    history = comparable_history(sources.history, own)
    shown, dropped = runs_of(
        with_runs(comparable(lines, own), own), history, [run.run_id for run in runs], most=most
    )
    noisy = frozenset(run.run_id for run in runs if noise_remark(run.info))
    found = survey(history, sources.thresholds, last=LAST_NIGHTS)
    events = events_of(found, thresholds=sources.thresholds)
    changed = {finding.point.series_id for event in events for finding in event.findings}
    series, left_out = choose_series(series_of(shown, history, noisy), changed)
    tests: Tests = {run.run_id: run.test_ids for run in runs}
    columns = [_column(one, shown, sources.thresholds, tests) for one in series]
    add_levels_and_changes(series, columns, shown, events)
    details, notes = _details(runs, shown, choose(series, columns, shown), tests)
    data = {
        "schema": SCHEMA,
        "title": title,
        "remark": remark if unreal(one.key.kind for one in series) == ("virtual",) else "",
        "links": LINKS,
        "runs": _runs_json(shown),
        "series": columns,
        "events": events_json(events, columns, shown),
        "notes": [*sources.notes, *_notes_of(found), *filter(None, [left_out]), *notes],
        "dropped_runs": dropped,
        "details": details,
    }
    return Trend(data, found.nights)


def write_trend(path: Path, data: Mapping[str, Any]) -> None:
    """Write trend.json at once and whole, for the trend page waits for it.

    Raises OSError, and ValueError where a number is none.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, f"{text}\n".encode())


def _runs_json(runs: Sequence[TrendRun]) -> dict[str, list[Any]]:
    products = [run.product for run in runs]
    return {
        **({"product": products} if any(products) else {}),
        "id": [run.run_id for run in runs],
        "started_utc": [run.started_utc for run in runs],
        "commit": [run.commit for run in runs],
        "title": [run.title for run in runs],
        "author": [run.author for run in runs],
        "dirty": [int(run.dirty) for run in runs],
        "rack": [run.rack for run in runs],
        "trigger": [run.trigger for run in runs],
        "suite": [run.suite for run in runs],
        "profile": [run.profile for run in runs],
        "url": [run.url for run in runs],
        "reported": [int(run.reported) for run in runs],
    }


def _column(
    series: TrendSeries, runs: Sequence[TrendRun], thresholds: Mapping[str, Thresholds], tests: Tests
) -> dict[str, Any]:
    column = series_json(series, runs, thresholds)
    if column["now"] is not None:
        run = runs[series.points[column["now"]].run]
        column["test"] = tests[run.run_id].get((series.key.board, series.key.case_id), "")
    return column


def _notes_of(found: Survey) -> list[str]:
    return [f"{len(series)} of {found.series} series: {note}." for note, series in found.notes.items()]


def _details(
    runs: Sequence[ReportedRun], shown: Sequence[TrendRun], choice: Choice, tests: Tests
) -> tuple[dict[str, Detail], list[str]]:
    """Return the details by chart, and what stood in the way of them."""
    by_id = {run.run_id: run for run in runs}
    found: dict[str, Detail] = {}
    notes = [_left_out(choice)] if choice.left_out else []
    for number, charts in sorted(choice.charts.items()):
        run = by_id[shown[number].run_id]
        quantities: dict[CaseKey, set[str]] = {}
        for board, case_id, quantity in charts:
            quantities.setdefault((board, case_id), set()).add(quantity)
        wanted = Wanted(run, number, quantities, tests[run.run_id])
        try:
            own = details_of(wanted)
        except ConfigError as error:
            notes.append(f"What is behind the figures of {run.run_id} is left out: {_sentence(error, run)}")
            continue
        place = shown[number].place
        found |= {f"{place}/{board}/{case}/{name}": value for ((board, case), name), value in own.items()}
    return dict(sorted(found.items())), notes


def _left_out(choice: Choice) -> str:
    kept = sum(map(len, choice.charts.values()))
    return (
        f"Distribution and boots of {kept} of {kept + choice.left_out} charts are here, what broke "
        "or changed first; those of the others are in the test report."
    )


def _sentence(error: ConfigError, run: ReportedRun) -> str:
    """Write a run's folder by its name alone."""
    return str(error).replace(str(run.path), run.run_id)

# SPDX-License-Identifier: Apache-2.0
"""Writes the plain files into the folder of a judged run; done twice, they are the same bytes.

``openmetrics.txt``: the families that the Pushgateway gets, as OpenMetrics text at the time of the run.

``comparisons.csv``: a line a comparison with base or reference; a heading alone where there is none.

``series.csv``: a line a series of the verdict.

CSV that a spreadsheet takes as it is: numbers as numbers, and no text that it would run as a formula.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest

from hil.model import ComparedSeries, SeriesVerdict, bench_of
from hil.reports.allure.story import RunStory, story_of
from hil.reports.allure.times import unix_ms
from hil.reports.boards import noted_kind
from hil.reports.metrics import Group, board_groups
from hil.reports.plain import junit
from hil.store import JudgedRun
from hil.store.files import disk_error, replace_file
from hil.store.run_info import measured_commit

Value = str | int | float | bool | None
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")  # how a cell begins that a spreadsheet computes
_DIGITS = 10


def to_csv(columns: Sequence[str], lines: Iterable[Sequence[Value]]) -> bytes:
    """Return a heading and the lines: UTF-8, commas, LF. Text that begins like a formula gets a ' first."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([[cell(value) for value in line] for line in lines])
    return stream.getvalue().encode("utf-8", "backslashreplace")


def cell(value: Value) -> str:
    """Return a value as a cell: nothing for None, 1 or 0 for a bool, ten digits for a float."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    if isinstance(value, int):
        return str(value)
    return f"'{value}" if value.startswith(_FORMULA) else value


SERIES = "series.csv"
SERIES_COLUMNS = (
    *("run_id", "started_utc", "commit", "dirty", "rack", "board", "target", "kind"),
    *("bench", "case_id", "case", "metric", "unit", "value", "at_least", "low", "high", "limit"),
    *("direction", "outcome", "blocking", "samples", "boots", "failed", "void", "clock"),
)


def series_csv(run: RunStory) -> bytes:
    """Return the file. Values, interval and limit are in ``unit``; what there is none of is empty."""
    return to_csv(SERIES_COLUMNS, (_series_line(run, item) for item in run.verdict.series))


def _of_run(run: RunStory) -> tuple[Value, ...]:
    return run.run_id, run.info.started_utc, measured_commit(run.info), run.info.git.dirty


def _series_line(run: RunStory, item: SeriesVerdict) -> list[Value]:
    return [
        *(*_of_run(run), run.info.rack),
        *(item.board, item.target, noted_kind(run.info, item.kind)),
        *(bench_of(item.case_id), item.case_id, item.case_label, item.metric, item.unit),
        *(item.value, item.at_least, item.low, item.high, item.limit),
        *(item.direction, item.outcome, item.blocking),
        *(item.samples, item.boots, item.failed, item.void, item.clock),
    ]


OPENMETRICS = "openmetrics.txt"
# endings of names that are units; the rest are plain numbers
_UNITS = re.compile(r"_(seconds|bytes_per_second|bytes|ratio|cycles|dbm)$")


def openmetrics_text(run: RunStory) -> bytes:
    """Return the text: ``# HELP``, ``# TYPE``, ``# UNIT`` and samples a family, ``# EOF`` at the end.

    Each sample has the labels of its Pushgateway group (job, rack, board, product), and the start of the run
    in whole Unix seconds where it is known.
    """
    started_ms = unix_ms(run.info.started_utc)
    started_s = None if started_ms is None else started_ms // 1000
    families = _merged(board_groups(run.info, run.verdict), started_s)
    text: bytes = generate_latest(SimpleNamespace(collect=lambda: families))  # type: ignore[no-untyped-call]
    return text


def _merged(groups: Iterable[Group], started_s: int | None) -> list[Metric]:
    """Return one family a name, by name: the format forbids the same family twice."""
    merged: dict[str, Metric] = {}
    for group in groups:
        own = {"job": group.job, **group.key}
        for family in group.families.collect():
            found = merged.setdefault(family.name, _empty(family.name, family.documentation))
            for sample in family.samples:
                found.add_sample(sample.name, {**own, **sample.labels}, sample.value, started_s)
    return [merged[name] for name in sorted(merged)]


def _empty(name: str, text: str) -> Metric:
    unit = _UNITS.search(name)
    return GaugeMetricFamily(name, text, unit=unit.group(1) if unit else "")


COMPARISONS = "comparisons.csv"
_BETWEEN = " "  # of boards
COMPARISON_COLUMNS = (
    *("run_id", "started_utc", "commit", "dirty", "rack", "boards", "target", "kind"),
    *("bench", "case_id", "case", "metric", "unit", "role", "candidate_value", "other_value"),
    *("relative", "change", "low", "high", "tolerance", "min_effect", "smallest_effect", "pass_bound"),
    *("direction", "outcome", "blocking", "early", "z", "boundary", "look", "looks"),
    *("candidate_boots", "other_boots", "boot_deviation", "clock", "reason"),
)


def comparisons_csv(run: RunStory) -> bytes:
    """Return the file; changes are relative (0.1: ten per cent) where ``relative`` is 1, else in ``unit``."""
    return to_csv(COMPARISON_COLUMNS, (_comparison_line(run, item) for item in run.verdict.compared))


def _comparison_line(run: RunStory, item: ComparedSeries) -> list[Value]:
    return [
        *(*_of_run(run), item.rack),
        *(_BETWEEN.join(item.boards), item.target, noted_kind(run.info, item.kind)),
        *(bench_of(item.case_id), item.case_id, item.case_label, item.metric, item.unit, item.role),
        *(item.candidate_value, item.other_value, item.relative, item.change, item.low, item.high),
        *(item.tolerance, item.min_effect, item.smallest_effect, item.pass_bound),
        *(item.direction, item.outcome, item.blocking, item.early),
        *(item.z, item.boundary, item.look, item.looks, item.candidate_boots, item.other_boots),
        *(item.boot_deviation, item.clock, item.reason),
    ]


FILES = (SERIES, COMPARISONS, junit.JUNIT, OPENMETRICS)


def write_plain(judged: JudgedRun) -> tuple[Path, ...]:
    """Write series.csv, comparisons.csv, junit.xml and openmetrics.txt into the run's folder.

    Raises:
        ConfigError: the run's thresholds cannot be read.
        RigError: the disk does not take them.
    """
    run = story_of(judged)
    contents = {
        SERIES: series_csv(run),
        COMPARISONS: comparisons_csv(run),
        junit.JUNIT: junit.junit_xml(run),
        OPENMETRICS: openmetrics_text(run),
    }
    paths = tuple(run.path / name for name in FILES)
    try:
        for path in paths:
            if not path.is_file() or path.read_bytes() != contents[path.name]:
                replace_file(path, contents[path.name])
    except OSError as error:
        raise disk_error(
            f"could not write {paths[0].parent}", error, "records and verdict of the run"
        ) from error
    return paths

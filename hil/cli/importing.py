# SPDX-License-Identifier: Apache-2.0
"""``hil import``: values of others: those of a pytest suite are judged, earlier ones enter the history."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from hil.base.errors import ExitCode, combine_exit_codes
from hil.base.paths import PROJECT_THRESHOLDS
from hil.base.project import product_here
from hil.base.units import find_unit, format_value
from hil.base.untrusted import terminal
from hil.cli.options import count, history_option, run_options
from hil.gate.stored import judge_stored
from hil.history.importing import Imported, enter, import_csv
from hil.model import IMPORTED, SeriesVerdict
from hil.store import JudgedRun, read_measured
from hil.store.files import short_path
from hil.store.run_info import Trigger
from hil.store.verdicts import status_of
from hil.suite.earlier import read_openmetrics
from hil.suite.facts import SuiteSession, is_of_session, read_sessions
from hil.suite.taking import take

_MOST_NAMED = 3
_MARKS = {"regressed": "✗", "pass": "✓", "undecided": "?"}
_URGENT = ("regressed", "undecided")


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--as",
    "series",
    default="",
    metavar="SERIES",
    help="FILE is CSV (time, commit, value) of board/bench/key=value,…/metric; the unit ends the name.",
)
@history_option
@run_options("import")
def command(
    files: Sequence[Path],
    *,
    series: str,
    history_folder: Path,
    trigger: Trigger,
    out: Path,
) -> int:
    """Judge what `pytest --hil` wrote to FILE, one for each of xdist's workers: each session becomes a run.

    The status is that of `hil run`: 1 where a limit is broken.

    A FILE of pytest-embedded's --metric-path, and with --as a CSV file, enters the history as separate series
    of kind "imported", with change points but without verdicts. Stored values are not changed.
    """
    sessions = [] if series else [path for path in files if is_of_session(path)]
    earlier = [path for path in files if path not in sessions]
    if earlier:
        _enter(earlier, series, history_folder)
    codes = [_take(one, out, trigger) for one in read_sessions(sessions)]
    return int(combine_exit_codes(codes))


def _enter(files: Sequence[Path], series: str, folder: Path) -> None:
    now = datetime.datetime.now(datetime.UTC)
    for path in files:
        for found in _entered(path, series, folder, now):
            click.echo(found.series_id)
            click.echo(f"{count(found.new, 'new figure')}, {found.known} were there already")
            if found.repeated:
                lines = count(found.repeated, "line")
                click.echo(f"{lines} of {path} repeated others; each counts as a boot of its own.")
    click.echo(f"Next: hil changes --rack {IMPORTED}, and the trend: hil report build")


def _entered(path: Path, series: str, folder: Path, now: datetime.datetime) -> Iterable[Imported]:
    if series:
        return [import_csv(path, series, folder, now=now, product=product_here())]
    found = read_openmetrics(path, now).items()
    return [enter(name._replace(product=product_here()), lines, folder, path) for name, lines in found]


def _take(session: SuiteSession, out: Path, trigger: Trigger) -> ExitCode:
    taken = take(session, out, PROJECT_THRESHOLDS, trigger)
    if taken is None:
        click.echo(f"hil: no value of {count(len(session.tests), 'test')}: none called metric or log_metric")
        return ExitCode.PASS
    judged = judge_stored(read_measured(taken.directory.path))
    index, warnings = _report(judged, out)
    _say(_line(session, judged, index))
    for sentence in [*_sentences(judged), *taken.notes, *warnings]:
        _say(sentence)
    return ExitCode(status_of(judged.info, judged.verdict))


def _report(run: JudgedRun, out: Path) -> tuple[str, Sequence[str]]:
    from hil.reports.finish import ReportOptions, finish

    done = finish(run, ReportOptions(out), say=lambda _: None)
    return done.report or short_path(run.path), done.warnings


def _line(session: SuiteSession, run: JudgedRun, where: str) -> str:
    """Return "3 figures of 2 tests; connect_ms 412 ms, limit 800 ms ✓ · out/report/index.html"."""
    series = run.verdict.series
    tests = {(item.board, item.case_id) for item in series}
    limited = sorted((item for item in series if item.limit is not None), key=_urgency)
    named = [_figure(item) for item in limited[:_MOST_NAMED]]
    more = [f"{len(limited) - _MOST_NAMED} more limits"] if len(limited) > _MOST_NAMED else []
    counted = f"{count(len(series), 'figure')} of {count(len(tests), 'test')}"
    failed = sum(test.outcome == "failed" for test in session.tests)
    lost = [f"{count(failed, 'test')} failed, whose values do not count"] if failed else []
    parts = [counted, *(named or ["no limit"]), *more, *lost]
    return f"hil: {'; '.join(parts)} · {where}"


def _urgency(item: SeriesVerdict) -> int:
    return _URGENT.index(item.outcome) if item.outcome in _URGENT else len(_URGENT)


def _figure(item: SeriesVerdict) -> str:
    unit = find_unit(item.unit)
    value = "?" if item.value is None else format_value(item.value, unit)
    limit = format_value(item.limit or 0.0, unit)
    return f"{item.metric} {value}, limit {limit} {_MARKS.get(item.outcome, '–')}"


def _sentences(run: JudgedRun) -> list[str]:
    """Return the sentence of each limit that is broken or undecided, and of each fault."""
    worth = [item for item in run.verdict.series if item.limit is not None and item.outcome in _URGENT]
    return [
        *(f"{_MARKS[item.outcome]} {item.sentence}" for item in worth),
        *(fault.sentence for fault in run.verdict.faults),
    ]


def _say(line: str) -> None:
    """Print a line that may quote a suite's names: no terminal obeys them."""
    click.echo(terminal(line, 4000))

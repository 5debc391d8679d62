# SPDX-License-Identifier: Apache-2.0
"""``hil gate``: the verdict again, from disk; the same records give the same bytes.

``--would-change``: which stored verdicts this version would give otherwise; nothing is written.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import hil
from hil.base.errors import ConfigError, ExitCode, HilError, RigError
from hil.base.paths import PROJECT_THRESHOLDS
from hil.base.untrusted import terminal
from hil.cli.options import DEFAULT_OUT, verbose_option
from hil.gate import judge
from hil.gate.otherwise import Otherwise, judged_otherwise
from hil.model import Verdict
from hil.store import RunDirectory
from hil.store.directory import RUN_INFO
from hil.store.files import short_path, typed_path
from hil.store.journal import Journal
from hil.store.run_info import planned_boots
from hil.store.verdicts import read_verdict, status_of
from hil.thresholds import Thresholds, among_legs, load_all, load_project
from hil.thresholds.loader import FOLDER

_MOST_CHARACTERS = 4000  # of a sentence: what a person reads is not cut


@click.command("gate")
@click.argument("runs", metavar="[RUN]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--thresholds",
    type=click.Path(path_type=Path),
    help="Folder of limits and suites. [default: the run's own copy]",
)
@verbose_option
@click.option(
    "--would-change",
    is_flag=True,
    help="Write nothing: list the verdicts of RUNs that would be otherwise. Exit 4 where there are any.",
)
def command(runs: tuple[Path, ...], thresholds: Path | None, *, verbose: bool, would_change: bool) -> int:
    """Judge RUN (a folder below out, by default the latest) again. Its exit code is the run's.

    Limits are the run's own, from its folder: what was learnt since changes nothing, and a limit that has
    expired since does not refuse it. --thresholds thresholds asks what the limits of this checkout would say
    instead.

    --would-change asks before an update of hil is relied on: each stored verdict that this version would give
    otherwise, with the word of then, that of now, and why. Exit 0 where there is none, 4 where there are any,
    2 where a RUN cannot be read.
    """
    if would_change:
        return int(_say_otherwise(runs or (DEFAULT_OUT / "latest",), thresholds))
    if len(runs) > 1:
        raise ConfigError(
            f"{len(runs)} runs to judge again; the exit code is one run's.",
            next_step="name one; --would-change takes several.",
        )
    return _judge_again(runs[0] if runs else DEFAULT_OUT / "latest", thresholds, verbose=verbose)


def _judge_again(run: Path, thresholds: Path | None, *, verbose: bool) -> int:
    directory = RunDirectory.open(run)
    journal, info = directory.read(), directory.read_info()
    verdict = _judged(directory, journal, info, thresholds)
    stored = directory.verdicts_path
    before = stored.read_bytes() if stored.exists() else None
    directory.write_verdict(verdict)
    _write_summary(directory)
    click.echo(f"{stored}: {_compare(before, stored.read_bytes())}")
    if journal.torn:
        _say(journal.torn)
    if verbose:
        _show(verdict)
    _show_screen(directory, journal, verdict, verbose=verbose)
    return int(status_of(info, verdict))


def _judged(
    directory: RunDirectory, journal: Journal, info: Mapping[str, Any], thresholds: Path | None
) -> Verdict:
    if journal.entries and not info:
        raise ConfigError(
            f"{directory.path / RUN_INFO} is missing, so what the run had planned is not known, nor whether "
            "all of it was measured.",
            next_step="bring it back from where the run was kept.",
        )
    limits = among_legs(_limits(directory, thresholds), int(info.get("legs", 1)))
    return judge(journal.entries, limits, planned_boots(info))


def _say_otherwise(runs: Sequence[Path], thresholds: Path | None) -> ExitCode:
    """List what would be judged otherwise, run by run; one that cannot be read costs the others nothing."""
    found, unread = 0, 0
    for run in runs:
        try:
            changes = _otherwise(run, thresholds)
        except HilError as error:
            unread += 1
            _say(f"{run}: not judged: {error}")
            continue
        found += bool(changes)
        _say(
            f"{run}: {_count(len(changes), 'verdict')} would be otherwise" if changes else f"{run}: the same"
        )
        for one in changes:
            _say(f"{one.before} → {one.now}, {one.subject}: {one.reason}", indent="  ")
    words = f"{_count(len(runs), 'run')}: {found} would be judged otherwise by hil {hil.__version__}"
    _say(f"{words}, {unread} could not be judged." if unread else f"{words}.")
    return ExitCode.CONFIG if unread else ExitCode.UNDECIDED if found else ExitCode.PASS


def _otherwise(run: Path, thresholds: Path | None) -> tuple[Otherwise, ...]:
    directory = RunDirectory.open(run)
    before = read_verdict(directory.verdicts_path)
    now = _judged(directory, directory.read(), directory.read_info(), thresholds)
    return judged_otherwise(before, now)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _limits(directory: RunDirectory, asked: Path | None) -> dict[str, Thresholds]:
    """Return the limits asked for, else the run's copy; those of the checkout for a run that has none."""
    own = directory.path / FOLDER
    if asked is None and own.is_dir():
        return load_all(own, today=_day_of(directory))
    return load_project(asked or PROJECT_THRESHOLDS, today=_day_of(directory))


def _day_of(directory: RunDirectory) -> datetime.date | None:
    """Return the day on which a run started (UTC), None where its run.json is lost."""
    started = directory.read_info().get("started_utc")
    if started is None:
        return None
    try:
        return datetime.date.fromisoformat(str(started)[:10])
    except ValueError as error:
        raise ConfigError(f"{directory.path}/run.json: started_utc {started!r} is no date.") from error


def _write_summary(directory: RunDirectory) -> None:
    """Write summary.md and what else is made of a verdict, so that it says what verdicts.json says."""
    from hil.reports.rebuild import write_run

    try:
        write_run(directory)
    except HilError as error:
        raise RigError(
            f"{directory.summary_path} was not written, so it does not go with verdicts.json: {error}",
            next_step=f"judge it again: hil gate {typed_path(directory.path)}",
        ) from error


def _compare(before: bytes | None, now: bytes) -> str:
    if before is None:
        return "written; the run had no verdict yet"
    return "the same verdict, byte for byte" if before == now else "CHANGED: other limits or another version"


def _show(verdict: Verdict) -> None:
    for series in verdict.series:
        if series.blocking or series.outcome in ("regressed", "improved"):
            _say(f"{series.outcome:13} {series.board}: {series.sentence}")
    for compared in verdict.compared:
        if compared.blocking or compared.outcome in ("regressed", "improved"):
            _say(f"{compared.outcome:13} {compared.target}: {compared.sentence}")
    for fault in verdict.faults:
        _say(f"fault         {fault.board or 'rack'}: {fault.sentence}")


def _show_screen(directory: RunDirectory, journal: Journal, verdict: Verdict, *, verbose: bool) -> None:
    """Print the screen that the run ended with, of the verdict as it is now."""
    from rich.console import Console

    from hil.reports.terminal import render_screen

    info = directory.read_info()
    reporting = info.get("reporting", {})
    render_screen(
        info,
        verdict,
        journal.records,
        run_path=short_path(directory.path),
        console=Console(highlight=False),
        report=reporting.get("report"),
        warnings=reporting.get("warnings", []),
        verbose=verbose,
    )


def _say(line: str, *, indent: str = "") -> None:
    """Print a line of a stored run, which may be a fork's: no terminal obeys it."""
    click.echo(f"{indent}{terminal(line, _MOST_CHARACTERS)}")

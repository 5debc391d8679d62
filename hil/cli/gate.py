# SPDX-License-Identifier: Apache-2.0
"""``hil gate``: the verdict again, from disk; the same records give the same bytes."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.paths import PROJECT_ROOT
from hil.cli.options import DEFAULT_OUT
from hil.gate import judge
from hil.model import Verdict
from hil.store import RunDirectory
from hil.store.run_info import planned_boots
from hil.thresholds import among_legs, load_all
from hil.thresholds.loader import FOLDER


@click.command("gate")
@click.argument("run", type=click.Path(path_type=Path), default=DEFAULT_OUT / "latest")
@click.option(
    "--thresholds",
    type=click.Path(path_type=Path),
    help="Folder of limits and suites. [default: the run's own copy]",
)
def command(run: Path, thresholds: Path | None) -> int:
    """Judge RUN (a folder below out, by default the latest) again. Its exit code is the verdict's.

    Limits are the run's own, from its folder: what was learnt since changes nothing, and a limit that has
    expired since does not refuse it. --thresholds thresholds asks what the limits of this checkout would say
    instead.
    """
    directory = RunDirectory.open(run)
    journal = directory.read()
    info = directory.read_info()
    limits = load_all(thresholds or _own_thresholds(directory), today=_day_of(directory))
    limits, planned = among_legs(limits, int(info.get("legs", 1))), planned_boots(info)
    verdict = judge(journal.entries, limits, planned)
    stored = directory.verdicts_path
    before = stored.read_bytes() if stored.exists() else None
    directory.write_verdict(verdict)
    _write_summary(directory)
    click.echo(f"{stored}: {_compare(before, stored.read_bytes())}")
    if journal.torn:
        click.echo(journal.torn)
    _show(verdict)
    return verdict.exit_code


def _own_thresholds(directory: RunDirectory) -> Path:
    """Return the run's copy of the limits; those of the checkout for a run that has none."""
    own = directory.path / FOLDER
    return own if own.is_dir() else PROJECT_ROOT / FOLDER


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
            next_step=f"judge it again: hil gate {directory.path}",
        ) from error


def _compare(before: bytes | None, now: bytes) -> str:
    if before is None:
        return "written; the run had no verdict yet"
    return "the same verdict, byte for byte" if before == now else "CHANGED: other limits or another version"


def _show(verdict: Verdict) -> None:
    for series in verdict.series:
        if series.blocking or series.outcome in ("regressed", "improved"):
            click.echo(f"{series.outcome:13} {series.board}: {series.sentence}")
    for compared in verdict.compared:
        if compared.blocking or compared.outcome in ("regressed", "improved"):
            click.echo(f"{compared.outcome:13} {compared.target}: {compared.sentence}")
    for fault in verdict.faults:
        click.echo(f"fault         {fault.board or 'rack'}: {fault.sentence}")
    click.echo(verdict.sentence)

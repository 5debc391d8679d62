# SPDX-License-Identifier: Apache-2.0
"""``hil gate``: the verdict again, from disk; the same records give the same bytes.

``--would-change``: which stored verdicts this version would give otherwise; nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

import hil
from hil.base.errors import ConfigError, ExitCode, HilError, RigError
from hil.base.paths import PROJECT_THRESHOLDS
from hil.base.untrusted import terminal
from hil.cli.conclusion import show
from hil.cli.options import DEFAULT_OUT, count, run_options
from hil.gate import judge
from hil.gate.otherwise import Otherwise, judged_otherwise
from hil.model import Verdict
from hil.store import JudgedRun, StoredRun, add_verdict, read_judged_run, read_measured
from hil.store.directory import SUMMARY, VERDICTS
from hil.store.files import typed_path
from hil.store.run_info import planned_boots
from hil.thresholds import Thresholds, among_legs, load_all, load_project
from hil.thresholds.loader import FOLDER

_MOST_CHARACTERS = 4000  # of a sentence: what a person reads is not cut


@click.command("gate")
@click.argument("runs", metavar="[RUN]...", nargs=-1, type=click.Path(path_type=Path))
@run_options("gate")
@click.option("--verbose", is_flag=True, help="End with the tables of all figures, not the few that matter.")
@click.option(
    "--would-change",
    is_flag=True,
    help="Write nothing: list the verdicts of RUNs that would change. Exit 4 if there are any.",
)
def command(runs: tuple[Path, ...], thresholds: Path | None, *, verbose: bool, would_change: bool) -> int:
    """Judge RUN (a folder below out, by default the latest) again. Its exit code is the run's.

    The limits come from the run's folder: later limits change nothing, and an expired limit still holds. Use
    --thresholds thresholds to judge by the limits and metrics of this checkout instead.

    Use --would-change before you rely on an update of hil: it lists each stored verdict that this version
    would change, with the old verdict, the new verdict and the reason. It exits with 0 if there are none, 4
    if there are any, and 2 if a RUN cannot be read.
    """
    if would_change:
        return int(_say_otherwise(runs or (DEFAULT_OUT / "latest",), thresholds))
    if len(runs) > 1:
        raise ConfigError(
            f"{len(runs)} runs to judge again, but the exit code is for one run.",
            next_step="name one; --would-change takes several.",
        )
    return _judge_again(runs[0] if runs else DEFAULT_OUT / "latest", thresholds, verbose=verbose)


def _judge_again(run: Path, thresholds: Path | None, *, verbose: bool) -> int:
    stored = read_measured(run)
    path = stored.path / VERDICTS
    before = path.read_bytes() if path.exists() else None
    judged = add_verdict(stored, _verdict_now(stored, thresholds))
    _write_reports(judged)
    click.echo(f"{path}: {_compare(before, judged.files[VERDICTS])}")
    if judged.journal.torn:
        _say(judged.journal.torn)
    if verbose:
        _show(judged.verdict)
    return show(judged, verbose=verbose)


def _verdict_now(run: StoredRun, thresholds: Path | None) -> Verdict:
    limits = among_legs(_limits(run, thresholds), run.info.legs)
    return judge(run.journal.entries, limits, planned_boots(run.info))


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
        _say(f"{run}: {count(len(changes), 'verdict')} would be otherwise" if changes else f"{run}: the same")
        for one in changes:
            _say(f"{one.before} → {one.now}, {one.subject}: {one.reason}", indent="  ")
    words = f"{count(len(runs), 'run')}: {found} would be judged otherwise by hil {hil.__version__}"
    _say(f"{words}, {unread} could not be judged." if unread else f"{words}.")
    return ExitCode.CONFIG if unread else ExitCode.UNDECIDED if found else ExitCode.PASS


def _otherwise(run: Path, thresholds: Path | None) -> tuple[Otherwise, ...]:
    stored = read_judged_run(run)
    return judged_otherwise(stored.verdict, _verdict_now(stored, thresholds))


def _limits(run: StoredRun, asked: Path | None) -> dict[str, Thresholds]:
    """Return the limits asked for, else the run's copy; those of the checkout for a run that has none."""
    own = run.path / FOLDER
    if asked is None and own.is_dir():
        return load_all(own, today=run.info.day)
    return load_project(asked or PROJECT_THRESHOLDS, today=run.info.day)


def _write_reports(run: JudgedRun) -> None:
    """Write summary.md and what else is made of a verdict, so that it says what verdicts.json says."""
    from hil.reports.rebuild import write_run

    try:
        write_run(run)
    except HilError as error:
        raise RigError(
            f"{run.path / SUMMARY} was not written, so it does not match verdicts.json: {error}",
            next_step=f"judge it again: hil gate {typed_path(run.path)}",
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


def _say(line: str, *, indent: str = "") -> None:
    """Print a line of a stored run, which may be a fork's: no terminal obeys it."""
    click.echo(f"{indent}{terminal(line, _MOST_CHARACTERS)}")

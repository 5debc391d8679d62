# SPDX-License-Identifier: Apache-2.0
"""``hil history``: what is kept of earlier runs: add, look at, export, fetch, push."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.base.numeric import np
from hil.base.units import QuantityError, Unit, find_unit, format_value, unit_of
from hil.ci.night import add_runs
from hil.cli.ci_steps import say
from hil.cli.options import aligned, ci_folder, count, history_option, warn
from hil.history import branch, load
from hil.history.branch import BRANCH, with_token
from hil.history.export import write_csv
from hil.history.from_run import add_run
from hil.metrics.sessions import History, SeriesHistory
from hil.model import SeriesId
from hil.store import read_run

MOST_SESSIONS = 40
MOST_NAMES = 5
_HEADING = ("kind", "role", "sessions", "boots", "median", "deviation", "last", "series")
remote_option = click.option("--remote", default="origin", show_default=True, help="Of this repository.")


@click.group("history")
def command() -> None:
    """Manage boot values of earlier runs; docs/operate/history.md."""


@command.command("add", short_help="Append runs.")
@click.argument("runs", metavar="RUN...", nargs=-1, type=click.Path(path_type=Path))
@history_option
@click.option("--force", is_flag=True, help="Also runs of sources that were not committed.")
def add(runs: tuple[Path, ...], history_folder: Path, *, force: bool) -> None:
    """Append RUN (folders below out) with its boot values. Stored runs are not changed.

    Runs of pull requests are refused: their figures are not those of main.
    """
    if not runs:
        raise ConfigError("no run is given.", next_step="add the newest: hil history add out/latest")
    for run in runs:
        added = add_run(read_run(run), history_folder, force=force)
        state = "added" if added.is_new else "was there already"
        click.echo(f"{added.path}: {state}, {added.values} boot values")
        if added.note:
            click.echo(added.note)


@command.command("add-nights", short_help="Append what the legs of a night measured.")
@history_option
def add_nights(history_folder: Path) -> None:
    """Append what the legs night-… of a workflow run measured; name those that left nothing to append."""
    say("".join(f"{line}\n" for line in add_runs(ci_folder() / "legs", history_folder)))


@command.command("fetch")
@history_option
@remote_option
def fetch(history_folder: Path, remote: str) -> None:
    """Copy the branch's runs into the folder, which need not exist yet; other runs in the folder stay."""
    os.environ.update(with_token(os.environ))
    names = branch.fetch(Path.cwd(), history_folder, remote=remote, say=click.echo)
    which = ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} files"
    click.echo(f"{BRANCH}: {f'{which} in {history_folder}' if names else 'it does not exist yet'}")


@command.command("push")
@history_option
@remote_option
@click.option("--message", default="Append a run", show_default=True)
def push(history_folder: Path, remote: str, message: str) -> None:
    """Push the folder's files to the branch, after files that others have pushed meanwhile."""
    os.environ.update(with_token(os.environ))
    commit = branch.push(Path.cwd(), history_folder, message, remote=remote)
    click.echo(f"{BRANCH}: {f'now at {commit[:12]}' if commit else 'nothing new'}")


@command.command("show", short_help="List racks and sessions, or series by WORDs.")
@click.argument("words", metavar="[WORD]...", nargs=-1)
@history_option
def show(words: tuple[str, ...], history_folder: Path) -> None:
    """List racks and sessions; with WORDs the series whose names hold all of them."""
    history = _load(history_folder)
    if not words:
        _show_sessions(history)
        return
    found = _series(history, words)
    for line in aligned([_HEADING, *(_row(history, entry) for entry in found)]):
        click.echo(line)


@command.command("export", short_help="Print CSV, one line per boot value.")
@click.argument("words", metavar="[WORD]...", nargs=-1)
@history_option
def export(words: tuple[str, ...], history_folder: Path) -> None:
    """Print one line per boot value, of all series or those whose names contain all WORDs."""
    history = _load(history_folder)
    if words:
        history = history.restricted(entry.series_id for entry in _series(history, words))
    write_csv(history, sys.stdout)


def _load(history_folder: Path) -> History:
    history = load(history_folder)
    warn(history.left_out)
    if not history.sessions:
        raise ConfigError(
            f"{history_folder} holds no history.",
            next_step="measure and add a run: hil run, then hil history add out/latest; or fetch the "
            "shared history: hil history fetch",
        )
    return history


def _series(history: History, words: Sequence[str]) -> list[SeriesHistory]:
    found = [entry for key, entry in history.entries.items() if all(word in key[0] for word in words)]
    if not found:
        raise ConfigError(
            f"no series name contains {' and '.join(map(repr, words))}.",
            next_step="`hil history show` lists racks and boards; a name is rack/board/case/metric.",
        )
    return found


def _show_sessions(history: History) -> None:
    values = dict.fromkeys(range(len(history.sessions)), 0)
    for entry in history.entries.values():
        for session, boots in zip(*np.unique(entry.session, return_counts=True), strict=True):
            values[int(session)] += int(boots)
    several = any(history.products)
    rows = [("rack", "run", "trigger", "commit", "boards", "boot values")]
    for number, session in enumerate(history.sessions):
        kinds = ", ".join(f"{board} ({session.kind_of(board)})" for board in session.boards)
        commit = f"{session.commit[:12] or 'none'}{' + changes' if session.dirty else ''}"
        rows.append(
            (
                session.place if several else session.rack,
                session.run_id,
                session.trigger,
                commit,
                kinds,
                str(values[number]),
            )
        )
    for line in aligned([rows[0], *rows[1:][-MOST_SESSIONS:]]):
        click.echo(line)
    racks = sorted({session.rack for session in history.sessions})
    click.echo(
        f"{count(len(history.sessions), 'session')} of {', '.join(racks)}: {len(history.entries)} series, "
        f"{sum(values.values())} boot values"
    )


def _row(history: History, entry: SeriesHistory) -> tuple[str, ...]:
    last = history.sessions[int(entry.session[-1])]
    kind = last.kind_of(entry.name.board)
    unit = _unit(entry.series_id)
    finite = entry.value[np.isfinite(entry.value)]
    median = float(np.median(entry.value))
    deviation = float(finite.std(ddof=1)) if len(finite) > 1 else math.nan
    shown = (_text(number, unit) for number in (median, deviation, float(entry.value[-1])))
    counts = (str(len(np.unique(entry.session))), str(len(entry)))
    return (kind, entry.role, *counts, *shown, entry.series_id)


def _text(value: float, unit: Unit) -> str:
    if math.isnan(value):
        return "-"
    return format_value(value, unit) if math.isfinite(value) else "beyond the timeout"


def _unit(series_id: str) -> Unit:
    try:
        return unit_of(SeriesId.parse(series_id).metric)
    except QuantityError:
        return find_unit("count")

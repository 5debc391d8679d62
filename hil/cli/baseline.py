"""``hil baseline``: collect sessions, show what they are worth, accept them as what is normal."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.boards.rack import load_rack
from hil.cli.baseline_report import lines_of
from hil.cli.options import (
    DEFAULT_RACK,
    boards_option,
    history_option,
    out_option,
    rack_option,
    thresholds_option,
)
from hil.cli.table import aligned
from hil.history import load
from hil.history.baseline.acceptance import Request, accept_epoch, propose
from hil.history.baseline.candidates import OBSTACLES, Choice
from hil.history.baseline.changes import rows
from hil.history.baseline.collect import Campaign, collect
from hil.run.plan import BOOTS_MAX
from hil.store.run_info import git_state
from hil.thresholds import load_all
from hil.thresholds.baselines import FOLDER, check, load_baselines

DAY = click.DateTime(formats=["%Y-%m-%d"])


@click.group("baseline")
def command() -> None:
    """What is normal on a rack: collect sessions, look at them, accept them; docs/baselines.md."""


@command.command("show", short_help="How noisy the rack is, and what a pull request would see.")
@click.option(
    "--rack",
    default=str(DEFAULT_RACK),
    metavar="RACK",
    help="Rack file, or the name of a rack in the history. [default: the virtual rack]",
)
@history_option
@thresholds_option
def show(rack: str, history_folder: Path, thresholds: Path) -> None:
    """Show what is compared on RACK, how much it varies, and what a pull request would see.

    Says plainly what is missing.
    """
    name = _name_of(rack)
    history = load(history_folder, racks=[name])
    baselines = load_baselines(thresholds / FOLDER)
    check(baselines, history)
    for line in lines_of(history, name, load_all(thresholds), baselines.epoch(name)):
        click.echo(line)


@command.command("collect", short_help="Measure N sessions and add them to the history.")
@click.option("--sessions", type=click.IntRange(1, 1000), required=True, metavar="N", help="How many in all.")
@click.option(
    "--boots",
    type=click.IntRange(2, BOOTS_MAX),
    default=4,
    metavar="K",
    show_default=True,
    help="Boots a board and session.",
)
@click.option("--suite", default="pr", show_default=True, help="What is measured.")
@rack_option
@boards_option
@click.option("--target", default="", metavar="TARGET", help="Only boards of this target, such as esp32s3.")
@click.option(
    "--firmware",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Measure this bundle, or this build; else each session builds.",
)
@click.option("--wait", type=float, default=0.0, metavar="SECONDS", help="Wait for boards that others hold.")
@click.option(
    "--pause", type=click.FloatRange(0, 1440), default=0.0, metavar="MINUTES", help="Between two sessions."
)
@click.option("--force", is_flag=True, help="Also where the sources were not committed.")
@history_option
@thresholds_option
@out_option
def collect_sessions(
    boards: tuple[str, ...],
    firmware: Path | None,
    history_folder: Path,
    *,
    rack: Path,
    sessions: int,
    pause: float,
    force: bool,
    out: Path,
    **options: object,
) -> None:
    """Measure N sessions, one after another, and add them to the history.

    Take a night for it. A session that fails is measured again. Ctrl-C ends the one that is being measured,
    and the same command goes on.
    """
    state = git_state(PROJECT_ROOT)
    if not force and (state["dirty"] or not state["commit"]):
        raise ConfigError(
            "the sources are not committed, so nobody could find what these sessions measured.",
            next_step="commit first, or collect all the same with --force.",
        )
    words = [f"--rack={rack}", *(f"--{name}={value}" for name, value in sorted(options.items()))]
    words += [f"--board={board}" for board in boards]
    words += [f"--firmware={firmware}"] if firmware else []
    name = load_rack(rack).name
    collect(Campaign(name, sessions, words, out.absolute(), history_folder, pause * 60, force), click.echo)
    click.echo("Look at them: hil baseline show. Accept them: hil baseline accept --reason …")


@command.command("accept", short_help="Make an epoch: say which sessions are normal.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who review it. Required.")
@click.option("--sessions", "runs", multiple=True, metavar="RUN", help="This session; repeatable.")
@click.option("--since", type=DAY, metavar="DATE", help="Sessions since this day (UTC).")
@click.option(
    "--allow",
    multiple=True,
    type=click.Choice(tuple(OBSTACLES)),
    help="Accept in spite of it; repeatable.",
)
@click.option("--by", default="", metavar="NAME", help="Who accepts. [default: git's user.name]")
@click.option(
    "--rack",
    default=str(DEFAULT_RACK),
    metavar="RACK",
    help="Rack file, or the name of a rack in the history. [default: the virtual rack]",
)
@history_option
@thresholds_option
def accept(
    history_folder: Path,
    *,
    rack: str,
    thresholds: Path,
    reason: str,
    runs: Sequence[str],
    since: datetime.datetime | None,
    allow: Sequence[str],
    by: str,
) -> None:
    """Make an epoch of sessions in the history: the mean that later pull requests are held against.

    Without --sessions and --since: all that baseline collections and nights left since the epoch in force.
    Writes thresholds/baselines/RACK.yaml and commits nothing.
    """
    name = _name_of(rack)
    choice = Choice(tuple(runs), since.date() if since else None)
    request = Request(name, reason, choice, by, frozenset(allow), PROJECT_ROOT)
    history = load(history_folder, racks=[name])
    proposal = propose(request, history, load_all(thresholds), load_baselines(thresholds / FOLDER))
    for line in aligned(rows(proposal.changes)):
        click.echo(line)
    path = thresholds / FOLDER / f"{name}.yaml"
    epoch = accept_epoch(request, proposal, path)
    click.echo(f"{path}: {len(epoch.sessions)} sessions of {epoch.commit[:12]} accepted.")
    click.echo("It counts when it is on the default branch. Have it reviewed:")
    click.echo(f"  git add {path} && git commit -m 'Accept a baseline of rack {name}'")


def _name_of(rack: str) -> str:
    """Return the name of a rack: what its file says, or the word itself where it is no file."""
    path = Path(rack)
    return load_rack(path).name if path.suffix in (".yaml", ".yml") or path.is_file() else rack

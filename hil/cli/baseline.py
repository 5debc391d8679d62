# SPDX-License-Identifier: Apache-2.0
"""``hil baseline``: collect sessions, show what they are worth, accept them as what is normal.

What `hil baseline show` says: the series, what a pull request would see, and what is missing.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.base.project import product_here
from hil.base.units import format_difference, format_value
from hil.boards.rack import load_rack
from hil.cli.options import (
    DEFAULT_RACK,
    aligned,
    boards_option,
    history_option,
    out_option,
    rack_option,
    thresholds_option,
)
from hil.history import load
from hil.history.baseline.acceptance import Request, accept_epoch, propose
from hil.history.baseline.changes import boards_of, gated_units, rows, unmeasured
from hil.history.baseline.collect import OBSTACLES, Campaign, Choice, collect
from hil.history.baseline.noise import FEWEST_SESSIONS, SeriesNoise
from hil.history.baseline.prospects import Prospect, prospects, rack_noise
from hil.metrics.sessions import History
from hil.model import format_place
from hil.run.plan import BOOTS_MAX
from hil.store.run_info import git_state
from hil.thresholds import load_project
from hil.thresholds.baselines import FOLDER, Epoch, check, load_baselines, missing_sessions
from hil.thresholds.types import Thresholds

_SERIES = ["series", "board", "sessions", "boots", "mean", "boot deviation", "session deviation"]
_UNITS = ["comparison", "boards", "tolerated", "would see", ""]
_NONE = "–"


def lines_of(
    history: History, rack: str, thresholds: Mapping[str, Thresholds], epoch: Epoch | None
) -> Iterator[str]:
    """Yield the lines for one rack, as Session.place names it. Raises ConfigError where rules collide."""
    kinds = sorted({board.kind for board, _ in boards_of(history, rack).values()} - {"physical"})
    words = f" ({', '.join(kinds)})" if kinds else ""
    yield f"Rack {rack}{words}: {_epoch_words(epoch)}"
    units = gated_units(history, rack, thresholds)
    found = prospects(history, units, epoch)
    if found:
        yield from _table(_SERIES, [row for item in found for row in _series_rows(item)])
        yield from _table(_UNITS, [_unit_row(item) for item in found])
        yield from _class_words(found, kinds=kinds)
    yield ""
    lacking = list(_missing(history, rack, thresholds, epoch, found))
    yield from (lacking or ["Nothing is missing."])


def _epoch_words(epoch: Epoch | None) -> str:
    if epoch is None:
        return "no epoch was accepted."
    return (
        f"epoch of {epoch.accepted}, {len(epoch.sessions)} sessions of {epoch.commit[:12]}, accepted by "
        f"{epoch.by}: {epoch.reason}"
    )


def _table(heading: list[str], rows: Sequence[list[str]]) -> list[str]:
    return ["", *aligned([heading, *rows])]


def _series_rows(item: Prospect) -> list[list[str]]:
    rows = []
    for series, noise, level, boots in zip(item.unit.series, item.noise, item.means, item.boots, strict=True):
        unit = item.unit.metric.unit
        mean = _NONE if math.isnan(level) else format_value(item.unit.scale.value(level), unit)
        boot = _deviation(item, noise.boot_variance)
        session = _deviation(item, noise.session_variance)
        rows.append([item.unit.name, series.board, str(noise.sessions), str(boots), mean, boot, session])
    return rows


def _deviation(item: Prospect, variance: float) -> str:
    if math.isnan(variance):
        return _NONE
    return _size(item, math.sqrt(variance))


def _size(item: Prospect, size: float) -> str:
    """Write a change or deviation: relative on the scale log, else in the metric's unit."""
    return f"{size:.1%}" if item.unit.scale.relative else format_difference(size, item.unit.metric.unit)


def _unit_row(item: Prospect) -> list[str]:
    boards = ", ".join(series.board for series in item.unit.series)
    seen = _NONE if item.effect is None else _size(item, item.effect)
    note = item.note
    if item.effect is not None and not item.sees_tolerance:
        note = "; ".join(filter(None, [note, "less than that may stay undecided"]))
    tolerated = _size(item, item.unit.rule.tolerance)
    name = f"{item.unit.name} on {item.unit.target}"
    return [name, boards, tolerated, seen, note]


def _class_words(found: Sequence[Prospect], *, kinds: Sequence[str]) -> Iterator[str]:
    noise = rack_noise(found)
    yield ""
    if noise is None:
        yield f"Noise: not known before {FEWEST_SESSIONS} sessions of two boots or more."
        return
    kind = " and ".join(kinds) + " rack" if kinds else "rack"
    yield (
        f"Noise: a {noise.name} {kind}; half of its series differ by more than {noise.boot:.1%} between "
        f"boots, half by more than {noise.session:.1%} between sessions."
    )
    known = [item for item in found if item.effect is not None]
    good = sum(item.sees_tolerance for item in known)
    yield f"{good} of {len(known)} comparisons see what their rule tolerates, with 80 % power."


def _missing(
    history: History,
    rack: str,
    thresholds: Mapping[str, Thresholds],
    epoch: Epoch | None,
    found: Sequence[Prospect],
) -> Iterator[str]:
    if not boards_of(history, rack):
        yield "Missing: sessions. Measure some: hil baseline collect --sessions 10"
        return
    for words in unmeasured(history, rack, thresholds):
        yield f"Missing: {words} was never measured there."
    short = [item for item in found if _fewest(item.noise) < FEWEST_SESSIONS]
    if short:
        fewest = min(_fewest(item.noise) for item in short)
        yield (
            f"Missing: sessions of two boots or more. {len(short)} comparisons have fewer than "
            f"{FEWEST_SESSIONS}, one of them {fewest}: hil baseline collect --sessions 10"
        )
    if epoch is None:
        yield "Missing: an accepted epoch, which says what mean is normal: hil baseline accept --reason …"
    elif gone := missing_sessions(epoch, history):
        yield (
            f"Missing: {len(gone)} of the epoch's {len(epoch.sessions)} sessions, such as {gone[0]}, are not "
            "in this history: hil ci history fetch"
        )


def _fewest(noise: Sequence[SeriesNoise]) -> int:
    return min((one.sessions for one in noise), default=0)


DAY = click.DateTime(formats=["%Y-%m-%d"])


@click.group("baseline")
def command() -> None:
    """What is normal on a rack: collect sessions, look at them, accept them; docs/operate/baselines.md."""


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
    check(baselines, history, product_here())
    place = format_place(product_here(), name)
    for line in lines_of(history, place, load_project(thresholds), baselines.epoch(name)):
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
    request = Request(name, reason, choice, by, frozenset(allow), PROJECT_ROOT, product_here())
    history = load(history_folder, racks=[name])
    proposal = propose(request, history, load_project(thresholds), load_baselines(thresholds / FOLDER))
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

"""``hil changes``: since when a figure is another one, and whose doing that is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from hil.base.errors import ConfigError, ExitCode
from hil.base.yamlvalue import did_you_mean
from hil.cli import changes_lines
from hil.cli.options import history_option, thresholds_option
from hil.history import load
from hil.history.loading import segment_paths
from hil.history.nightly.events import Event, by_chance, events_of, new_steps
from hil.history.nightly.survey import Survey, survey
from hil.thresholds import load_all

LAST_NIGHTS = 120


@click.command("changes")
@history_option
@click.option("--rack", "racks", multiple=True, metavar="NAME", help="Only this rack; repeatable.")
@click.option(
    "--nights",
    type=click.IntRange(4),
    default=LAST_NIGHTS,
    show_default=True,
    metavar="N",
    help="Look at the last N nights of each series.",
)
@click.option(
    "--fail-on-new",
    type=click.IntRange(1),
    metavar="N",
    help="Exit 1 where the firmware made something worse within the last N nights. [default: never]",
)
@click.option(
    "--series", "every_series", is_flag=True, help="List every change point of a series, not the newest only."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--markdown", is_flag=True, help="Print Markdown, for the summary of a workflow.")
@thresholds_option
def command(
    *,
    history_folder: Path,
    racks: tuple[str, ...],
    nights: int,
    fail_on_new: int | None,
    every_series: bool,
    as_json: bool,
    markdown: bool,
    thresholds: Path,
) -> int:
    """Tell what happened in the nights of the history, and list the change points behind it.

    One commit, one access point or one board is one event, however many series show it: what, how large,
    since when, between which commits, and the command that narrows it down.

    A step in the ratio to the reference is the firmware's; one in the raw values alone the environment's.
    Exit code 0 whatever is found, unless --fail-on-new asks for another.
    """
    _check_racks(history_folder, racks)
    benches = load_all(thresholds)
    found = survey(load(history_folder, racks=racks or None), benches, racks=racks, last=nights)
    events = events_of(found, thresholds=benches)
    if as_json:
        click.echo(json.dumps(_to_json(found, events), indent=2, ensure_ascii=False))
    else:
        lines = changes_lines.markdown if markdown else changes_lines.text
        click.echo("\n".join(lines(found, events, every_series=every_series)))
    return int(ExitCode.FIRMWARE if fail_on_new and new_steps(events, fail_on_new) else ExitCode.PASS)


def _check_racks(history: Path, racks: Sequence[str]) -> None:
    """Raise ConfigError where the history holds runs, but none of a rack that was asked for."""
    known = {path.parent.name for path in segment_paths(history, None)}
    for rack in racks if known else ():
        if rack not in known:
            raise ConfigError(
                f"--rack {rack}: the history in {history} holds no run of it{did_you_mean(rack, known)}",
                next_step=f"it holds {', '.join(sorted(known))}; `hil history show` lists their runs.",
            )


def _to_json(found: Survey, events: Sequence[Event]) -> dict[str, object]:
    return {
        "schema": 1,
        "series": found.series,
        "nights": found.nights,
        "events": [event.to_json() for event in events],
        "changes": [finding.to_json() for finding in found.findings],
        "by_chance": [finding.to_json() for finding in by_chance(found, events)],
        "notes": {note: list(series) for note, series in found.notes.items()},
    }

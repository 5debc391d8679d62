# SPDX-License-Identifier: Apache-2.0
"""``hil changes``: since when a figure is another one, and whose doing that is.

What ``hil changes`` prints: events, then the series behind them; for the terminal, and as Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from hil.base.errors import ConfigError, ExitCode
from hil.base.paths import PROJECT_THRESHOLDS
from hil.base.untrusted import code
from hil.base.untrusted import markdown as markdown_text
from hil.base.yamlvalue import did_you_mean
from hil.cli.options import aligned, history_option, warn
from hil.history.files import paths_in, read_past
from hil.history.loading import values_of
from hil.history.nightly.event_lines import change_words
from hil.history.nightly.events import NightEvent, by_chance, events_of, new_steps
from hil.history.nightly.survey import NightFinding, Survey, survey
from hil.metrics.sessions import History
from hil.model import format_place
from hil.thresholds import load_project

MOST_CHARACTERS = 4000  # of a sentence: what a person reads is not cut
SERIES_SHOWN = 20  # of many; --series shows all
Commits = Mapping[tuple[str, str], Mapping[str, Any]]  # by (good, bad)
_SIGNS = {"worse": "✗", "better": "↑", "mixed": "±"}


def text_lines(
    found: Survey,
    events: Sequence[NightEvent],
    *,
    every_series: bool,
    commits: Commits = MappingProxyType({}),
) -> Iterator[str]:
    """Yield lines for the terminal: each event with its sentence beneath, then the series.

    ``commits`` are those of commits_of().
    """
    yield _headline(found, events)
    for event in events:
        yield f"\n{_sign(event)} {_said(event, commits)}"
        yield from (f"    {line}" for line in _beneath(event))
    if found.findings:
        yield "\nSeries"
        shown, chance = _shown(found, events, every_series), by_chance(found, events)
        for finding, line in zip(shown, aligned([_row(finding) for finding in shown]), strict=True):
            yield line
            yield from (f"    {remark}" for remark in _remarks(finding, chance))
        yield from _left_out(found, shown, chance)
    yield from _note_lines(found)


def markdown_lines(
    found: Survey,
    events: Sequence[NightEvent],
    *,
    every_series: bool,
    commits: Commits = MappingProxyType({}),
) -> Iterator[str]:
    """Yield the same as Markdown."""
    yield f"## Change points\n\n{_headline(found, events)}\n"
    for event in events:
        yield "<br>\n  ".join(_item(event, commits))
    if found.findings:
        shown, chance = _shown(found, events, every_series), by_chance(found, events)
        yield "\n| night | cause | change | nights | series | |\n| --- | --- | --- | --- | --- | --- |"
        for finding in shown:
            cells = (*_row(finding), "; ".join(_remarks(finding, chance)))
            yield f"| {' | '.join(_plain(cell) for cell in cells)} |"
        yield from (f"\n{line}" for line in _left_out(found, shown, chance))
    yield "".join(f"\n- {line}" for line in _note_lines(found))


def _item(event: NightEvent, commits: Commits) -> Iterator[str]:
    yield f"- {_sign(event)} **{_plain(_said(event, commits))}**"
    for line in _beneath(event):
        yield code(line) if line == event.bisect else _plain(line)


def _said(event: NightEvent, commits: Commits) -> str:
    return change_words(_event_json(event, commits))


def _event_json(event: NightEvent, commits: Commits) -> dict[str, Any]:
    commit = commits.get((event.good, event.bad))
    return {**event.to_json(), **({"commit": dict(commit)} if commit else {})}


def _plain(words: str) -> str:
    return markdown_text(words, MOST_CHARACTERS)


def _sign(event: NightEvent) -> str:
    return "?" if event.cause == "unclear" else _SIGNS.get(event.effect, "?")


def _beneath(event: NightEvent) -> list[str]:
    """Return the sentence of an event, its note, and its bisect command last."""
    note = f"{event.note[:1].upper()}{event.note[1:]}." if event.note else ""
    finds = "docs/operate/bisect.md finds the commit:" if event.bisect else ""
    return [line for line in (event.sentence, note, finds, event.bisect) if line]


def _headline(found: Survey, events: Sequence[NightEvent]) -> str:
    if not found.series:
        return (
            "No night is in the history: add runs of the trigger nightly, hil history add "
            "(docs/operate/nightly.md)."
        )
    told = f" in {len(events)} {'event' if len(events) == 1 else 'events'}" if events else ""
    count = sum(len(event.findings) for event in events)
    return f"{found.series} series over up to {found.nights} nights: {count or 'no'} change points{told}"


def _shown(found: Survey, events: Sequence[NightEvent], every_series: bool) -> Sequence[NightFinding]:
    """Return the findings to list: all of them, or the newest that chance does not explain."""
    chance = {id(finding) for finding in by_chance(found, events)}
    told = [finding for finding in found.findings if id(finding) not in chance]
    return found.findings if every_series else told[-SERIES_SHOWN:]


def _left_out(found: Survey, shown: Sequence[NightFinding], chance: Sequence[NightFinding]) -> Iterator[str]:
    if len(shown) == len(found.findings):
        return
    more = len(found.findings) - len(shown) - len(chance)
    if more:
        yield f"and {more} older change points of series: hil changes --series"
    if chance:
        steps = "1 more step of a series" if len(chance) == 1 else f"{len(chance)} more steps of series"
        yield f"{steps} that chance explains, so no event: hil changes --series"


def _row(finding: NightFinding) -> tuple[str, ...]:
    point, name = finding.point, finding.name
    cause = f"{point.cause}, {finding.effect}" if finding.effect else point.cause
    kind = f" ({finding.kind})" if finding.kind else ""
    size = f"{point.change:+.1%} [{point.low:+.1%}, {point.high:+.1%}] {'of the ratio' * point.of_ratio}"
    return (
        str(point.night),
        cause,
        size.strip(),
        f"{point.nights} nights",
        f"{format_place(name.product, name.rack)}/{name.board}{kind}: {name.metric} of {name.case_id}",
    )


def _remarks(finding: NightFinding, chance: Sequence[NightFinding]) -> Iterator[str]:
    point = finding.point
    if any(finding is other for other in chance):
        yield "of no event: among so many series and nights, chance explains it"
        return
    if point.cause == "firmware":
        yield f"first bad commit in {point.good[:12]}..{point.bad[:12]}"
    if point.conditions:
        yield f"changed too: {'; '.join(map(str, point.conditions))}"
    elif point.cause == "environment":
        yield "nothing that the runs record changed that night"
    if point.note:
        yield point.note


def _note_lines(found: Survey) -> Iterator[str]:
    for note, series in found.notes.items():
        yield f"{len(series)} of {found.series} series: {note}."


LAST_NIGHTS = 120


@click.command("changes")
@history_option
@click.option("--rack", "racks", multiple=True, metavar="NAME", help="Only this rack; repeatable.")
@click.option("--product", "products", multiple=True, metavar="NAME", help="Only this product; repeatable.")
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
    help="Exit 1 if the firmware made a metric worse within the last N nights. [default: never]",
)
@click.option(
    "--series", "every_series", is_flag=True, help="List every change point of a series, not the newest only."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--markdown", is_flag=True, help="Print Markdown, for the summary of a workflow.")
def command(
    *,
    history_folder: Path,
    racks: tuple[str, ...],
    products: tuple[str, ...],
    nights: int,
    fail_on_new: int | None,
    every_series: bool,
    as_json: bool,
    markdown: bool,
) -> int:
    """Show when metrics changed over the nights, what caused it, and the change points.

    One commit, one access point or one board is one event, however many series show it. An event has its
    size, its start, its range of commits and the command to narrow them down.

    The firmware caused a step in the ratio to the reference; the environment caused a step in the raw values
    alone. Exits with 0 unless --fail-on-new is given.
    """
    from hil.reports.history import lines_of
    from hil.reports.trend.commits import commits_of

    _check_racks(history_folder, racks)
    benches = load_project(PROJECT_THRESHOLDS)
    past = read_past(history_folder, racks=racks or None)
    warn(past.left_out)
    history = values_of(past)
    _check_products(history, history_folder, products)
    found = survey(history, benches, racks=racks, products=products, last=nights)
    events = events_of(found, thresholds=benches)
    commits = commits_of(events, lines_of(past.runs))
    if as_json:
        click.echo(json.dumps(_to_json(found, events, commits), indent=2, ensure_ascii=False))
    else:
        lines = markdown_lines if markdown else text_lines
        click.echo("\n".join(lines(found, events, every_series=every_series, commits=commits)))
    return int(ExitCode.FIRMWARE if fail_on_new and new_steps(events, fail_on_new) else ExitCode.PASS)


def _check_racks(history: Path, racks: Sequence[str]) -> None:
    """Raise ConfigError where the history holds runs, but none of a rack that was asked for."""
    known = {path.parent.name for path in paths_in(history)}
    for rack in racks if known else ():
        if rack not in known:
            raise ConfigError(
                f"--rack {rack}: the history in {history} holds no run of this rack"
                f"{did_you_mean(rack, known)}",
                next_step=f"it holds {', '.join(sorted(known))}; `hil history show` lists their runs.",
            )


def _check_products(history: History, folder: Path, products: Sequence[str]) -> None:
    """Raise ConfigError where the history holds runs, but none of a product that was asked for."""
    for product in products if history.sessions else ():
        if product not in history.products:
            known = [name for name in history.products if name]
            raise ConfigError(
                f"--product {product}: the history in {folder} holds no such "
                f"run{did_you_mean(product, known)}",
                next_step=f"it holds {', '.join(known) or 'none by name'}: hil history show",
            )


def _to_json(found: Survey, events: Sequence[NightEvent], commits: Commits) -> dict[str, object]:
    return {
        "schema": 1,
        "series": found.series,
        "nights": found.nights,
        "events": [_event_json(event, commits) for event in events],
        "changes": [finding.to_json() for finding in found.findings],
        "by_chance": [finding.to_json() for finding in by_chance(found, events)],
        "notes": {note: list(series) for note, series in found.notes.items()},
    }

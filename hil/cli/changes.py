"""``hil changes``: since when a figure is another one, and whose doing that is."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from hil.cli.options import history_option, thresholds_option
from hil.cli.table import aligned
from hil.errors import ConfigError, ExitCode
from hil.history import load
from hil.history.loading import segment_paths
from hil.nightly.survey import Finding, Survey, survey
from hil.thresholds import load_all
from hil.yamlvalue import did_you_mean

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
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--markdown", is_flag=True, help="Print Markdown, for the summary of a workflow.")
@thresholds_option
def command(
    *,
    history_folder: Path,
    racks: tuple[str, ...],
    nights: int,
    fail_on_new: int | None,
    as_json: bool,
    markdown: bool,
    thresholds: Path,
) -> int:
    """List the change points of the nights in the history: series, night, size, cause, commits.

    A step in the ratio to the reference is the firmware's; one in the raw values alone the environment's.
    Exit code 0 whatever is found, unless --fail-on-new asks for another.
    """
    _check_racks(history_folder, racks)
    found = survey(load(history_folder, racks=racks or None), load_all(thresholds), racks=racks, last=nights)
    if as_json:
        click.echo(json.dumps(_to_json(found), indent=2, ensure_ascii=False))
    else:
        lines = _markdown(found) if markdown else _text(found)
        click.echo("\n".join(lines))
    return int(ExitCode.FIRMWARE if fail_on_new and found.new(fail_on_new) else ExitCode.PASS)


def _check_racks(history: Path, racks: Sequence[str]) -> None:
    """Raise ConfigError where the history holds runs, but none of a rack that was asked for."""
    known = {path.parent.name for path in segment_paths(history, None)}
    for rack in racks if known else ():
        if rack not in known:
            raise ConfigError(
                f"--rack {rack}: the history in {history} holds no run of it{did_you_mean(rack, known)}",
                next_step=f"it holds {', '.join(sorted(known))}; `hil history show` lists their runs.",
            )


def bisect_command(finding: Finding) -> str:
    """Return the command that narrows a firmware's step down."""
    name = finding.name
    words = ["hil", "bisect", "--good", finding.point.good[:12], "--bad", finding.point.bad[:12]]
    words += ["--case", name.case_id, "--metric", name.metric, "--board", name.board]
    return shlex.join(words)


def _to_json(found: Survey) -> dict[str, object]:
    return {
        "schema": 1,
        "series": found.series,
        "nights": found.nights,
        "changes": [finding.to_json() for finding in found.findings],
        "notes": {note: list(series) for note, series in found.notes.items()},
    }


def _text(found: Survey) -> Iterator[str]:
    yield _headline(found)
    if found.findings:
        table = aligned([_row(finding) for finding in found.findings])
        for finding, line in zip(found.findings, table, strict=True):
            yield line
            yield from (f"    {remark}" for remark in _remarks(finding))
    yield from _note_lines(found)


def _markdown(found: Survey) -> Iterator[str]:
    yield f"## Change points\n\n{_headline(found)}\n"
    if found.findings:
        yield "| night | cause | change | nights | series | |\n| --- | --- | --- | --- | --- | --- |"
        for finding in found.findings:
            cells = (*_row(finding), "; ".join(_remarks(finding)))
            yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"
    yield "".join(f"\n- {line}" for line in _note_lines(found))


def _headline(found: Survey) -> str:
    if not found.series:
        return (
            "No night is in the history: add runs of the trigger nightly, hil history add (docs/nightly.md)."
        )
    return (
        f"{found.series} series over up to {found.nights} nights: {len(found.findings) or 'no'} change points"
    )


def _row(finding: Finding) -> tuple[str, ...]:
    point, name = finding.point, finding.name
    cause = f"{point.cause}, {finding.effect}" if finding.effect else point.cause
    kind = f" ({finding.kind})" if finding.kind else ""
    size = f"{point.change:+.1%} [{point.low:+.1%}, {point.high:+.1%}] {'of the ratio' * point.of_ratio}"
    return (
        str(point.night),
        cause,
        size.strip(),
        f"{point.nights} nights",
        f"{name.rack}/{name.board}{kind}: {name.metric} of {name.case_id}",
    )


def _remarks(finding: Finding) -> Iterator[str]:
    point = finding.point
    if point.cause == "firmware":
        yield f"first bad commit in {point.good[:12]}..{point.bad[:12]}: {bisect_command(finding)}"
    if finding.together:
        boards = sorted({series_id.split("/")[1] for series_id in finding.together})
        yield f"moved together with {len(finding.together)} other series on {', '.join(boards)}"
    if point.conditions:
        yield f"changed too: {'; '.join(point.conditions)}"
    elif point.cause == "environment":
        yield "nothing that the runs record changed that night"
    if point.note:
        yield point.note


def _note_lines(found: Survey) -> Iterator[str]:
    for note, series in found.notes.items():
        yield f"{len(series)} of {found.series} series: {note}."

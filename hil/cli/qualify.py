# SPDX-License-Identifier: Apache-2.0
"""``hil rack qualify``: what a rack's check is worth, from how it judged firmware that nobody changed."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from hil.base.errors import ExitCode
from hil.base.units import format_difference, unit_of
from hil.boards.rack import Rack, load_rack
from hil.cli.options import aligned, history_option, run_options, warn
from hil.history.files import read_past
from hil.history.from_run import keep_run
from hil.history.judgements import GATE, UnchangedRun, unchanged_runs
from hil.history.measuring import begin, until_done
from hil.history.qualification import (
    DAYS,
    NEEDED,
    Nature,
    Qualification,
    Share,
    Shares,
    SmallestSeen,
    counted,
    natures,
    qualify,
)
from hil.run.options import RunOptions
from hil.store import RunDirectory, read_run
from hil.store.run_info import is_unchanged

HIL_RUN = (sys.executable, "-m", "hil", "run")
SUITE = "pr"
_FOLDER = "qualify"
_NONE = "–"


@click.command("qualify", short_help="Show how often a rack blocks falsely, and what it detects.")
@click.option(
    "--runs", type=click.IntRange(1, 1000), metavar="N", help="Measure N runs first, as hil run does."
)
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=DAYS,
    show_default=True,
    metavar="N",
    help="Count what was judged in the last N days.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@history_option
@run_options("qualify")
def command(*, runs: int | None, days: int, as_json: bool, history_folder: Path, **given: Any) -> int:
    """Show how often a rack blocks unchanged firmware or is undecided, and which changes it detects.

    It reads the history, to which each `hil run --unchanged` adds itself. With --runs it measures first; the
    same command continues after Ctrl-C. Exits with 0 if the rack is qualified, else with 4.
    """
    options = RunOptions(**given, suite=SUITE, unchanged=True, no_report=True)
    loaded = load_rack(options.rack)
    if runs and as_json:
        raise click.UsageError("--json does not measure; measure first, with --runs alone.")
    if runs:
        _measure(loaded, runs, replace(options, out=options.out.absolute()), history_folder)
    past = read_past(history_folder, racks=[loaded.name])
    warn(past.left_out)
    known = unchanged_runs(past.runs)
    now = datetime.datetime.now(tz=datetime.UTC)
    found = qualify(known, nature_of(loaded), now=now, days=days)
    if as_json:
        click.echo(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        for line in [*lines(found), *_left_out(known, found, now)]:
            click.echo(line)
    return int(ExitCode.PASS if found.state == "qualified" else ExitCode.UNDECIDED)


def nature_of(rack: Rack) -> Nature:
    """Return what a rack file's own runs are: the kind of most of its boards, and its simulated noise."""
    kinds = [board.kind for board in rack.boards]
    noise = rack.access_point.noise
    return Nature(rack.name, max(sorted(set(kinds)), key=kinds.count), noise.profile if noise else "")


def _measure(rack: Rack, wanted: int, options: RunOptions, history: Path) -> None:
    """Measure until so many runs are in the history. Raises as until_done() does."""
    out = options.out
    state = out / _FOLDER / f"{rack.name}.json"
    after, goes_on = begin(state, options.arguments(), out)

    def entered() -> int:
        """Enter what was judged after that run; a run enters its own history, which need not be this one."""
        found = 0
        for directory in RunDirectory.list(out):
            if directory.run_id <= after or not _is_ours(directory, rack):
                continue
            found += keep_run(read_run(directory.path), history).unchanged is not None
        return found

    if goes_on:
        click.echo(f"Going on with what was begun: {entered()} of {wanted} runs are there.")
    until_done(hil_run(options), wanted, entered, click.echo)
    state.unlink(missing_ok=True)


def _is_ours(directory: RunDirectory, rack: Rack) -> bool:
    info = directory.read_info()
    return info.rack == rack.name and is_unchanged(info) and directory.verdicts_path.is_file()


def lines(found: Qualification) -> Iterator[str]:
    """Yield what is known, in lines of at most 80 columns."""
    nature = found.nature
    noise = f", simulated noise {nature.noise}" if nature.noise else ""
    yield f"rack {nature.rack} ({nature.kind}{noise}), the last {found.days} days, gate {GATE}"
    yield verdict_line(found)
    if not found.judgements:
        yield "Measure: hil rack qualify --runs 1, or hil run --suite pr --unchanged"
        return
    yield ""
    yield from _counts_table(found)
    yield ""
    yield from _seen_table(found.seen)


def verdict_line(found: Qualification) -> str:
    """Return "advisory: 48 of 200 judgements; one night adds about 10"."""
    if found.state == "advisory":
        night = f"; one night adds about {found.per_night:.0f}" if found.judgements else ""
        return f"advisory: {found.judgements} of {NEEDED} judgements{night}"
    if found.state == "not fit":
        low = found.counts.runs_blocked.low
        return f"not fit: at least {low:.1%} of its runs are blocked falsely, of {found.alpha:.1%} allowed"
    return f"qualified: {found.judgements} judgements"


def _counts_table(found: Qualification) -> Iterator[str]:
    """Yield shares of judgements and of runs, by target and for the whole rack."""
    rows: list[tuple[str, ...]] = [("", "", "blocked falsely", "undecided")]
    for name, counts in (*found.by_target.items(), ("all", found.counts)):
        rows += _count_rows(name, counts)
    yield from aligned(rows)


def _count_rows(name: str, counts: Shares) -> list[tuple[str, ...]]:
    return [
        (name, f"{counts.blocked.of} judged", _share(counts.blocked), _share(counts.undecided)),
        ("", f"{counts.runs_blocked.of} runs", _share(counts.runs_blocked), _share(counts.runs_undecided)),
    ]


def _share(one: Share) -> str:
    """Return "2, 0.9 % [0.1, 3.4]", the 95 % interval in brackets."""
    return f"{one.hits}, {one.hits / max(1, one.of):.1%} [{100 * one.low:.1f}, {100 * one.high:.1f}]"


def _seen_table(seen: Sequence[SmallestSeen]) -> Iterator[str]:
    if not seen:
        return
    yield from aligned(
        [
            ("smallest change seen", "", "median", "95 %", "worst"),
            *(
                (
                    one.metric,
                    str(one.judgements),
                    _size(one, one.median),
                    _interval(one),
                    _size(one, one.worst),
                )
                for one in seen
            ),
        ]
    )


def _interval(one: SmallestSeen) -> str:
    """Return "7.9 to 8.2" of a share, whose unit stands beside it."""
    low, high = (_NONE if bound is None else _size(one, bound) for bound in (one.low, one.high))
    if one.relative or unit_of(one.metric).name == "ratio":
        low, high = (bound.removesuffix("%").removesuffix(" points") for bound in (low, high))
    return f"{low} to {high}"


def _size(one: SmallestSeen, size: float) -> str:
    if one.relative:
        return f"{size:.1%}"
    unit = unit_of(one.metric)
    return f"{100 * size:.1f} points" if unit.name == "ratio" else format_difference(size, unit)


def _left_out(known: Sequence[UnchangedRun], found: Qualification, now: datetime.datetime) -> Iterator[str]:
    """List the runs of this rack in the history that do not count."""
    recent = counted(known, now=now, days=found.days)
    others = [one for one in natures(recent, found.nature.rack) if one != found.nature]
    for other in others:
        more = qualify(recent, other, now=now, days=found.days)
        noise = f", simulated noise {other.noise}" if other.noise else ""
        yield f"Not counted: {more.judgements} judgements of {other.kind} boards{noise}."
    if old := len(known) - len(recent):
        yield f"Not counted: {old} run{'s' * (old > 1)} of another gate, or more than {found.days} days ago."


def hil_run(options: RunOptions) -> list[str]:
    """Return the command of one run."""
    return [*HIL_RUN, *options.arguments()]

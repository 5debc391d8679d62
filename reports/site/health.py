# SPDX-License-Identifier: Apache-2.0
"""The page of the racks' own health, rack/index.html of the report: no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from html import escape
from pathlib import Path

from hil.base.errors import ConfigError
from hil.boards.health import BoardHealth, RackHealth, RunHealth, health_of, read_lines, summarise, with_runs
from hil.boards.health.lines import HEALTH_FILE
from hil.boards.health.quarantine import describe
from hil.boards.health.summary import DEFAULT_DAYS
from hil.boards.health.types import DAY_S, BoardRun, rig_failed, unix_s, utc
from hil.boards.health.words import HEAD, advice, cells, kinds, moment, rack_lines, runs_of, state_of
from hil.reports import page as markup
from hil.reports.kinds import kind_remark
from hil.reports.page import frame
from hil.reports.stored import by_name
from hil.store import StoredRun

ADDRESS = "rack/index.html"
_NEWEST_CELLS = 100  # a strip is no wider than a page
_CELL, _GAP, _HEIGHT = 9, 2, 18
_LEFT_OUT = "earlier runs are left out, their file is damaged"
_LEGEND = (
    "A cell is a run, the newest on the right: ■ measured, ✗ the rig failed, ! another fault, "
    "◌ in quarantine, · not run. Point at one for its date and fault."
)
_STYLE = """
.strip { max-width: none; width: auto; } .strip rect { rx: 2px; stroke: var(--card); stroke-width: .5; }
.strip .good { fill: var(--good); } .strip .bad { fill: var(--bad); } .strip .unsure { fill: var(--unsure); }
.strip .soft { fill: var(--rule); } .strip text { font-size: 10px; fill: var(--card); pointer-events: none; }
.strip .onrule { fill: var(--ink); }
tbody tr:not(.below) td { border-bottom: 0; white-space: nowrap; }
.below td { padding-top: 0; font-size: 12.5px; color: var(--soft); }
"""


def read_health(history: Path, reported: Sequence[StoredRun]) -> tuple[list[RunHealth], str]:
    """Return the runs of the history's file with those that are ``reported``, whether or not it has them.

    A damaged file costs the runs in it, not the report; then the sentence names the line and the way out.
    Raises RigError where the disk does not give the file.
    """
    own = [health_of(run) for run in reported]
    try:
        return with_runs(read_lines(history / HEALTH_FILE), own), ""
    except ConfigError as error:
        return own, f"Earlier runs are left out: {by_name(str(error), history)}"


def write_health(
    site: Path, history: Path, reported: Sequence[StoredRun], shorten: Callable[[bytes], bytes]
) -> tuple[str, ...]:
    """Write the page into ``site``; return what the first page says of each rack.

    Raises RigError as read_health() does, and OSError.
    """
    runs, note = read_health(history, reported)
    until_s = _until_s(runs, {run.run_id for run in reported})
    page = site / ADDRESS
    page.parent.mkdir(parents=True)
    page.write_bytes(shorten(render_health(runs, until_s, note=note).encode()))
    told = rack_states(summarise(runs, now_utc=utc(until_s)))
    return (*told, _LEFT_OUT) if note else tuple(told)


def _until_s(runs: Sequence[RunHealth], reported: Collection[str]) -> float:
    """Return when the newest reported run ended, so that the same runs always give the same page."""
    ends_s = {run.run_id: end_s for run in runs if (end_s := _end_s(run)) is not None}
    return max(
        (end_s for name, end_s in ends_s.items() if name in reported),
        default=max(ends_s.values(), default=0.0),
    )


def render_health(runs: Sequence[RunHealth], until_s: float, *, note: str = "") -> str:
    """Return the page of the racks with a run in the last days up to ``until_s`` (seconds since 1970).

    ``note`` says what stood in the way of knowing more.
    """
    racks = summarise(runs, now_utc=utc(until_s))
    start_s = until_s - DEFAULT_DAYS * DAY_S
    kept = [run for run in runs if start_s <= (unix_s(run.started_utc) or 0.0) <= until_s]
    title = f"Rack health · {', '.join(rack.rack for rack in racks) or 'no rack'}"
    remark = kind_remark(board.kind for rack in racks for board in rack.boards)
    body = [
        '<nav><a href="../index.html">← Verdict</a></nav>',
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">The {DEFAULT_DAYS} days up to {moment(utc(until_s))} UTC.</p>',
        f'<p class="remark">{escape(remark)}</p>' if remark else "",
        f'<p class="remark">{escape(note)}</p>' if note else "",
        *(_rack(rack, [run for run in kept if run.rack == rack.rack]) for rack in racks),
        f'<p class="soft">{escape(_LEGEND)}</p>' if racks else "",
    ]
    return frame(title, body, more_style=_STYLE)


def _end_s(run: RunHealth) -> float | None:
    started_s = unix_s(run.started_utc)
    return None if started_s is None else started_s + (run.held_s or 0.0)


def _rack(rack: RackHealth, runs: Sequence[RunHealth]) -> str:
    head = markup.row("th", HEAD, names=4)
    rows = [_board(board, runs) for board in rack.boards]
    heading = f"Rack {rack.rack} ({kinds(rack)}): {runs_of(rack)}"
    facts = "".join(f"<li>{escape(line)}</li>" for line in rack_lines(rack))
    told = [markup.bold(line, "unsure") for line in advice(rack)]
    return (
        markup.table(heading, head, rows)
        + f'<ul class="plain">{facts}</ul>'
        + markup.items("What to do", told, most=len(told))
    )


def _board(board: BoardHealth, runs: Sequence[RunHealth]) -> str:
    """Return a row of figures, and below it one cell a run and what there is to know."""
    name, kind, target, _, *figures = cells(board)
    state = state_of(board)
    left = [name, kind, target, markup.bold(str(state), state.tone)]
    parts = [(run, part) for run in runs for part in run.boards if part.board == board.board]
    told = [
        describe(board.quarantine) if board.quarantine else "",
        f"last fault of the rig: {board.last_fault}" if board.last_fault else "",
    ]
    below = "".join(f"<p>{escape(line)}</p>" for line in filter(None, told))
    row = markup.row("td", [*left, *figures], names=len(left))
    return f'{row}<tr class="below"><td colspan="{len(HEAD)}">{_strip(board, parts)}{below}</td></tr>'


def _strip(board: BoardHealth, parts: Sequence[tuple[RunHealth, BoardRun]]) -> str:
    """Return a cell a run as SVG, each with a sign where it was not simply measured."""
    newest = parts[-_NEWEST_CELLS:]
    width = max(1, len(newest)) * (_CELL + _GAP)
    label = f"{len(newest)} runs of board {board.board}"
    drawn = "".join(_drawn(n * (_CELL + _GAP), run, part) for n, (run, part) in enumerate(newest))
    older = (
        f'<span class="soft">and {len(parts) - len(newest)} earlier</span>'
        if len(parts) > len(newest)
        else ""
    )
    return (
        f'<svg class="strip" role="img" aria-label="{escape(label)}" width="{width}" height="{_HEIGHT}" '
        f'viewBox="0 0 {width} {_HEIGHT}">{drawn}</svg>{older}'
    )


def _drawn(x: int, run: RunHealth, part: BoardRun) -> str:
    tone, sign, words = _cell(part)
    told = f"{moment(run.started_utc)} UTC: {words}. Run {run.run_id}"
    rect = f'<rect class="{tone}" x="{x}" y="0" width="{_CELL}" height="{_HEIGHT}"></rect>'
    style = "m onrule" if tone == "soft" else "m"
    text = f'<text class="{style}" x="{x + _CELL / 2}" y="13">{sign}</text>' if sign else ""
    return f"<g><title>{escape(told)}</title>{rect}{text}</g>"


def _cell(part: BoardRun) -> tuple[str, str, str]:
    """Return tone, sign and words of a run on a board."""
    if part.state == "quarantined":
        return "soft", "◌", "in quarantine"
    if part.state == "not-run":
        return "soft", "·", "not run"
    if rig_failed(part):
        return "bad", "✗", f"the rig failed: {part.first_fault}".rstrip(".")
    if part.state == "faulted":
        owners = ", ".join(part.faults)
        return "unsure", "!", f"a fault of the {owners}: {part.first_fault}".rstrip(".")
    return "good", "", "measured"


def rack_states(racks: Sequence[RackHealth]) -> Iterator[str]:
    """Yield what the first page says of each rack: "virtual: 3 boards up, 1 down (v3)"."""
    for rack in racks:
        down = [board.board for board in rack.boards if board.down_since_utc and not board.quarantine]
        kept_out = [board.board for board in rack.boards if board.quarantine]
        up = len(rack.boards) - len(down) - len(kept_out)
        parts = [
            f"{up} board{'' if up == 1 else 's'} up",
            f"{len(down)} down ({', '.join(down)})" if down else "",
            f"{len(kept_out)} in quarantine ({', '.join(kept_out)})" if kept_out else "",
        ]
        yield f"{rack.rack}: {', '.join(filter(None, parts))}"

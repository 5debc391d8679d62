# SPDX-License-Identifier: Apache-2.0
"""``hil rack status``: one screen for all racks: who has a board since when, what is kept out, last runs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from hil.base.errors import HilError
from hil.base.untrusted import terminal
from hil.base.yamlfile import load
from hil.boards.lease import KEPT_DIR, Holder, lock_dir, read_holder
from hil.boards.places.lease import PlaceState, places_at
from hil.boards.places.settings import rack_with_places, read_places
from hil.boards.quarantine import folder_of, read_quarantine
from hil.boards.rack import load_rack
from hil.cli.options import DEFAULT_RACK, out_option, warn
from hil.history import history_of
from hil.history.files import read_past
from hil.model import Quarantine
from hil.virtual.virtual_rack import boards_up

HOST_RACKS = Path("/etc/hil")
COLUMNS = 80  # of what is not a terminal
HEAD = ("board", "target", "state", "held by", "since (UTC)", "last run (UTC)")
_HELD = HEAD.index("held by")
_WIDTH_LEAST = 12


@dataclass(frozen=True)
class BoardRow:
    """A board: cells as in HEAD; ``is_quiet`` where it is free and sound, so that it may be left out.

    ``note`` is who keeps it out, since when and why, "" where nobody does.
    """

    cells: tuple[str, ...]
    is_quiet: bool
    note: str = ""


@dataclass(frozen=True)
class RackSection:
    """A rack, or a sentence why nothing is known of it."""

    name: str
    rows: Sequence[BoardRow] = ()
    sentence: str = ""

    @property
    def head(self) -> str:
        free = sum(row.is_quiet for row in self.rows)
        counted = f"{len(self.rows)} board{'s' * (len(self.rows) != 1)}, {free} free and sound"
        return f"rack {self.name}: {self.sentence or counted}"


@click.command("status")
@click.option(
    "--rack",
    "racks",
    type=click.Path(path_type=Path),
    multiple=True,
    help=f"Rack file; repeatable. [default: those in {HOST_RACKS}, and the one that `hil run` takes]",
)
@out_option
def command(*, racks: tuple[Path, ...], out: Path) -> None:
    """Show for all racks who holds which board, which boards are kept out, and how each last run ended.

    On a small terminal, free and healthy boards are only counted. Exits with 0 always, even if a coordinator
    does not answer.
    """
    files = racks or tuple(dict.fromkeys((*sorted(HOST_RACKS.glob("*.yaml")), DEFAULT_RACK)))
    last = last_runs(out)
    sections = [section_of(file, out, last) for file in files]
    size = shutil.get_terminal_size() if sys.stdout.isatty() else None
    width, height = (size.columns, size.lines - 1) if size else (COLUMNS, None)
    for line in screen(sections, width, height):
        click.echo(line)


def section_of(file: Path, out: Path, last: Mapping[tuple[str, str], str]) -> RackSection:
    """Return what is known of a rack; an error of it is a sentence there, for the others are shown too."""
    try:
        origin = rack_with_places(file)
        settings = read_places(origin)
        if settings is None:
            return _own(file, out, last)
        name = load(origin).text("name")
        kept = {**read_quarantine(KEPT_DIR / name), **read_quarantine(out / "lock" / name)}
        return RackSection(name, [_leased(place, name, kept, last) for place in places_at(settings)])
    except HilError as error:
        return RackSection(file.stem, sentence=terminal(str(error)))


def _own(file: Path, out: Path, last: Mapping[tuple[str, str], str]) -> RackSection:
    rack = load_rack(file)
    up, kept, locks = boards_up(rack, out), read_quarantine(folder_of(rack, out)), lock_dir(rack, out)
    rows = []
    for board in rack.boards:
        holder = read_holder(locks, board.id)
        at = f"free, up at 127.0.0.1:{up[board.id].tcp_port}" if board.id in up else "free"
        since = holder.since_utc if holder else ""
        state = "quarantined" if board.id in kept else "ok"
        told = (board.id, board.chip, state, _who(holder) if holder else at, _short(since))
        quiet = holder is None and board.id not in kept
        rows.append(BoardRow((*told, last.get((rack.name, board.id), "")), quiet, _kept_out(kept, board.id)))
    return RackSection(f"{rack.name} ({', '.join(sorted({board.kind for board in rack.boards}))})", rows)


def _leased(
    place: PlaceState, rack: str, kept: Mapping[str, Quarantine], last: Mapping[tuple[str, str], str]
) -> BoardRow:
    board = place.tags.get("board", place.name)
    state = "quarantined" if board in kept else "ok" if place.exporter else "no exporter"
    since = datetime.fromtimestamp(place.changed, UTC).isoformat() if place.acquired else ""
    told = (place.name, place.tags.get("target", ""), state, place.acquired or "free", _short(since))
    quiet = not place.acquired and state == "ok"
    return BoardRow((*map(terminal, told), last.get((rack, board), "")), quiet, _kept_out(kept, board))


def _kept_out(kept: Mapping[str, Quarantine], board: str) -> str:
    """Return "quarantined by check, since 11-24 06:41: it says nothing", "" where nobody keeps it out."""
    if board not in kept:
        return ""
    one = kept[board]
    return terminal(f"quarantined by {one.who}, since {_short(one.since_utc)}: {one.why}")


def _who(holder: Holder) -> str:
    return f"{holder.who}, pid {holder.pid}" if holder.pid else holder.who


def _short(utc: str) -> str:
    """Return "11-24 13:37" of a moment in UTC."""
    return utc[5:16].replace("T", " ")


def last_runs(out: Path) -> dict[tuple[str, str], str]:
    """Return when each board, by rack and id, was last in a run, and with which status that ended."""
    past = read_past(history_of(out))
    warn(past.left_out)
    return {
        (run.rack, board.board): f"{_short(run.started_utc)} exit {run.exit_code}"
        for run in past.runs
        for board in run.health.boards
    }


def screen(sections: Sequence[RackSection], width: int, height: int | None) -> list[str]:
    """Return the lines. Where there are more than ``height``, quiet boards are left out, and counted."""
    whole = [line for section in sections for line in _lines(section, section.rows, width)]
    if height is None or len(whole) <= height:
        return whole
    lines: list[str] = []
    for section in sections:
        loud = [row for row in section.rows if not row.is_quiet]
        lines += _lines(section, loud, width)
    if len(lines) > height:
        return [*lines[: height - 1], f"… {len(lines) - height + 1} more lines: hil rack status | less"]
    return lines


def _lines(section: RackSection, rows: Sequence[BoardRow], width: int) -> list[str]:
    head = [section.head[:width]] if section.rows else [section.head]
    if not rows:
        return head
    table = [HEAD, *(row.cells for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    others = sum(widths) - widths[_HELD] + 2 * len(HEAD)
    widths[_HELD] = min(widths[_HELD], max(_WIDTH_LEAST, width - others))
    lines = [*head, _line(HEAD, widths)]
    for row in rows:
        lines.append(_line(row.cells, widths))
        if row.note:
            lines.append(_cut(f"    {row.note}", width))
    return lines


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return f"  {'  '.join(map(str.ljust, map(_cut, cells, widths), widths))}".rstrip()


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 1]}…"

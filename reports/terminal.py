# SPDX-License-Identifier: Apache-2.0
"""The end of a run on one screen: the figures that matter, what to do next, where things are, the verdict.

The verdict stands last, where a person looks when a command has ended. The tables are for ``--verbose``, and
in the report.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from hil.gate.words.banner import Banner
from hil.model import RunRecord, Verdict
from hil.reports.boards import split_not_run
from hil.reports.view.marks import Fixed, Words, count
from hil.reports.view.run import View, view_of
from hil.reports.view.source import Source
from hil.reports.view.text import COLOURS, line, lines_of, whole, written
from hil.store import RunInfo
from hil.store.reported import NOT_REPORTED, Reported

_AROUND_FIGURES = 2  # lines, above and below
_LINES = 23  # of a terminal of 24: the prompt that follows has the last
_METRIC_WIDTH = 26  # of a figure that matters
_BOARD_WIDTH = 13
_VALUE = 4  # its column, of six
# parts whose lines stand on the one screen, in their order
_NOTED = ("undecided", "reporting", "wrong", "traces", "losses", "not run", "notes")


def render_screen(
    run_info: RunInfo,
    verdict: Verdict,
    records: Sequence[RunRecord],
    *,
    run_path: str,
    console: Console,
    reported: Reported = NOT_REPORTED,
    status: str = "",
    verbose: bool = False,
) -> None:
    """Print the last screen of a run: at most 23 lines of 80 columns, unless ``verbose``.

    ``reported`` is what became of the reports, ``status`` what the exit status says where it is not the
    verdict's own; "" where there is nothing to say.
    """
    view = view_of(Source(verdict, run_info, records, reported=reported))
    tail = [
        *(Text.assemble(("Next     ", "bold"), written(step)) for step in view.steps),
        _whereabouts(run_path, reported.report),
        *([Text.assemble(("Status   ", "bold"), status)] if status else []),
        *_banner(view.headline),
    ]
    head: list[RenderableType] = [Text(_measured(run_info, records), style="dim")]
    remarks = [Text(written(remark), style="dim") for remark in view.remarks]
    if verbose:
        parts = [*head, *(one for part in view.parts for one in whole(part, console.width)), *remarks]
    else:
        notes = [*_notes(view, verdict), *remarks]
        left = _LINES - sum(_height(console, part) for part in (*head, *tail))
        figures = view.figures[: max(1, left - _AROUND_FIGURES - bool(notes))]
        table = [_figure_table(figures, console.width)] if figures else []
        left -= sum(_height(console, part) for part in table)
        parts = [*head, *table, *_fitting(console, notes, left)]
    for part in (*parts, *tail):
        console.print(part)


def _banner(said: Banner) -> list[RenderableType]:
    """Return the verdict in one line, as long as it is, below a rule in its colour."""
    colour = COLOURS[said.tone].removeprefix("bold ")
    title, sentence = f"{said.sign} {said.title}", said.text.removeprefix(said.title)
    return [Rule(style=colour), Text.assemble((title, f"bold {colour}"), written(sentence))]


# ---- the figures that matter ----


def _figure_table(figures: Sequence[tuple[Words, ...]], width: int) -> RenderableType:
    """Return one line a figure: of its case stands what there is room for."""
    texts = [[written(cell) for cell in cells] for cells in figures]
    widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    widths[1], widths[3] = min(widths[1], _METRIC_WIDTH), min(widths[3], _BOARD_WIDTH)
    widths[2] = max(1, min(widths[2], width - sum(widths) + widths[2] - len(widths)))
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), expand=False)
    for column, wide in enumerate(widths):
        justify: Literal["left", "right"] = "right" if column == _VALUE else "left"
        table.add_column(no_wrap=True, overflow="ellipsis", width=wide, justify=justify)
    for (sign, *_), cells in zip(figures, texts, strict=True):
        case, room = cells[2], widths[2]
        cells[2] = _cut(case, room)
        style = COLOURS[sign.tone] if isinstance(sign, Fixed) else ""
        table.add_row(*(Text(cell, style=style) for cell in cells))
    return Padding(table, (1, 0, 1, 0))


def _cut(case: str, room: int) -> str:
    """Return what tells a case in the room there is: all of it, its last parameter, or that one's value."""
    parameter = case.rpartition(",")[2]
    value = parameter.rpartition("=")[2]
    fitting = [text for text in (case, parameter, value) if len(text) <= room]
    return fitting[0] if fitting else f"{value[: room - 1]}…"


# ---- notes ----


def _height(console: Console, part: RenderableType) -> int:
    return len(console.render_lines(part))


def _fitting(console: Console, notes: Sequence[Text], lines: int) -> list[Text]:
    """Return the notes that fit, and how many there are besides."""
    heights = [_height(console, note) for note in notes]
    if sum(heights) <= lines:
        return list(notes)
    shown: list[Text] = []
    for note, height in zip(notes, heights, strict=True):
        lines -= height
        if lines < 1:
            break
        shown.append(note)
    left = len(notes) - len(shown)
    return [*shown, Text(f"  … and {left} more, in the summary", style="dim")]


def _notes(view: View, verdict: Verdict) -> list[Text]:
    """Return what is worth knowing besides the figures; a fault that the verdict names is not said twice."""
    parts = {part.name: part for part in view.parts}
    found = [text for name in _NOTED if name in parts for text in lines_of(parts[name])]
    if "planted" in parts:  # which a case is about: that there is some will do
        found.append(line(f"{written(parts['planted'].heading)} (hil ledger)", "→ ", "cyan"))
    if ruled_out := sum(item.cause == "ruled-out" for item in split_not_run(verdict)[1]):
        words = f"{count(ruled_out, 'case')} that these boards cannot measure, in the summary"
        found.append(line(words, "– left out: ", "dim"))
    told = [
        written(fault.sentence) for fault in verdict.faults if fault.sentence.rstrip(".") in verdict.sentence
    ]
    return [text for text in found if not any(sentence in text.plain for sentence in told)]


def _measured(info: RunInfo, records: Sequence[RunRecord]) -> str:
    """Return "Suite quick on rack virtual: 4 boards, 7 cases, 2,500 samples."."""
    cases = len({record.case_id for record in records})
    boards = len({record.board for record in records})
    samples = sum(record.measured_rows for record in records)
    product = f" of {info.product}" if info.product else ""
    counts = f"{count(boards, 'board')}, {count(cases, 'case')}, {samples:,} samples."
    return written(f"Suite {info.suite}{product} on rack {info.rack}: {counts}")


def _whereabouts(run_path: str, report: str | None) -> Text:
    return Text(
        (f"Report   {report}\n" if report else "") + f"Summary  {run_path}/summary.md\n"
        f"Figures  hil gate {shlex.quote(run_path)} --verbose",
        style="dim",
        overflow="fold",
    )

# SPDX-License-Identifier: Apache-2.0
"""The end of a run on one screen: verdict, limits, what broke, what was not run, where things are."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from hil.gate.words.banner import Banner, banner_of, noted_changes
from hil.model import ComparedSeries, RunRecord, Verdict
from hil.reports import compared, rows
from hil.reports.boards import not_run_groups, remarks
from hil.reports.current_notes import current_notes
from hil.reports.ledger import loss_total
from hil.reports.trace_notes import TraceNote, trace_notes

_MOST_BOARDS = 4
_FEWEST_LINES = 24
_FEWEST_NOTES = 2
_FEWEST_COMPARED = 3
_SLACK = 4  # by which a heading may be wider than what stands below it
_LIMIT_WIDTH = 22  # limit and number of cases
_CELL_WIDTH = 11
_COLOURS = {"good": "green", "open": "yellow", "bad": "red"}


def render_verdict(
    run_info: Mapping[str, Any],
    verdict: Verdict,
    records: Sequence[RunRecord],
    *,
    run_path: str,
    console: Console,
    more: str = "",
) -> None:
    """Print verdict, limits, and as many notes as leave room for the whereabouts of ``run_path``.

    ``more`` is what the whereabouts say of more boots.
    """
    said = banner_of(verdict, noted_changes(run_info))
    head = [_headline(said), Text(f"{said.sentence} {_measured(run_info, records)}")]
    told = [Text(remark, style="dim") for remark in remarks(run_info, verdict)]
    tail = _whereabouts(run_path, f"{run_path}/report/index.html", more)  # where the report is not known yet
    if any(item.blocking for item in verdict.compared):
        around = sum(_height(console, part) for part in (*head, *told, tail))
        head.append(_comparison_table(verdict, console, _lines_of(console) - around - _FEWEST_NOTES))
    elif any(item.limit is not None for item in verdict.series):
        head.append(_limit_table(verdict, console.width))
    head += told
    used = sum(_height(console, part) for part in (*head, tail))
    for part in (
        *head,
        *_fitting(console, _notes(verdict, records, run_path), _lines_of(console) - used - 1),
    ):
        console.print(part)


def render_whereabouts(
    run_path: str, report: str | None, warnings: Sequence[str], *, console: Console, more: str = ""
) -> None:
    """Print what could not be reported, where the report is, if it was built, and where the run is.

    ``more`` says how an undecided run is taken further, "" where it is not.
    """
    for part in (*map(_warning, warnings), _whereabouts(run_path, report, more)):
        console.print(part)


def _lines_of(console: Console) -> int:
    return max(_FEWEST_LINES, console.height if console.is_terminal else 0)


def _height(console: Console, part: RenderableType) -> int:
    return len(console.render_lines(part))


def _fitting(console: Console, notes: Sequence[Text], lines: int) -> list[Text]:
    """Return the notes that fit, and how many there are besides."""
    shown: list[Text] = []
    for note in notes:
        lines -= _height(console, note)
        if lines < 1 and len(shown) + 1 < len(notes):
            break
        shown.append(note)
    left = len(notes) - len(shown)
    return [*shown, Text(f"  … and {left} more in the summary", style="dim")] if left else shown


def _notes(verdict: Verdict, records: Sequence[RunRecord], run_path: str) -> list[Text]:
    """Return what broke, what traces and loss ledgers say, what failed, was not run and is worth knowing, in
    this order."""
    broken = _broken(verdict, trace_notes(records, verdict))
    if lost := loss_total(records):
        broken.append(Text.assemble(("→ ", "cyan"), f"{lost}. Each of them: hil ledger {run_path}"))
    faults = [
        Text.assemble((f"! {fault.owner}", "bold yellow"), f"{_on(fault.board)}: {fault.sentence}")
        for fault in verdict.faults
        if fault.sentence.rstrip(".") not in verdict.sentence
    ]
    not_run = [
        Text.assemble(("– not run: ", "dim"), f"{_plural(count, 'case')} on {', '.join(boards)}: {reason}")
        for reason, count, boards in not_run_groups(one for one in verdict.not_run if not one.to)
    ]
    return [
        *broken,
        *faults,
        *not_run,
        *(_warning(text) for text in (*verdict.warnings, *current_notes(records))),
    ]


def _broken(verdict: Verdict, notes: Sequence[TraceNote]) -> list[Text]:
    """Return what broke, each with what its trace says; then the traces of what did not break."""
    lines: list[Text] = []
    told: list[TraceNote] = []
    for item, line in rows.broken_cases(verdict):
        own = [note for note in notes if (note.board, note.case_id) == (item.board, item.case_id)]
        lines.append(Text.assemble(("✗ ", "bold red"), line))
        lines += [Text.assemble(("→ ", "cyan"), note.finding) for note in own]
        told += own
    lines = [*(Text.assemble(("✗ ", "bold red"), line) for line in compared.blocked_lines(verdict)), *lines]
    return [*lines, *(Text.assemble(("→ ", "cyan"), note.line) for note in notes if note not in told)]


def _warning(sentence: str) -> Text:
    return Text.assemble(("? ", "yellow"), sentence)


def _headline(said: Banner) -> RenderableType:
    colour = _COLOURS[said.tone]
    return Rule(Text(f" {said.title} ", style=f"bold reverse {colour}"), style=colour)


def _measured(run_info: Mapping[str, Any], records: Sequence[RunRecord]) -> str:
    """Return "Suite quick on rack virtual: 4 boards, 7 cases, 2,500 samples."."""
    cases = len({record.case_id for record in records})
    boards = len({record.board for record in records})
    samples = sum(record.measured_rows for record in records)
    suite = f"Suite {run_info['suite']}" if run_info.get("suite") else "Run"
    product = f" of {run_info['product']}" if run_info.get("product") else ""
    rack = f" on rack {run_info['rack']}" if run_info.get("rack") else ""
    return (
        f"{suite}{product}{rack}: {_plural(boards, 'board')}, {_plural(cases, 'case')}, {samples:,} samples."
    )


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _limit_table(verdict: Verdict, width: int) -> RenderableType:
    """Return the limits that block; a metric has its bench where ``width`` leaves room for it."""
    boards = rows.boards(verdict)
    wide = len(boards) <= _MOST_BOARDS
    kinds = {item.board: item.kind for item in verdict.series}
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=False)
    table.add_column("worst of its cases", no_wrap=True)
    table.add_column("limit", justify="right", no_wrap=True)
    table.add_column("cases", justify="right", no_wrap=True)
    for board in boards if wide else []:
        table.add_column(f"{board}\n{kinds[board]}", justify="right", overflow="fold")
    if not wide:
        table.add_column(f"worst of {len(boards)} boards\n{', '.join(rows.kinds(verdict))}", justify="right")
    found = [row for row in rows.limit_rows(verdict) if row.blocking]
    longest = max((len(row.name) for row in found), default=0)
    named = longest + _LIMIT_WIDTH + _CELL_WIDTH * min(len(boards), _MOST_BOARDS) <= width
    for row in found:
        cells = [_cell(cell) for cell in row.cells]
        if not wide:
            worst = max(range(len(cells)), key=lambda n: (row.cells[n].broken, row.cells[n].badness))
            cells = [Text.assemble(cells[worst], f" on {boards[worst]}")]
        table.add_row(row.name if named else row.metric, row.limit, str(row.cases), *cells)
    return Padding(table, (1, 0, 1, 0))


def _comparison_table(verdict: Verdict, console: Console, lines: int) -> RenderableType:
    """Return the comparisons that block, the worst first: as many as fit ``lines``, and what the rest are."""
    found = [item for item in compared.ranked(verdict) if item.blocking]
    for shown in range(len(found), 0, -1):
        table = _compared_rows(found[:shown], found[shown:], console.width)
        if shown <= _FEWEST_COMPARED or _height(console, table) <= lines:
            break
    return table


def _compared_rows(
    shown: Sequence[ComparedSeries], rest: Sequence[ComparedSeries], width: int
) -> RenderableType:
    """Return comparisons target by target, a line each: of a case stands what there is room for."""
    cells = {item.series_id: _comparison_cells(item) for item in shown}
    others = [max(len(row[n]) for row in cells.values()) + 1 for n in (0, 1, 3, 4, 5)]
    room = max(width - sum(others) - _SLACK, _CELL_WIDTH)
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim", expand=False)
    table.add_column("", no_wrap=True)
    table.add_column("metric", no_wrap=True)
    table.add_column("case", overflow="ellipsis", no_wrap=True, max_width=room)
    for name in ("change", "interval", "boots"):
        table.add_column(name, justify="right", no_wrap=True)
    for target in dict.fromkeys(item.target for item in shown):
        table.add_row("", Text(target, style="dim"))
        for item in shown:
            if item.target == target:
                table.add_row(*cells[item.series_id])
    counts = Counter(item.outcome for item in rest)
    words = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    more = [Text(f"  … and {len(rest)} more in the summary: {words}", style="dim")] if rest else []
    return Padding(Group(table, *more), (1, 0, 1, 0))


def _comparison_cells(item: ComparedSeries) -> list[Text]:
    style = {"regressed": "bold red", "improved": "green", "pass": ""}.get(item.outcome, "yellow")
    sign, metric, case, _, change, interval, _, _, boots, _ = compared.cells(item)
    short = change.removesuffix(compared.EARLY_MARK)  # a case has more need of the room
    return [Text(text, style=style) for text in (sign, metric, case, short, interval, boots)]


def _cell(cell: rows.Cell) -> Text:
    if cell.broken:
        return Text(f"{cell.text} ✗", style="bold red")
    return Text(
        f"{cell.text} ?" if cell.marginal else f"{cell.text}  ", style="yellow" if cell.marginal else ""
    )


def _on(board: str) -> str:
    return f" ({board})" if board else ""


def _whereabouts(run_path: str, report: str | None, more: str) -> Text:
    return Text(
        (f"More     {more}\n" if more else "")
        + (f"Report   {report}\n" if report else "")
        + f"Summary  {run_path}/summary.md\n"
        f"Folder   {run_path} (records.jsonl, console/)\n"
        f"Replay   hil gate {shlex.quote(run_path)}",
        style="dim",
        overflow="fold",
    )

# SPDX-License-Identifier: Apache-2.0
"""The end of a run on one screen: the figures that matter, what to do next, where things are, the verdict.

The verdict stands last, where a person looks when a command has ended. The tables are for ``--verbose``, and
in the report.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from hil.base.errors import ExitCode
from hil.base.git import bisect_command
from hil.base.untrusted import terminal
from hil.gate.words.banner import Banner, banner_of
from hil.model import ComparedSeries, RunRecord, SeriesVerdict, Verdict, bench_of
from hil.reports import compared, rows
from hil.reports.boards import not_run_groups, remarks
from hil.reports.current_notes import current_notes
from hil.reports.ledger import loss_total
from hil.reports.names import case_name, human_metric
from hil.reports.trace_notes import TraceNote, trace_notes
from hil.store import RunInfo
from hil.store.reported import NOT_REPORTED, Reported
from hil.store.run_info import measured_commit

_MOST_BOARDS = 4
_MOST_FIGURES = 5
_TENFOLD = 10.0  # from here on times are read, not per cent
_AROUND_FIGURES = 2  # lines, above and below
_MOST_CHANGES = 2  # of comparisons that passed, beside limits
_LINES = 23  # of a terminal of 24: the prompt that follows has the last
_SLACK = 4  # by which a heading may be wider than what stands below it
_LIMIT_WIDTH = 22  # limit and number of cases
_CELL_WIDTH = 11
_METRIC_WIDTH = 26  # of a figure that matters
_BOARD_WIDTH = 13
_VALUE = 4  # its column, of six
_COLOURS = {"good": "green", "open": "yellow", "bad": "red"}
_MOST_CHARACTERS = 4000  # of a sentence: what a person reads is not cut


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
    said = banner_of(verdict, reported.changes)
    tail = [
        *_next_steps(run_info, verdict, reported.changes),
        _whereabouts(run_path, reported.report),
        *([Text.assemble(("Status   ", "bold"), status)] if status else []),
        *_banner(said),
    ]
    head: list[RenderableType] = [Text(_measured(run_info, records), style="dim")]
    remarked = [Text(remark, style="dim") for remark in remarks(run_info, verdict)]
    notes = [
        *map(_warning, reported.warnings),
        *_notes(verdict, records, run_path, verbose=verbose),
        *remarked,
    ]
    if verbose:
        parts = [*head, *_tables(verdict, console), *notes]
    else:
        left = _LINES - sum(_height(console, part) for part in (*head, *tail))
        figures = _figures(verdict)[: max(1, left - _AROUND_FIGURES - bool(notes))]
        table = [_figure_table(figures, console.width)] if figures else []
        left -= sum(_height(console, part) for part in table)
        parts = [*head, *table, *_fitting(console, notes, left)]
    for part in (*parts, *tail):
        console.print(part)


def _banner(said: Banner) -> list[RenderableType]:
    """Return the verdict in one line, as long as it is, below a rule in its colour."""
    colour = _COLOURS[said.tone]
    title, sentence = f"{said.sign} {said.title}", said.text.removeprefix(said.title)
    return [Rule(style=colour), Text.assemble((title, f"bold {colour}"), _plain(sentence))]


def _next_steps(info: RunInfo, verdict: Verdict, changes: Sequence[str]) -> list[Text]:
    """Return what a person does next, where there is something to do but to read the report."""
    code = verdict.exit_code
    if code == ExitCode.FIRMWARE and any(map(compared.is_blocked, verdict.compared)):
        steps = [_bisect(info, next(item for item in compared.ranked(verdict) if compared.is_blocked(item)))]
    elif code == ExitCode.FIRMWARE:
        steps = ["hil compare HEAD~1 measures the commit before on the same boards"]
    elif code == ExitCode.RIG:
        steps = ["hil doctor and hil rack check say what has to be mended"]
    elif changes:
        steps = ["hil changes says between which commits each change lies"]
    else:
        steps = []
    return [Text.assemble(("Next     ", "bold"), _plain(step)) for step in steps]


def _bisect(info: RunInfo, item: ComparedSeries) -> str:
    """Return the command that finds the commit, where it is known which commits were compared."""
    good, bad = info.ci.base_sha, measured_commit(info)
    if not good or not bad or info.git.dirty:
        return "docs/operate/bisect.md finds the commit"
    return f"docs/operate/bisect.md finds the commit: {bisect_command(good, bad, case_name(item))}"


# ---- the figures that matter ----


def _figures(verdict: Verdict) -> list[tuple[str, ...]]:
    """Return at most five rows of style, sign, metric, case, board, value, and what it is held against.

    What regressed or broke its limit stands first, then what is open; where nothing is, what is nearest to
    its limit, a metric once.
    """
    ranked = [item for item in compared.ranked(verdict) if item.blocking]
    found = [_compared_figure(item) for item in ranked if item.outcome == "regressed"]
    found += [_limit_figure(item, "bold red") for item in rows.by_severity(verdict.series)]
    marginal = [item for item in verdict.series if item.blocking and rows.is_marginal(item)]
    found += [_limit_figure(item, "yellow") for item in marginal]
    found += [_compared_figure(item) for item in ranked if item.outcome in ("undecided", "improved")]
    if not found:
        changed = [item for item in ranked if item.change is not None]
        changed.sort(key=lambda item: (-abs(item.change or 0.0), item.series_id))
        limited = [_limit_figure(item, "") for item in _nearest(verdict.series)]
        room = _MOST_FIGURES - min(len(changed), _MOST_CHANGES)
        found = [*limited[:room], *(_compared_figure(item, "") for item in changed)]
    short = _short_cases(verdict)
    return [(*one[:3], short[one[3]], *one[4:]) for one in found[:_MOST_FIGURES]]


def _nearest(series: Iterable[SeriesVerdict]) -> list[SeriesVerdict]:
    """Return the kept figure of each metric that uses most of its limit, the nearest first."""
    limited = [item for item in series if item.blocking and rows.limit_share(item) is not None]
    order = sorted(limited, key=lambda item: (-(rows.limit_share(item) or 0.0), item.series_id))
    nearest: dict[str, SeriesVerdict] = {}
    for item in order:
        nearest.setdefault(human_metric(item), item)
    return list(nearest.values())


def _limit_figure(item: SeriesVerdict, style: str) -> tuple[str, ...]:
    value = f"{'≥ ' if item.at_least else ''}{rows.quantity(item, item.value)}"
    share = rows.limit_share(item)
    used = (
        ""
        if share is None
        else f", {share * 100:.0f} % used"
        if share < _TENFOLD
        else f", {share:,.0f} times"
    )
    limit = f"limit {rows.limit_words(item)}{used}"
    return style, rows.sign(item), human_metric(item), item.case_id, item.board, value, limit


def _compared_figure(item: ComparedSeries, style: str | None = None) -> tuple[str, ...]:
    if style is None:
        style = {"regressed": "bold red", "improved": "green"}.get(item.outcome, "yellow")
    change = compared.change(item, item.unit, relative=item.relative)
    against = f"{compared.interval(item, item.unit, relative=item.relative)} vs {item.role}"
    return style, compared.sign(item), human_metric(item), item.case_id, item.target, change, against


def _short_cases(verdict: Verdict) -> dict[str, str]:
    """Return of each case, by its id, the parameters that tell it from the others of its bench."""
    benches: dict[str, dict[str, list[str]]] = {}
    judged: list[SeriesVerdict | ComparedSeries] = [*verdict.series, *verdict.compared]
    for item in judged:
        label = case_name(item).partition("/")[2]
        benches.setdefault(bench_of(item.case_id), {})[item.case_id] = label.split(",")
    short: dict[str, str] = {}
    for cases in benches.values():
        shared = set.intersection(*map(set, cases.values()))
        for case_id, parameters in cases.items():
            short[case_id] = ",".join(one for one in parameters if one not in shared)
    return short


def _figure_table(figures: Sequence[tuple[str, ...]], width: int) -> RenderableType:
    """Return one line a figure: of its case stands what there is room for."""
    plain = [[_plain(cell) for cell in cells] for _, *cells in figures]
    widths = [max(map(cell_len, column)) for column in zip(*plain, strict=True)]
    widths[1], widths[3] = min(widths[1], _METRIC_WIDTH), min(widths[3], _BOARD_WIDTH)
    widths[2] = max(1, min(widths[2], width - sum(widths) + widths[2] - len(widths)))
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), expand=False)
    for column, wide in enumerate(widths):
        table.add_column(
            no_wrap=True, overflow="ellipsis", width=wide, justify="right" if column == _VALUE else "left"
        )
    for (style, *_), cells in zip(figures, plain, strict=True):
        cells[2] = (
            cells[2] if len(cells[2]) <= widths[2] else f"…{cells[2][1 - widths[2] :]}"
        )  # the value tells
        table.add_row(*(Text(cell, style=style) for cell in cells))
    return Padding(table, (1, 0, 1, 0))


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
    return [*shown, Text(f"  … and {left} more: --verbose, or the report", style="dim")]


def _notes(verdict: Verdict, records: Sequence[RunRecord], run_path: str, *, verbose: bool) -> list[Text]:
    """Return what traces and loss ledgers say of what broke, what failed, was not run, is worth knowing.

    The sentence of a single figure is for ``verbose``, and else counted.
    """
    broken = [*_others_broken(verdict), *_traced(verdict, trace_notes(records, verdict))]
    if lost := loss_total(records):
        broken.append(_line("→ ", "cyan", f"{lost}. Each of them: hil ledger {shlex.quote(run_path)}"))
    faults = [
        _line("! ", "bold yellow", f"{fault.owner}{_on(fault.board)}: {fault.sentence}")
        for fault in verdict.faults
        if fault.sentence.rstrip(".") not in verdict.sentence
    ]
    own = [one for one in verdict.not_run if not one.to]
    shown = own if verbose else [one for one in own if one.expected]
    not_run = [
        _line("– not run: ", "dim", f"{_plural(count, 'case')} on {', '.join(boards)}: {reason}")
        for reason, count, boards in not_run_groups(shown)
    ]
    if ruled_out := len(own) - len(shown):
        words = f"{_plural(ruled_out, 'case')} that these boards cannot measure: --verbose"
        not_run.append(_line("– left out: ", "dim", words))
    said = {*(item.sentence for item in verdict.series), *(item.sentence for item in verdict.compared)}
    general = [text for text in verdict.warnings if verbose or text not in said]
    notes = [*broken, *faults, *not_run, *map(_warning, (*general, *current_notes(records)))]
    left = len(verdict.warnings) - len(general)
    single = f"  {_plural(left, 'figure')} more worth a look: --verbose, or the report"
    return [*notes, *([Text(single, style="dim")] if left else [])]


def _others_broken(verdict: Verdict) -> list[Text]:
    """Return what broke and has no room among the figures, a line a board and case."""
    figures = sum(map(compared.is_blocked, verdict.compared))
    lines = [line for _, line in rows.broken_cases(verdict)]
    if figures + len(rows.by_severity(verdict.series)) <= _MOST_FIGURES:
        return []
    return [_line("✗ ", "bold red", line) for line in (*compared.blocked_lines(verdict), *lines)]


def _traced(verdict: Verdict, notes: Sequence[TraceNote]) -> list[Text]:
    """Return what traces say: first of what broke."""
    places = {(item.board, item.case_id) for item, _ in rows.broken_cases(verdict)}
    order = sorted(notes, key=lambda note: (note.board, note.case_id) not in places)
    return [_line("→ ", "cyan", note.line) for note in order]


def _line(mark: str, style: str, words: str) -> Text:
    return Text.assemble((mark, style), _plain(words))


def _plain(words: str) -> str:
    """Return what may be a fork's words so that no terminal obeys them."""
    return terminal(words, _MOST_CHARACTERS)


def _warning(sentence: str) -> Text:
    return _line("? ", "yellow", sentence)


def _measured(info: RunInfo, records: Sequence[RunRecord]) -> str:
    """Return "Suite quick on rack virtual: 4 boards, 7 cases, 2,500 samples."."""
    cases = len({record.case_id for record in records})
    boards = len({record.board for record in records})
    samples = sum(record.measured_rows for record in records)
    product = f" of {info.product}" if info.product else ""
    counts = f"{_plural(boards, 'board')}, {_plural(cases, 'case')}, {samples:,} samples."
    return _plain(f"Suite {info.suite}{product} on rack {info.rack}: {counts}")


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _on(board: str) -> str:
    return f" ({board})" if board else ""


def _whereabouts(run_path: str, report: str | None) -> Text:
    return Text(
        (f"Report   {report}\n" if report else "") + f"Summary  {run_path}/summary.md\n"
        f"Figures  hil gate {shlex.quote(run_path)} --verbose",
        style="dim",
        overflow="fold",
    )


# ---- the tables of --verbose ----


def _tables(verdict: Verdict, console: Console) -> list[RenderableType]:
    found: list[RenderableType] = []
    if blocking := [item for item in compared.ranked(verdict) if item.blocking]:
        found.append(_comparison_table(blocking, console.width))
    if any(item.limit is not None for item in verdict.series):
        found.append(_limit_table(verdict, console.width))
    lines = [*compared.blocked_lines(verdict), *(line for _, line in rows.broken_cases(verdict))]
    return [*found, *(_line("✗ ", "bold red", line) for line in lines)]


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


def _comparison_table(shown: Sequence[ComparedSeries], width: int) -> RenderableType:
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
    return Padding(table, (1, 0, 1, 0))


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

# SPDX-License-Identifier: Apache-2.0
"""summary.md: what a run found, from the verdict outward to every series."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from hil.base.untrusted import code, fenced, markdown, title
from hil.gate.words.banner import banner_of
from hil.model import ComparedSeries, NotRun, RunRecord, SeriesVerdict, Verdict
from hil.reports import compared, rows
from hil.reports.boards import not_run_groups, remarks, split_not_run
from hil.reports.crashes import Crash, worth_showing
from hil.reports.current_notes import current_notes
from hil.reports.ledger import loss_lines, loss_table
from hil.reports.names import case_name
from hil.reports.trace_notes import trace_notes
from hil.store import RunInfo
from hil.store.reported import NOT_REPORTED, Reported

MOST_CHARACTERS = 4000  # of a sentence: what a person reads is not cut


def render_markdown(
    run_info: RunInfo,
    verdict: Verdict,
    records: Sequence[RunRecord],
    *,
    run_path: str = "",
    crashes: Sequence[Crash] = (),
    reported: Reported = NOT_REPORTED,
) -> str:
    """Return summary.md; its headings stand in the order in which a person asks."""
    missing, ruled_out = split_not_run(verdict)
    said = banner_of(verdict, reported.changes)
    parts = [
        f"# {said.title}: {code(verdict.run_id) if verdict.run_id else 'no run'}",
        _text(said.said),
        *(f"> {_text(remark)}" for remark in remarks(run_info, verdict)),
        *_compared(verdict),
        *_limits(verdict),
        *_list("What broke", map(_text, _broken(verdict))),
        *_list("Faults", [_fault_line(fault.owner, fault.board, fault.sentence) for fault in verdict.faults]),
        *_crashed(crashes),
        *_lost(records, verdict),
        *_list("Traces", [_text(note.line) for note in trace_notes(records, verdict)]),
        *_list(
            "Worth knowing",
            map(
                _text,
                [*verdict.warnings, *current_notes(records), *reported.warnings],
            ),
        ),
        *_list("Not run", _not_run_lines(missing)),
        *_list("Ruled out", _not_run_lines(ruled_out)),
        *_facts(run_info, records, run_path or verdict.run_id, reported.report),
        *_all_series(verdict),
    ]
    return "\n\n".join(parts) + "\n"


def _broken(verdict: Verdict) -> list[str]:
    found = [item.sentence for item in compared.ranked(verdict) if compared.is_blocked(item)]
    return [*found, *(item.sentence for item in rows.by_severity(verdict.series))]


def _compared(verdict: Verdict) -> list[str]:
    """Return those that block as a table, what is behind those that did not simply pass, advice folded."""
    found = compared.ranked(verdict)
    if not found:
        return []
    blocking = [item for item in found if item.blocking]
    advice = [item for item in found if not item.blocking]
    parts = [f"## {compared.heading(found)}"]
    parts += [_compared_table(blocking)] if blocking else []
    parts += [_folded(title, lines) for title, lines in compared.notable(verdict)]
    if advice:
        title = f"Advice: {len(advice)} more comparison{'' if len(advice) == 1 else 's'}"
        parts.append(f"<details><summary>{title}</summary>\n\n{_compared_table(advice)}\n\n</details>")
    return [*parts, compared.legend(found)]


def _compared_table(items: Sequence[ComparedSeries]) -> str:
    lines = [_table_row(compared.HEAD), _table_row(["---"] * 4 + ["---:"] * (len(compared.HEAD) - 4))]
    return "\n".join([*lines, *(_table_row(_compared_cells(item)) for item in items)])


def _compared_cells(item: ComparedSeries) -> list[str]:
    sign, _, case, target, *figures = compared.cells(item)
    return [sign, code(item.metric), code(case), code(target), *map(_text, figures)]


def _folded(line: str, lines: Sequence[str]) -> str:
    if not lines:
        return f"- {_text(line)}"
    body = "\n".join(f"- {_text(line)}" for line in lines)
    return f"<details><summary>{title(line, MOST_CHARACTERS)}</summary>\n\n{body}\n\n</details>"


def _limits(verdict: Verdict) -> list[str]:
    found = rows.limit_rows(verdict)
    if not found:
        return []
    kinds = {item.board: item.kind for item in verdict.series}
    boards = rows.boards(verdict)
    head = ["worst of its cases", "limit", "cases", *(_board(board, kinds[board]) for board in boards)]
    lines = [_table_row(head), _table_row(["---", *["---:"] * (len(head) - 1)])]
    for row in found:
        name = row.words if row.blocking else f"{row.words} (advice)"
        lines.append(
            _table_row([_text(name), _text(row.limit), str(row.cases), *map(_limit_cell, row.cells)])
        )
    return ["## Limits", "\n".join(lines), rows.LEGEND]


def _limit_cell(cell: rows.Cell) -> str:
    text = _text(cell.text)
    if cell.broken:
        return f"**{text} ✗**"
    return f"{text} ?" if cell.marginal else text


def _crashed(crashes: Sequence[Crash]) -> list[str]:
    """Return the decoded backtraces, board by board."""
    parts = []
    for board in dict.fromkeys(crash.board for crash in crashes):
        for crash in worth_showing(one for one in crashes if one.board == board):
            parts += [f"{_text(crash.name)} of {code(board)}, {code(crash.file)}:", fenced(crash.shown)]
    return ["## Where it crashed", *parts] if parts else []


def _lost(records: Sequence[RunRecord], verdict: Verdict) -> list[str]:
    """Return the cases that lost messages: a line each with the file, and who owns the losses as a table."""
    table = loss_table(records, verdict)
    if not table:
        return []
    rule = ["---"] * 3 + ["---:"] * (len(table[0]) - 3)
    lines = [[code(board), kind, code(case), *counts] for board, kind, case, *counts in table[1:]]
    return [
        *_list("Lost messages", map(_text, loss_lines(records, verdict))),
        "\n".join(map(_table_row, [table[0], rule, *lines])),
    ]


def _not_run_lines(not_run: Sequence[NotRun]) -> list[str]:
    return [
        f"{count} case{'' if count == 1 else 's'} on {', '.join(map(code, boards))}: {_text(reason)}"
        for reason, count, boards in not_run_groups(not_run)
    ]


def _fault_line(owner: str, board: str, sentence: str) -> str:
    return f"**{_text(owner)}**{f' on {code(board)}' if board else ''}: {_text(sentence)}"


def _facts(info: RunInfo, records: Sequence[RunRecord], run_path: str, report: str) -> list[str]:
    firmware = sorted({record.firmware_sha256[:12] for record in records})
    dirty = ", with changes" if info.git.dirty else ""
    facts = {
        "suite": _value(info.suite),
        "product": _value(info.product),
        "rack": _value(info.rack),
        "air profile": _value(info.profile),
        "commit": f"{code(info.git.commit[:12])}{dirty}" if info.git.commit else "",
        "firmware (SHA-256)": ", ".join(map(code, firmware)),
        "started": _value(info.started_utc),
        "by": f"{_text(info.user)} on {code(info.host)}" if info.user else "",
        "workflow run": _value(info.ci.url),
        "report": _value(report),
        "judge again": code(f"hil gate {shlex.quote(run_path)}"),
    }
    return _list("Run", [f"{name}: {value}" for name, value in facts.items() if value])


def _value(value: object) -> str:
    return code(value) if value else ""


def _text(text: object) -> str:
    """Return what may be somebody else's words as words, whole."""
    return markdown(text, MOST_CHARACTERS)


def _all_series(verdict: Verdict) -> list[str]:
    if not verdict.series:
        return []
    head = ["", "board", "case", "metric", "value", "limit", "samples", "boots", "clock"]
    lines = [_table_row(head), _table_row(["---"] * len(head))]
    lines += [_table_row(_series_cells(item)) for item in verdict.series]
    body = "\n".join(lines)
    return [f"<details><summary>All {len(verdict.series)} series</summary>\n\n{body}\n\n</details>"]


def _series_cells(item: SeriesVerdict) -> list[str]:
    return [
        rows.sign(item) + ("" if item.blocking else " advice"),
        _board(item.board, item.kind),
        code(case_name(item)),
        code(item.metric),
        _text(rows.interval(item)),
        _text(rows.quantity(item, item.limit)),
        rows.samples(item),
        str(item.boots),
        _value(item.clock),
    ]


def _board(board: str, kind: str) -> str:
    return f"{code(board)} ({_text(kind)})"


def _list(heading: str, lines: Iterable[str]) -> list[str]:
    items = [f"- {line}" for line in lines]
    return [f"## {heading}", "\n".join(items)] if items else []


def _table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"

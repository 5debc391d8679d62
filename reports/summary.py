# SPDX-License-Identifier: Apache-2.0
"""summary.md: what a run found, from the verdict outward to every series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hil.model import ComparedSeries, NotRun, RunRecord, SeriesVerdict, Verdict
from hil.reports import compared, rows
from hil.reports.boards import not_run_groups, remarks, split_not_run
from hil.reports.ledger import loss_lines, loss_table
from hil.reports.names import case_name, short_metric
from hil.reports.terminal import render_verdict, render_whereabouts
from hil.reports.trace_notes import trace_notes

__all__ = ["render_markdown", "render_verdict", "render_whereabouts"]


def render_markdown(
    run_info: Mapping[str, Any], verdict: Verdict, records: Sequence[RunRecord], *, run_path: str = ""
) -> str:
    """Return summary.md; its headings stand in the order in which a person asks."""
    missing, ruled_out = split_not_run(verdict)
    parts = [
        f"# {rows.title(verdict)}: {verdict.run_id or 'no run'}",
        verdict.sentence,
        *(f"> {remark}" for remark in remarks(run_info, verdict)),
        *_compared(verdict),
        *_limits(verdict),
        *_list("What broke", _broken(verdict)),
        *_list("Faults", [_fault_line(fault.owner, fault.board, fault.sentence) for fault in verdict.faults]),
        *_lost(records, verdict),
        *_list("Traces", [note.line for note in trace_notes(records, verdict)]),
        *_list("Worth knowing", [*verdict.warnings, *run_info.get("reporting", {}).get("warnings", [])]),
        *_list("Not run", _not_run_lines(missing)),
        *_list("Ruled out", _not_run_lines(ruled_out)),
        *_facts(run_info, records, run_path or verdict.run_id),
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
    parts += [_folded(f"{compared.line(item)}", compared.details(item)) for item in compared.notable(verdict)]
    if advice:
        title = f"Advice: {len(advice)} more comparison{'' if len(advice) == 1 else 's'}"
        parts.append(f"<details><summary>{title}</summary>\n\n{_compared_table(advice)}\n\n</details>")
    return [*parts, compared.LEGEND]


def _compared_table(items: Sequence[ComparedSeries]) -> str:
    lines = [_table_row(compared.HEAD), _table_row(["---"] * 4 + ["---:"] * (len(compared.HEAD) - 4))]
    return "\n".join([*lines, *(_table_row(compared.cells(item)) for item in items)])


def _folded(title: str, lines: Sequence[str]) -> str:
    body = "\n".join(f"- {line}" for line in lines)
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _limits(verdict: Verdict) -> list[str]:
    found = rows.limit_rows(verdict)
    if not found:
        return []
    kinds = {item.board: item.kind for item in verdict.series}
    boards = rows.boards(verdict)
    head = ["worst of its cases", "limit", "cases", *(f"{board} ({kinds[board]})" for board in boards)]
    lines = [_table_row(head), _table_row(["---", *["---:"] * (len(head) - 1)])]
    for row in found:
        name = row.name if row.blocking else f"{row.name} (advice)"
        lines.append(_table_row([name, row.limit, str(row.cases), *map(_limit_cell, row.cells)]))
    return ["## Limits", "\n".join(lines), rows.LEGEND]


def _limit_cell(cell: rows.Cell) -> str:
    if cell.broken:
        return f"**{cell.text} ✗**"
    return f"{cell.text} ?" if cell.marginal else cell.text


def _lost(records: Sequence[RunRecord], verdict: Verdict) -> list[str]:
    """Return the cases that lost messages: a line each with the file, and who owns the losses as a table."""
    table = loss_table(records, verdict)
    if not table:
        return []
    rule = ["---", *["---:"] * (len(table[0]) - 1)]
    return [
        *_list("Lost messages", loss_lines(records, verdict)),
        "\n".join(map(_table_row, [table[0], rule, *table[1:]])),
    ]


def _not_run_lines(not_run: Sequence[NotRun]) -> list[str]:
    return [
        f"{count} case{'' if count == 1 else 's'} on {', '.join(boards)}: {reason}"
        for reason, count, boards in not_run_groups(not_run)
    ]


def _fault_line(owner: str, board: str, sentence: str) -> str:
    return f"**{owner}**{f' on {board}' if board else ''}: {sentence}"


def _facts(run_info: Mapping[str, Any], records: Sequence[RunRecord], run_path: str) -> list[str]:
    firmware = sorted({record.firmware_sha256[:12] for record in records})
    git = run_info.get("git", {})
    dirty = ", with changes" if git.get("dirty") else ""
    facts = {
        "suite": run_info.get("suite"),
        "rack": run_info.get("rack"),
        "air profile": run_info.get("profile"),
        "commit": f"{git.get('commit', '')[:12]}{dirty}" if git.get("commit") else None,
        "firmware (SHA-256)": ", ".join(firmware),
        "started": run_info.get("started_utc"),
        "by": f"{run_info['user']} on {run_info.get('host', '?')}" if run_info.get("user") else None,
        "workflow run": run_info.get("ci", {}).get("url"),
        "report": _code(run_info.get("reporting", {}).get("report")),
        "judge again": f"`hil gate {run_path}`",
    }
    return _list("Run", [f"{name}: {value}" for name, value in facts.items() if value])


def _code(text: str | None) -> str | None:
    return f"`{text}`" if text else None


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
        f"{item.board} ({item.kind})",
        case_name(item),
        short_metric(item),
        rows.interval(item),
        rows.quantity(item, item.limit),
        rows.samples(item),
        str(item.boots),
        item.clock,
    ]


def _list(heading: str, lines: Sequence[str]) -> list[str]:
    return [f"## {heading}", "\n".join(f"- {line}" for line in lines)] if lines else []


def _table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"

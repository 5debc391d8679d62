# SPDX-License-Identifier: Apache-2.0
"""What a person reads first of a result: the worst sentence, then every metric with its interval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from hil.model import SeriesVerdict
from hil.reports import compared, rows
from hil.reports.allure.outcome import findings
from hil.reports.allure.story import Story
from hil.reports.crashes import worth_showing
from hil.reports.current_notes import current_notes
from hil.reports.kinds import kind_remark
from hil.reports.ledger import ledger_sentence
from hil.reports.trace_notes import finding_of
from hil.reports.view import html
from hil.reports.view.figures import case_table, compared_table
from hil.reports.view.marks import Line, Table, Words, plain

# Allure's cells do not break, and its page cuts off what is wider: samples and clocks may, a clock anywhere.
_BREAK = {4: ";white-space:normal", 6: ";white-space:normal;overflow-wrap:anywhere;min-width:7em"}
_WIDE = dict.fromkeys((1, 2, 5), ";white-space:normal")  # figure, boards and rule of a comparison


def describe(story: Story, message: str) -> str:
    """Return the description as HTML; ``message`` is the result's own, "" where it passed."""
    parts = [f"<p><strong>{escape(message or _passed(story))}</strong></p>"]
    others = [sentence for _, sentence in findings(story) if sentence not in message]
    others += [item.sentence for item in story.series if _worth_saying(item)]
    parts += [f"<p>{escape(sentence)}</p>" for sentence in dict.fromkeys(others) if sentence not in message]
    parts += [
        f"<p>{escape(crash.name)}, {escape(crash.file)}:</p>\n<pre>{escape(crash.shown)}</pre>"
        for crash in worth_showing(story.crashes)
    ]
    parts += [f"<p>{escape(note)}</p>" for note in _notes(story)]
    parts += _compared(story)
    parts += _table(story)
    if remark := kind_remark([story.kind]):
        parts.append(f"<p><em>{escape(remark)}</em></p>")
    return "\n".join(parts)


def _passed(story: Story) -> str:
    limits = sum(item.blocking and item.outcome != "no-baseline" for item in story.series)
    unlimited = sum(item.blocking and item.outcome == "no-baseline" for item in story.series)
    words = [f"all {limits} limits kept" if limits > 1 else "its limit kept"] if limits else []
    words += [f"{unlimited} metrics that could block have no limit"] if unlimited else []
    text = ", ".join(words) or "nothing here can block"
    return f"On {story.place}: {text}."


def _notes(story: Story) -> Iterator[str]:
    """Yield what traces say, once where boots agree, then meters, then the loss ledger over all boots."""
    for finding in dict.fromkeys(filter(None, map(finding_of, story.records))):
        yield f"Scheduler trace of {story.place}: {finding}."
    yield from current_notes(story.records)
    if found := ledger_sentence(story.records):
        yield f"Loss ledger of {story.place}: {found}."


def _worth_saying(item: SeriesVerdict) -> bool:
    """Return whether a series needs a sentence although it does not decide: marginal, or bad but advice."""
    return rows.is_marginal(item) or item.outcome in ("regressed", "improved")


def _compared(story: Story) -> list[str]:
    """Return the comparisons of the case, and of each that did not pass its sentence and boards."""
    if not story.compared:
        return []
    behind = [
        html.line(Line(item.sentence, compared.effects(item)))
        for item in story.compared
        if item.blocking or item.outcome != "pass"
    ]
    title = f"Compared with the {story.compared[0].role}, {story.kind}"
    return [
        f"<p><strong>{escape(title)}</strong></p>",
        _written(compared_table(story.compared), _WIDE),
        *behind,
    ]


def _table(story: Story) -> list[str]:
    if not story.series:
        return []
    return [_written(case_table(story.series), _BREAK), f"<p><small>{escape(rows.LEGEND)}</small></p>"]


def _written(table: Table, breaks: Mapping[int, str]) -> str:
    """Return a table with a style in each cell, as Allure takes no style sheet from a description."""
    sides = ("left" if number < 2 else "right" for number in range(len(table.head)))
    styles = [f"padding:3px 10px;text-align:{side}{breaks.get(n, '')}" for n, side in enumerate(sides)]
    lines = [_row("th", table.head, styles), *(_row("td", cells, styles) for cells in table.rows)]
    return f"<table>{''.join(lines)}</table>"


def _row(tag: str, cells: Sequence[Words], styles: Sequence[str]) -> str:
    found = zip(styles, cells, strict=True)
    texts = (f'<{tag} style="{style}">{escape(plain(cell))}</{tag}>' for style, cell in found)
    return f"<tr>{''.join(texts)}</tr>"

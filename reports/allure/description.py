# SPDX-License-Identifier: Apache-2.0
"""What a person reads first of a result: the worst sentence, then every metric with its interval."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from html import escape

from hil.model import SeriesVerdict
from hil.reports import compared, rows
from hil.reports.allure.outcome import findings
from hil.reports.allure.story import Story
from hil.reports.crashes import worth_showing
from hil.reports.current_notes import current_notes
from hil.reports.kinds import kind_remark
from hil.reports.ledger import ledger_sentence
from hil.reports.names import human_metric
from hil.reports.trace_notes import finding_of
from hil.reports.view.figures import compared_table
from hil.reports.view.marks import plain

_CELL = "padding:3px 10px;text-align:{}"
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
    parts += [f"<p>{escape(sentence)}</p>" for sentence in _traced(story)]
    parts += [f"<p>{escape(note)}</p>" for note in current_notes(story.records)]
    parts += [f"<p>{escape(sentence)}</p>" for sentence in _ledger(story)]
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


def _traced(story: Story) -> list[str]:
    """Return what the scheduler's traces say, once where boots agree."""
    found = [finding for record in story.records if (finding := finding_of(record))]
    return [f"Scheduler trace of {story.place}: {finding}." for finding in dict.fromkeys(found)]


def _ledger(story: Story) -> list[str]:
    """Return what the loss ledger says of the case, over all its boots."""
    found = ledger_sentence(story.records)
    return [f"Loss ledger of {story.place}: {found}."] if found else []


def _worth_saying(item: SeriesVerdict) -> bool:
    """Say whether a series needs a sentence although it does not decide: marginal, or bad but advice."""
    return rows.is_marginal(item) or item.outcome in ("regressed", "improved")


def _compared(story: Story) -> list[str]:
    """Return the comparisons of the case, and of each that did not pass its sentence and boards."""
    if not story.compared:
        return []
    table = compared_table(story.compared)
    lines = [_row("th", table.head, {}), *(_row("td", map(plain, cells), _WIDE) for cells in table.rows)]
    behind = [
        f"<details><summary>{escape(item.sentence)}</summary><ul>"
        f"{''.join(f'<li>{escape(line)}</li>' for line in compared.effects(item))}</ul></details>"
        for item in story.compared
        if item.blocking or item.outcome != "pass"
    ]
    title = f"Compared with the {story.compared[0].role}, {story.kind}"
    return [f"<p><strong>{escape(title)}</strong></p>", f"<table>{''.join(lines)}</table>", *behind]


def _table(story: Story) -> list[str]:
    if not story.series:
        return []
    head = ("", "metric", f"value [interval], {story.kind}", "limit", "samples", "boots", "clock")
    body = [_row("th", head), *(_row("td", _cells(item)) for item in _worst_first(story.series))]
    return [f"<table>{''.join(body)}</table>", f"<p><small>{escape(rows.LEGEND)}</small></p>"]


def _worst_first(series: Iterable[SeriesVerdict]) -> list[SeriesVerdict]:
    return sorted(series, key=lambda item: (not item.blocking, compared.ORDER.index(rows.outcome(item))))


def _cells(item: SeriesVerdict) -> tuple[str, ...]:
    return (
        f"{rows.sign(item)}{'' if item.blocking else ' advice'}",
        human_metric(item),
        rows.interval(item),
        rows.quantity(item, item.limit),
        rows.samples(item),
        str(item.boots),
        item.clock,
    )


def _row(tag: str, cells: Iterable[str], breaks: Mapping[int, str] = _BREAK) -> str:
    styles = (_CELL.format("left" if n < 2 else "right") + breaks.get(n, "") for n in itertools.count())
    texts = [
        f'<{tag} style="{style}">{escape(cell)}</{tag}>' for style, cell in zip(styles, cells, strict=False)
    ]
    return f"<tr>{''.join(texts)}</tr>"

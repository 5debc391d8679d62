"""Legend of a trace's picture."""

from __future__ import annotations

from dataclasses import dataclass

from hil.reports.allure.figure import INK, Figure, text_width
from hil.reports.allure.trace.lanes import HOLDS, STATE_FILLS
from hil.reports.allure.trace.view import View
from hil.trace import State

_SWATCH, _SPACE = 14, 20


@dataclass(frozen=True)
class Entry:
    text: str
    fill: str
    thin: bool = False

    @property
    def width(self) -> float:
        return _SWATCH + 6 + text_width(self.text) + _SPACE


def legend_rows(view: View, width: float) -> list[list[Entry]]:
    """Return the entries for what the view holds, in rows that are ``width`` wide at most."""
    numbers = [task.number for task in view.tasks]
    start_us, end_us = round(view.start_us), round(view.end_us)
    states = {one.state for number in numbers for one in view.timeline.of(number, start_us, end_us)}
    words = {
        State.READY: "ready, but another task runs",
        State.WAITING: "waits for an object",
        State.SLEEPING: "sleeps",
        State.SUSPENDED: "suspended",
    }
    entries = [Entry("runs: the task's own colour", "#0072B2")]
    entries += [Entry(text, STATE_FILLS[state]) for state, text in words.items() if state in states]
    if any(view.shows(held) for held in view.timeline.holdings):
        entries.append(Entry("holds a mutex or binary semaphore", HOLDS, thin=True))
    rows: list[list[Entry]] = [[]]
    for entry in entries:
        if rows[-1] and sum(one.width for one in rows[-1]) + entry.width > width + _SPACE:
            rows.append([])
        rows[-1].append(entry)
    return rows


def draw_legend(figure: Figure, rows: list[list[Entry]], left: float, y: float, height: float) -> None:
    for number, row in enumerate(rows):
        x = left
        for entry in row:
            tall = 3 if entry.thin else 10
            at = y + number * height
            figure.rect((x, at - 4 - tall / 2), _SWATCH, tall, fill=entry.fill)
            figure.text(x + _SWATCH + 6, at, entry.text, fill=INK)
            x += entry.width

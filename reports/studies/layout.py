# SPDX-License-Identifier: Apache-2.0
"""Lines of figures as a table: title, columns and notes are those that the study's file has for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

from hil.reports.studies.declaration import Drawing, Published, Study
from hil.reports.studies.document import NONE, Line, Picture, Point, Table, number, percent
from hil.reports.studies.estimate import Estimate
from hil.reports.studies.records import grouped

Figures = dict[str, Any]  # figures and words by name; the JSON holds all of them


def _any(value: Any) -> str:
    """Write a figure by its type."""
    if value is None or isinstance(value, str):
        return NONE if value is None else value
    if isinstance(value, Estimate):
        return value.text
    return f"{value:,}" if isinstance(value, int) else number(value)


def _known(write: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return how to write a figure, or that there is none."""
    return lambda value: NONE if value is None else write(value)


_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "": _any,
    "once": _any,
    "short": _known(lambda found: found.short),
    "ms": _known(lambda us: number(us / 1000)),
    "s": _known(lambda us: number(us / 1e6)),
    "whole": _known(lambda value: f"{value:,.0f}"),
    "bytes": _known(lambda value: f"{value:,.1f}".removesuffix(".0")),
    "share": percent,
    "id": _known(str),
}


def lay_out(
    study: Study,
    table_id: str,
    lines: Sequence[Figures],
    *,
    notes: Sequence[str] = (),
    picture: Picture | None = None,
    more: dict[str, str] | None = None,
    without: Collection[str] = (),
    **words: Any,
) -> Table | None:
    """Return a table of the lines; None without any.

    ``more`` are columns besides the file's, ``without`` columns of its that are left out. ``words`` stand in
    title and notes.
    """
    if not lines:
        return None
    layout = study.shown[table_id]
    columns = {key: head for key, head in layout.columns.items() if _name(key) not in without} | (more or {})
    rows = [_row(columns, line, before) for line, before in zip(lines, (None, *lines), strict=False)]
    return Table(
        table_id,
        layout.title.format(**words),
        tuple(head.format(**words) for head in columns.values()),
        tuple(rows),
        (*(note.format(**words) for note in layout.notes), *notes),
        tuple({name: _data(value) for name, value in line.items()} for line in lines),
        measured=layout.measured,
        picture=picture or (_draw(layout.picture, lines) if layout.picture else None),
    )


_STYLES = ("stat-p95", "stat-tail5")


def _draw(drawing: Drawing, lines: Sequence[Figures]) -> Picture | None:
    """Return the chart of the lines that have both figures; None where the first figure has no two points."""
    found = [
        (figure, f"{by}, {name}".removeprefix(", "), _points(own, drawing.x, figure))
        for by, own in grouped(lines, lambda line: str(line.get(drawing.by, ""))).items()
        for figure, name in drawing.lines.items()
    ]
    if not any(len(points) > 1 for figure, _, points in found if figure in list(drawing.lines)[:1]):
        return None
    drawn = zip([one for one in found if one[2]], cycle(_STYLES), strict=False)
    return Picture(
        drawing.title,
        drawing.unit,
        tuple(Line(name, style, points) for (_, name, points), style in drawn),
    )


def _points(lines: Sequence[Figures], x: str, figure: str) -> tuple[Point, ...]:
    found: list[Point] = []
    for line in lines:
        at, y = line.get(x), line.get(figure)
        value = y.value if isinstance(y, Estimate) else y
        if at is not None and value is not None:
            bounds = (y.low, y.high) if isinstance(y, Estimate) and y.is_bounded else (None, None)
            found.append((at, value, *bounds))
    return tuple(found)


def _name(column: str) -> str:
    return column.partition(".")[0]


def _row(columns: Mapping[str, str], line: Figures, before: Figures | None) -> tuple[str, ...]:
    """Return the cells; what a column shows once is not said again while it stays."""
    once = [key for key in columns if key.endswith(".once")]
    again = bool(before) and all(line.get(_name(key)) == (before or {}).get(_name(key)) for key in once)
    return tuple(
        "" if again and key in once else _FORMATS[key.partition(".")[2]](line.get(_name(key)))
        for key in columns
    )


def _data(value: object) -> object:
    return value.data if isinstance(value, Estimate) else value


def published_table(
    study: Study,
    layout: str,
    published: Published,
    lines: Sequence[Figures],
    notes: Sequence[str],
    *,
    picture: Picture | None = None,
    more: dict[str, str] | None = None,
    without: Collection[str] = (),
    **words: Any,
) -> Table:
    """Return a published table beside ours, laid out as ``layout``; what is wrong with it comes first."""
    table = lay_out(
        study, layout, lines, picture=picture, more=more, without=without, title=published.title, **words
    )
    assert table is not None
    return replace(table, id=published.id, notes=(*notes, *table.notes))

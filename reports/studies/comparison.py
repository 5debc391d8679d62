# SPDX-License-Identifier: Apache-2.0
"""Published values beside ours, row by row.

Tables of others, shown as they are and judged by nobody.
"""

from __future__ import annotations

from collections.abc import Sequence

from hil.base.units import find_unit
from hil.reports.studies.declaration import Background, Comparison, Row
from hil.reports.studies.declaration import Table as Published
from hil.reports.studies.document import NONE, NOT_MEASURED, Line, Picture, Table, number
from hil.reports.studies.rates import Throughput, finite_ends, grouped, throughput_of
from hil.reports.studies.records import BoardRun, whole

LOST = "lost"
_COLUMNS = (
    "",
    "published",
    "corrected",
    "their way",
    "mean",
    "p50",
    "p95",
    "p99",
    "95 % reach",
    "n",
    "boots",
)


def rate_table(published: Published, run: BoardRun) -> Table:
    """Return a table of rates in Mbit/s: published, corrected, ours their way, ours done right."""
    rows, data, notes = [], [], table_notes(published)
    shown = _rows(published, run)
    corrected = any(corrected_text(row) != NONE for row in shown)
    for row in shown:
        ours = throughput_of(run.select(row.ours)) if row.ours else throughput_of(())
        head = (row.label, published_text(row), *([corrected_text(row)] if corrected else []))
        rows.append((*head, *rate_cells(ours, both_ends=row.both_ends)))
        data.append({**_reference_data(row), "ours": rate_data(ours)})
        notes += row_notes(row, run, measured=bool(ours.records))
    return Table(
        published.id,
        f"{published.title}, Mbit/s",
        tuple(name for name in _COLUMNS if corrected or name != "corrected"),
        tuple(rows),
        tuple(notes),
        tuple(data),
        picture=_picture(published, run),
    )


def rate_cells(ours: Throughput, *, both_ends: bool = False) -> tuple[str, ...]:
    """Return the cells of ours: the study's estimator, mean, percentiles, n and boots."""
    if not ours.records:
        return (NOT_MEASURED, *[NONE] * 5, "0", "0")
    theirs = f"{number(ours.theirs)} ({ours.runs})" if ours.theirs is not None else NONE
    if both_ends:
        theirs = f"sent {number(ours.theirs_sent)}, received {theirs}"
    steady = ours.steady
    return (
        theirs,
        ours.mean.text,
        steady["p50"].short,
        steady["p95"].short,
        steady["p99"].short,
        steady["p5"].short,
        str(ours.n),
        str(ours.boots),
    )


def rate_data(ours: Throughput) -> dict[str, object]:
    """Return ours in numbers, Mbit/s."""
    steady = {name: found.data for name, found in ours.steady.items()}
    counts = {"runs": ours.runs, "boots": ours.boots, "n": ours.n}
    theirs = {"their_way": ours.theirs, "their_way_sent": ours.theirs_sent}
    return {**theirs, **counts, "mean": ours.mean.data, **steady}


def _rows(published: Published, run: BoardRun) -> Sequence[Row]:
    """Return the published rows; of a lost sweep one for each value that was measured, or one for none."""
    if published.rows or published.ours is None:
        return published.rows
    values = grouped(run.select(published.ours), lambda record: whole(record, published.sweep))
    sizes = [int(value) for value in values if value]
    return [_swept(published, size) for size in sizes] or [_swept(published, None)]


def _swept(published: Published, size: int | None) -> Row:
    assert published.ours is not None
    case = {**published.ours.case, published.sweep: (size if size is not None else "any",)}
    ours = Comparison(published.ours.bench, case, published.ours.samples)
    label = "any size" if size is None else f"{size:,} B"
    return Row(label, None, None, "", None, "", "", ours)


def published_text(row: Row) -> str:
    if row.published is None:
        return LOST
    return f"{row.published:,g}" + (f" of {row.of}" if row.of else "")


def corrected_text(row: Row) -> str:
    """Return the corrected value; "see note" where there is only a way to get it."""
    if row.corrected is not None:
        return f"{row.corrected:,g}"
    return "see note" if row.formula else NONE


def table_notes(published: Published) -> list[str]:
    """Return what is wrong with the whole table, and why it is lost."""
    lost = [f"Lost: {published.lost}."] if published.lost else []
    return [*lost, *(f"Defect: {_sentence(defect)}" for defect in published.defects)]


def row_notes(row: Row, run: BoardRun, *, measured: bool) -> list[str]:
    """Return what is wrong with a row, how it was corrected, and why it was not measured."""
    notes = []
    if row.defect:
        notes.append(f"{row.label}: {_sentence(row.defect)}")
    if row.why:
        how = f"{row.formula}; " if row.formula else ""
        notes.append(f"{row.label}, corrected: {how}{_sentence(row.why)}")
    if not measured and row.ours:
        notes.append(f"{row.label} was not measured: {_sentence(run.why_missing(row.ours))}")
    return notes


def why_missing(run: BoardRun, row: Row) -> str:
    """Return why nothing of ours compares with a row."""
    return run.why_missing(row.ours) if row.ours else "nothing of ours compares"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _reference_data(row: Row) -> dict[str, object]:
    return {
        "label": row.label,
        "published": row.published,
        "of": row.of,
        "corrected": row.corrected,
        "defect": row.defect,
    }


def _picture(published: Published, run: BoardRun) -> Picture | None:
    """Return published and our rates over the size that is swept; None where nothing is."""
    theirs, ours = [], []
    for row in _rows(published, run):
        size = _size_of(row) if row.ours else None
        if size is None or row.ours is None:
            continue
        if row.published is not None:
            theirs.append((size, row.published, None, None))
        rate = throughput_of(run.select(row.ours)).mean
        if rate.value is not None:
            ours.append((size, rate.value, *finite_ends(rate)))
    lines = (Line("published", "stat-tail5", tuple(theirs)), Line("ours, mean", "stat-p95", tuple(ours)))
    kept = tuple(line for line in lines if line.points)
    return Picture("", "size, B", kept) if len(ours) > 1 else None


def _size_of(row: Row) -> float | None:
    assert row.ours is not None
    sizes = [
        row.ours.case.get(key, (None,))[0] for key in ("peer_mss_bytes", "mss_bytes", "peer_window_bytes")
    ]
    return next((float(size) for size in sizes if isinstance(size, int) and size), None)


def plain_table(table: Background) -> Table:
    """Return a published table of somebody else's with its source."""
    rows = tuple(
        (row.label, *(NONE if value is None else str(value) for value in row.values)) for row in table.rows
    )
    data = tuple(
        {"label": row.label, **dict(zip(table.columns, row.values, strict=True))} for row in table.rows
    )
    notes = (f"Source: {table.source}.", table.remark)
    title = ", ".join(filter(None, (table.title, find_unit(table.unit).symbol, "published")))
    return Table(table.id, title, ("", *table.columns), rows, notes, data, measured=False)

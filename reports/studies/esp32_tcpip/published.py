# SPDX-License-Identifier: Apache-2.0
"""Published rates beside ours, and over the size that a sweep varies."""

from __future__ import annotations

from collections.abc import Sequence

from hil.reports.studies.comparison import corrected_text, published_text, row_notes, table_notes
from hil.reports.studies.declaration import Comparison, Published, Row, Study
from hil.reports.studies.document import NONE, NOT_MEASURED, Table, number
from hil.reports.studies.esp32_tcpip.rates import Throughput, ascending, throughput_of
from hil.reports.studies.layout import Figures, published_table
from hil.reports.studies.records import BoardRun, whole

RATES = ("baseline", "segment-receive", "segment-send", "window-receive", "window-send")


def rate_table(table_id: str, study: Study, run: BoardRun) -> Table:
    """Return a table of rates in Mbit/s: published, corrected, ours their way, ours done right."""
    published = study.table(table_id)
    lines: list[Figures] = []
    notes = table_notes(published)
    rows = _rows(published, run)
    for row in rows:
        ours = throughput_of(run.select(row.ours) if row.ours else ())
        head = {
            "label": row.label,
            "size": _size_of(row),
            "published": row.published,
            "of": row.of,
            "corrected": row.corrected,
        }
        head |= {"defect": row.defect, "shown": published_text(row), "right": corrected_text(row)}
        lines.append({**head, **_line(ours, both_ends=row.both_ends)})
        notes += row_notes(row, run, measured=bool(ours.records))
    without = () if any(line["right"] != NONE for line in lines) else ("right",)
    return published_table(study, "rates", published, lines, notes, without=without)


def _line(ours: Throughput, *, both_ends: bool) -> Figures:
    """Return the figures of ours: the study's estimator, mean, percentiles, n and boots; Mbit/s."""
    theirs = NONE if ours.theirs is None else f"{number(ours.theirs)} ({ours.runs})"
    if both_ends:
        theirs = f"sent {number(ours.theirs_sent)}, received {theirs}"
    counts = {"boots": ours.boots, "n": ours.n}
    means = {"their_way": ours.theirs, "their_way_sent": ours.theirs_sent, "runs": ours.runs, **counts}
    steady = {name: found.data for name, found in ours.steady.items()}
    data = {"ours": {**means, "mean": ours.mean.data, **steady}}
    if not ours.records:
        return {**data, "way": NOT_MEASURED, **counts}
    return {**data, "way": theirs, "mean": ours.mean, **ours.steady, **counts}


def _rows(published: Published, run: BoardRun) -> Sequence[Row]:
    """Return the published rows; of a lost sweep one for each value that was measured, or one for none."""
    if published.rows or published.ours is None:
        return published.rows
    values = ascending(run.select(published.ours), lambda record: whole(record, published.sweep))
    sizes = [int(value) for value in values if value]
    return [_swept(published, size) for size in sizes] or [_swept(published, None)]


def _swept(published: Published, size: int | None) -> Row:
    assert published.ours is not None
    case = {**published.ours.case, published.sweep: (size if size is not None else "any",)}
    ours = Comparison(published.ours.bench, case, published.ours.samples)
    label = "any size" if size is None else f"{size:,} B"
    return Row(label, None, None, "", None, "", "", ours)


def _size_of(row: Row) -> int | None:
    case = row.ours.case if row.ours else {}
    sizes = [case.get(key, (None,))[0] for key in ("peer_mss_bytes", "peer_window_bytes")]
    return next((size for size in sizes if isinstance(size, int) and size), None)

"""The published tables of freertos-multicore beside ours: their way on each clock, then percentiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from hil.metrics.stats import mean
from hil.reference import Row
from hil.reference import Table as Published
from reports.reproduction.comparison import corrected_text, row_notes, table_notes
from reports.reproduction.cycles import (
    BY_CONSTRUCTION,
    Measured,
    Stretch,
    is_planted,
    measured,
    raw_name,
)
from reports.reproduction.document import NONE, NOT_MEASURED, Line, Picture, Table, number
from reports.reproduction.estimate import Estimate, estimate, median
from reports.reproduction.records import BoardRun, whole

Way = Callable[[Stretch], float]
WAYS: Mapping[str, Way] = {
    "raw": lambda one: one.raw_us,
    "signed": lambda one: one.signed_us,
    "corrected": lambda one: one.corrected_us,
    "esp_timer": lambda one: one.common_us,
}
_STEPS = 600  # of a picture's width: closer together than a screen shows


def standard_error(values: Sequence[float]) -> float:
    """Return sqrt(S / (N (N - 1))), which the study calls variance; 0 of fewer than two values."""
    count = len(values)
    if count < 2:
        return 0.0
    middle = mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (count * (count - 1)))


STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": mean,
    "standard-error": standard_error,
    "min": min,
    "max": max,
}


def raw_table(published: Published, run: BoardRun) -> Table:
    """Return the study's rows: published, corrected, ours by its estimator on each clock, in ms."""
    ours = measured(run, published.ours)
    sample = ours.first_boot if ours.done else ()
    planted = is_planted(run, sample)
    rows, data, notes = [], [], table_notes(published)
    for row in published.rows:
        found = {name: _theirs(row, sample, way) for name, way in WAYS.items()}
        cells = (decimals(found[name]) for name in WAYS) if sample else (NOT_MEASURED, NONE, NONE, NONE)
        rows.append((row.label, decimals(row.published), _corrected(row), *cells))
        data.append(
            {"label": row.label, "published": row.published, "corrected": row.corrected, "ours": found}
            | {"n": len(sample), "by_construction": planted}
        )
        notes += row_notes(row, run, measured=bool(sample or ours.why))
    notes.append(f"Not shown: {ours.why}." if ours.why else _way_note(sample, planted=planted))
    mark = ", by construction" if planted else ""
    theirs = (f"their way{mark}", f"signed{mark}")
    columns = ("", "published", "corrected", *theirs, "corrected counter", "esp_timer")
    return Table(published.id, f"{published.title}, ms", columns, tuple(rows), tuple(notes), tuple(data))


def decimals(value: float | None) -> str:
    """Write ms as the study does, with three decimals."""
    return NONE if value is None else f"{value:,.3f}"


def _theirs(row: Row, sample: Sequence[Stretch], way: Way) -> float | None:
    values = [way(one) / 1000 for one in sample]
    return STATISTICS[row.statistic](values) if values else None


def _corrected(row: Row) -> str:
    return decimals(row.corrected) if row.corrected is not None else corrected_text(row)


def _way_note(sample: Sequence[Stretch], *, planted: bool) -> str:
    """Say how their way was computed, and that its column was planted where it was."""
    mark = (
        f" {BY_CONSTRUCTION.capitalize()}; the offset of the counters is the virtual board's own." * planted
    )
    return (
        f"their way: mean, standard error, least and largest of the {len(sample)} samples of the first boot, "
        "raw counter modulo 2^32 without sign, as 17 700 ms in the study's last table need; 'signed' as the "
        "published source has it. The last two columns are the same samples on the other clocks. A standard "
        f"error shrinks with the number of samples, of which the study has 1000.{mark}"
    )


def clock_table(published: Published, run: BoardRun) -> Table | None:
    """Return ours done right: the three clocks side by side, in µs; None where nothing was measured."""
    ours = measured(run, published.ours)
    if not ours.done:
        return None
    period_us = _period_us(published, run)
    rows, data = [], []
    for key, name, values in _lines(ours, run, period_us):
        alike = key != "raw" or not ours.moved  # the offset differs from boot to boot
        found = _figures(values, [one.boot for one in ours.stretches], bounded=alike)
        counts = (f"{len(ours.stretches):,}", str(ours.boots), str(ours.void))
        rows.append((name, *(text for text, _ in found.values()), *counts))
        data.append(
            {"clock": key, "unit": "us", **{stat: figure for stat, (_, figure) in found.items()}}
            | {"n": len(ours.stretches), "boots": ours.boots, "void": ours.void}
            | {"by_construction": key == "raw" and is_planted(run, ours.done)}
        )
    columns = ("", "p50", "p95", "p99", "max", "n", "boots", "void")
    title = f"{published.title}: three clocks side by side, µs"
    notes = ("void: the host under the board was late meanwhile; such samples are in no figure",) * bool(
        ours.void
    )
    picture = _picture(ours, run)
    return Table(f"{published.id}-clocks", title, columns, tuple(rows), notes, tuple(data), picture=picture)


def _lines(ours: Measured, run: BoardRun, period_us: int) -> list[tuple[str, str, list[float]]]:
    """Return (key, name, values) of each clock; of a period also how far from it, and how late."""
    every = ours.stretches
    found = [
        ("raw", raw_name(run, ours.done), [one.raw_us if one.done else math.inf for one in every]),
        ("corrected", "corrected counter", [one.corrected_us for one in every]),
        ("esp_timer", "esp_timer", [one.common_us for one in every]),
    ]
    if period_us:
        off = [abs(one.common_us - period_us) for one in every]
        late = [one.late_us if one.done and one.late_us is not None else math.inf for one in every]
        found += [("deviation", "esp_timer, off the period", off), ("lateness", "late on the grid", late)]
    return found


def _period_us(published: Published, run: BoardRun) -> int:
    records = run.select(published.ours) if published.ours else ()
    return whole(records[0], "period_us") if records else 0


def _figures(
    values: Sequence[float], boots: Sequence[int], *, bounded: bool
) -> dict[str, tuple[str, object]]:
    """Return p50, with its interval where ``bounded``, p95, p99 and the largest: as text and as data."""
    middle = median(values, boots) if bounded else estimate(values, 0.5)
    high = {name: estimate(values, share) for name, share in (("p95", 0.95), ("p99", 0.99))}
    largest = max(values)
    return {
        "p50": (middle.text if bounded else middle.short, middle.data),
        **{name: (one.short, one.data) for name, one in high.items()},
        "max": (Estimate(1, 1, largest).short, largest),
    }


def _picture(ours: Measured, run: BoardRun) -> Picture | None:
    """Return the share of samples at or below a value, raw and corrected; None where the two are alike."""
    if not ours.moved:
        return None
    lines = (
        Line(raw_name(run, ours.done), "stat-tail5", shares([one.raw_us / 1000 for one in ours.done])),
        Line("corrected counter", "stat-p95", shares([one.corrected_us / 1000 for one in ours.done])),
    )
    return Picture("share of samples at or below, %", "ms", lines, stairs=True)


def shares(values: Sequence[float]) -> tuple[tuple[float, float, None, None], ...]:
    """Return the steps of the cumulative share in percent, those that a screen can tell apart."""
    ordered = sorted(values)
    step = (ordered[-1] / _STEPS) or 1.0
    found: dict[int, tuple[float, float, None, None]] = {}
    for rank, value in enumerate(ordered, start=1):
        first = found.get(int(value / step), (value,))[0]
        found[int(value / step)] = (first, 100 * rank / len(ordered), None, None)
    return tuple(found.values())


def worst_text(values: Sequence[float]) -> str:
    """Return the largest value, "–" of none."""
    return number(max(values)) if values else NONE

"""What the offset of the counters predicts of the study's figures, and of ours, beside what was seen."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import pstdev

from hil.metrics.stats import mean, quantile
from hil.reference import Study
from reports.reproduction.artefact import loaded
from reports.reproduction.cycles import BY_CONSTRUCTION, TURN_CYCLES, Measured, is_planted, measured
from reports.reproduction.document import Table
from reports.reproduction.raw import decimals
from reports.reproduction.records import BoardRun

_STUDY_MHZ = 240
_STUDY_PERIOD_MS = 10


def arithmetic_table(study: Study, run: BoardRun) -> Table:
    """Return what the offset predicts of the study's values and of ours, beside what was seen."""
    cross = measured(run, study.table("switch-cross-core").ours)
    moved, period_us = loaded(study, run)
    theirs = _published(study)
    turn_ms = TURN_CYCLES / _STUDY_MHZ / 1000
    n = study.table("period-loaded").n
    half_ms = (theirs["max"] - theirs["min"]) / 2
    lines: list[tuple[str, tuple[float | None, ...], tuple[float | None, ...]]] = [
        ("one turn of the counter, 2^32 / f", (turn_ms, None), (_turn_ms(cross, moved), None)),
        ("switch between cores, p50: own time + offset", (None, theirs["switch"]), _switch(cross)),
        (
            "average period of two values, half each",
            (_STUDY_PERIOD_MS + turn_ms / 2, theirs["mean"]),
            _halves(moved, period_us),
        ),
        ("the same, with the shares of this run", (None, None), _shared(moved, period_us)),
        (
            "standard deviation of two values: half of the range",
            (half_ms, theirs["standard-error"] * (n - 1) ** 0.5),
            _spread(moved),
        ),
        ("average of the signed differences", (None, None), _signed(moved, period_us)),
    ]
    rows = tuple((name, *map(decimals, (*published, *ours))) for name, published, ours in lines)
    data = tuple(
        {"quantity": name, "published": list(published), "ours": list(ours)}
        | {"by_construction": is_planted(run, (*cross.done, *moved.done))}
        for name, published, ours in lines
    )
    planted = is_planted(run, (*cross.done, *moved.done))
    mark = f", {BY_CONSTRUCTION}" if planted else ""
    columns = ("", "published: expected", "published: seen", "ours: expected", "ours: seen")
    notes = (
        "published, expected: at 240 MHz; the offsets of those boots are not known, but need not be: in the "
        "average of both directions they cancel",
        f"standard deviation: the published “variance” {theirs['standard-error']:.3f} × sqrt({n - 1}). That "
        "it is half of the range says that there were two values, each half of the time",
    )
    title = f"The arithmetic of the artefact, ms{mark}"
    return Table("arithmetic", title, columns, rows, notes, data)


def _published(study: Study) -> dict[str, float]:
    """Return the published statistics of the loaded period and the average of the switch, in ms."""
    found = {row.statistic: row.published or 0.0 for row in study.table("period-loaded").rows}
    switch = {row.statistic: row.published or 0.0 for row in study.table("switch-cross-core").rows}
    return {**found, "switch": switch["mean"]}


_Pair = tuple[float | None, float | None]


def _turn_ms(*groups: Measured) -> float | None:
    return next((one.counter.turn_us / 1000 for group in groups for one in group.done), None)


def _switch(cross: Measured) -> _Pair:
    """Return what offset and esp_timer predict for the first boot's median, and the raw median."""
    sample = [one for one in cross.first_boot if one.moved] if cross.done else []
    if not sample:
        return None, None
    counter = sample[0].counter
    expected = (
        _median(one.common_us for one in sample) + sample[0].shift_cycles / counter.mhz
    ) % counter.turn_us
    return expected / 1000, _median(one.raw_us for one in sample) / 1000


def _median(values: Iterable[float]) -> float:
    return quantile(list(values), 0.5)


def _halves(ours: Measured, period_us: float) -> _Pair:
    if not ours.moved:
        return None, None
    turn_us = ours.done[0].counter.turn_us
    return (period_us + turn_us / 2) / 1000, mean([one.raw_us for one in ours.first_boot]) / 1000


def _shared(ours: Measured, period_us: float) -> _Pair:
    """Return the average that the moves of the first boot predict: each adds its offset, modulo a turn."""
    if not ours.moved:
        return None, None
    sample = ours.first_boot
    expected = mean(
        [(period_us + one.shift_cycles / one.counter.mhz) % one.counter.turn_us for one in sample]
    )
    return expected / 1000, mean([one.raw_us for one in sample]) / 1000


def _spread(ours: Measured) -> _Pair:
    if not ours.moved:
        return None, None
    values = [one.raw_us / 1000 for one in ours.first_boot]
    return (max(values) - min(values)) / 2, pstdev(values)


def _signed(ours: Measured, period_us: float) -> _Pair:
    if not ours.moved:
        return None, None
    sample = ours.first_boot
    expected = mean([period_us + one.shift_cycles / one.counter.mhz for one in sample])
    return expected / 1000, mean([one.signed_us for one in sample]) / 1000

# SPDX-License-Identifier: Apache-2.0
"""Where 190 ms a switch and seconds of jitter come from: the offset of the cores' counters, by arithmetic."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterable, Mapping, Sequence
from statistics import pstdev

from hil.metrics.stats import mean, quantile
from hil.model import RunRecord
from hil.reports.studies.comparison import published_text, row_notes, table_notes
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import NONE, NOT_MEASURED, Table, number
from hil.reports.studies.estimate import estimate, median
from hil.reports.studies.freertos_multicore.cycles import (
    BY_CONSTRUCTION,
    OK,
    TURN_CYCLES,
    Counter,
    Measured,
    Stretch,
    decimals,
    is_planted,
    measured,
    stretches_of,
)
from hil.reports.studies.records import BoardRun, boots, fact, whole, word

BENCHES = ("task_switch", "jitter")
_NEAR = 1 / 3  # of the offset: what is closer than that to a value is near it
_PLACES = ("period + offset", "period − offset", "period", "elsewhere")


def offsets_table(run: BoardRun) -> Table | None:
    """Return each boot's offset as the handshake measured it, and how the raw counter fits with it."""
    boots: dict[int, list[Stretch]] = {}
    for one in stretches_of(record for bench in BENCHES for record in run.of(bench)).done:
        boots.setdefault(one.boot, []).append(one)
    rows, data = [], []
    for boot, found in sorted(boots.items()):
        counters = list(dict.fromkeys(one.counter for one in found))
        moved = [one for one in found if one.moved]
        rows.append((str(boot), *_offset_cells(counters), *_fit_cells(moved)))
        data.append(
            {
                "boot": boot,
                "cpu_mhz": counters[0].mhz,
                "offset_cycles": sorted({counter.offset_cycles for counter in counters}),
                "error_cycles": max(counter.error_cycles for counter in counters),
                "moved": len(moved),
                "agree": sum(one.agrees for one in moved),
                "tolerance_us": max(counter.tolerance_us for counter in counters),
                "by_construction": run.kind == "virtual",
            }
        )
    if not rows:
        return None
    mark = f", {BY_CONSTRUCTION}" if run.kind == "virtual" else ""
    columns = ("boot", "MHz", "offset, ms", "known to, µs", "cases differ by, µs", "agree", "worst, µs")
    title = f"Counter of core 1 less that of core 0, by a handshake of the cores{mark}"
    notes = (
        "known to: half of the quickest handshake; cases differ by: each case measures it anew; agree: of "
        "the samples that ended on another core than they began on, those whose raw difference less the "
        "offset is esp_timer's, within that error, what reading both clocks takes, and 1 µs of esp_timer for "
        "each of the two "
        f"({number(max(one.counter.tolerance_us for found in boots.values() for one in found))} µs in all); "
        "worst: the largest difference",
    )
    return Table("offsets", title, columns, tuple(rows), notes, tuple(data))


def _offset_cells(counters: Sequence[Counter]) -> tuple[str, ...]:
    offsets = [counter.offset_us for counter in counters]
    return (
        f"{counters[0].mhz:g}",
        f"{offsets[0] / 1000:,.6f}",
        f"{max(counter.error_us for counter in counters):.3f}",
        f"{max(offsets) - min(offsets):.3f}" if len(counters) > 1 else NONE,
    )


def _fit_cells(moved: Sequence[Stretch]) -> tuple[str, str]:
    if not moved:
        return NONE, NONE
    worst = max(abs(one.unshifted_us - one.common_us) for one in moved)
    return f"{sum(one.agrees for one in moved):,} of {len(moved):,}", number(worst)


def lumps(ours: Measured, period_us: float) -> dict[str, list[Stretch]]:
    """Sort the moved and the resting intervals by what they are nearest to on the raw counter."""
    found: dict[str, list[Stretch]] = {name: [] for name in _PLACES}
    for one in ours.done:
        offset = one.counter.offset_us
        centres = dict(zip(_PLACES, (period_us + offset, period_us - offset, period_us), strict=False))
        away = {name: _apart(one.raw_us, centre, one.counter.turn_us) for name, centre in centres.items()}
        nearest = min(away, key=lambda name: away[name])
        found[nearest if away[nearest] < abs(offset) * _NEAR else "elsewhere"].append(one)
    return found


def _apart(one: float, other: float, turn: float) -> float:
    """Return how far two values are apart on a counter that turns."""
    return abs((one - other + turn / 2) % turn - turn / 2)


def lumps_table(study: Study, run: BoardRun) -> Table | None:
    """Return how many raw intervals lie near which value, beside the moves that were seen."""
    ours, period_us = loaded(study, run)
    if not ours.moved:
        return None
    counter = ours.done[0].counter
    at = dict(
        zip(_PLACES, (period_us + counter.offset_us, period_us - counter.offset_us, period_us), strict=False)
    )
    rows, data = [], []
    for name, found in lumps(ours, period_us).items():
        ways = Count((one.start_core, one.end_core) for one in found)
        stayed = ways[0, 0] + ways[1, 1]
        place_ms = at[name] % counter.turn_us / 1000 if name in at else None
        counts = (len(found), ways[0, 1], ways[1, 0], stayed)
        rows.append((name, decimals(place_ms), *(f"{count:,}" for count in counts)))
        data.append(
            {"near": name, "at_ms": place_ms}
            | dict(zip(("samples", "from_0_to_1", "from_1_to_0", "stayed"), counts, strict=True))
            | {"by_construction": is_planted(run, ours.done)}
        )
    mark = f", {BY_CONSTRUCTION}" if is_planted(run, ours.done) else ""
    columns = ("near", "modulo 2^32, ms", "samples", "from core 0 to 1", "from core 1 to 0", "stayed")
    notes = (
        "near: within a third of the offset of its boot, the first boot's places are shown; the cores are "
        "those that the task saw at both ends: each lump is told by its direction, not by its place alone",
    )
    title = f"Raw intervals under load, by what they lie near{mark}"
    return Table("lumps", title, columns, tuple(rows), notes, tuple(data))


def loaded(study: Study, run: BoardRun) -> tuple[Measured, float]:
    """Return the intervals of the task that was moved, and its period in µs."""
    return measured(run, study.table("period-loaded").ours), period_of(study, run, "period-loaded")


def period_of(study: Study, run: BoardRun, table: str) -> float:
    """Return the period in µs that a table's records were measured with; 0 where there are none."""
    wanted = study.table(table).ours
    records = run.select(wanted) if wanted else ()
    return float(whole(records[0], "period_us")) if records else 0.0


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


_COLUMNS = ("", "published", "p50", "p95", "p99", "max", "n", "boots")
_GIVE = "give_ns"
_PLACEMENTS = {"same": "on core 0", "cross": "on core 1", "free": "anywhere"}  # where the giver runs


def cost_tables(study: Study, run: BoardRun) -> tuple[Table, ...]:
    """Return the granularity with the cost of reading, and the time of giving."""
    return _granularity(study, run), _give(study, run)


def _granularity(study: Study, run: BoardRun) -> Table:
    published = study.table("granularity")
    records = run.select(published.ours) if published.ours else ()
    row = published.rows[0]
    lines = [
        ("two readings of the counter, cycles", published_text(row), "clock_read_cycles"),
        ("a pair of stamps on esp_timer, µs", NONE, "clock_stamp_us"),
    ]
    rows, data = [], []
    for name, text, key in lines:
        found = sorted(value for record in records if (value := fact(record, "device", key)) is not None)
        ours = f"{found[0]:g} to {found[-1]:g}" if found else NOT_MEASURED
        rows.append((name, text, ours, str(len(found)), str(boots(records))))
        data.append({"quantity": name, "values": found})
    notes = (*table_notes(published), *row_notes(row, run, measured=bool(records)))
    return Table(
        published.id,
        "What reading the clocks takes",
        ("", "published", "ours, least to most", "cases", "boots"),
        tuple(rows),
        notes,
        tuple(data),
    )


def _give(study: Study, run: BoardRun) -> Table:
    published = study.table("give")
    records = run.select(published.ours) if published.ours else ()
    row = published.rows[0]
    rows: list[tuple[str, ...]] = []
    data: list[Mapping[str, object]] = []
    head = published_text(row)
    for placement, words in _PLACEMENTS.items():
        own = [record for record in records if word(record, "placement") == placement]
        values, of_boot = _give_us(own)
        if values:
            rows.append((f"{row.label}, {words}", head, *_cells(values, of_boot)))
            data.append(
                {"placement": placement, "p50_us": median(values, of_boot).data, "max_us": max(values)}
            )
    if not rows:
        rows.append((row.label, head, NOT_MEASURED, *[NONE] * 3, "0", "0"))
    notes = (*table_notes(published), *row_notes(row, run, measured=bool(data)))
    return Table(published.id, f"{published.title}, µs", _COLUMNS, tuple(rows), notes, tuple(data))


def _give_us(records: Sequence[RunRecord]) -> tuple[list[float], list[int]]:
    """Return the times of the calls, with nobody waiting, in µs, and the boots that they are from."""
    found = [
        (record.columns[_GIVE][row] / 1000, record.boot_index)
        for record in records
        for row in range(record.warmup_rows, record.rows)
        if record.columns["outcome"][row] == OK
    ]
    return [value for value, _ in found], [boot for _, boot in found]


def _cells(values: Sequence[float], of_boot: Sequence[int]) -> tuple[str, ...]:
    high = (estimate(values, share).short for share in (0.95, 0.99))
    counts = (f"{len(values):,}", str(len(set(of_boot))))
    return (median(values, of_boot).text, *high, number(max(values)), *counts)

"""Where 190 ms a switch and seconds of jitter come from: the offset of the cores' counters, by arithmetic."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Sequence

from hil.reference import Study
from reports.reproduction.cycles import (
    BY_CONSTRUCTION,
    Counter,
    Measured,
    Stretch,
    is_planted,
    measured,
    stretches_of,
)
from reports.reproduction.document import NONE, Table, number
from reports.reproduction.raw import decimals
from reports.reproduction.records import BoardRun, whole

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

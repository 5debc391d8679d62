# SPDX-License-Identifier: Apache-2.0
"""Where 190 ms a switch and seconds of jitter come from: the offset of the cores' counters, by arithmetic."""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Sequence

from hil.model import RunRecord
from hil.reports.studies.comparison import published_text, row_notes, table_notes
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import NONE, NOT_MEASURED, Table, number
from hil.reports.studies.estimate import estimate, median
from hil.reports.studies.freertos_multicore.cycles import (
    BY_CONSTRUCTION,
    OK,
    Measured,
    Stretch,
    decimals,
    is_planted,
    measured,
    stretches_of,
)
from hil.reports.studies.layout import Figures, lay_out, published_table
from hil.reports.studies.records import BoardRun, boots, fact, grouped, whole, word

BENCHES = ("task_switch", "jitter")
_NEAR = 1 / 3  # of the offset: what is closer than that to a value is near it
_PLACES = ("period + offset", "period − offset", "period", "elsewhere")


def offsets_table(study: Study, run: BoardRun) -> Table | None:
    """Return each boot's offset as the handshake measured it, and how the raw counter fits with it."""
    done = stretches_of(record for bench in BENCHES for record in run.of(bench)).done
    boots = grouped(done, lambda one: one.boot)
    lines = []
    for boot, found in sorted(boots.items()):
        counters = list(dict.fromkeys(one.counter for one in found))
        offsets = [counter.offset_us for counter in counters]
        moved = [one for one in found if one.moved]
        fits, worst = _fit_cells(moved)
        words = {
            "mhz": f"{counters[0].mhz:g}",
            "offset": f"{offsets[0] / 1000:,.6f}",
            "fits": fits,
            "worst": worst,
        }
        words["error"] = f"{max(counter.error_us for counter in counters):.3f}"
        words["apart"] = f"{max(offsets) - min(offsets):.3f}" if len(counters) > 1 else NONE
        lines.append(
            {"boot": boot, **words, "cpu_mhz": counters[0].mhz, "by_construction": run.kind == "virtual"}
            | {"offset_cycles": sorted({counter.offset_cycles for counter in counters})}
            | {"error_cycles": max(counter.error_cycles for counter in counters), "moved": len(moved)}
            | {"agree": sum(one.agrees for one in moved)}
            | {"tolerance_us": max(counter.tolerance_us for counter in counters)}
        )
    mark = f", {BY_CONSTRUCTION}" if run.kind == "virtual" else ""
    within = max((one.counter.tolerance_us for found in boots.values() for one in found), default=None)
    return lay_out(study, "offsets", lines, mark=mark, within=number(within))


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
    planted = is_planted(run, ours.done)
    lines = []
    for name, found in lumps(ours, period_us).items():
        ways = Count((one.start_core, one.end_core) for one in found)
        place_ms = at[name] % counter.turn_us / 1000 if name in at else None
        counts = {"samples": len(found), "from_0_to_1": ways[0, 1], "from_1_to_0": ways[1, 0]}
        counts["stayed"] = ways[0, 0] + ways[1, 1]
        line = {"near": name, "at": decimals(place_ms), "at_ms": place_ms}
        lines.append({**line, **counts, "by_construction": planted})
    return lay_out(study, "lumps", lines, mark=f", {BY_CONSTRUCTION}" if planted else "")


def loaded(study: Study, run: BoardRun) -> tuple[Measured, float]:
    """Return the intervals of the task that was moved, and its period in µs."""
    return measured(run, study.table("period-loaded").ours), period_of(study, run, "period-loaded")


def period_of(study: Study, run: BoardRun, table: str) -> float:
    """Return the period in µs that a table's records were measured with; 0 where there are none."""
    wanted = study.table(table).ours
    records = run.select(wanted) if wanted else ()
    return float(whole(records[0], "period_us")) if records else 0.0


_GIVE = "give_ns"
_PLACEMENTS = {"same": "on core 0", "cross": "on core 1", "free": "anywhere"}  # where the giver runs


def granularity_table(study: Study, run: BoardRun) -> Table:
    """Return the granularity with the cost of reading."""
    published = study.table("granularity")
    records = run.select(published.ours) if published.ours else ()
    row = published.rows[0]
    lines = []
    for name, text, key in (
        ("two readings of the counter, cycles", published_text(row), "clock_read_cycles"),
        ("a pair of stamps on esp_timer, µs", NONE, "clock_stamp_us"),
    ):
        found = sorted(value for record in records if (value := fact(record, "device", key)) is not None)
        ours = f"{found[0]:g} to {found[-1]:g}" if found else NOT_MEASURED
        line = {"quantity": name, "shown": text, "ours": ours, "values": found}
        lines.append({**line, "cases": len(found), "boots": boots(records)})
    notes = (*table_notes(published), *row_notes(row, run, measured=bool(records)))
    return published_table(study, "granularity", published, lines, notes)


def give_table(study: Study, run: BoardRun) -> Table:
    """Return the time of giving."""
    published = study.table("give")
    records = run.select(published.ours) if published.ours else ()
    row = published.rows[0]
    lines: list[Figures] = []
    for placement, words in _PLACEMENTS.items():
        values, of_boot = _give_us([record for record in records if word(record, "placement") == placement])
        if values:
            high = {name: estimate(values, share) for name, share in (("p95", 0.95), ("p99", 0.99))}
            line = {
                "label": f"{row.label}, {words}",
                "placement": placement,
                "p50_us": median(values, of_boot),
            }
            lines.append(
                {**line, **high, "max_us": max(values), "n": len(values), "boots": len(set(of_boot))}
            )
    empty = {"label": row.label, "placement": None, "p50_us": NOT_MEASURED, "n": 0, "boots": 0}
    notes = (*table_notes(published), *row_notes(row, run, measured=bool(lines)))
    shown = [{**line, "shown": published_text(row)} for line in lines or [empty]]
    return published_table(study, "give", published, shown, notes)


def _give_us(records: Sequence[RunRecord]) -> tuple[list[float], list[int]]:
    """Return the times of the calls, with nobody waiting, in µs, and the boots that they are from."""
    found = [
        (record.columns[_GIVE][row] / 1000, record.boot_index)
        for record in records
        for row in range(record.warmup_rows, record.rows)
        if record.columns["outcome"][row] == OK
    ]
    return [value for value, _ in found], [boot for _, boot in found]

"""The study freertos-multicore beside our run of it."""

from __future__ import annotations

import functools

from hil.reference import Study
from reports.reproduction import artefact
from reports.reproduction.arithmetic import arithmetic_table
from reports.reproduction.background import plain_table
from reports.reproduction.claims import claim_table
from reports.reproduction.clock_cost import cost_tables
from reports.reproduction.cycles import BY_CONSTRUCTION, Measured, is_planted, measured
from reports.reproduction.document import Section, Table, number
from reports.reproduction.estimate import median
from reports.reproduction.multicore_claims import check, on_clock, raw_words
from reports.reproduction.raw import clock_table, raw_table
from reports.reproduction.records import BoardRun

OUR_WAY = (
    "their way: the study's statistics of the differences of the raw cycle counter. Beside it the same "
    "samples on three clocks: raw counter; corrected counter, which is the raw one less the offset of the "
    "cores' counters and less the cost of reading; esp_timer, which both cores share, to 1 µs. p50 with an "
    "interval whose ends are each wrong with 5 % at most, over boots; of one boot it holds for this boot. "
    "p95, p99 and max are those of what was measured; 'n < 299': too few for the percentile. A sample that "
    "never ended counts as slower than all others."
)
PLANTED = (
    "On a virtual board the cores' counters are made up, and with them their offset. What the raw counter "
    f"shows across cores is marked '{BY_CONSTRUCTION}': it says nothing of an ESP32. How the tasks were "
    "scheduled is the host's doing."
)


def sections_of(study: Study, run: BoardRun) -> list[Section]:
    """Return the sections; a case that is missing leaves its row and says why."""
    remarks = (OUR_WAY, PLANTED) if run.kind == "virtual" else (OUR_WAY,)
    headings = {
        "switch-same-core": "Task switch on one core",
        "switch-cross-core": "Task switch between cores",
        "period": "Period without load",
        "period-loaded": "Period of a task that is moved",
    }
    return [
        *(
            Section(heading, remarks if n == 0 else (), _both(study, table, run))
            for n, (table, heading) in enumerate(headings.items())
        ),
        _artefact(study, run),
        Section("What the clocks take", tables=cost_tables(study, run)),
        *(
            Section(f"Question: {question}", answers=(answer,))
            for question, answer in zip(
                study.questions, (_switch(study, run), _period(study, run)), strict=True
            )
        ),
        Section(
            "Claims",
            tables=(claim_table(study.claims, run, functools.partial(check, study), where="on our board"),),
        ),
        _background(study),
    ]


def _both(study: Study, table: str, run: BoardRun) -> tuple[Table, ...]:
    published = study.table(table)
    return tuple(one for one in (raw_table(published, run), clock_table(published, run)) if one)


def _artefact(study: Study, run: BoardRun) -> Section:
    tables = (
        artefact.offsets_table(run),
        arithmetic_table(study, run),
        artefact.lumps_table(study, run),
    )
    remark = (
        "A core's counter starts when the core leaves reset, so the counters of two cores differ by an "
        "offset of each boot. A difference that begins on one core and ends on the other holds it, with the "
        "sign of the direction, modulo 2^32 cycles."
    )
    return Section(
        "Where 190 ms and 17.7 s come from",
        (remark,),
        tuple(one for one in tables if one),
        _found(study, run),
    )


def _found(study: Study, run: BoardRun) -> tuple[str, ...]:
    """Say in sentences what the tables of the artefact come to."""
    ours, period_us = artefact.loaded(study, run)
    if not ours.moved:
        return ()
    found = artefact.lumps(ours, period_us)
    plus, minus = len(found["period + offset"]), len(found["period − offset"])
    counter = ours.done[0].counter
    offset = f"{counter.offset_us / 1000:,.3f} ms ± {counter.error_us:.2f} µs"
    mark = f" ({BY_CONSTRUCTION})" if is_planted(run, ours.done) else ""
    return (
        f"Core 1's counter less core 0's is {offset} in boot {ours.done[0].boot}{mark}. "
        f"Of {len(ours.done):,} raw intervals {plus:,} lie near the period plus that, {minus:,} near the "
        "period minus that, modulo 2^32 cycles.",
        f"The raw counter less the offset agrees with esp_timer, within {number(counter.tolerance_us)} µs, "
        f"in {ours.agreeing:,} of {len(ours.moved):,} intervals in which the task was moved{mark}.",
    )


def _switch(study: Study, run: BoardRun) -> str:
    same, cross = (measured(run, study.table(f"switch-{name}-core").ours) for name in ("same", "cross"))
    parts = [_on_both_clocks(one, where) for one, where in ((same, "on one core"), (cross, "between cores"))]
    told = "; ".join(part for part in parts if part)
    if not told:
        return "Task switches were not measured."
    across = f" Between cores {raw_words(cross, run)}." if cross.moved else ""
    return f"p50 of a task switch by a semaphore: {told}.{across}"


def _on_both_clocks(ours: Measured, where: str) -> str:
    if not ours.done:
        return ""
    corrected, common = on_clock(ours, "corrected"), on_clock(ours, "esp_timer")
    return f"{where} {corrected.text} µs by the corrected counter, {common.text} µs by esp_timer"


def _period(study: Study, run: BoardRun) -> str:
    parts = []
    for table, words in (
        ("period", "without load"),
        ("period-loaded", "where it is moved between the cores"),
    ):
        ours = measured(run, study.table(table).ours)
        if ours.done:
            period_us = artefact.period_of(study, run, table)
            off = [abs(one.common_us - period_us) for one in ours.done]
            found = median(off, [one.boot for one in ours.done])
            parts.append(f"{words} {found.text} µs, at the most {number(max(off))} µs")
    if not parts:
        return "Periods were not measured."
    return f"p50 of how far an interval is off the period, by esp_timer: {'; '.join(parts)}."


def _background(study: Study) -> Section:
    """Return the tables of others, shown and not judged."""
    remark = "Shown for orientation: other chips, clocks and programs. Nothing is judged against them."
    return Section("Figures of others", (remark,), tuple(map(plain_table, study.background)))

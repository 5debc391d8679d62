# SPDX-License-Identifier: Apache-2.0
"""The study freertos-multicore beside our run of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from hil.metrics.stats import quantile
from hil.reports.studies.claims import (
    CONTRADICTED,
    SUPPORTED,
    UNDECIDED,
    Finding,
    beyond,
    claim_table,
    from_test,
)
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import Table, number
from hil.reports.studies.estimate import ALPHA, Estimate, above, median, share_of, share_text
from hil.reports.studies.freertos_multicore import artefact
from hil.reports.studies.freertos_multicore.artefact import loaded
from hil.reports.studies.freertos_multicore.cycles import (
    BY_CONSTRUCTION,
    WAYS,
    Measured,
    clock_table,
    is_planted,
    measured,
    raw_table,
)
from hil.reports.studies.records import BoardRun
from hil.reports.studies.sections import Parts


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


_WITHIN_US = 0.5  # to either side: what three decimals of a ms cannot show
_NEARLY_ALL = 0.99


def _nothing(*groups: Measured) -> Finding:
    """Return the finding where samples are missing: they were not measured, or are void."""
    why = [ours.why for ours in groups if ours.why]
    return Finding(UNDECIDED, why[0] if why else "nothing of it was measured")


def _claims(study: Study, run: BoardRun) -> Table:
    checks = {name: functools.partial(decide, study) for name, decide in _CHECKS.items()}
    return claim_table(study.claims, run, checks, where="on our board")


def on_clock(ours: Measured, way: str, alpha: float = ALPHA) -> Estimate:
    """Return the median of what was done, in µs, by one of WAYS."""
    return median([WAYS[way](one) for one in ours.done], [one.boot for one in ours.done], alpha)


def raw_words(ours: Measured, run: BoardRun) -> str:
    """Return what the raw counter shows and how often esp_timer confirms it less the offset."""
    mark = f" ({BY_CONSTRUCTION})" if is_planted(run, ours.done) else ""
    shown = number(quantile([one.raw_us for one in ours.done], 0.5))
    return (
        f"the raw counter's p50 is {shown} µs{mark}; less the offset of the cores' counters it agrees with "
        f"esp_timer in {ours.agreeing:,} of {len(ours.moved):,} samples"
    )


def _cross_takes_190_ms(study: Study, run: BoardRun) -> Finding:
    published = study.table("switch-cross-core")
    ours = measured(run, published.ours)
    if not ours.done:
        return _nothing(ours)
    least_us = 1000 * next(row.published or 0.0 for row in published.rows if row.statistic == "min")
    found = on_clock(ours, "esp_timer")
    reason = f"by esp_timer p50 is {found.text} µs; {raw_words(ours, run)}"
    return from_test(beyond(found, least_us), reason)


def _cross_costs_more(study: Study, run: BoardRun) -> Finding:
    both = [measured(run, study.table(f"switch-{name}-core").ours) for name in ("cross", "same")]
    if not all(one.done for one in both):
        return _nothing(*both)
    cross, same = (on_clock(one, "corrected", ALPHA / 2) for one in both)
    reason = f"p50 by the corrected counter {cross.text} µs between cores, {same.text} µs on one core"
    return from_test(above(cross, same), reason)


def _off_by_esp_timer(study: Study, ours: Measured, period_us: float) -> tuple[Estimate, float]:
    """Return how far moved intervals are off the period, and by how much the study's are at least; µs."""
    rows = study.table("period-loaded").rows
    least_us = 1000 * next(row.published or 0.0 for row in rows if row.statistic == "min") - period_us
    off = median([abs(one.common_us - period_us) for one in ours.moved], [one.boot for one in ours.moved])
    return off, least_us


def _period_is_off(study: Study, run: BoardRun) -> Finding:
    ours, period_us = loaded(study, run)
    if not ours.moved:
        return (
            Finding(UNDECIDED, "the task was never moved to the other core") if ours.done else _nothing(ours)
        )
    off, least_us = _off_by_esp_timer(study, ours, period_us)
    worst = number(max(abs(one.common_us - period_us) for one in ours.moved))
    return from_test(
        beyond(off, least_us),
        f"of {len(ours.moved):,} intervals in which the task was moved, half are within {off.text} µs of the "
        f"period by esp_timer, the worst within {worst} µs; {raw_words(ours, run)}",
    )


def _load_explains(study: Study, run: BoardRun) -> Finding:
    """Contradicted where esp_timer shows no overhead and the offset explains most moved intervals."""
    ours, period_us = loaded(study, run)
    if not ours.moved:
        return (
            Finding(UNDECIDED, "the task was never moved to the other core") if ours.done else _nothing(ours)
        )
    of = len(ours.moved)
    share = share_of([ours.agreeing], [of])
    off, least_us = _off_by_esp_timer(study, ours, period_us)
    verdict = SUPPORTED if off.low >= least_us else CONTRADICTED if share.low > 0.5 else UNDECIDED
    mark = f" ({BY_CONSTRUCTION})" if is_planted(run, ours.done) else ""
    return Finding(
        verdict,
        f"the offset of the counters accounts for {share_text(share)} of {of:,} "
        f"intervals in which the task was moved{mark}: less the offset they agree with esp_timer, whose "
        "intervals are of the same load",
    )


def _same_are_equal(study: Study, run: BoardRun) -> Finding:
    ours = measured(run, study.table("switch-same-core").ours)
    if not ours.done:
        return _nothing(ours)
    values = [one.corrected_us for one in ours.done]
    middle = quantile(values, 0.5)
    near, of = sum(abs(value - middle) <= _WITHIN_US for value in values), len(values)
    share = share_of([near], [of])
    return from_test(
        beyond(share, _NEARLY_ALL),
        f"{share_text(share)} of {of:,} samples lie within 0.5 µs of the p50, {number(middle)} "
        f"µs, by the corrected counter; least {number(min(values))}, most {number(max(values))} µs",
    )


_CHECKS: Mapping[str, Callable[[Study, BoardRun], Finding]] = {
    "cross-core-switch-takes-190-ms": _cross_takes_190_ms,
    "cross-core-costs-more": _cross_costs_more,
    "period-is-off-by-200-ms-when-moved": _period_is_off,
    "load-explains-the-period": _load_explains,
    "same-core-values-are-equal": _same_are_equal,
}
_CLOCKED = ("switch-same-core", "switch-cross-core", "period", "period-loaded")
PARTS = Parts(
    tables={
        **{name: functools.partial(raw_table, name) for name in _CLOCKED},
        **{f"{name}-clocks": functools.partial(clock_table, name) for name in _CLOCKED},
        "offsets": artefact.offsets_table,
        "arithmetic": artefact.arithmetic_table,
        "lumps": artefact.lumps_table,
        "granularity": artefact.granularity_table,
        "give": artefact.give_table,
        "claims": _claims,
    },
    answers={
        "Where 190 ms and 17.7 s come from": _found,
        "question 1": lambda study, run: (_switch(study, run),),
        "question 2": lambda study, run: (_period(study, run),),
    },
)

# SPDX-License-Identifier: Apache-2.0
"""The study freertos-multicore beside our run of it."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from hil.metrics.stats import quantile
from hil.reports.studies.claims import (
    CONTRADICTED,
    NOTHING,
    SUPPORTED,
    UNDECIDED,
    Finding,
    Records,
    Statistic,
)
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import number
from hil.reports.studies.estimate import ALPHA, Estimate, counted_share, median, share_of
from hil.reports.studies.freertos_multicore import artefact
from hil.reports.studies.freertos_multicore.cycles import (
    BY_CONSTRUCTION,
    WAYS,
    Measured,
    clock_table,
    is_planted,
    raw_table,
    stretches_of,
)
from hil.reports.studies.records import BoardRun, whole, word
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


_WITHIN_US = 0.5  # to either side: what three decimals of a ms cannot show
_LEAST_OFF_US = 203_006  # of a moved task's period: the study's minimum less its period


def _on_clock(ours: Measured, way: str, alpha: float) -> Estimate:
    """Return the median of what was done, in µs, by one of WAYS."""
    if ours.why:
        return Estimate(0, 0, why=ours.why)
    return median([WAYS[way](one) for one in ours.done], [one.boot for one in ours.done], alpha)


def _off(records: Records, alpha: float) -> Estimate:
    """Return how far the intervals in which the task was moved are off the period; µs."""
    ours = stretches_of(records)
    if not ours.moved:
        return Estimate(0, 0, why=ours.why or "the task was never moved to the other core")
    period_us = whole(records[0], "period_us")
    off = [abs(one.common_us - period_us) for one in ours.moved]
    return median(off, [one.boot for one in ours.moved], alpha)


def _near(records: Records, alpha: float) -> Estimate:
    """Return the share of the samples that are as near to the median as the study can show."""
    ours = stretches_of(records)
    values = [one.corrected_us for one in ours.done]
    if not values:
        return Estimate(0, 0, why=ours.why)
    middle = quantile(values, 0.5)
    return share_of([sum(abs(value - middle) <= _WITHIN_US for value in values)], [len(values)], alpha)


def _by(way: str, words: str) -> Statistic:
    return Statistic(words, lambda records, alpha: _on_clock(stretches_of(records), way, alpha))


_STATISTICS: Mapping[str, Statistic] = {
    "corrected": _by("corrected", "p50 by the corrected counter in µs"),
    "esp_timer": _by("esp_timer", "p50 by esp_timer in µs"),
    "off": Statistic("p50 of how far a moved interval is off the period, by esp_timer in µs", _off),
    "near": Statistic(
        "samples within 0.5 µs of the p50, by the corrected counter", _near, text=counted_share
    ),
}


def _load_explains(run: BoardRun) -> Finding:
    """Contradicted where esp_timer shows no overhead and the offset explains most moved intervals."""
    records = [record for record in run.of("jitter") if word(record, "load") == "migrate"]
    ours, off = stretches_of(records), _off(records, ALPHA)
    if not ours.moved:
        return Finding(UNDECIDED, off.why) if records else NOTHING
    share = share_of([ours.agreeing], [len(ours.moved)])
    verdict = SUPPORTED if off.low >= _LEAST_OFF_US else CONTRADICTED if share.low > 0.5 else UNDECIDED
    mark = f" ({BY_CONSTRUCTION})" if is_planted(run, ours.done) else ""
    return Finding(
        verdict,
        f"the offset of the counters accounts for {counted_share(share)} intervals in which the task was "
        f"moved{mark}: less the offset they agree with esp_timer, whose intervals are of the same load",
    )


_CLOCKED = ("switch-same-core", "switch-cross-core", "period", "period-loaded")
PARTS = Parts(
    tables={
        **{name: functools.partial(raw_table, name) for name in _CLOCKED},
        **{f"{name}-clocks": functools.partial(clock_table, name) for name in _CLOCKED},
        "offsets": artefact.offsets_table,
        "lumps": artefact.lumps_table,
        "granularity": artefact.granularity_table,
        "give": artefact.give_table,
    },
    checks={"load-explains-the-period": _load_explains},
    statistics=_STATISTICS,
    answers={"Where 190 ms and 17.7 s come from": _found},
)

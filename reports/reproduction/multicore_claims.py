"""The claims of the study freertos-multicore against our records."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hil.metrics.stats import quantile, ratio_interval
from hil.reference import Claim, Study
from reports.reproduction.artefact import loaded
from reports.reproduction.claims import CONTRADICTED, SUPPORTED, UNDECIDED, Finding, from_test
from reports.reproduction.cycles import BY_CONSTRUCTION, Measured, is_planted, measured
from reports.reproduction.document import number
from reports.reproduction.estimate import ALPHA, Estimate, above, median, share_text
from reports.reproduction.raw import WAYS
from reports.reproduction.records import BoardRun

_WITHIN_US = 0.5  # to either side: what three decimals of a ms cannot show
_NEARLY_ALL = 0.99


def _nothing(*groups: Measured) -> Finding:
    """Return the finding where samples are missing: they were not measured, or are void."""
    why = [ours.why for ours in groups if ours.why]
    return Finding(UNDECIDED, why[0] if why else "nothing of it was measured")


def check(study: Study, claim: Claim, run: BoardRun) -> Finding:
    """Return what becomes of a claim."""
    return _CHECKS[claim.check](study, run)


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
    verdict = SUPPORTED if found.low >= least_us else CONTRADICTED if found.high < least_us else UNDECIDED
    return Finding(verdict, f"by esp_timer p50 is {found.text} µs; {raw_words(ours, run)}")


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
    verdict = SUPPORTED if off.low >= least_us else CONTRADICTED if off.high < least_us else UNDECIDED
    worst = number(max(abs(one.common_us - period_us) for one in ours.moved))
    return Finding(
        verdict,
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
    bounds = ratio_interval(ours.agreeing, of, ALPHA)
    off, least_us = _off_by_esp_timer(study, ours, period_us)
    verdict = SUPPORTED if off.low >= least_us else CONTRADICTED if bounds.low > 0.5 else UNDECIDED
    mark = f" ({BY_CONSTRUCTION})" if is_planted(run, ours.done) else ""
    return Finding(
        verdict,
        f"the offset of the counters accounts for {share_text(ours.agreeing / of, bounds)} of {of:,} "
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
    bounds = ratio_interval(near, of, ALPHA)
    verdict = (
        SUPPORTED if bounds.low >= _NEARLY_ALL else CONTRADICTED if bounds.high < _NEARLY_ALL else UNDECIDED
    )
    return Finding(
        verdict,
        f"{share_text(near / of, bounds)} of {of:,} samples lie within 0.5 µs of the p50, {number(middle)} "
        f"µs, by the corrected counter; least {number(min(values))}, most {number(max(values))} µs",
    )


_CHECKS: Mapping[str, Callable[[Study, BoardRun], Finding]] = {
    "cross-core-switch-takes-190-ms": _cross_takes_190_ms,
    "cross-core-costs-more": _cross_costs_more,
    "period-is-off-by-200-ms-when-moved": _period_is_off,
    "load-explains-the-period": _load_explains,
    "same-core-values-are-equal": _same_are_equal,
}

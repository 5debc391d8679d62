"""The claims and recommendations of the study rtos-mqtt against our records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hil.metrics.stats import Interval
from hil.reference import Claim, Study
from reports.reproduction.claims import CONTRADICTED, SUPPORTED, UNDECIDED, Finding, from_test
from reports.reproduction.document import number
from reports.reproduction.estimate import ALPHA, median
from reports.reproduction.records import BoardRun, boots
from reports.reproduction.rtos_costs import (
    APART,
    BESIDE,
    UNPINNED,
    Pair,
    core_pairs,
    fullest,
    of_cores,
    tls_pairs,
)
from reports.reproduction.rtos_messages import (
    boot_mean,
    by_name,
    call_ms,
    call_us,
    called,
    facts_by_boot,
    narrowed,
    paired,
    setting,
    whole_us,
)
from reports.reproduction.rtos_network_claims import CHECKS

CLOCK_US = 1000  # what the study's clock can show
TLS_US = Interval(500, 2000)  # "about 1 ms"
COARSE_MS = 10.0  # a whole ms is more than a tenth of what is shorter
_MOST = 0.5


def check(study: Study, claim: Claim, run: BoardRun) -> Finding:
    """Return what becomes of a claim."""
    if claim.check in CHECKS:
        return CHECKS[claim.check](run)
    return _CHECKS[claim.check](study, run)


def place(run: BoardRun) -> str:
    """Return the heading of the verdicts: they are of this rack."""
    return "on this virtual rack" if run.kind == "virtual" else "on our board"


def _all(verdicts: Sequence[bool | None]) -> bool | None:
    """Return True where all are, False where one is not, None otherwise."""
    return False if False in verdicts else True if all(verdicts) else None


def _slower(pairs: Sequence[Pair], run: BoardRun, *, sign: int = 1) -> Finding:
    """Decide that the first of each pair takes CLOCK_US more at least, less with the ``sign`` -1."""
    chosen = fullest(pairs)
    if not chosen:
        return Finding(UNDECIDED, "the mappings were not measured beside each other")
    verdicts, told = [], []
    for pair in chosen:
        found = pair.above(whole_us, ALPHA / len(chosen))
        low, high = (found.low, found.high) if sign > 0 else (-found.high, -found.low)
        verdicts.append(True if low >= CLOCK_US else False if high < CLOCK_US else None)
        told.append(f"{pair.name} {found.text} µs")
    reason = f"difference of the mean publish, mutex included, {chosen[0].setting}: {'; '.join(told)}"
    return of_cores(from_test(_all(verdicts), reason), run)


def _pinning_hurts(study: Study, run: BoardRun) -> Finding:
    return _slower(core_pairs(study, run, APART, UNPINNED), run)


def _core_0_helps(study: Study, run: BoardRun) -> Finding:
    return _slower(core_pairs(study, run, BESIDE, APART), run, sign=-1)


def _core_0_beats_unpinned(study: Study, run: BoardRun) -> Finding:
    return _slower(core_pairs(study, run, BESIDE, UNPINNED), run, sign=-1)


def _mutex(study: Study, run: BoardRun) -> Finding:
    """Decide whether the wait for the mutex is most of a publish on core 1, the sensor task on core 0."""
    records = narrowed(
        run, study.table("publish").ours, producer_core=APART[0], publisher_core=APART[1], retain=0
    )
    found = called(records)
    if not found:
        return Finding(UNDECIDED, "no case with the tasks on different cores was measured")
    beyond = boot_mean(
        [one.mutex_wait_us - _MOST * one.whole_us for one in found], [one.boot for one in found]
    )
    share = sum(one.mutex_wait_us for one in found) / sum(one.whole_us for one in found)
    supports = True if beyond.low > 0 else False if beyond.high < 0 else None
    waits = [one.mutex_wait_us / 1000 for one in found]
    reason = (
        f"the wait for the mutex is {share * 100:.3g} % of a publish on core 1, {number(max(waits))} ms at "
        f"the most (n = {len(found):,}, boots = {boots(records)})"
    )
    return of_cores(from_test(supports, reason), run)


def _tls_costs(study: Study, run: BoardRun) -> Finding:
    chosen = fullest(tls_pairs(study, run))
    if not chosen:
        return Finding(UNDECIDED, "no mapping was measured with TLS and without")
    verdicts, told = [], []
    for pair in chosen:
        found = pair.above(call_us, ALPHA / len(chosen))
        inside = TLS_US.low <= found.low and found.high <= TLS_US.high
        outside = found.high < TLS_US.low or found.low > TLS_US.high
        verdicts.append(True if inside else False if outside else None)
        told.append(f"{pair.name} {found.text} µs")
    reason = f"TLS less plain, mean of the publish call, {chosen[0].setting}: {'; '.join(told)}"
    return of_cores(from_test(_all(verdicts), reason), run)


def _tls_steadier(study: Study, run: BoardRun) -> Finding:
    """Compare the spread of arrivals by boot, unpinned, in each setting that both were measured in."""
    base = study.table("publish").ours
    tls, plain = (
        by_name(
            narrowed(run, base, transport=how, producer_core="none", publisher_core="none", retain=0), setting
        )
        for how in ("tls", "tcp")
    )
    both = [name for name in tls if name in plain]
    if not both:
        return Finding(UNDECIDED, "TLS and plain were not measured beside each other")
    told, verdicts = [], []
    for name in both:
        pair = [facts_by_boot(records[name], "interarrival_cv") for records in (tls, plain)]
        found = paired(pair, ALPHA / len(both))
        verdicts.append(True if found.high < 0 else False if found.low > 0 else None)
        told.append(f"{name} {found.text}")
    reason = (
        "spread of the times between arrivals (their standard deviation over their mean), TLS less plain, "
        f"unpinned: {'; '.join(told)}"
    )
    return from_test(_all(verdicts), reason)


def _coarse(study: Study, run: BoardRun) -> Finding:
    found = called(run.select(ours)) if (ours := study.table("publish").ours) else []
    middle = median([call_ms(one) for one in found], [one.boot for one in found])
    if middle.value is None:
        return Finding(UNDECIDED, "too few publishes were measured")
    verdict = SUPPORTED if middle.high < COARSE_MS else CONTRADICTED if middle.low >= COARSE_MS else UNDECIDED
    short = sum(one.publish_call_us < 1000 for one in found)
    less = f"{short:,} of {len(found):,} calls take less than 1 ms"
    reason = f"p50 of a publish call is {middle.text} ms, and {less}"
    return of_cores(Finding(verdict, reason), run)


_CHECKS: Mapping[str, Callable[[Study, BoardRun], Finding]] = {
    "publishing-apart-from-wifi-is-slower": _pinning_hurts,
    "publishing-on-core-0-is-faster": _core_0_helps,
    "mutex-wait-is-most-of-it": _mutex,
    "tls-costs-about-1-ms": _tls_costs,
    "tls-is-steadier": _tls_steadier,
    "core-0-beats-unpinned": _core_0_beats_unpinned,
    "whole-ms-are-too-coarse": _coarse,
}

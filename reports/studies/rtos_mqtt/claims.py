# SPDX-License-Identifier: Apache-2.0
"""The claims and recommendations of the study rtos-mqtt against our records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from hil.metrics.stats import Interval, overdispersion, ratio_interval
from hil.model import RunRecord
from hil.network.ledger.points import Owner
from hil.reports.studies.claims import CONTRADICTED, SUPPORTED, UNDECIDED, Finding, from_test
from hil.reports.studies.declaration import Claim, Study
from hil.reports.studies.document import number
from hil.reports.studies.estimate import ALPHA, Estimate, median, share_text
from hil.reports.studies.records import BoardRun, boots, whole, word
from hil.reports.studies.rtos_mqtt.costs import (
    APART,
    BESIDE,
    UNPINNED,
    Pair,
    core_pairs,
    fullest,
    of_cores,
    tls_pairs,
)
from hil.reports.studies.rtos_mqtt.losses import (
    DEVICE,
    NETWORK,
    effects,
    gapless,
    gaps_a_minute,
    ledger_of,
    on_hotspot,
    on_rack,
    undisturbed,
)
from hil.reports.studies.rtos_mqtt.messages import (
    BENCH,
    boot_mean,
    by_name,
    call_ms,
    call_us,
    called,
    facts_by_boot,
    messages_of,
    narrowed,
    paired,
    setting,
    whole_us,
)

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


IN_TIME_US, IN_TIME = 10_000, 0.99
FEWER = 0.1  # publishes a segment


def _network_loses(run: BoardRun) -> Finding:
    """Decide whether most of what was lost without a planted fault was lost between board and broker."""
    records = undisturbed(run)
    counts = ledger_of(records)
    if counts is None or not counts.lost_count:
        sent = f" of {counts.sent:,}" if counts else ""
        return Finding(UNDECIDED, f"without a planted fault no message{sent} was lost")
    device, network = (sum(counts.lost[owner] for owner in owners) for owners in (DEVICE, NETWORK))
    bounds = _share(records, NETWORK)
    board = _share(records, DEVICE)
    supports = True if bounds.low > _MOST else False if board.low > _MOST else None
    others = counts.lost_count - device - network
    share = share_text(network / counts.lost_count, bounds)
    return from_test(
        supports,
        f"of {counts.lost_count:,} messages lost without a planted fault {network:,} were lost between "
        f"board and broker ({share}), {device:,} on the board, {others:,} later or undetermined",
    )


def _share(records: Sequence[RunRecord], owners: Sequence[Owner]) -> Interval:
    """Bound the share of the losses that ``owners`` have; where cases differ, those of one count for less."""
    hits, of = [], []
    for record in records:
        counts = ledger_of([record])
        if counts and counts.lost_count:
            hits.append(sum(counts.lost[owner] for owner in owners))
            of.append(counts.lost_count)
    if not of:
        return Interval(-math.inf, math.inf)
    return ratio_interval(sum(hits), sum(of), ALPHA, overdispersion(hits, of))


def _keeps_time(run: BoardRun) -> Finding:
    """Count the publishes that were begun in time, whatever became of them."""
    records = [
        record
        for record in on_rack(run)
        if word(record, "schedule") == "periodic"
        and not whole(record, "hold_us")
        and _is_slow(whole(record, "interval_us"))
    ]
    hits, of = [], []
    for record in records:
        found = messages_of([record])
        hits.append(sum(one.was_called and one.begun_us - one.planned_us <= IN_TIME_US for one in found))
        of.append(len(found))
    if not sum(of):
        return Finding(UNDECIDED, "no periodic case was measured")
    bounds = ratio_interval(sum(hits), sum(of), ALPHA, overdispersion(hits, of))
    share = share_text(sum(hits) / sum(of), bounds)
    supports = True if bounds.low >= IN_TIME else False if bounds.high < IN_TIME else None
    reason = f"{share} of {sum(of):,} publishes began within {IN_TIME_US // 1000} ms of their planned time"
    return of_cores(from_test(supports, reason), run)


def _is_slow(interval_us: int) -> bool:
    """Say whether a plan leaves a publish the time that the claim allows."""
    return interval_us >= 2 * IN_TIME_US


def _access_point(run: BoardRun) -> Finding:
    ours, theirs = gapless(on_rack(run)), gapless(on_hotspot(run))
    rack, hotspot = (gaps_a_minute(records, ALPHA / 2) for records in (ours, theirs))
    if rack.value is None or hotspot.value is None:
        return Finding(UNDECIDED, "the hotspot or the rack's own air was not measured")
    supports = True if hotspot.low > rack.high else False if hotspot.high < rack.low else None
    reason = (
        f"gaps of more than 1 s a minute: {_poisson(hotspot)} on the hotspot, {_poisson(rack)} on the "
        "rack's air"
    )
    if run.kind == "virtual":
        reason += "; both airs are emulated, by profiles"
    return from_test(supports, reason)


def _poisson(found: Estimate) -> str:
    return f"{found.text} ({found.n:,} seen)"


def _nodelay(run: BoardRun) -> Finding:
    found = effects(run).get("board")
    if found is None or found.value is None:
        return Finding(UNDECIDED, "no burst was measured with and without TCP_NODELAY on the board")
    supports = True if found.low > FEWER else False if found.high < FEWER else None
    return from_test(
        supports, f"{found.text} publishes a segment fewer with it than without, at the access point"
    )


def _device_log(run: BoardRun) -> Finding:
    records = run.of(BENCH)
    counts = ledger_of(records)
    if counts is None or not counts.lost_count:
        return Finding(UNDECIDED, "no message was lost")
    named = counts.lost[Owner.DEVICE_CALL]
    bounds = _share(records, (Owner.DEVICE_CALL,))
    supports = True if bounds.low > _MOST else False if bounds.high < _MOST else None
    reason = (
        f"the results of the publish calls name {named:,} of {counts.lost_count:,} losses, "
        f"{share_text(named / counts.lost_count, bounds)}; the others were published without an error"
    )
    return from_test(supports, reason)


CHECKS: Mapping[str, Callable[[BoardRun], Finding]] = {
    "losses-are-the-networks": _network_loses,
    "delay-until-keeps-time": _keeps_time,
    "dedicated-access-point-has-fewer-gaps": _access_point,
    "nodelay-splits-bursts": _nodelay,
    "device-log-tells-losses": _device_log,
}

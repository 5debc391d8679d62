"""The claims of rtos-mqtt about losses, gaps, bursts and time that is kept, against our records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from hil.metrics.batches import overdispersion
from hil.metrics.stats import Interval, ratio_interval
from hil.model import RunRecord
from hil.network.ledger import Owner
from reports.reproduction.claims import UNDECIDED, Finding, from_test
from reports.reproduction.estimate import ALPHA, Estimate, share_text
from reports.reproduction.records import BoardRun, whole, word
from reports.reproduction.rtos_bursts import effects
from reports.reproduction.rtos_costs import of_cores
from reports.reproduction.rtos_losses import (
    DEVICE,
    NETWORK,
    gapless,
    gaps_a_minute,
    ledger_of,
    on_hotspot,
    on_rack,
    undisturbed,
)
from reports.reproduction.rtos_messages import BENCH, messages_of

IN_TIME_US, IN_TIME = 10_000, 0.99
FEWER = 0.1  # publishes a segment
_MOST = 0.5


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

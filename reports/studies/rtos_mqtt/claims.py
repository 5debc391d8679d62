# SPDX-License-Identifier: Apache-2.0
"""What decides the claims of the study rtos-mqtt: figures of its tests, and checks that no test can say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter

from hil.network.ledger.points import Owner
from hil.reports.studies.claims import UNDECIDED, Check, Finding, Records, Statistic, from_test
from hil.reports.studies.estimate import ALPHA, NOTHING, Estimate, counted_share, median, share_of, share_text
from hil.reports.studies.records import BoardRun, whole
from hil.reports.studies.rtos_mqtt.losses import (
    DEVICE,
    NETWORK,
    UP,
    gapless,
    gaps_a_minute,
    ledger_of,
    over_boots,
    per_segment,
    undisturbed,
)
from hil.reports.studies.rtos_mqtt.messages import (
    Message,
    boot_mean,
    called,
    difference,
    facts_by_boot,
    messages_of,
    paired,
)

IN_TIME_US = 10_000
_MOST = 0.5


def _of_messages(words: str, value: Callable[[Message], float]) -> Statistic:
    return Statistic(
        words,
        lambda records, alpha: boot_mean(*_by_boot(records, value), alpha),
        lambda one, other, alpha: difference(called(other), called(one), value, alpha),
    )


def _by_boot(records: Records, value: Callable[[Message], float]) -> tuple[list[float], list[int]]:
    found = called(records)
    return [value(one) for one in found], [one.boot for one in found]


def _spread(one: Records, other: Records, alpha: float) -> Estimate:
    return paired([facts_by_boot(own, "interarrival_cv") for own in (other, one)], alpha)


def _mutex(records: Records, alpha: float) -> Estimate:
    """Return which share of a publish is the wait for the mutex, bounded by what is beyond half."""
    found = called(records)
    if not found:
        return NOTHING
    waits = sum(one.mutex_wait_us for one in found) / len(found)
    wholes = sum(one.whole_us for one in found) / len(found)
    beyond = boot_mean(*_by_boot(records, lambda one: one.mutex_wait_us - _MOST * one.whole_us), alpha)
    return Estimate(len(found), 1, waits / wholes, _MOST + beyond.low / wholes, _MOST + beyond.high / wholes)


def _begun(records: Records, alpha: float) -> Estimate:
    """Return the share of the publishes that were begun in time, whatever became of them."""
    plans = [messages_of([one]) for one in records if whole(one, "interval_us") >= 2 * IN_TIME_US]
    begun = [
        sum(one.was_called and one.begun_us - one.planned_us <= IN_TIME_US for one in own) for own in plans
    ]
    return share_of(begun, [len(own) for own in plans], alpha)


def _lost_by(records: Records, owners: Sequence[Owner], alpha: float = ALPHA) -> Estimate:
    """Return the share of the losses that ``owners`` have; a case counts for less where cases differ."""
    known = [counts for record in records if (counts := ledger_of([record])) and counts.lost_count]
    hits = [sum(counts.lost[owner] for owner in owners) for counts in known]
    return share_of(hits, [counts.lost_count for counts in known], alpha)


STATISTICS: Mapping[str, Statistic] = {
    "publish": _of_messages("difference of the mean publish in µs, mutex included", attrgetter("whole_us")),
    "call": _of_messages("difference of the mean publish call in µs", attrgetter("publish_call_us")),
    "spread": Statistic(
        "difference of the spread of the times between arrivals over their mean",
        lambda records, _alpha: over_boots(facts_by_boot(records, "interarrival_cv")),
        _spread,
    ),
    "segments": Statistic(
        "difference of publishes a segment at the access point",
        lambda records, _alpha: over_boots(per_segment(records, UP)),
        lambda one, other, alpha: paired([per_segment(own, UP) for own in (other, one)], alpha),
    ),
    "p50": Statistic(
        "p50 of a publish call in ms",
        lambda records, alpha: median(*_by_boot(records, attrgetter("call_ms")), alpha),
    ),
    "mutex": Statistic("share of the wait for the mutex in a publish", _mutex, text=counted_share),
    "in time": Statistic("publishes begun within 10 ms of their planned time", _begun, text=counted_share),
    "gaps": Statistic(
        "gaps of more than 1 s a minute",
        lambda records, alpha: gaps_a_minute(gapless(records), alpha),
        text=lambda found: f"{found.text} ({found.n:,} seen)",
    ),
    "named": Statistic(
        "lost messages that the result of the publish call names",
        lambda records, alpha: _lost_by(records, (Owner.DEVICE_CALL,), alpha),
        text=counted_share,
    ),
}


def _network_loses(run: BoardRun) -> Finding:
    """Decide whether most of what was lost without a planted fault was lost between board and broker."""
    records = undisturbed(run)
    network, board = (_lost_by(records, owners) for owners in (NETWORK, DEVICE))
    if network.value is None:
        return Finding(UNDECIDED, "without a planted fault no message was lost")
    supports = True if network.low > _MOST else False if board.low > _MOST else None
    return from_test(
        supports,
        f"of {network.n:,} messages lost without a planted fault {share_text(network)} were lost between "
        f"board and broker, {share_text(board)} on the board, the others later or undetermined",
    )


CHECKS: Mapping[str, Check] = {"losses-are-the-networks": _network_loses}

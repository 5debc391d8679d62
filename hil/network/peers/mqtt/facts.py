"""Facts of a case for its record: its rates and its faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.model import Scalar, Series
from hil.network.ledger import Arrival
from hil.network.peers.mqtt.faults import Moment
from hil.network.peers.mqtt.settings import Settings

RATE_TOLERANCE = 0.02
OK, OVERRUN = 0, 4
Facts = Mapping[str, Scalar]


def rates_facts(series: Series, settings: Settings) -> Facts:
    """Return messages a second that were asked for, offered and done, of the rows after the warm-up.

    Offered are those that the board tried to send, over the time that they were planned for. Done is by the
    times of the answers, so that their latency is no part of it; nor are the pauses between bursts part of
    either. Rates are off where either differs from what was asked by more than RATE_TOLERANCE; a random plan
    is asked for what it happened to draw.
    """
    bursts = _bursts(series, settings.interval_us)
    outcomes = series.columns["outcome"]
    requested = 1e6 / settings.interval_us
    drawn = _rate([[series.columns["planned_us"][row] for row in rows] for rows in bursts])
    tried = sum(outcomes[row] != OVERRUN for rows in bursts for row in rows)
    offered = drawn and drawn * tried / sum(map(len, bursts))
    achieved = _rate(
        [sorted(series.columns["done_us"][row] for row in rows if outcomes[row] == OK) for rows in bursts]
    )
    wanted = requested if settings.periodic else drawn
    off = wanted is not None and any(
        rate is None or abs(rate / wanted - 1) > RATE_TOLERANCE for rate in (offered, achieved)
    )
    return {
        "requested_mps": requested,
        "offered_mps": offered,
        "achieved_mps": achieved,
        "rate_off": off,
    }


def faults_facts(
    moments: Sequence[Moment], series: Series, arrivals: Sequence[Arrival]
) -> Mapping[str, int | None]:
    """Return how many faults there were, how long in all, and how long it took to recover from the last.

    Faults without beginning and end (slow_disk, subscriber_drop) are none of these.
    """
    return {
        "faults_count": len(moments),
        "fault_us": sum(moment.ended_us - moment.began_us for moment in moments),
        "recovery_us": _recovery_us(moments[-1], series, arrivals) if moments else None,
    }


def _recovery_us(fault: Moment, series: Series, arrivals: Sequence[Arrival]) -> int | None:
    """Return the time from a fault's end to the first message after it that was planned after its beginning.

    The board's clock is not the host's. The message that was fastest tells how far they are apart, to within
    its own latency.
    """
    planned = series.columns["planned_us"]
    known = [arrival for arrival in arrivals if arrival.number < len(planned)]
    if not known:
        return None
    apart_us = min(arrival.time_us - planned[arrival.number] for arrival in known)
    after = [
        arrival.time_us - fault.ended_us
        for arrival in known
        if arrival.time_us >= fault.ended_us and planned[arrival.number] + apart_us >= fault.began_us
    ]
    return min(after, default=None)


def _bursts(series: Series, interval_us: int) -> list[list[int]]:
    """Return the rows after the warm-up by burst: between two the board tells what it has and plans anew.

    Within one a plan is at most half an interval late (load/plan.c).
    """
    planned = series.columns["planned_us"]
    bursts: list[list[int]] = []
    for row in range(series.warmup_rows, series.rows):
        if not bursts or planned[row] - planned[row - 1] > interval_us * 3 / 2 + 1:
            bursts.append([])
        bursts[-1].append(row)
    return bursts


def _rate(bursts: Sequence[Sequence[int]]) -> float | None:
    """Return how many a second there were within the bursts, None where two are not there to tell."""
    counted = [times_us for times_us in bursts if len(times_us) >= 2]
    intervals = sum(len(times_us) - 1 for times_us in counted)
    span_us = sum(times_us[-1] - times_us[0] for times_us in counted)
    return intervals * 1e6 / span_us if span_us else None

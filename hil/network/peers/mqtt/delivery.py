# SPDX-License-Identifier: Apache-2.0
"""The companion of the bench `delivery`: a subscriber at the far end, and the ledger of what it never got.

Facts of a case for its record: its rates and its faults.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hil.model import Scalar, Series
from hil.network.ledger.attribution import Ledger, attribute
from hil.network.ledger.evidence import Arrival
from hil.network.ledger.files import ARRIVALS_FILE, LEDGER_FILE, read_arrivals, write_ledger
from hil.network.ledger.sightings import stream_facts
from hil.network.peers.companion import Observed, Place
from hil.network.peers.mqtt.dissecting import CaseCaptures, dissect, evidence_of, handed_of, nonce_of
from hil.network.peers.mqtt.fault_schedule import Moment
from hil.network.peers.mqtt.peer import MqttPeer
from hil.network.peers.mqtt.settings import DROP_EVERY, Settings

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


DROPPED_FILE = "dropped.csv"
# No arrival for so long: nothing is on its way any more. A TCP that lost a segment may send it again only
# after seconds, and after as long again as nothing came through.
QUIET_S = 3.0
QUIET_TIMEOUT_S = 60.0
POLL_S = 0.02


class DeliveryCompanion(MqttPeer):
    """One case, from the broker's start to the ledger."""

    def __init__(self, place: Place) -> None:
        super().__init__(place, Settings.of_delivery(place.case), "subscriber")
        self._arrivals = place.folder.resolve() / ARRIVALS_FILE

    def options(self) -> Mapping[str, object]:
        options: dict[str, object] = {"arrivals": self._arrivals}
        if self._settings.fault.kind == "subscriber_drop":
            dropped = self._place.folder.resolve() / DROPPED_FILE
            options |= {"drop_every": DROP_EVERY, "dropped": dropped}
        return options

    def finish(self, series: Series) -> Observed:
        """Wait until nothing comes any more, end everything, name the owner of each loss.

        Raises RigError: a part had ended, a capture cannot be read. FirmwareError: rows and messages do not
        go together.
        """
        settings = self._settings
        broker, program = self.running()
        moments = self.end_faults()
        everything = self._await_quiet(series, QUIET_S + _longest_s(moments))
        dropped = 0 if everything else broker.dropped_messages()  # what came was not dropped
        seen = self.end()
        dissected = dissect(seen, broker, settings)
        arrivals = self._read_arrivals(series)
        ports = (broker.port, broker.broker.ports.tcp)
        evidence = evidence_of(series, settings, seen, dissected, ports, arrivals)
        ledger = attribute(evidence)
        write_ledger(self._place.folder / LEDGER_FILE, ledger, evidence)
        facts = {
            **self.facts(seen, dissected),
            "subscriber": program.description(),
            **ledger.facts(),
            **stream_facts(arrivals),
            **rates_facts(series, settings),
            **faults_facts(moments, series, arrivals),
            "broker_dropped_messages": dropped,
        }
        self.keep_or_remove()
        return Observed(with_owners(series, ledger, arrivals, seen), facts)

    def _await_quiet(self, series: Series, quiet_s: float) -> bool:
        """Wait until every message that was not refused has come (True), or none has for a moment (False)."""
        awaited = {one.number for one in handed_of(series, self._settings.qos) if not one.refused}
        deadline = time.monotonic() + QUIET_TIMEOUT_S
        size, since = -1, time.monotonic()
        while time.monotonic() < min(deadline, since + quiet_s):
            self.check()
            now = self._arrivals.stat().st_size
            if now != size:
                size, since = now, time.monotonic()
                if awaited <= {arrival.number for arrival in self._read_arrivals(series)}:
                    return True
            time.sleep(POLL_S)
        return False

    def _read_arrivals(self, series: Series) -> list[Arrival]:
        return read_arrivals(self._arrivals, run=nonce_of(series))


def _longest_s(moments: Sequence[Moment]) -> float:
    return max((moment.ended_us - moment.began_us for moment in moments), default=0) / 1e6


def with_owners(series: Series, ledger: Ledger, arrivals: list[Arrival], seen: CaseCaptures) -> Series:
    """Add the columns owner, arrivals and arrived_us (since the captures began, at least 1; 0: never)."""
    first: dict[int, int] = {}
    for arrival in arrivals:
        first.setdefault(arrival.number, max(1, arrival.time_us - seen.began_us))
    lines = ledger.lines
    columns = {
        **series.columns,
        "owner": tuple(int(line.owner) for line in lines),
        "arrivals": tuple(line.arrivals for line in lines),
        "arrived_us": tuple(first.get(line.number, 0) for line in lines),
    }
    return replace(series, columns=columns)

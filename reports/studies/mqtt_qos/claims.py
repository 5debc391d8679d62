# SPDX-License-Identifier: Apache-2.0
"""What decides the claims of mqtt-qos: figures of its tests, and checks that no test can say."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hil.model import Fault, RunRecord
from hil.reports.studies.claims import (
    CONTRADICTED,
    NOTHING,
    SUPPORTED,
    UNDECIDED,
    Check,
    Finding,
    Records,
    Statistic,
    from_test,
)
from hil.reports.studies.document import number
from hil.reports.studies.estimate import Estimate, counted_share, share_of
from hil.reports.studies.mqtt_qos.echoes import BENCH, Echoes, by_setting, in_ms
from hil.reports.studies.mqtt_qos.faults import (
    CONNECT_CAUSES,
    broker_faults,
    connect_outages,
    duplicates,
    out_of_order,
)
from hil.reports.studies.mqtt_qos.impaired import collapses, saturated
from hil.reports.studies.mqtt_qos.wire import (
    WAYS,
    by_payload,
    cost_of,
    first_segments,
    undisturbed,
    usual_rate,
)
from hil.reports.studies.records import BoardRun, size_text, whole

_FIN_MESSAGES = 20  # as few as show a queue that grows, and would show it collapse


def _p50(records: Records, alpha: float) -> Estimate:
    return usual_rate(Echoes(tuple(records))).p50(alpha)


def _answered(records: Records, alpha: float) -> Estimate:
    """Return the share of the messages that had an echo in time."""
    found = Echoes(tuple(records))
    return share_of([found.answered], [found.n], alpha)


STATISTICS: Mapping[str, Statistic] = {
    "p50": Statistic("p50", _p50, text=in_ms),
    "answered": Statistic("echoes in time", _answered, text=counted_share),
}


def _shark_fin(run: BoardRun) -> Finding:
    found = [one for one in saturated(run) if one.answered >= _FIN_MESSAGES]
    if not found:
        return Finding(UNDECIDED, "under no limit did enough messages wait in a queue that grows")
    falls, steps = sum(collapses(one.response_ms) for one in found), sum(one.answered - 1 for one in found)
    longest = max(ms for one in found for ms in one.response_ms if math.isfinite(ms)) / 1000
    return from_test(
        falls > 0,
        f"in {len(found)} limited cases the time from plan to echo grows, to {longest:.1f} s at the most; "
        f"{falls} of {steps} steps from one echo to the next are a fall of 1 s or more",
    )


_NEARLY = 0.05  # of a segment: what a first one may lack and still be as full as others
_SAME = 0.1  # of the bytes: what the answers to payloads may differ by and still be called independent


def _independent_of_payload(run: BoardRun) -> Finding:
    tests, words = [], []
    for qos in (0, 1, 2):
        found = {size: cost_of(own, qos) for (size, level), own in by_payload(run).items() if level == qos}
        answers = {
            size: (cost.acks or 0.0) + (cost.answers_frames or 0.0 if qos else 0.0)
            for size, cost in found.items()
            if cost.acks is not None
        }
        if len(answers) < 2:
            continue
        least, most = (
            min(answers, key=lambda size: answers[size]),
            max(answers, key=lambda size: answers[size]),
        )
        tests.append(answers[most] - answers[least] <= _SAME * answers[most])
        words.append(
            f"QoS {qos}: {number(answers[least])} B at {size_text(least)}, {number(answers[most])} B at "
            f"{size_text(most)}"
        )
    if not tests:
        return NOTHING
    head = "all that answers a message, TCP acknowledgements included"
    return from_test(all(tests), f"{head}, at the payloads with the least and the most, {'; '.join(words)}")


def _of_qos(run: BoardRun, qos: int) -> Echoes:
    return Echoes(tuple(record for record in undisturbed(run) if record.parameters.get("qos") == qos))


def _qos_0_bundles(run: BoardRun) -> Finding:
    found = _of_qos(run, 0)
    most = found.most("ap_up_publishes_per_segment_max")
    if most is None:
        return NOTHING
    if most > 1:
        return Finding(SUPPORTED, f"up to {most:g} PUBLISH of the board share a segment at QoS 0")
    waiting = [record for record in found.records if record.parameters.get("nodelay") == 0]
    if any(_within_a_round_trip(record) for record in waiting):
        reason = (
            "no two PUBLISH of the board shared a segment, with Nagle's algorithm and several within one "
            "round trip"
        )
        return Finding(CONTRADICTED, reason)
    return Finding(UNDECIDED, "without TCP_NODELAY no two messages were sent within one round trip")


def _within_a_round_trip(record: RunRecord) -> bool:
    """Say whether a second and a third message were planned before the first was answered."""
    took_ms = Echoes((record,)).round_trip().value
    return took_ms is not None and 2 * whole(record, "interval_us") < 1000 * took_ms


def _qos_2_does_not(run: BoardRun) -> Finding:
    found = _of_qos(run, 2)
    ways = {way: found.most(f"{prefix}publishes_per_segment_max") for way, prefix in WAYS.items()}
    known = {way: count for way, count in ways.items() if count is not None}
    if not known:
        return NOTHING
    way = max(known, key=lambda one: known[one])
    most = known[way]
    publishes = found.total(f"{WAYS[way]}publishes_count")
    others = [_most_any_way(found, kind) for kind in ("pubrels", "pubcomps")]
    told = f"at most {most:g} PUBLISH in a segment at QoS 2"
    told += f" ({way}, {publishes:,.0f} in all)" if publishes and most > 1 else ", whichever way"
    told += "; at most {} PUBREL and {} PUBCOMP".format(
        *("?" if one is None else f"{one:g}" for one in others)
    )
    return from_test(most <= 1, told)


def _most_any_way(found: Echoes, kind: str) -> float | None:
    counts = [found.most(f"{prefix}{kind}_per_segment_max") for prefix in WAYS.values()]
    return max((count for count in counts if count is not None), default=None)


def _first_not_full(run: BoardRun) -> Finding:
    found = {size: own for size, own in first_segments(run).items() if own[0] and own[1]}
    if not found:
        return Finding(UNDECIDED, "the captures tell no first segments of messages that need several")
    full = [first >= (1 - _NEARLY) * largest for first, largest in found.values()]
    pieces = sorted({whole(record, "buffer_bytes") for record in run.of(BENCH)} - {0})
    written = f"; the client writes in pieces of {', '.join(map(str, pieces))} B" if pieces else ""
    words = "; ".join(
        f"{size_text(size)}: {number(first)} B, the largest {number(largest)} B"
        for size, (first, largest) in found.items()
    )
    return from_test(not all(full), f"median of the first segment, {words}{written}, and reads from no disk")


def _broker_dies(run: BoardRun) -> Finding:
    for trouble in run.troubles:
        if isinstance(trouble, Fault) and _SLOW_DISK in trouble.case_id and "mosquitto" in trouble.sentence:
            return Finding(SUPPORTED, f"on a simulated slow disk: {trouble.sentence}")
    slow = [one for one in broker_faults(run) if one.fault == "slow_disk"]
    if not slow:
        return NOTHING
    words = []
    for one in slow:
        ledger = one.ledger
        told = "no ledger" if ledger is None else f"{ledger.arrived} of {ledger.sent} messages came"
        words.append(f"persistence {one.persistence}: {told}")
    version = Echoes(slow[0].records).told("broker_version").removeprefix("mosquitto ")
    reason = f"mosquitto {version} on a simulated slow disk, {'; '.join(words)}"
    each = [one for one in slow if one.persistence != "off" and one.ledger]
    if not each:
        return Finding(UNDECIDED, f"{reason}; with persistence it was not measured")
    return Finding(CONTRADICTED, f"{reason}; it ran to the end each time, at this load")


_SLOW_DISK = "fault=slow_disk,"


def _connect_freezes(run: BoardRun) -> Finding:
    found = connect_outages(run)
    if not found:
        return NOTHING
    causes: dict[str, list[int]] = {}
    for (cause, _), one in found.items():
        counts = causes.setdefault(cause, [0, 0])
        counts[0] += one.outages - one.failed
        counts[1] += one.outages
    words = "; ".join(
        f"{CONNECT_CAUSES[cause]} lost: {recovered} of {of} recovered"
        for cause, (recovered, of) in causes.items()
    )
    froze = any(recovered < of for recovered, of in causes.values())
    return from_test(froze, f"{words}, by themselves")


def _order(run: BoardRun) -> Finding:
    found = {key: own for key, own in by_setting(run.of(BENCH), "qos").items() if own.answered}
    if not found:
        return NOTHING
    words = "; ".join(
        f"QoS {qos}: {out_of_order(own)} out of order, {duplicates(own)} more than once, of {own.n}"
        for (qos,), own in found.items()
    )
    return Finding(CONTRADICTED, f"with a number in the payload it can be told, {words}")


CHECKS: Mapping[str, Check] = {
    "shark-fin": _shark_fin,
    "overhead-independent-of-payload": _independent_of_payload,
    "qos-0-bundles": _qos_0_bundles,
    "qos-2-does-not-bundle": _qos_2_does_not,
    "first-segments-not-full": _first_not_full,
    "broker-dies-persisting": _broker_dies,
    "lost-connect-freezes-client": _connect_freezes,
    "order-cannot-be-told": _order,
}

# SPDX-License-Identifier: Apache-2.0
"""What decides the claims of mqtt-qos: figures of its tests, and checks that no test can say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

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
)
from hil.reports.studies.document import percent
from hil.reports.studies.estimate import Estimate, counted_share, share_of
from hil.reports.studies.mqtt_qos.echoes import BENCH, Echoes, by_setting, in_ms
from hil.reports.studies.mqtt_qos.faults import (
    TIMEOUT,
    broker_faults,
    duplicates,
    ledger_of,
    out_of_order,
    outages_of,
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
from hil.reports.studies.records import BoardRun, whole

_FIN_MESSAGES = 20  # as few as show a queue that grows, and would show it collapse


def _exact(values: Sequence[float], of: int = 1) -> Estimate:
    """Return the largest of figures that were counted, which have no error; no value of none."""
    return Estimate(of, 1, max(values), max(values), max(values)) if values else Estimate(0, 1)


def _counted(found: Estimate) -> str:
    return f"{found.value:g} of {found.n:,}"


def _p50(records: Records, alpha: float) -> Estimate:
    return usual_rate(Echoes(tuple(records))).p50(alpha)


def _answered(records: Records, alpha: float) -> Estimate:
    """Return the share of the messages that had an echo in time."""
    found = Echoes(tuple(records))
    return share_of([found.answered], [found.n], alpha)


def _falls(records: Records, _alpha: float) -> Estimate:
    """Return how often a round trip collapses where a queue grows."""
    found = [one for one in saturated(records) if one.answered >= _FIN_MESSAGES]
    falls, steps = sum(collapses(one.response_ms) for one in found), sum(one.answered - 1 for one in found)
    return _exact([falls] if found else [], steps)


def _spread_of_answers(records: Records, _alpha: float) -> Estimate:
    """Return the relative difference of a message's answer bytes between payloads, at a QoS level."""
    answers: dict[int, list[float]] = {}
    for (_size, qos), own in by_payload(records).items():
        cost = cost_of(own, qos)
        if cost.acks is not None:
            answers.setdefault(qos, []).append(cost.acks + (cost.answers_frames or 0.0 if qos else 0.0))
    return _exact([(max(own) - min(own)) / (max(own) or 1.0) for own in answers.values() if len(own) > 1])


def _most_publishes(records: Records, ways: Sequence[str]) -> Estimate:
    found = Echoes(tuple(undisturbed(records)))
    counts = [found.most(f"{way}publishes_per_segment_max") for way in ways]
    return _exact([count for count in counts if count is not None])


def _bundled(records: Records, _alpha: float) -> Estimate:
    """Return how many publishes of the board shared a segment; more might where none had to wait."""
    found = _most_publishes(records, ["ap_up_"])
    waited = [record for record in undisturbed(records) if whole(record, "nodelay") == 0]
    if found.value is None or found.value > 1 or any(map(_within_a_round_trip, waited)):
        return found
    return Estimate(1, 1, found.value, found.low, math.inf)


def _within_a_round_trip(record: RunRecord) -> bool:
    """Return whether a second and a third message were planned before the first was answered."""
    took_ms = Echoes((record,)).round_trip().value
    return took_ms is not None and 2 * whole(record, "interval_us") < 1000 * took_ms


def _fullness(records: Records, _alpha: float) -> Estimate:
    """Return the least share that a first segment has of the largest, over the payloads."""
    shares = [first / largest for first, largest in first_segments(records).values() if first and largest]
    return _exact([min(shares)] if shares else [])


def _frozen(records: Records, _alpha: float) -> Estimate:
    found = outages_of(records)
    return _exact([sum(row["outcome"] == TIMEOUT for _, row in found)] if found else [], len(found))


def _whole(found: Estimate) -> str:
    return f"{found.value:g}"


def _share(found: Estimate) -> str:
    return percent(found.value)


STATISTICS: Mapping[str, Statistic] = {
    "p50": Statistic("p50", _p50, text=in_ms),
    "answered": Statistic("echoes in time", _answered, text=counted_share),
    "falls": Statistic(
        "falls of 1 s or more from one echo to the next, where the time from plan to echo grows",
        _falls,
        text=_counted,
    ),
    "spread of answers": Statistic(
        "by how much all that answers a message, TCP acknowledgements included, differs between payloads",
        _spread_of_answers,
        text=_share,
    ),
    "bundled": Statistic("most PUBLISH of the board in a segment", _bundled, text=_whole),
    "in a segment": Statistic(
        "most PUBLISH in a segment, whichever way",
        lambda records, _alpha: _most_publishes(records, list(WAYS.values())),
        text=_whole,
    ),
    "fullness": Statistic("least first segment, of the largest segment", _fullness, text=_share),
    "frozen": Statistic("outages from which the client did not recover by itself", _frozen, text=_counted),
}


def _broker_dies(run: BoardRun) -> Finding:
    for trouble in run.troubles:
        if isinstance(trouble, Fault) and _SLOW_DISK in trouble.case_id and "mosquitto" in trouble.sentence:
            return Finding(SUPPORTED, f"on a simulated slow disk: {trouble.sentence}")
    slow = [(key[1], own) for key, own in broker_faults(run).items() if key[0] == "slow_disk"]
    if not slow:
        return NOTHING
    words, each = [], False
    for persistence, own in slow:
        ledger = ledger_of(own)
        told = "no ledger" if ledger is None else f"{ledger.arrived} of {ledger.sent} messages came"
        words.append(f"persistence {persistence}: {told}")
        each = each or (persistence != "off" and ledger is not None)
    version = slow[0][1].told("broker_version").removeprefix("mosquitto ")
    reason = f"mosquitto {version} on a simulated slow disk, {'; '.join(words)}"
    if not each:
        return Finding(UNDECIDED, f"{reason}; with persistence it was not measured")
    return Finding(CONTRADICTED, f"{reason}; it ran to the end each time, at this load")


_SLOW_DISK = "fault=slow_disk,"


def _order(run: BoardRun) -> Finding:
    found = {key: own for key, own in by_setting(run.of(BENCH), "qos").items() if own.answered}
    if not found:
        return NOTHING
    words = "; ".join(
        f"QoS {qos}: {out_of_order(own)} out of order, {duplicates(own)} more than once, of {own.n}"
        for (qos,), own in found.items()
    )
    return Finding(CONTRADICTED, f"with a number in the payload it can be told, {words}")


CHECKS: Mapping[str, Check] = {"broker-dies-persisting": _broker_dies, "order-cannot-be-told": _order}

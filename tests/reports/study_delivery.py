# SPDX-License-Identifier: Apache-2.0
"""Records of the bench ``delivery`` for tests of reproductions, with figures that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.model import RunRecord, Scalar
from tests.firmware.case_defaults import case_defaults
from tests.make_records import case_record
from tests.reports.study_records import RUN_ID

DELIVERY = case_defaults("delivery")
OWNERS = (
    "device_call",
    "device_tcp",
    "access_point",
    "broker_in",
    "broker_out",
    "subscriber",
    "undetermined",
)
SYMPTOMS = (
    "duplicate_ack",
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "lost_segment",
    "empty_publish",
    "reassembled_pdu",
    "incomplete_conversation",
)


def delivery_record(
    call_us: Sequence[int],
    *,
    mutex_us: int = 20,
    serialise_us: int = 30,
    late_us: int = 100,
    outcomes: Mapping[int, int] | None = None,
    owners: Mapping[int, int] | None = None,
    arrived_us: Sequence[int] | None = None,
    peer: Mapping[str, Scalar] | None = None,
    device: Mapping[str, Scalar] | None = None,
    **given: Scalar,
) -> RunRecord:
    """Return messages at QoS 0 whose publish calls took ``call_us``, begun ``late_us`` after plan.

    ``outcomes`` and ``owners`` are those that are not 0, by row. The ledger's facts are of ``owners``, and
    the captures show a segment for each message; ``peer`` says otherwise. Of messages that arrived,
    ``arrived_us`` are the times, as planned where it is not given.
    """
    given = {"run_id": RUN_ID, "qos": 0, "schedule": "periodic", **given, "count": len(call_us)}
    interval_us = int(str({**DELIVERY, **given}["interval_us"]))
    rows = range(len(call_us))
    planned = [n * interval_us for n in rows]
    sent = [at + late_us + mutex_us + serialise_us for at in planned]
    lost = owners or {}
    arrivals = list(arrived_us) if arrived_us is not None else [1 + at for at in planned]
    columns = {
        "planned_us": tuple(planned),
        "sent_us": tuple(sent),
        "done_us": tuple(at + took for at, took in zip(sent, call_us, strict=True)),
        "outcome": tuple((outcomes or {}).get(n, 0) for n in rows),
        "mutex_wait_us": (mutex_us,) * len(rows),
        "serialise_us": (serialise_us,) * len(rows),
        "publish_call_us": tuple(call_us),
        "connection": (1,) * len(rows),
        "tcp": (3,) * len(rows),
        "owner": tuple(lost.get(n, 0) for n in rows),
        "arrivals": tuple(int(n not in lost) for n in rows),
        "arrived_us": tuple(0 if n in lost else at for n, at in zip(rows, arrivals, strict=True)),
    }
    facts = {**_ledger(len(rows), lost), **_captured(len(rows)), **_stream(), **(peer or {})}
    environment = {"peer": facts, "device": {**_TCP, **(device or {})}}
    return case_record("delivery", DELIVERY, given, columns, environment)


_TCP = {"tcp_retransmits": 0, "tcp_rto_us": 204_000, "tcp_srtt_us": 6_500, "tcp_unsent_bytes": 0}


def _ledger(sent: int, lost: Mapping[int, int]) -> dict[str, Scalar]:
    counts = [sum(owner == number for owner in lost.values()) for number in range(1, len(OWNERS) + 1)]
    arrived = sent - sum(counts)
    return {
        "sent_count": sent,
        "arrived_count": arrived,
        "lost_count": sum(counts),
        **{f"lost_{name}_count": count for name, count in zip(OWNERS, counts, strict=True)},
        **{f"seen_{name}_count": arrived for name in OWNERS[:5]},
        "duplicates_count": 0,
        "out_of_order_count": 0,
    }


def _captured(publishes: int) -> dict[str, Scalar]:
    symptoms = {f"{point}_{name}_count": 0 for point in ("ap", "broker") for name in SYMPTOMS}
    bundles: dict[str, Scalar] = {}
    for where in ("ap_up", "broker_out"):
        bundles |= {f"{where}_publishes_count": publishes, f"{where}_publish_segments_count": publishes}
        bundles |= {f"{where}_publishes_per_segment_max": 1, f"{where}_ack_delay_p50_us": 6_500}
    return {**symptoms, **bundles}


def _stream() -> dict[str, Scalar]:
    return {"gaps_over_1s_count": 0, "gap_longest_us": 21_000, "interarrival_cv": 0.05, "recovery_us": None}

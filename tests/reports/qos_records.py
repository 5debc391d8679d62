# SPDX-License-Identifier: Apache-2.0
"""Records of the benches that the study mqtt-qos looks at, with figures that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.model import NotRun, RunRecord, Scalar, format_case_id
from tests.firmware.case_defaults import case_defaults
from tests.make_records import case_record
from tests.reports.study_delivery import DELIVERY, OWNERS

RUN_ID = "20261122T101500Z-mqtt-qos-quick-0001"
ECHO = case_defaults("echo")
RECONNECT = case_defaults("reconnect")


def echo_record(
    rtt_ms: Sequence[float | None],
    *,
    late_ms: float = 0.0,
    copies: Mapping[int, int] | None = None,
    order: Sequence[int] | None = None,
    outcomes: Mapping[int, int] | None = None,
    peer: Mapping[str, Scalar] | None = None,
    **given: Scalar,
) -> RunRecord:
    """Return messages with these round trips from the sending; the first is the warm-up, None had no echo.

    Each was sent ``late_ms`` after it was planned. ``copies``, ``outcomes`` are those that are not usual.
    """
    given = {"interval_us": 100_000, "warmup_rows": 1, **given}
    interval_us = int(str(given["interval_us"]))
    planned = [interval_us * n for n in range(len(rtt_ms))]
    sent = [at + round(1000 * late_ms) for at in planned]
    done = [0 if ms is None else at + round(1000 * ms) for at, ms in zip(sent, rtt_ms, strict=True)]
    ranks = list(order) if order is not None else [n + 1 if at else 0 for n, at in enumerate(done)]
    columns = {
        "planned_us": planned,
        "sent_us": sent,
        "done_us": done,
        "outcome": [(outcomes or {}).get(n, int(at == 0)) for n, at in enumerate(done)],
        "publish_call_us": [100] * len(rtt_ms),
        "copies": [(copies or {}).get(n, int(at > 0)) for n, at in enumerate(done)],
        "order": ranks,
    }
    told = {"echo_peer": "host: paho-mqtt 2.2.0, TCP_NODELAY", "rate_off": False, **(peer or {})}
    return _record("echo", ECHO, given, columns, told)


def delivery_record(
    sent: int,
    *,
    lost: Mapping[str, int] | None = None,
    peer: Mapping[str, Scalar] | None = None,
    duplicates: int = 0,
    **given: Scalar,
) -> RunRecord:
    """Return a delivery with the ledger of its peer; ``lost`` counts by owner."""
    gone = {owner: (lost or {}).get(owner, 0) for owner in OWNERS}
    ledger = {f"lost_{owner}_count": count for owner, count in gone.items()}
    total = sum(gone.values())
    seen = {f"seen_{owner}_count": sent for owner in OWNERS if owner not in ("subscriber", "undetermined")}
    told = {
        "sent_count": sent,
        "arrived_count": sent - total,
        "lost_count": total,
        "duplicates_count": duplicates,
        "out_of_order_count": 0,
        "broker_version": "mosquitto 2.0.11",
        **ledger,
        **seen,
        **(peer or {}),
    }
    planned = [20_000 * n for n in range(sent)]
    columns = {
        "planned_us": planned,
        "done_us": [at + 6000 + 50 * n for n, at in enumerate(planned)],
        "owner": [0] * sent,
        "outcome": [0] * sent,
    }
    return _record("delivery", DELIVERY, given, columns, told)


def reconnect_record(cause: str, recovered_ms: Sequence[float | None], **given: Scalar) -> RunRecord:
    """Return outages of one cause; None never recovered in time."""
    outage_us = 3_000_000
    columns = {
        "gap_us": [outage_us + round(1000 * (ms or 0.0)) for ms in recovered_ms],
        "detected_us": [40_000] * len(recovered_ms),
        "outcome": [int(ms is None) for ms in recovered_ms],
        "outage_us": [outage_us] * len(recovered_ms),
    }
    given = {"cause": cause, "outage_ms": 3000, "network_timeout_ms": 2000, **given}
    return _record("reconnect", RECONNECT, given, columns, {})


def left_out(payload_bytes: int, qos: int) -> NotRun:
    """Return a case that the board's memory leaves out, as the plan says it."""
    case = format_case_id("echo", {**ECHO, "payload_bytes": payload_bytes, "qos": qos})
    reason = f"payload_bytes={payload_bytes} is beyond max_payload_bytes=8192 of board v1"
    return NotRun(run_id=RUN_ID, board="v1", case_id=case, reason=reason)


def everything() -> list[RunRecord]:
    """Return a run with something in each table, two boots of it."""
    found = []
    times = [4.0 + n % 7 / 10 for n in range(70)]
    link = {"air": "perfect", "delay_us": 5000}
    limit = {"payload_bytes": 10_000, "rate_up_kbit": 800, "rate_down_kbit": 800}
    rates = {"requested_mps": 10.0, "offered_mps": 9.9, "achieved_mps": 9.5, "rate_off": True}
    wire: dict[str, Scalar] = {f"overhead_{name}_bytes": 5400 for name in WIRE_PARTS}
    wire |= {f"overhead_{name}_count": 100 for name in (*WIRE_PARTS, "publish", "message_frames")}
    wire["overhead_connections_count"] = 1
    for way in ("ap_up_", "ap_down_", "broker_out_"):
        wire |= {f"{way}publishes_count": 70, f"{way}publish_segments_count": 60}
        wire |= {f"{way}publishes_per_segment_max": 2, f"{way}ack_delay_p50_us": 900}
        wire |= {f"{way}first_segment_p50_bytes": 1024, f"{way}segment_max_bytes": 1460}
    for boot in range(2):
        for qos in range(3):
            own = {"qos": qos, "boot_index": boot}
            found += [
                echo_record(times, payload_bytes=size, peer={**wire, **rates}, **own)
                for size in (10, 1000, 10_000)
            ]
            found += [echo_record(times, nodelay=nodelay, **link, **own) for nodelay in (0, 1)]
            found += [echo_record([50.0 * n for n in range(1, 40)], **limit, **own)]
            found += [
                echo_record(times, payload_bytes=10_000, loss_up_ppm=ppm, loss_down_ppm=ppm, **own)
                for ppm in (10_000, 300_000)
            ]
            found += [echo_record(times, inflight=1, **own), echo_record(times, cut_every_ms=1000, **own)]
        found += [delivery_record(200, fault="kill", lost={"broker_out": 9}, boot_index=boot)]
    return [*found, reconnect_record("syn", [700, 800])]


WIRE_PARTS = (
    *("ethernet", "ip", "tcp", "publish_header", "puback", "pubrec", "pubrel", "pubcomp", "tcp_ack_only"),
    *("handshake", "connect", "connack", "connection_ack", "disconnect", "fin"),
)


def _record(
    bench: str,
    usual: Mapping[str, Scalar],
    given: Mapping[str, Scalar],
    columns: Mapping[str, Sequence[int]],
    peer: Mapping[str, Scalar],
) -> RunRecord:
    environment = {"peer": peer, "device": {}}
    return case_record(bench, usual, {"run_id": RUN_ID, **given}, columns, environment)

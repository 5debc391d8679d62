# SPDX-License-Identifier: Apache-2.0
"""Records for tests of reproductions: what the studies' benches leave, with figures that are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hil.model import RunRecord, Scalar
from tests.firmware.case_defaults import case_defaults
from tests.make_records import bench_record, case_record

RUN_ID = "20261121T101500Z-esp32-tcpip-quick-0001"
INTERVAL_US = 100_000
THROUGHPUT = case_defaults("throughput")
GATEWAY = case_defaults("http_gateway")
SWITCH = case_defaults("task_switch")
JITTER = case_defaults("jitter")


def throughput_record(
    mbps: Sequence[float],
    *,
    start_mbps: Sequence[float] = (1.0, 2.0),
    lost: int = 0,
    peer: Mapping[str, Scalar] | None = None,
    device: Mapping[str, Scalar] | None = None,
    **given: Scalar,
) -> RunRecord:
    """Return a record with these rates of the steady intervals; ``start_mbps`` are the warm-up's.

    ``lost`` is the share in percent of 100 datagrams an interval. Unless ``peer`` says otherwise, the whole
    test has all the bytes and 50 ms besides.
    """
    rates = [*start_mbps, *mbps]
    received = [round(rate * 1e6 * INTERVAL_US / 1e6 / 8) for rate in rates]
    udp = given.get("protocol") == "udp"
    rows = len(rates)
    columns = {
        "interval_us": (INTERVAL_US,) * rows,
        "received_bytes": tuple(received),
        "received_bps": tuple(round(rate * 1e6) for rate in rates),
        "expected_count": (100 if udp else 0,) * rows,
        "lost_count": (lost if udp else 0,) * rows,
        "out_of_order_count": (0,) * rows,
        "jitter_us": (0,) * rows,
        "transit_difference_mean_us": (0,) * rows,
        "transit_difference_max_us": (0,) * rows,
    }
    total = sum(received)
    whole = {"received_bytes": total, "sent_bytes": total, "whole_us": rows * INTERVAL_US + 50_000}
    environment = {"peer": {**whole, **(peer or {})}, "device": dict(device or {})}
    given = {"run_id": RUN_ID, "warmup_rows": len(start_mbps), **given}
    return case_record("throughput", THROUGHPUT, given, columns, environment)


def gateway_record(
    rtt_ms: Sequence[Sequence[float]],
    *,
    timeouts: Sequence[tuple[int, int]] = (),
    profiles: Sequence[int] = (0,),
    parts: Mapping[str, int] | None = None,
    first: Mapping[str, int] | None = None,
    **given: Scalar,
) -> RunRecord:
    """Return a record with these round trips by phase, for each of the profiles.

    ``timeouts`` are (phase, read) that were never answered. ``parts`` are columns of every request, ``first``
    of each phase's first one. payload_us is half the round trip, in whole ms.
    """
    rows: list[dict[str, int]] = []
    clock = 0
    for phase, reads in enumerate(rtt_ms, start=1):
        for read, ms in enumerate(reads, start=1):
            for profile in profiles:
                late = (phase, read) in timeouts
                took = 10_000_000 if late else round(ms * 1000)
                own = {**(parts or {}), **(first or {} if read == 1 else {})}
                base = {**dict.fromkeys(_ZEROES, 0), **own}
                base |= {"phase": phase, "read": read, "profile": profile, "outcome": int(late)}
                base |= {"planned_us": clock, "sent_us": clock, "done_us": clock + took, "rtt_us": took}
                base |= {"payload_us": 0 if late else round(ms / 2) * 1000}
                rows.append(base)
                clock += took
    columns = {name: tuple(row[name] for row in rows) for name in rows[0]}
    given = {"run_id": RUN_ID, **given}
    return case_record("http_gateway", GATEWAY, given, columns, {"peer": {}, "device": {}})


MHZ = 240
BEHIND_US = 190_322  # core 1's counter behind core 0's, unless a test says otherwise
_OFF_CLOCK = {"cpu_mhz": MHZ, "clock_read_cycles": 1, "clock_stamp_us": 1, "core1_offset_error_cycles": 48}


def switch_record(
    took_us: Sequence[float],
    *,
    placement: str = "same",
    behind_us: float = BEHIND_US,
    outcomes: Mapping[int, int] | None = None,
    **fields: Any,
) -> RunRecord:
    """Return task switches by a semaphore: given on core 1 and taken on core 0 where ``placement`` is cross.

    ``outcomes`` are those that are not 0, by row.
    """
    start, end = (1, 0) if placement == "cross" else (0, 0)
    ways = [(start, end)] * len(took_us)
    columns = _clock_columns(took_us, ways, behind_us, outcomes or {})
    raw, corrected, common, *rest = columns.values()
    return bench_record(
        "task_switch",
        {**SWITCH, "placement": placement, "interval_us": 20_000},
        {
            "raw_cycles": raw,
            "corrected_ns": corrected,
            "common_us": common,
            "give_ns": (4500,) * len(took_us),
            **dict(zip(("start_core", "end_core", "host_late_us", "outcome"), rest, strict=True)),
        },
        {"device": _calibrated(behind_us)},
        run_id=RUN_ID,
        **fields,
    )


def period_record(
    took_us: Sequence[float],
    *,
    load: str = "none",
    behind_us: float = BEHIND_US,
    **fields: Any,
) -> RunRecord:
    """Return intervals of a period of 10 ms; with load=migrate each ends on the other core."""
    count = len(took_us)
    ways = [(n % 2, 1 - n % 2) if load == "migrate" else (0, 0) for n in range(count)]
    raw, corrected, common, *rest = _clock_columns(took_us, ways, behind_us, {}).values()
    planned = tuple(10_000 * n for n in range(count))
    return bench_record(
        "jitter",
        {**JITTER, "load": load, "tick_hz": "100", "task_core": "none"},
        {
            "planned_us": planned,
            "woke_us": tuple(at + round(abs(us - 10_000)) for at, us in zip(planned, took_us, strict=True)),
            "interval_raw_cycles": raw,
            "interval_corrected_ns": corrected,
            "interval_us": common,
            "deviation_us": tuple(abs(us - 10_000) for us in common),
            **dict(zip(("start_core", "end_core", "host_late_us", "outcome"), rest, strict=True)),
        },
        {"device": _calibrated(behind_us)},
        run_id=RUN_ID,
        **fields,
    )


def _calibrated(behind_us: float) -> dict[str, Scalar]:
    return {**_OFF_CLOCK, "core1_offset_cycles": -round(behind_us * MHZ)}


def _clock_columns(
    took_us: Sequence[float], ways: Sequence[tuple[int, int]], behind_us: float, outcomes: Mapping[int, int]
) -> dict[str, tuple[int, ...]]:
    """Return what three clocks show of these stretches; core 1's counter is behind core 0's."""
    offset = -round(behind_us * MHZ)
    count = len(took_us)
    return {
        "raw": tuple(
            (round(us * MHZ) + (end - start) * offset) % 2**32
            for us, (start, end) in zip(took_us, ways, strict=True)
        ),
        "corrected": tuple(round(us * 1000) for us in took_us),
        "common": tuple(round(us) for us in took_us),
        "start": tuple(start for start, _ in ways),
        "end": tuple(end for _, end in ways),
        "late": tuple(5300 if outcomes.get(n) == 2 else 0 for n in range(count)),
        "outcome": tuple(outcomes.get(n, 0) for n in range(count)),
    }


_TIMES = ("connect_us", "connack_us", "suback_us")
_PARTS = (
    "board_us",
    "dns_us",
    "tcp_us",
    "tls_us",
    "http_us",
    "reused",
    "resumed",
    "first_rtt_us",
    "server_us",
)
_ZEROES = (*_PARTS, *_TIMES, *(f"board_{name}" for name in _TIMES))

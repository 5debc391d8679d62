# SPDX-License-Identifier: Apache-2.0
"""A small run of each published study, with something in each table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hil.model import RunRecord
from tests.reports import qos_records
from tests.reports.study_delivery import delivery_record
from tests.reports.study_records import gateway_record, period_record, switch_record, throughput_record


def tcpip_records() -> list[RunRecord]:
    """Return a run with something in each table."""
    flat = [20.0 + n % 7 / 10 for n in range(30)]
    seen = {"capture_window_max_bytes": 5760, "capture_rtt_p50_us": 4000, "capture_mss_bytes": 360}
    found = [
        throughput_record([mbps * (1 - turn / 10) for mbps in flat], role=role, turn=turn)
        for turn in range(3)
        for role in ("client", "server")
    ]
    for role in ("client", "server"):
        found += [
            throughput_record(flat, role=role, peer_mss_bytes=mss, peer=seen) for mss in (160, 360, 1360)
        ]
        found += [
            throughput_record(flat, role=role, peer_window_bytes=size, peer=seen) for size in (2920, 5760)
        ]
        found += [
            throughput_record(flat, protocol="udp", role=role, rate_kbps=kbps, lost=10)
            for kbps in (5000, 40000)
        ]
    return found


def rtt_records() -> list[RunRecord]:
    reads = [20.0, 10.0, 11.0, 10.5, 11.5, 10.2, 11.2]
    parts = {"tls_us": 3000, "tcp_us": 1000, "board_us": 8000}
    first = {"connect_us": 500, "connack_us": 900, "suback_us": 1000}
    return [
        gateway_record(
            [reads, reads], profile=profile, profiles=(number,), pause_ms=pause, parts=parts, first=first
        )
        for number, profile in enumerate(("baseline", "tight"))
        for pause in (0, 1000)
    ]


def multicore_records() -> list[RunRecord]:
    """Return a run with something in each table, two boots of it."""
    spread = [n % 7 / 10 for n in range(70)]
    found = []
    for boot in range(2):
        found += [
            switch_record([us + 12 for us in spread], placement=placement, boot_index=boot)
            for placement in ("same", "cross")
        ]
        found += [
            period_record([10_000 + 30 * us for us in spread], load=load, boot_index=boot)
            for load in ("none", "migrate")
        ]
    return found


def rtos_records() -> list[RunRecord]:
    """Return a run with something in each table, two boots of it."""
    calls = [50 + n % 7 for n in range(70)]
    cores = [("none", "none"), ("0", "1"), ("1", "0")]
    found = []
    for boot in range(2):
        found += [
            delivery_record(calls, boot_index=boot, transport=how, producer_core=one, publisher_core=other)
            for how in ("tcp", "tls", "mtls", "password")
            for one, other in cores
        ]
        found += [
            delivery_record(calls, boot_index=boot, interval_us=250_000, hold_us=hold)
            for hold in (0, 50_000, 200_000)
        ]
        found += [
            delivery_record(calls, boot_index=boot, interval_us=1000, nodelay=nodelay, broker_nodelay=broker)
            for nodelay in (0, 1)
            for broker in (0, 1)
        ]
        found += [
            delivery_record(calls, boot_index=boot, interval_us=100_000, air="hotspot", owners={3: 3}),
            delivery_record(
                calls, boot_index=boot, fault="cut", owners={4: 2}, peer={"recovery_us": 1_000_000}
            ),
        ]
    return found


STUDIES: Mapping[str, Callable[[], list[RunRecord]]] = {
    "esp32-tcpip": tcpip_records,
    "freertos-multicore": multicore_records,
    "mqtt-http-rtt": rtt_records,
    "mqtt-qos": qos_records.everything,
    "rtos-mqtt": rtos_records,
}

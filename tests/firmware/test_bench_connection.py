# SPDX-License-Identifier: Apache-2.0
"""The benches startup, reconnect and footprint, on a virtual board.

Their peer alone: tests/network/test_interruption.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lab import Lab, make_lab, of_type

pytestmark = pytest.mark.slow

CYCLES, OUTAGE_US, SLEEP_MS = 2, 400_000, 150
PARTITION_BYTES = 0x1F0000  # firmware/partitions.csv


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, virtual_firmware: Path) -> Lab:
    """A lab that measured the three benches once."""
    outages = (
        f"cause: [access_point, broker], cycles: {CYCLES}, outage_ms: {OUTAGE_US // 1000}, interval_ms: 10"
    )
    lost_packets = (
        "cause: [syn, connect, connack], cycles: 1, outage_ms: 1400, interval_ms: 10, "
        "network_timeout_ms: 500, reconnect_ms: 100"
    )
    cases = {
        "startup": f"{{transport: [tcp, password], cycles: {CYCLES}}}",
        "wake": f"{{transport: tcp, sleep_ms: {SLEEP_MS}, cycles: {CYCLES}}}",
        "reconnect": f"{{{outages}}}\n    - {{{lost_packets}}}",
        "footprint": "{}",
    }
    suites = {bench: f"suites:\n  quick:\n    - {case}\n\n" for bench, case in cases.items()}
    lab = make_lab(tmp_path_factory.mktemp("lab"), 1, firmware=virtual_firmware, suites=suites)
    done = lab.run("--suite", "quick")
    assert done.returncode == 0, done.stdout
    return lab


def records(lab: Lab, bench: str) -> list[dict[str, Any]]:
    found = [entry for entry in of_type(lab.entries(), "record") if entry["bench"] == bench]
    assert found
    return found


def test_a_start_and_a_wake_have_all_their_parts(lab: Lab) -> None:
    """Each row connects and publishes anew; the boot's own part is one figure in all of them. A board that
    woke slept for as long as it was asked to; the clock of the sleep goes on, and memory stays."""
    starts, (wake,) = records(lab, "startup"), records(lab, "wake")
    for record in [*starts, wake]:
        columns = record["columns"]
        assert columns["outcome"] == [0] * CYCLES
        assert all(value > 0 for name in ("connect_us", "publish_us") for value in columns[name])
        assert record["environment"]["device"]["connects"] == 1  # a client of its own each time
    for record in starts:
        (boot_us,) = set(record["columns"]["boot_us"])
        assert boot_us > 0
    assert all(asleep_us >= SLEEP_MS * 1000 for asleep_us in wake["columns"]["asleep_us"])
    (log,) = (lab.out / "latest" / "console").glob("*.log")
    assert log.read_text(encoding="utf-8").count(f" asleep ms={SLEEP_MS}") >= 1


def test_an_outage_is_measured_on_both_sides(lab: Lab) -> None:
    """The host says how long it was away, the board how long it was silent, which is longer. TCP survives a
    short silence of the air; a broker that ends is noticed, and connected to again. Without SYN, CONNECT or
    CONNACK an attempt ends after the network time-out, and another is made."""
    by_cause: dict[str, Any] = {}
    for record in records(lab, "reconnect"):
        columns = by_cause[record["parameters"]["cause"]] = record["columns"]
        assert columns["outcome"] == [0] * record["parameters"]["cycles"]
        assert all(length_us >= OUTAGE_US for length_us in columns["outage_us"])
        assert all(gap_us > OUTAGE_US // 2 for gap_us in columns["gap_us"])
    assert by_cause["access_point"]["disconnects"] == [0] * CYCLES
    assert by_cause["access_point"]["connects_failed"] == [0] * CYCLES
    assert all(count >= 1 for count in by_cause["broker"]["disconnects"])
    assert all(by_cause["broker"]["connected_us"])
    for cause in ("syn", "connect", "connack"):
        assert all(count >= 1 for count in by_cause[cause]["connects_failed"]), cause
        assert all(longest_us >= 450_000 for longest_us in by_cause[cause]["connect_failed_max_us"]), cause


def test_the_image_is_as_large_as_what_was_flashed(lab: Lab, virtual_firmware: Path) -> None:
    """The board reads its own image's length from its flash."""
    (record,) = records(lab, "footprint")
    image_bytes = (virtual_firmware / "hil-firmware.bin").stat().st_size
    free_bytes = PARTITION_BYTES - image_bytes
    assert record["columns"] == {"image_bytes": [image_bytes], "slot_free_bytes": [free_bytes]}

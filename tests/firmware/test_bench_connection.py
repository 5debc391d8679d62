# SPDX-License-Identifier: Apache-2.0
"""The benches startup, reconnect and footprint, on a virtual board, with what their peer does to it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hil.base.errors import ConfigError, FirmwareError, RigError
from hil.model import Case, Series
from hil.network.peers import interruption
from hil.network.peers.companion import Place
from hil.network.peers.interruption import Interruption
from hil.wire import Note
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
        f"cause: [syn, connect, connack], cycles: {CYCLES}, outage_ms: 800, interval_ms: 10, "
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


def test_a_start_has_all_its_parts(lab: Lab) -> None:
    """Each row connects and publishes anew; the boot's own part is one figure in all of them."""
    for record in records(lab, "startup"):
        columns = record["columns"]
        assert columns["outcome"] == [0] * CYCLES
        assert len(set(columns["boot_us"])) == 1
        assert columns["boot_us"][0] > 0
        assert all(value > 0 for name in ("connect_us", "publish_us") for value in columns[name])
        assert record["environment"]["device"]["connects"] == 1  # a client of its own each time


def test_a_board_that_woke_connects_and_publishes_anew(lab: Lab) -> None:
    """It slept for as long as it was asked to; the clock of the sleep goes on, and memory stays."""
    (record,) = records(lab, "wake")
    columns = record["columns"]
    assert columns["outcome"] == [0] * CYCLES
    assert all(asleep_us >= SLEEP_MS * 1000 for asleep_us in columns["asleep_us"])
    assert all(value > 0 for name in ("connect_us", "publish_us") for value in columns[name])
    assert record["environment"]["device"]["connects"] == 1
    (log,) = (lab.out / "latest" / "console").glob("*.log")
    assert log.read_text(encoding="utf-8").count(f" asleep ms={SLEEP_MS}") >= 1


def test_an_outage_is_measured_on_both_sides(lab: Lab) -> None:
    """The host says how long it was away, the board how long it was silent, which is longer."""
    for record in records(lab, "reconnect"):
        columns = record["columns"]
        assert columns["outcome"] == [0] * CYCLES
        assert all(length_us >= OUTAGE_US for length_us in columns["outage_us"])
        assert all(gap_us > OUTAGE_US // 2 for gap_us in columns["gap_us"])


def test_only_a_broker_that_ends_breaks_the_connection(lab: Lab) -> None:
    """TCP survives a short silence of the air; a broker that ends is noticed, and connected to again."""
    by_cause = {record["parameters"]["cause"]: record["columns"] for record in records(lab, "reconnect")}
    assert by_cause["access_point"]["disconnects"] == [0] * CYCLES
    assert all(count >= 1 for count in by_cause["broker"]["disconnects"])
    assert all(by_cause["broker"]["connected_us"])


def test_packets_of_connecting_that_get_lost_cost_attempts(lab: Lab) -> None:
    """Without SYN, CONNECT or CONNACK an attempt ends after the network time-out, and another is made."""
    by_cause = {record["parameters"]["cause"]: record["columns"] for record in records(lab, "reconnect")}
    for cause in ("syn", "connect", "connack"):
        columns = by_cause[cause]
        assert all(count >= 1 for count in columns["connects_failed"]), cause
        assert all(longest_us >= 450_000 for longest_us in columns["connect_failed_max_us"]), cause
    assert by_cause["access_point"]["connects_failed"] == [0] * CYCLES


def test_the_image_is_as_large_as_what_was_flashed(lab: Lab, virtual_firmware: Path) -> None:
    """The board reads its own image's length from its flash."""
    (record,) = records(lab, "footprint")
    image_bytes = (virtual_firmware / "hil-firmware.bin").stat().st_size
    assert record["columns"] == {
        "image_bytes": [image_bytes],
        "slot_free_bytes": [PARTITION_BYTES - image_bytes],
    }


# ---- the peer alone ----


class Broker:
    """A broker as the peer sees it: there or away. It takes its time to go and to come."""

    def __init__(self, slow_s: float = 0.0) -> None:
        self.away = threading.Event()
        self.outages = 0
        self.slow_s = slow_s
        self.gone_at = 0.0
        self.last_length_us = 0.0

    def interrupt(self) -> None:
        assert not self.away.is_set()
        time.sleep(self.slow_s)
        self.gone_at = time.monotonic()
        self.outages += 1
        self.away.set()

    def resume(self) -> None:
        self.last_length_us = (time.monotonic() - self.gone_at) * 1e6
        self.away.clear()


def place(broker: Broker, cause: str = "broker", outage_ms: int = 200) -> Place:
    case = Case("reconnect", {"cause": cause, "outage_ms": outage_ms, "interval_ms": 10})
    board = SimpleNamespace(id="b1")
    parts = {"case": case, "board": board, "broker": broker, "air": None, "access_point_interface": ""}
    return SimpleNamespace(**parts)  # type: ignore[return-value]


def note(cycle: int) -> Note:
    return Note(1, 1, "outage", {"cycle": str(cycle)})


def series(*gaps_us: int) -> Series:
    columns = {"gap_us": gaps_us, "outcome": (0,) * len(gaps_us)}
    return Series(Case("reconnect", {}), columns, 0, "esp_timer", "", "", 1)


def test_an_outage_that_is_asked_for_twice_is_made_once() -> None:
    """A note is repeated until it has had its effect, so the host goes by the cycle's number."""
    broker = Broker()
    peer = Interruption(place(broker))
    peer.start()
    for cycle in (0, 0, 1, 0):
        peer.note(note(cycle))
    outcome = peer.finish(series(300_000, 300_000))
    peer.stop()
    assert broker.outages == 2
    assert not broker.away.is_set()
    assert all(length_us >= 200_000 for length_us in outcome.series.columns["outage_us"])


def test_the_time_to_take_away_does_not_count() -> None:
    """An outage is as long as nothing was there, not as long as ending the broker took besides."""
    broker = Broker(slow_s=1.0)
    peer = Interruption(place(broker))
    peer.start()
    peer.note(note(0))
    (outage_us,) = peer.finish(series(300_000)).series.columns["outage_us"]
    peer.stop()
    assert outage_us - broker.last_length_us < 0.5e6


def test_a_gap_shorter_than_the_outage_was_another_one() -> None:
    """A row that cannot be the outage is not counted as a recovery in no time."""
    peer = Interruption(place(Broker()))
    peer.start()
    peer.note(note(0))
    assert peer.finish(series(50_000)).series.columns["outcome"] == (2,)
    peer.stop()


def test_an_outage_that_nobody_made_is_the_rigs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A board that saw an outage which the host did not make had a bad link."""
    monkeypatch.setattr(interruption, "END_TIMEOUT_S", 0.1)
    peer = Interruption(place(Broker()))
    peer.start()
    with pytest.raises(RigError, match="saw 1 outages, this host made 0"):
        peer.finish(series(300_000))
    peer.stop()


def test_a_broker_that_does_not_come_back_is_named() -> None:
    """What kept an outage from being undone is the case's error, not a time-out."""

    class Lost(Broker):
        def resume(self) -> None:
            raise RigError("its port is taken.")

    peer = Interruption(place(Lost()))
    peer.start()
    peer.note(note(0))
    with pytest.raises(RigError, match="its port is taken"):
        peer.finish(series(300_000))
    peer.stop()


def test_a_note_without_a_number_is_the_firmwares() -> None:
    """A note that makes no sense is not the rig's fault."""
    peer = Interruption(place(Broker()))
    with pytest.raises(FirmwareError, match="without a number"):
        peer.note(Note(1, 1, "outage", {}))


def test_stopping_gives_back_what_was_taken_away() -> None:
    """A run that is stopped in the middle of an outage leaves the broker there, and makes no more of them."""
    broker = Broker()
    peer = Interruption(place(broker, outage_ms=60_000))
    peer.start()
    for cycle in range(3):
        peer.note(note(cycle))
    assert broker.away.wait(10.0)
    peer.stop()
    assert not broker.away.is_set()
    assert broker.outages == 1


def test_an_access_point_of_others_is_not_switched() -> None:
    """Without an access point of the rack's own the case says how to leave it out."""
    with pytest.raises(ConfigError, match="not cause=access_point"):
        Interruption(place(Broker(), "access_point")).start()


@pytest.mark.parametrize("cause", ["syn", "connect", "connack"])
def test_packets_that_nothing_here_sees_are_not_dropped(cause: str) -> None:
    """Without an interface behind the access point the case says how to leave it out."""
    with pytest.raises(ConfigError, match=f"not cause={cause}"):
        Interruption(place(Broker(), cause)).start()

# SPDX-License-Identifier: Apache-2.0
"""What makes an outage when a board asks for one, with a broker that is played."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from hil.base.errors import ConfigError, FirmwareError, RigError
from hil.model import Case, Series
from hil.network import broker as real
from hil.network.certificates import Certificates
from hil.network.peers import interruption
from hil.network.peers.companion import Place
from hil.network.peers.interruption import Interruption
from hil.wire import Note
from tests.boards.rack_tools import running_rack


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


def place(broker: Broker | real.Broker, cause: str = "broker", outage_ms: int = 200, **more: object) -> Place:
    parameters = {"cause": cause, "outage_ms": outage_ms, "interval_ms": 10, "transport": "tcp"}
    case = Case("reconnect", parameters)
    board = SimpleNamespace(id="b1")
    parts = {"case": case, "board": board, "broker": broker, "air": None, "access_point_interface": ""}
    return SimpleNamespace(**parts | more)  # type: ignore[return-value]


def note(cycle: int) -> Note:
    return Note(1, 1, "outage", {"cycle": str(cycle)})


def series(*gaps_us: int) -> Series:
    columns = {"gap_us": gaps_us, "outcome": (0,) * len(gaps_us)}
    return Series(Case("reconnect", {}), columns, 0, "esp_timer", "", "", 1)


@contextmanager
def at_work(broker: Broker) -> Iterator[Interruption]:
    peer = Interruption(place(broker))
    try:
        peer.start()
        yield peer
    finally:
        peer.stop()


def test_an_outage_that_is_asked_for_twice_is_made_once() -> None:
    """A note is repeated until it has had its effect, so the host goes by the cycle's number."""
    broker = Broker()
    with at_work(broker) as peer:
        for cycle in (0, 0, 1, 0):
            peer.note(note(cycle))
        outcome = peer.finish(series(300_000, 300_000))
    assert broker.outages == 2
    assert not broker.away.is_set()
    assert all(length_us >= 200_000 for length_us in outcome.series.columns["outage_us"])


def test_the_time_to_take_away_does_not_count() -> None:
    """An outage is as long as nothing was there, not as long as ending the broker took besides. A row of a
    gap that is shorter cannot be the outage: it is not counted as a recovery in no time."""
    broker = Broker(slow_s=1.0)
    with at_work(broker) as peer:
        peer.note(note(0))
        columns = peer.finish(series(50_000)).series.columns
    assert columns["outage_us"][0] - broker.last_length_us < 0.5e6
    assert columns["outcome"] == (2,)


def test_an_outage_that_nobody_made_is_the_rigs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A board that saw an outage which the host did not make had a bad link."""
    monkeypatch.setattr(interruption, "END_TIMEOUT_S", 0.1)
    with at_work(Broker()) as peer, pytest.raises(RigError, match=r"saw 1 .* made 0"):
        peer.finish(series(300_000))


def test_a_broker_that_does_not_come_back_is_named() -> None:
    """What kept an outage from being undone is the case's error, not a time-out."""

    class Lost(Broker):
        def resume(self) -> None:
            raise RigError("its port is taken.")

    with at_work(Lost()) as peer:
        peer.note(note(0))
        with pytest.raises(RigError, match="its port is taken"):
            peer.finish(series(300_000))


@pytest.mark.slow
def test_a_board_without_a_connection_meets_the_outage_too(
    tmp_path: Path, certificates: Certificates
) -> None:
    """The broker may have thrown it out a moment before: there is nothing to cut, and its next attempt meets
    the rules."""
    with running_rack(tmp_path / "rack") as rack:
        broker = real.Broker.start(rack, rack.host_address, tmp_path / "broker", certificates)
        here = {"spawner": rack, "folder": tmp_path, "board_address": rack.board_address("b1")}
        port = rack.access_point_interface("b1")
        peer = Interruption(place(broker, "connack", access_point_interface=port, **here))
        peer.start()
        peer.note(note(0))
        (length_us,) = peer.finish(series(300_000)).series.columns["outage_us"]
        peer.stop()
        broker.stop()
    assert length_us >= 200_000


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


@pytest.mark.parametrize("cause", ["access_point", "syn", "connect", "connack"])
def test_what_a_rack_cannot_take_away_is_the_configurations(cause: str) -> None:
    """Without an access point of its own, or an interface behind it, the case says how to leave it out."""
    with pytest.raises(ConfigError) as caught:
        Interruption(place(Broker(), cause)).start()
    assert f"not cause={cause}" in caught.value.next_step

# SPDX-License-Identifier: Apache-2.0
"""Background traffic: a real iperf in a namespace of its own against the rack's host, over the air."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hil.base.errors import RigError
from hil.boards.rack import load_rack
from hil.boards.rack.access_point import Background
from hil.boards.rack.network import Network
from hil.network.access_point import NoAccessPoint
from hil.network.background import check_background, station_words, traffic
from hil.run.network import HostSide, RunNetwork
from hil.virtual.air.profile import load_profile
from hil.virtual.virtual_rack import VirtualRack
from tests.boards.rack_tools import start_rack
from tests.lab import ROOT, wait_for

STATION = Background("nsenter --net=/run/netns/b2 --", 400, "udp", "up")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualRack]:
    perfect = load_profile("perfect")
    started = start_rack(tmp_path_factory.mktemp("rack"), boards=("b1", "b2"), profile=perfect)
    yield started
    started.stop()


@pytest.mark.parametrize(("protocol", "direction"), [("udp", "up"), ("udp", "down"), ("tcp", "up")])
def test_what_arrives_is_written_down(
    rack: VirtualRack, tmp_path: Path, protocol: str, direction: str
) -> None:
    """It crosses the station's link in its direction before the case begins, and ends with the case; the
    record has what was asked for and what arrived, no more than the link carried."""
    asked = Background(STATION.station, STATION.rate_kbps, protocol, direction)
    way = {"up": "uplink", "down": "downlink"}[direction]
    rack.air.reset_statistics()

    def crossed() -> int:
        return int(rack.air.statistics("b2")["b2"][way]["delivered_bytes"])

    with traffic(asked, rack, rack.host_address, tmp_path) as sending:
        assert crossed() > 10_000
        wait_for(lambda: float(str(sending.finish()["measured_s"])) >= 1.0, "two more intervals")
        facts = sending.finish()
        most = crossed() + 100_000  # what was on its way
    assert facts["asked_kbps"] == 400
    assert (facts["protocol"], facts["direction"]) == (protocol, direction)
    arrived_bytes = float(str(facts["arrived_kbps"])) * 125 * float(str(facts["measured_s"]))
    assert 0 < arrived_bytes <= most
    assert ("lost_count" in facts) == (protocol == "udp")
    assert sending._client.returncode is not None
    assert sending._server.ended


def test_a_record_has_the_traffic_of_its_case(rack: VirtualRack, tmp_path: Path) -> None:
    """It goes with the case of a board on Wi-Fi; one on a cable has none, nor one whose case failed."""
    nothing: Any = SimpleNamespace(environment=dict)
    host = HostSide(rack, rack.host_address, rack.host_interface, tmp_path, background=STATION)
    network = RunNetwork(NoAccessPoint(), host, nothing, nothing, None, tmp_path, tmp_path / "run" / "rack")
    board = replace(load_rack(ROOT / "hil" / "racks" / "virtual.yaml").boards[0], kind="physical")
    with network.around(board):
        log = tmp_path / "run" / "background" / board.id / "background-server.log"
        wait_for(lambda: log.read_text().count(" sec ") > 4, "some intervals")
    facts = network.environment(board)["background"]
    assert facts["station"] == STATION.station
    assert float(str(facts["arrived_kbps"])) > 0
    with pytest.raises(RigError, match="the case failed"), network.around(board):
        raise RigError("the case failed.")
    assert "background" not in network.environment(board)
    cable = replace(board, network=Network("w5500"))
    with network.around(cable):
        pass
    assert "background" not in network.environment(cable)


def test_traffic_that_is_not_there_is_named(rack: VirtualRack, tmp_path: Path) -> None:
    """A station that cannot be reached, and a client that dies, are the rig's fault in one sentence."""
    nowhere = Background("nsenter --net=/run/netns/none --", 400, "udp", "up")
    with (
        pytest.raises(RigError, match=r"'nsenter .*iperf's client ended with status 1; it said: nsenter: "),
        traffic(nowhere, rack, rack.host_address, tmp_path / "a"),
    ):
        pytest.fail("there is no such namespace")
    with traffic(STATION, rack, rack.host_address, tmp_path / "b") as sending:
        sending._client.send_signal(signal.SIGKILL)
        wait_for(lambda: sending._client.returncode is not None, "the client's end")
        with pytest.raises(RigError, match="iperf's client was killed by signal 9"):
            sending.finish()


def test_a_check_looks_for_the_programs() -> None:
    """iperf, and what reaches the station; what ssh started ends with it, by its terminal."""
    assert check_background(STATION).ok
    missing = check_background(Background("no-such-program station", 400, "udp", "up"))
    assert not missing.ok
    assert "no-such-program" in missing.sentence
    assert station_words(Background("ssh -p 22 pi@10.0.0.3", 9, "tcp", "up"))[:3] == ["ssh", "-tt", "-p"]

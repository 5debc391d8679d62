# SPDX-License-Identifier: Apache-2.0
"""A bench and its companion on the host: the real agent as a process, a real process at the other end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.boards.current_sampling import Meters
from hil.boards.rack import load_rack
from hil.model import Case
from hil.network.peers.companion import Place, companion_factory
from hil.run.agent_device import AgentDevice
from hil.run.companions import Companions
from hil.session import AgentSession
from hil.thresholds.types import PEERS
from tests.host_builds import build_sanitized
from tests.network.echo_companion import EchoCompanion
from tests.network.places import LOOPBACK, place_of
from tests.run import test_fixtures_rig
from tests.session.agent_process import AgentProcess

pytestmark = pytest.mark.slow

BOARD = load_rack(Path(__file__).resolve().parents[2] / "hil" / "racks" / "virtual.yaml").boards[0]
CASE = Case("example", {"count": 5})


class Network(test_fixtures_rig.Network):
    """The part of a run's network that a device needs; broken where ``error`` is given."""

    def place(self, case: Case, board: Any, address: str, *, folder: Path, keep_captures: bool) -> Place:
        return place_of(case, folder, board=board, board_address=address, keep_captures=keep_captures)


@dataclass
class Bench:
    """A device whose board runs firmware/host/test/test_wire_peer.c, and the companions that it had."""

    session: AgentSession
    run_path: Path
    log: list[str]
    network: Network = field(default_factory=Network)
    trouble: Mapping[str, HilError] = field(default_factory=dict)
    had: list[EchoCompanion] = field(default_factory=list)
    peers: Mapping[str, str] = field(default_factory=lambda: {"example": "echo"})
    address: str = LOOPBACK

    def _factory(self, word: str) -> Callable[[Place], EchoCompanion]:
        assert word == "echo"

        def make(place: Place) -> EchoCompanion:
            self.had.append(EchoCompanion(place, self.trouble))
            return self.had[-1]

        return make

    def device(self) -> AgentDevice:
        network: Any = self.network
        companions = Companions(self.peers, network, self.run_path, factory=self._factory)
        hello = self.session.hello
        assert hello
        return AgentDevice(
            BOARD, self.session, network, hello.firmware_sha256, companions, self.address, Meters(Path("out"))
        )


@pytest.fixture(scope="module")
def elf() -> Path:
    return build_sanitized("test_wire_peer") / "test" / "test_wire_peer"


@pytest.fixture
def bench(elf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("PEER", "1")
    process = AgentProcess(elf)
    log: list[str] = []
    session = AgentSession(process, BOARD.id, log.append)
    try:
        session.wait_ready(timeout_s=20.0)
        yield Bench(session, tmp_path, log)
    finally:
        process.stop()


def test_board_and_companion_measure_together(bench: Bench) -> None:
    """The board is told where its peer will be and asks for it by notes; both sides give one outcome."""
    device = bench.device()
    outcome = device.measure(CASE, timeout_s=20.0)
    companion = bench.had[0]
    assert [call for call in companion.calls if call != "note"] == ["start", "finish", "stop"]
    first = companion.notes[0]
    assert (first.kind, first.fields["text"]) == ("ready", "50%")
    attempts = [note.fields["attempt"] for note in companion.notes]
    assert attempts == [str(number) for number in range(1, len(attempts) + 1)]  # told again, in order
    assert len(outcome.series.columns["done_us"]) == 5
    assert outcome.series.columns["echoed_count"] == (1,) * 5
    assert outcome.environment == {"folder": f"peer/{BOARD.id}/01-example", "echoed_bytes": 5}
    assert (bench.run_path / "peer" / BOARD.id / "01-example" / "echo.log").read_text() == "5\n"
    assert device.measure(CASE, timeout_s=20.0).environment["folder"] == f"peer/{BOARD.id}/02-example"


def test_a_bench_without_a_peer_or_a_board_without_an_address_has_none(bench: Bench) -> None:
    """No companion, no folder, no facts; a bench that wants one says itself that it was not told. The
    companion has to know where the board is: where it did not say so, the case ends as the rig's."""
    bench.peers = {"example": ""}
    with pytest.raises(ConfigError, match="no peer was provisioned"):
        bench.device().measure(CASE, timeout_s=20.0)
    assert not bench.had
    assert not list(bench.run_path.iterdir())
    bench.peers = {"example": "echo"}
    bench.address = ""
    with pytest.raises(RigError, match="did not report its IPv4 address"):
        bench.device().measure(CASE, timeout_s=20.0)


def test_a_companion_that_does_not_start_runs_no_case(bench: Bench) -> None:
    """Its own error ends the case; it is stopped, and no empty folder is left."""
    bench.trouble = {"start": ConfigError("port 5001 is taken.")}
    with pytest.raises(ConfigError, match="port 5001 is taken"):
        bench.device().measure(CASE, timeout_s=20.0)
    assert bench.had[0].calls == ["start", "stop"]
    assert not any("run example" in line for line in bench.log)
    assert not list(bench.run_path.iterdir())


def test_the_companion_may_know_why_a_case_failed(bench: Bench) -> None:
    """Where a case fails, the companion is asked first, then the network; else the board's word stands."""
    impossible = Case("example", {"count": 101})
    with pytest.raises(ConfigError, match=r"allowed=1\.\.100"):
        bench.device().measure(impossible, timeout_s=20.0)
    assert bench.had[-1].calls == ["start", "check", "stop"]
    bench.network.error = RigError("the broker died.")
    with pytest.raises(RigError, match="the broker died"):
        bench.device().measure(impossible, timeout_s=20.0)
    bench.network.error = None
    bench.trouble = {"check": FirmwareError("the board reset the connection.")}
    with pytest.raises(FirmwareError, match="reset the connection"):
        bench.device().measure(impossible, timeout_s=20.0)


def test_a_companion_that_fails_at_the_end_takes_the_samples_with_it(bench: Bench) -> None:
    """A series that the host's side cannot complete is no result; the raw material stays for a look."""
    bench.trouble = {"finish": RigError("the capture was cut off.")}
    with pytest.raises(RigError, match="the capture was cut off"):
        bench.device().measure(CASE, timeout_s=20.0)
    assert bench.had[0].calls[-1] == "stop"
    assert (bench.run_path / "peer" / BOARD.id / "01-example" / "echo.log").exists()


def test_companions_at_work_are_heard_by_their_board_and_stopped_from_outside(bench: Bench) -> None:
    """A run that is interrupted stops those at work; one that hangs holds up neither it nor the others. What
    a companion knows is heard while its own board measures, and by no other board."""
    network: Any = bench.network
    free = threading.Event()
    companions = Companions(bench.peers, network, bench.run_path, factory=bench._factory)
    with companions.attend(CASE, BOARD, LOOPBACK), companions.attend(CASE, BOARD, LOOPBACK):
        first, second = bench.had
        first.stop = free.wait  # type: ignore[method-assign, assignment]
        companions.stop(timeout_s=0.1)
        assert second.calls == ["stop"]
        free.set()
    companions.stop(timeout_s=20.0)
    assert second.calls == ["stop", "stop"]  # the other one by its own board's thread
    bench.trouble = {"check": RigError("dnsmasq died.")}
    with companions.attend(CASE, BOARD, LOOPBACK):
        companions.check(replace(BOARD, id="another"))
        with pytest.raises(RigError, match="dnsmasq died"):
            companions.check(BOARD)
    companions.check(BOARD)


@pytest.mark.parametrize("word", PEERS)
def test_every_peer_of_a_thresholds_file_has_a_companion(word: str) -> None:
    """What a thresholds file may name can be made: the registry imports it, and it takes a place."""
    assert callable(companion_factory(word))

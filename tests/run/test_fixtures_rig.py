# SPDX-License-Identifier: Apache-2.0
"""What the rig refuses: a board that runs another image than the one that was built."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hil.base.errors import FirmwareError, RigError
from hil.boards.current.ppk2 import Ppk2
from hil.boards.current_sampling import Meters
from hil.boards.current_track import Spans, no_spans
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.selection import Firmware
from hil.boards.rack import load_rack
from hil.boards.rack.current import Current
from hil.fixtures.board import ConsoleLog
from hil.model import Case, Series
from hil.network.peers.companion import Observed
from hil.run.agent_device import AgentDevice
from hil.run.companions import Companions
from hil.run.interfaces import Boot
from hil.run.lab_rig import LabRig
from hil.run.product_device import ProductDevice
from hil.store import RunDirectory
from tests.probe.scripted import console_of, probe_of

RACK = load_rack(Path(__file__).resolve().parents[2] / "hil" / "racks" / "virtual.yaml")
BOARD = RACK.boards[0]
CASE = Case("publish", {"qos": 1})
BUILT, OTHER = "a" * 64, "b" * 64
DRAWN = {
    "meter": "ppk2",
    "mean_current_na": 50_000_000,
    "peak_current_na": 60_000_000,
}  # from Meter's figures


@dataclass
class Agent:
    """A session whose board runs the image ``runs`` and fails with ``error``, if any."""

    runs: str
    error: Exception | None = None

    @property
    def hello(self) -> Any:
        return self

    @property
    def firmware_sha256(self) -> str:
        return self.runs

    def command(self, _verb: str, **_options: object) -> None:
        """The board says hello again."""

    def provision(self, told: Mapping[str, object]) -> None:
        assert not told  # the bench has no peer

    def run_case(self, case: Case, **_options: object) -> Series:
        if self.error:
            raise self.error
        return Series(case, {"done_us": (1,)}, 0, "esp_timer", self.runs, "ruler", 1)


@dataclass
class Network:
    """A network that is broken where ``error`` is given."""

    error: Exception | None = None

    def awake(self, _for_s: float) -> AbstractContextManager[None]:
        return nullcontext()

    def around(self, _board: object) -> AbstractContextManager[None]:
        return nullcontext()

    def check(self, _board: object) -> None:
        if self.error:
            raise self.error


def device(runs: str, *, fails: Exception | None = None, network: Exception | None = None) -> AgentDevice:
    agent: Any = Agent(runs, fails)
    around: Any = Network(network)
    companions = Companions({}, around, Path("out"))
    return AgentDevice(BOARD, agent, around, BUILT, companions, "127.0.0.1", Meters(Path("out")))


def test_the_built_image_is_measured() -> None:
    """The image that was built passes the check before a case, and its series is returned as it is."""
    board = device(BUILT)
    board.confirm()
    outcome = board.measure(CASE, timeout_s=1)
    assert outcome.series.firmware_sha256 == BUILT
    assert outcome.environment == {}


def test_another_image_is_not_measured() -> None:
    """Another image than the built one is a rig fault that names both, before and after the case."""
    with pytest.raises(RigError, match=f"runs {OTHER[:12]}, not the image that was built"):
        device(OTHER).confirm()
    with pytest.raises(RigError, match=BUILT[:12]):
        device(OTHER).measure(CASE, timeout_s=1)


def test_a_broken_network_explains_a_failed_case() -> None:
    """Where the broker died, a case's failure is the rig's; else it stays the firmware's."""
    timeout = FirmwareError("no answer")
    with pytest.raises(RigError, match="broker"):
        device(BUILT, fails=timeout, network=RigError("the broker died")).measure(CASE, timeout_s=1)
    with pytest.raises(FirmwareError, match="no answer"):
        device(BUILT, fails=timeout).measure(CASE, timeout_s=1)


class Meter:
    """A meter that has seen 50 mA at 3 V for so many seconds from 100 s of the host's clock on."""

    origin_s, resolution_ua = 100.0, 0.2

    def __init__(self, seconds: float = 3.0) -> None:
        self.seconds = seconds

    def begin(self) -> None:
        """It is ready."""

    def read(self) -> Spans:
        time.sleep(0.001)
        return no_spans()

    def end(self) -> Spans:
        of = {
            "start_s": 0.0,
            "end_s": self.seconds,
            "lost_s": 0.0,
            "mean_ua": 5e4,
            "peak_ua": 6e4,
            "mv": 3000.0,
        }
        return Spans(saturated=np.zeros(1, int), **{name: np.array([value]) for name, value in of.items()})

    def close(self) -> None:
        """Nothing is held."""


def test_what_a_board_drew_stands_in_the_record_of_its_case(tmp_path: Path) -> None:
    """The time in which the board measured is what is integrated; a failed case leaves its own error."""
    board = replace(BOARD, current=Current("ppk2", Ppk2("D4C0", 3300, "ampere")))
    agent: Any = Agent(BUILT)
    usual = agent.run_case
    agent.run_case = lambda case, **options: replace(
        usual(case, **options), columns={"sent_us": (1, 2)}, stretches=((100.5, 101.5), (102.0, 102.5))
    )
    around: Any = Network()
    meters = Meters(tmp_path, lambda _: Meter())
    device = AgentDevice(board, agent, around, BUILT, Companions({}, around, tmp_path), "127.0.0.1", meters)
    outcome = device.measure(CASE, timeout_s=1)
    around.environment = lambda _board: {}
    rig = LabRig(RACK, RunDirectory(tmp_path), "r", {}, around, around, around, tmp_path)
    boot = Boot(Image("virtual-esp32"), "candidate", 0)
    drawn = rig.record(board, boot, CASE, outcome, "2026-01-01T00:00:00Z").environment["current"]
    messages = {"energy_per_message_nj": 3 * 50 * 1_500_000 // 2, "messages": 2}
    assert drawn == {**DRAWN, "file": "current/v1/01-publish.npz", **messages}
    agent.run_case = Agent(BUILT, FirmwareError("no answer")).run_case
    with pytest.raises(FirmwareError, match="no answer"):
        device.measure(CASE, timeout_s=1)


def test_what_a_product_drew_is_measured_as_well(tmp_path: Path) -> None:
    """It is sampled from the case's beginning to its last row; a row of two lines is no message."""
    (tmp_path / "flasher_args.json").write_text('{"app": {"offset": "0x10000", "file": "app.bin"}}')
    (tmp_path / "app.bin").write_bytes(bytes(64))  # which tells nothing of itself
    probe = probe_of(tmp_path, "between: {from: go, to: done}\n")
    meter = Meter(seconds=3600.0)
    meter.origin_s = time.monotonic() - 1.0  # whatever the host does meanwhile, it saw it
    board = replace(BOARD, current=Current("ppk2", Ppk2("D4C0", 3300, "ampere")))
    meters, network = Meters(tmp_path, lambda _: meter), Network()
    product = ProductDevice(
        board,
        console_of(["go", "done"], probe),
        {"it": probe},
        BUILT,
        tmp_path,
        {},
        lambda _: nullcontext(),  # type: ignore[arg-type]
        lambda: network.check(board),
        lambda case: meters.beside(board, case),
    )
    case = Case("it", {"count": 1, "warmup": 0, "duration_s": 1, "timeout_ms": 500, "interval_us": 0})
    outcome = product.measure(case, timeout_s=1)
    assert outcome.series.columns["outcome"] == (0,)
    assert dict(outcome.current) == {**DRAWN, "file": "current/v1/01-it.npz"}


class Telling:
    """A companion that has the board told these fields."""

    def __init__(self, told: Mapping[str, str | int]) -> None:
        self._told = told

    def start(self) -> Mapping[str, str | int]:
        return self._told

    def note(self, note: object) -> None:
        """The board says nothing."""

    def finish(self, series: Series) -> Observed:
        return Observed(series, {})

    def stop(self) -> None:
        """Nothing was started."""


def test_what_one_case_was_told_is_taken_back_for_the_next(tmp_path: Path) -> None:
    """A broker of a case's own is gone afterwards: the next case is told the run's again, and only once."""
    run = {"broker_host": "10.77.0.1", "broker_tcp_port": 1883, "utc_us": 5}
    case = {"broker_host": "10.77.0.1", "broker_tcp_port": 1893, "peer_port": 7}
    heard: list[Mapping[str, object]] = []
    agent: Any = Agent(BUILT)
    agent.provision = heard.append
    network: Any = Network()
    network.provision, network.place = (lambda _board: run), (lambda *_, **__: None)
    companions: list[Mapping[str, str | int]] = [case, case, {}, {}]

    def factory(_peer: str) -> Any:
        return lambda _place: Telling(companions.pop(0))

    peers = Companions({"publish": "any"}, network, tmp_path, factory=factory)
    board = AgentDevice(BOARD, agent, network, BUILT, peers, "10.77.0.11", Meters(Path("out")))
    for _ in range(4):
        board.measure(CASE, timeout_s=1)
    assert heard == [case, case, {"broker_host": "10.77.0.1", "broker_tcp_port": 1883}, {}]


@dataclass
class Slots:
    """A board with two images whose switch takes at attempt ``takes_at``; 0: it never does."""

    takes_at: int
    writes: list[str] = field(default_factory=list)

    def build(self, _image: object, _role: str) -> Firmware:
        return Firmware(Path("out"), BUILT)

    def select(self, _board: object, role: str, *, again: bool = False) -> bool:
        self.writes.append(f"{'again ' if again else ''}{role}")
        return True

    def session(self, *_arguments: object) -> Any:
        self.running = BUILT if len(self.writes) == self.takes_at else OTHER
        return self

    def wait_ready(self, **_options: object) -> Agent:
        return Agent(self.running)

    def check_how_it_booted(self) -> None: ...


@pytest.mark.parametrize("takes_at", [1, 2, 0])
def test_a_switch_that_did_not_take_is_repeated_once(tmp_path: Path, takes_at: int) -> None:
    """The image that comes up proves the switch; what still runs after a repetition is the rig's fault."""
    slots = Slots(takes_at)
    anything: Any = None
    rig = LabRig(RACK, RunDirectory(tmp_path), "r", {}, anything, anything, anything, tmp_path)
    rig._images, rig._session = slots, slots.session  # type: ignore[assignment, method-assign]
    boot = Boot(Image("virtual-esp32"), "base", 3)
    with ExitStack() as stack:
        if takes_at:
            rig._started(BOARD, boot, stack, lambda: None)
        else:
            with pytest.raises(RigError, match=f"runs {OTHER[:12]}, not the image"):
                rig._started(BOARD, boot, stack, lambda: None)
    assert slots.writes == ["base", "again base"][: takes_at or 2]


def test_the_console_log_is_readable_while_it_grows(tmp_path: Path) -> None:
    """Each line is stamped and on disk at once, so that a killed run leaves it whole."""
    log = ConsoleLog(tmp_path / "console" / "b1.log")
    log("I (12) main: hello")
    assert log.path.read_text().split(" ", 1)[1] == "I (12) main: hello\n"
    log.close()

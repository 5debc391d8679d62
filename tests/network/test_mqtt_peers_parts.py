# SPDX-License-Identifier: Apache-2.0
"""The peers of `delivery` and `echo` in pieces: the air's arithmetic, the faults' thread, rates, recovery."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import FirmwareError, RigError
from hil.model import Case, Scalar, Series
from hil.network.broker_config import BrokerOptions
from hil.network.capture import CaptureCounts
from hil.network.ledger.attribution import attribute
from hil.network.ledger.evidence import Arrival
from hil.network.ledger.points import Owner
from hil.network.peers.mqtt import fault_schedule
from hil.network.peers.mqtt.bench_broker import options_of
from hil.network.peers.mqtt.board_air import bursts_of, changes_of, description_of
from hil.network.peers.mqtt.delivery import faults_facts, rates_facts
from hil.network.peers.mqtt.dissecting import CaseCaptures, CountedCapture, Dissected, evidence_of, nonce_of
from hil.network.peers.mqtt.fault_schedule import FaultSchedule, Moment
from hil.network.peers.mqtt.settings import AirChange, FaultPlan, Settings
from hil.virtual.air.control import AirControl
from hil.virtual.air.profile import load_profile
from tests.firmware.case_defaults import case_defaults
from tests.lab import wait_for

ONCE = FaultPlan("stall", after_s=0.0, length_s=60.0, every_s=0.0)


def settings(bench: str = "delivery", **changes: Scalar) -> Settings:
    case = Case(bench, case_defaults(bench, **changes))
    return Settings.of_delivery(case) if bench == "delivery" else Settings.of_echo(case)


def series(planned_us: tuple[int, ...], done_us: tuple[int, ...], outcome: tuple[int, ...] = ()) -> Series:
    columns = {"planned_us": planned_us, "done_us": done_us, "outcome": outcome or (0,) * len(planned_us)}
    return Series(Case("delivery", {}), columns, 0, "esp_timer", "f", "r", 1)


# ---- what a case asks for ----


@pytest.mark.parametrize("loss_ppm", [1, 5_000, 20_000, 300_000, 830_000, 900_000, 1_000_000])
def test_bursts_lose_what_was_asked_for(loss_ppm: int) -> None:
    """The share of time in the bad state is the mean loss; a burst is 5 frames long as far as that goes."""
    found = {key: int(value) for key, value in bursts_of(loss_ppm).items()}
    if loss_ppm == 1_000_000:
        assert found["loss_ppm"] == loss_ppm
        return
    start, end = found["burst_start_ppm"], found["burst_end_ppm"]
    assert start / (start + end) == pytest.approx(loss_ppm / 1e6, rel=0.02, abs=5e-6)
    assert end == 200_000 or loss_ppm > 833_333
    assert (found["loss_ppm"], found["burst_loss_ppm"], found["burst_good_loss_ppm"]) == (0, 1_000_000, 0)


def test_what_a_case_does_not_ask_for_stays_the_airs() -> None:
    """Defaults change nothing; a loss in one direction leaves the other one alone."""
    assert not settings("echo").air.changes
    assert not settings("echo", loss_pattern="bursts").air.changes
    assert not settings().air.changes
    wish = settings("echo", loss_up_ppm=20_000).air
    assert changes_of(wish) == {"uplink": {"loss_ppm": 20_000, "burst_start_ppm": 0}}
    assert changes_of(settings("echo", delay_us=0).air) == {
        direction: {"delay_us": 0, "jitter_us": 0} for direction in ("uplink", "downlink")
    }


def test_the_record_says_which_hops_are_impaired() -> None:
    """The sentence names each direction, what is done to it, and where."""
    wish = AirChange("lab", loss_up_ppm=20_000, loss_down_ppm=5_000, rate_up_kbit=1000)
    said = description_of(wish, load_profile("lab"), AirControl.where)
    for part in ("both directions as the air lab", "uplink 1000 kbit/s and 2 %", "downlink 0.5 %"):
        assert part in said
    assert said.endswith(AirControl.where)
    bursts = description_of(replace(wish, profile="rack", bursts=True, delay_us=1500), None, "here")
    assert bursts.startswith("both directions 1.5 ms delay")
    assert "2 % loss in bursts of 5" in bursts


def test_a_case_chooses_its_brokers_options() -> None:
    """What the case says is what mosquitto is told; a slow disk is one that every change goes to."""
    asked = settings(broker_nodelay=0, broker_inflight=7, broker_queue=30, persistence="on")
    assert options_of(asked) == BrokerOptions(False, 7, 30, persistence="on", statistics=True)
    assert options_of(settings(fault="slow_disk")).persistence == "each"
    assert options_of(settings("echo")) == BrokerOptions(max_inflight_messages=20)


def test_a_cut_has_no_length() -> None:
    """Fault times are the case's; a connection is cut at once; cut_every_ms of echo begins after itself."""
    plan = settings(fault="cut", fault_after_ms=700, fault_ms=500, fault_every_ms=2000).fault
    assert plan == FaultPlan("cut", 0.7, 0.0, 2.0)
    assert settings("echo", cut_every_ms=2000).fault == FaultPlan("cut", 2.0, 0.0, 2.0)
    assert not settings("echo").fault.timed
    assert not settings(fault="slow_disk").fault.timed


# ---- the faults' thread ----


class Switch:
    """A fault that notes whether it is in force."""

    def __init__(self) -> None:
        self.made = 0
        self.undone = 0

    @contextmanager
    def __call__(self, _stopping: threading.Event) -> Iterator[bool]:
        self.made += 1
        try:
            yield True
        finally:
            self.undone += 1


def test_a_fault_that_goes_on_is_undone_at_the_end() -> None:
    """Before the case has begun nothing is disturbed, nor waited for. finish() ends a long fault at once and
    says when it was; a second stop does nothing."""
    switch = Switch()
    faults = FaultSchedule(ONCE, switch, lambda: False)
    faults.start()
    assert faults.finish() == ()
    assert (switch.made, switch.undone) == (0, 0)
    faults = FaultSchedule(ONCE, switch, lambda: True)
    faults.start()
    wait_for(lambda: switch.made == 1, lambda: "the fault was not made")
    (moment,) = faults.finish()
    assert moment.began_us <= moment.ended_us < moment.began_us + 60_000_000
    assert (switch.made, switch.undone) == (1, 1)
    faults.stop()


def test_a_fault_that_disturbed_nothing_is_not_counted() -> None:
    """Where there was no connection to cut, the record names no fault."""
    entered = threading.Event()

    @contextmanager
    def nothing(_stopping: threading.Event) -> Iterator[bool]:
        entered.set()
        yield False

    faults = FaultSchedule(ONCE, nothing, lambda: True)
    faults.start()
    wait_for(entered.is_set, lambda: "the fault was not tried")
    assert faults.finish() == ()


def test_faults_repeat_until_the_end() -> None:
    """fault_every_ms makes them again and again, each with its own times."""
    switch = Switch()
    faults = FaultSchedule(FaultPlan("stall", 0.0, 0.0, 0.005), switch, lambda: True)
    faults.start()
    wait_for(lambda: switch.made >= 3, lambda: "it was not made three times")
    moments = faults.finish()
    assert len(moments) == switch.made == switch.undone
    assert list(moments) == sorted(moments, key=lambda one: one.began_us)


def test_a_fault_that_cannot_be_made_is_an_error() -> None:
    """check() and finish() raise what the thread met, whatever it was."""

    def broken(_stopping: threading.Event) -> AbstractContextManager[bool]:
        raise ValueError("no such thing")

    faults = FaultSchedule(ONCE, broken, lambda: True)
    faults.start()
    wait_for(lambda: faults._error is not None, lambda: "no error")
    for look in (faults.check, faults.finish):
        with pytest.raises(RigError, match=r"stall: ValueError.*no such thing"):
            look()
    faults.stop()


def test_a_fault_that_is_not_undone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where undoing a fault hangs, the case fails and names it; nobody waits for ever."""
    monkeypatch.setattr(fault_schedule, "END_TIMEOUT_S", 0.05)
    let_go = threading.Event()

    @contextmanager
    def hangs(_stopping: threading.Event) -> Iterator[bool]:
        yield True
        let_go.wait(30)

    faults = FaultSchedule(ONCE, hangs, lambda: True)
    faults.start()
    try:
        with pytest.raises(RigError, match="stall was not removed"):
            faults.finish()
    finally:
        let_go.set()


# ---- rates and recovery ----


def test_rates_tell_asked_offered_and_done_apart() -> None:
    """A board that keeps to its plan is on its rate, whatever the latency; one that skips rows is off.
    Intervals at random miss their mean, which is no fault of the board's; a periodic plan must not. Where
    nothing was acknowledged there is no rate to be on."""
    planned = tuple(range(0, 1_000_000, 20_000))
    steady = series(planned, tuple(time + 300_000 for time in planned))
    facts = rates_facts(steady, settings(schedule="periodic"))
    assert facts == {"requested_mps": 50, "offered_mps": 50, "achieved_mps": 50, "rate_off": False}
    outcome = tuple(4 if row % 2 else 0 for row in range(len(planned)))
    done = tuple(0 if late else time + 5_000 for time, late in zip(planned, outcome, strict=True))
    facts = rates_facts(series(planned, done, outcome), settings(schedule="periodic"))
    assert (facts["offered_mps"], facts["rate_off"]) == (25, True)
    assert facts["achieved_mps"] == pytest.approx(25, rel=0.03)
    drawn = tuple(range(0, 1_000_000, 21_000))
    for schedule, off in (("random", False), ("periodic", True)):
        facts = rates_facts(series(drawn, drawn), settings(schedule=schedule))
        assert (facts["requested_mps"], facts["rate_off"]) == (50, off)
    facts = rates_facts(series((0, 20_000), (0, 0), (1, 1)), settings(schedule="periodic"))
    assert (facts["offered_mps"], facts["achieved_mps"], facts["rate_off"]) == (50, None, True)


@pytest.mark.parametrize("schedule", ["periodic", "random"])
def test_a_pause_between_bursts_is_no_part_of_a_rate(schedule: str) -> None:
    """The board tells what it has between bursts and plans anew; answers come 5 ms after their plan."""
    burst = range(0, 1_000_000, 20_000)
    planned = tuple(start + time for start in (0, 4_000_000, 8_000_000) for time in burst)
    facts = rates_facts(series(planned, tuple(time + 5_000 for time in planned)), settings(schedule=schedule))
    assert (facts["offered_mps"], facts["achieved_mps"], facts["rate_off"]) == (50, 50, False)


def test_recovery_counts_from_the_end_of_the_fault() -> None:
    """Of what was planned after the fault's beginning, the first that comes after its end tells.

    planned (ms)   0    10    20    30 |   40    50    60
    fault                              |=============|
    arrives        5    15    25    65               66 ... at 58: message 3, planned before
    """
    rows = series(tuple(range(0, 70_000, 10_000)), (0,) * 7)
    host_us = 1_000_000_000  # the host's clock is another one
    times = {0: 5_000, 1: 15_000, 2: 25_000, 3: 58_000, 4: 65_000, 5: 66_000}
    arrivals = [Arrival(number, host_us + time, 1, False, False) for number, time in times.items()]
    fault = Moment(host_us + 36_000, host_us + 55_000)
    facts = faults_facts([Moment(1, 5), fault], rows, arrivals)
    assert facts == {"faults_count": 2, "fault_us": 19_004, "recovery_us": 10_000}
    assert faults_facts([fault], rows, arrivals[:4])["recovery_us"] is None
    assert faults_facts([fault], rows, [])["recovery_us"] is None
    assert faults_facts([], rows, arrivals) == {"faults_count": 0, "fault_us": 0, "recovery_us": None}


def test_a_board_that_does_not_say_its_nonce_is_at_fault() -> None:
    """Messages of which nobody knows whose they are make no ledger."""
    with pytest.raises(FirmwareError, match="message_run is None"):
        nonce_of(series((1,), (1,)))
    assert nonce_of(replace(series((1,), (1,)), device={"message_run": 5})) == 5


def test_without_an_access_points_capture_a_loss_in_the_air_has_no_owner() -> None:
    """What TCP transmitted and the broker's host never saw is lost in the air or behind it: nobody knows."""
    columns = {"planned_us": (1, 2), "sent_us": (1, 2), "done_us": (1, 2), "outcome": (0, 0)}
    columns |= {"connection": (1, 1), "tcp": (2, 1)}
    rows = Series(Case("delivery", {}), columns, 0, "c", "f", "r", 1, {"message_run": 7})
    whole = CountedCapture(Path("a.pcapng"), CaptureCounts(0, 0, 0))
    owners = []
    for access_point in (None, whole):
        seen = CaseCaptures(access_point, whole, began_us=0, tls_followed=True)
        dissected = Dissected([] if access_point else None, [])
        evidence = evidence_of(rows, settings(qos=0), seen, dissected, (1883, 1883), [])
        owners.append([line.owner for line in attribute(evidence).lines])
    assert owners == [[Owner.UNDETERMINED, Owner.DEVICE_TCP], [Owner.ACCESS_POINT, Owner.DEVICE_TCP]]

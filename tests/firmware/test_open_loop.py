# SPDX-License-Identifier: Apache-2.0
"""Senders never wait for answers: a broker that stands still delays messages, and moves none of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import pytest

from hil.model import Scalar, Series
from hil.network import mqtt_packets as mqtt
from hil.network.broker import Broker
from hil.network.certificates import make_certificates
from tests.firmware.kernel_rig import Board, board, firmware
from tests.network.broker_rig import LOOPBACK, Client, running_broker

pytestmark = pytest.mark.slow

OK = 0
STALL_S = 0.5
STALL_AFTER = 60
COUNT, INTERVAL_US = 220, 5000


@dataclass(frozen=True)
class Stall:
    """From when the broker surely stood still until when it surely did not go on yet."""

    begin_us: int
    end_us: int


@dataclass(frozen=True)
class Records:
    """What a sender says of its messages, in microseconds of the same clock as the stall's; done 0: never."""

    planned_us: tuple[int, ...]
    sent_us: tuple[int, ...]
    done_us: tuple[int, ...]

    def latency_us(self, row: int) -> int:
        return self.done_us[row] - self.planned_us[row]


def objection(records: Records, plan: Sequence[int], stall: Stall) -> str:
    """Return why ``records`` are not an open-loop sender's, in a word; "" where they are. A message may be
    missing, a planned time may have moved, nothing may be planned in the stall, a latency may be shorter than
    the rest of the stall, the sender may wait. The first message of ``plan`` is at 0."""
    if len(records.planned_us) != len(plan) or not all(records.done_us):
        return "missing"
    if [planned - records.planned_us[0] for planned in records.planned_us] != list(plan):
        return "moved"
    in_stall = [row for row, at in enumerate(records.planned_us) if stall.begin_us <= at < stall.end_us]
    if not in_stall:
        return "no stall"
    if any(records.latency_us(row) < stall.end_us - records.planned_us[row] for row in in_stall):
        return "too short"
    sent = [row for row in in_stall if records.sent_us[row] < stall.end_us]
    return "" if 2 * len(sent) > len(in_stall) else "waited"


# ---- what a sender that waits would have written ----

GRID = tuple(range(0, COUNT * INTERVAL_US, INTERVAL_US))
MODEL_STALL = Stall(300_000, 800_000)
SERVICE_US = 1000


def answered_us(sent_us: int) -> int:
    """Return when the modelled broker answers what was sent to it."""
    stalled = MODEL_STALL.begin_us <= sent_us + SERVICE_US < MODEL_STALL.end_us
    return (MODEL_STALL.end_us if stalled else sent_us) + SERVICE_US


def open_loop() -> Records:
    return Records(GRID, GRID, tuple(map(answered_us, GRID)))


def closed_loop() -> Records:
    """A sender that sends when the last message is answered, and counts honestly from the plan."""
    sent: list[int] = []
    for planned in GRID:
        sent.append(max(planned, answered_us(sent[-1]) if sent else 0))
    return Records(GRID, tuple(sent), tuple(map(answered_us, sent)))


def closed_loop_that_plans_anew() -> Records:
    """The same, whose plan goes on from where it was held up."""
    planned = [0]
    while len(planned) < COUNT:
        planned.append(max(planned[-1] + INTERVAL_US, answered_us(planned[-1])))
    return Records(tuple(planned), tuple(planned), tuple(map(answered_us, planned)))


def closed_loop_that_counts_from_sending() -> Records:
    """The same, whose latencies begin when a message was sent at last."""
    late = closed_loop()
    done = (p + d - s for p, s, d in zip(late.planned_us, late.sent_us, late.done_us, strict=True))
    return replace(late, sent_us=GRID, done_us=tuple(done))


def closed_loop_that_leaves_out() -> Records:
    """The same, which has no rows for what it could not send in its time."""
    late = closed_loop()
    rows = [row for row in range(COUNT) if late.sent_us[row] < late.planned_us[row] + INTERVAL_US]
    columns = (late.planned_us, late.sent_us, late.done_us)
    return Records(*(tuple(column[row] for row in rows) for column in columns))


def test_a_sender_that_waits_is_found_out() -> None:
    """An open-loop sender's records pass; those of a sender that waits do not, however it writes them up."""
    refused = {
        closed_loop: "waited",
        closed_loop_that_plans_anew: "moved",
        closed_loop_that_counts_from_sending: "too short",
        closed_loop_that_leaves_out: "missing",
    }
    assert objection(open_loop(), GRID, MODEL_STALL) == ""
    assert {made: objection(made(), GRID, MODEL_STALL) for made in refused} == refused
    before = Stall(MODEL_STALL.begin_us - 10**9, MODEL_STALL.end_us - 10**9)
    assert objection(open_loop(), GRID, before) == "no stall"


# ---- the firmware ----


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    folder = tmp_path_factory.mktemp("broker")
    with running_broker(folder, make_certificates(folder / "certificates", LOOPBACK)) as started:
        yield started


def await_messages(subscriber: Client, count: int) -> None:
    while count:
        count -= mqtt.read_packet(subscriber.socket).type == mqtt.PUBLISH


def stall_in_the_middle(broker: Broker, subscribed: threading.Event) -> Stall:
    """Stall the broker for STALL_S when STALL_AFTER messages have come."""
    with Client(broker) as subscriber:
        subscriber.subscribe("hil/+/publish", qos=0)
        subscribed.set()
        await_messages(subscriber, STALL_AFTER)
        broker.stall()
        begin_us = time.monotonic_ns() // 1000
        time.sleep(STALL_S)  # the fault
        end_us = time.monotonic_ns() // 1000
        broker.go_on()
    return Stall(begin_us, end_us)


def publish(running: Board, broker: Broker, **parameters: Scalar) -> Series:
    running.session.provision({"broker_host": broker.address, "broker_tcp_port": broker.ports.tcp})
    measured: Series = running.run(
        "publish", schedule="random", count=COUNT, interval_us=INTERVAL_US, warmup=0, **parameters
    )
    return measured


def records_of(series: Series, boot_us: int) -> Records:
    t0_us = boot_us + int(str(series.device["t0_us"]))
    columns = (series.columns[name] for name in ("planned_us", "sent_us", "done_us"))
    return Records(*(tuple(t0_us + value if value else 0 for value in column) for column in columns))


@pytest.mark.parametrize("qos", [1, 2])
def test_a_stalled_broker_moves_no_message(broker: Broker, qos: int) -> None:
    """Every message planned while the broker stood still was sent meanwhile and waited for the stall's end;
    none is missing, and the plan is that of a run without a stall."""
    boot_us = time.monotonic_ns() // 1000  # the firmware's clock is this one, from here on
    with board(firmware(), VBOARD_BOOT_US=str(boot_us)) as running:
        undisturbed = publish(running, broker, qos=qos).columns["planned_us"]
        with ThreadPoolExecutor(1) as helper:
            subscribed = threading.Event()
            stalling = helper.submit(stall_in_the_middle, broker, subscribed)
            subscribed.wait()
            series = publish(running, broker, qos=qos)
            stall = stalling.result()
    assert set(series.columns["outcome"]) == {OK}
    plan = [planned - undisturbed[0] for planned in undisturbed]
    assert objection(records_of(series, boot_us), plan, stall) == ""

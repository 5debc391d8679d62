# SPDX-License-Identifier: Apache-2.0
"""One read of one requester, and the orders in which several requesters take theirs."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Sequence

from hil.network.peers.gateway.connection import (
    STEP_TIMEOUT_S,
    Answers,
    BrokerRefusedError,
    Connection,
    LinkLostError,
)
from hil.network.peers.gateway.lines import LineWriter
from hil.network.peers.gateway.plan import RequesterPlan, RequestOutcome, format_request_id

REOPEN_TIMEOUT_S = 10.0
REOPEN_PAUSE_S = 0.2
# an attempt that begins just in time may still wait for TCP, CONNACK and SUBACK
REOPEN_LONGEST_S = REOPEN_TIMEOUT_S + 3 * STEP_TIMEOUT_S
REST_SLICE_NS = 200_000_000
BARRIER_SLACK_S = 15.0


class RequesterError(Exception):
    """The requester cannot go on; the message is a sentence, ``owner`` whose fault it is."""

    def __init__(self, sentence: str, owner: str = "rig") -> None:
        super().__init__(sentence)
        self.owner = owner


class Requester:
    """Sends one profile's requests, one at a time, and writes a line for each."""

    def __init__(
        self,
        plan: RequesterPlan,
        profile: str,
        credentials: list[str],
        lines: LineWriter,
        serials: itertools.count[int],
    ) -> None:
        self.profile = profile
        self.answers = Answers(profile, lines)
        self.connection = Connection(plan, profile, self.answers, credentials)
        self.due_ns = 0
        self._plan = plan
        self._lines = lines
        self._serials = serials
        self._iteration = 0

    def open(self, phase: int) -> None:
        """Connect, again where that fails for a while. Raises RequesterError."""
        deadline_s = time.monotonic() + REOPEN_TIMEOUT_S
        while True:
            try:
                times = self.connection.open()
            except LinkLostError as error:
                if time.monotonic() > deadline_s or isinstance(error, BrokerRefusedError):
                    raise self._no_broker(error) from error
                time.sleep(REOPEN_PAUSE_S)
            else:
                self._lines.write("connected", phase=phase, profile=self.profile, **vars(times))
                return

    def rest(self, phase: int, until_ns: int) -> None:
        """Wait, connected. Raises RequesterError."""
        try:
            self.connection.pump(until_ns)
        except LinkLostError as error:
            self._reopen(phase, error)
            time.sleep(max(0.0, (until_ns - time.monotonic_ns()) / 1e9))

    def read(self, phase: int, read: int) -> None:
        """Send the request that was due at ``due_ns`` and wait for its answer. Raises RequesterError."""
        self._iteration += 1
        request_id = format_request_id(phase, read, next(self._serials))
        outcome, sent_ns = RequestOutcome.OK, 0
        trigger_ms = time.time_ns() // 1_000_000
        payload = json.dumps({"id": request_id, "trigger_ms": trigger_ms})
        lost: LinkLostError | None = None
        try:
            sent_ns = time.monotonic_ns()
            self.answers.expect(request_id, sent_ns)
            self.connection.publish(self._plan.topics.request(self.profile), payload, self._plan.qos)
            until_ns = sent_ns + self._plan.timeout_ms * 1_000_000
            self.connection.pump(until_ns, self.answers.take)
        except LinkLostError as error:
            outcome, lost = RequestOutcome.MQTT_LOST, error
        answer = self.answers.take()
        done_ns = answer.received_ns if answer else time.monotonic_ns()
        if answer is None:
            self.answers.give_up()
            outcome = RequestOutcome.MQTT_LOST if lost else RequestOutcome.TIMEOUT
        self._lines.write(
            "request",
            id=request_id,
            phase=phase,
            read=read,
            iteration=self._iteration,
            profile=self.profile,
            planned_ns=self.due_ns,
            sent_ns=sent_ns,
            done_ns=done_ns,
            outcome=int(outcome),
            trigger_ms=trigger_ms,
            received_ms=answer.received_ms if answer else None,
            answer=dict(answer.fields) if answer else None,
        )
        self.due_ns = done_ns
        if lost:
            self._reopen(phase, lost)

    def _reopen(self, phase: int, error: LinkLostError) -> None:
        self._lines.write("lost", profile=self.profile, phase=phase, why=str(error))
        self.open(phase)

    def _no_broker(self, error: LinkLostError) -> RequesterError:
        place = f"{self._plan.broker_address}:{self._plan.broker_port}"
        return RequesterError(
            f"requester {self.profile!r} has no connection to the broker at {place}: {error}"
        )


def take_turns(requesters: Sequence[Requester], plan: RequesterPlan, phase: int, reads: int) -> None:
    """Let requesters send one after another, one request under way at a time; then pause."""
    due_ns = time.monotonic_ns()
    for read in range(1, reads + 1):
        for requester in requesters:
            requester.due_ns = due_ns
            requester.read(phase, read)
            due_ns = requester.due_ns
        if read < reads:
            due_ns += plan.pause_ms * 1_000_000
            _rest(requesters, phase, due_ns)


def _rest(requesters: Sequence[Requester], phase: int, until_ns: int) -> None:
    """Pause, and serve all connections meanwhile."""
    while (now_ns := time.monotonic_ns()) < until_ns:
        for requester in requesters:
            requester.rest(phase, min(until_ns, now_ns + REST_SLICE_NS))


def send_together(requesters: Sequence[Requester], plan: RequesterPlan, phase: int, reads: int) -> None:
    """Let requesters send each request at the same instant, each in a thread of its own."""
    barrier = threading.Barrier(len(requesters), _due_setter(requesters))
    errors: list[Exception] = []
    others: list[Exception] = []  # those who only saw that another one had given up
    # each may reopen its connection after a request and again while it rests
    longest_s = (plan.pause_ms + plan.timeout_ms) / 1000 + 2 * REOPEN_LONGEST_S + BARRIER_SLACK_S

    def work(requester: Requester) -> None:
        try:
            for read in range(1, reads + 1):
                barrier.wait(longest_s)
                requester.read(phase, read)
                if read < reads:
                    requester.rest(phase, requester.due_ns + plan.pause_ms * 1_000_000)
        except threading.BrokenBarrierError:
            others.append(RequesterError(f"requester {requester.profile!r} waited in vain for the others"))
        except Exception as error:  # whatever it is, the thread's rows are missing
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(requester,), daemon=True) for requester in requesters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors or others:
        raise (errors + others)[0]


def _due_setter(requesters: Sequence[Requester]) -> Callable[[], None]:
    """Return what the last of them to arrive does: the next request of all is due now."""

    def set_due() -> None:
        now_ns = time.monotonic_ns()
        for requester in requesters:
            requester.due_ns = now_ns

    return set_due

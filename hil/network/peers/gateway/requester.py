# SPDX-License-Identifier: Apache-2.0
"""The requester: asks a board's gateway over MQTT, and times every step on one monotonic clock.

    python -m hil.network.peers.gateway.requester PLAN LINES

PLAN is a RequesterPlan; findings are appended to LINES: ``start``, ``connected`` and ``ready`` of each phase,
``listening`` once all are connected, and a board that says that it is ready is heard, one ``request`` a
request, ``late``, ``duplicate``, ``unexpected``, ``garbage``, ``lost``, and last ``end`` or ``error``. A
request is sent only after SUBACK: an answer cannot come before there is somebody to hear it.

After ``end`` it goes on telling the board so, once a second for a few seconds, until it is stopped.
"""

from __future__ import annotations

import itertools
import platform
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from hil.network.peers.gateway.connection import LinkLostError
from hil.network.peers.gateway.lines import LineWriter
from hil.network.peers.gateway.plan import TOGETHER, RequesterPlan
from hil.network.peers.gateway.reading import Requester, RequesterError, send_together, take_turns

TELL_AGAIN_S = 1.0
END_REPEATS = 5
STATUS_FAILED = 3


def run(plan: RequesterPlan, credentials: list[str], lines: LineWriter) -> None:
    """Go through all phases. Raises RequesterError."""
    with suppress(OSError):  # what Python loads for its first look-up is not the network's time
        socket.getaddrinfo(plan.broker_address, plan.broker_port, type=socket.SOCK_STREAM)
    serials = itertools.count(1)
    requesters = [Requester(plan, profile, credentials, lines, serials) for profile in plan.profiles]
    phases = [(phase, reads) for phase, reads in enumerate(plan.phases, start=1) if reads]
    for number, (phase, reads) in enumerate(phases):
        if number == 0:
            _open(requesters, phase)
            lines.write("listening")
            _await_ready(requesters, plan, phase, lines, asking=False)
        else:
            _reconnect(requesters, plan, phase, lines)
        together = plan.order == TOGETHER and len(requesters) > 1
        (send_together if together else take_turns)(requesters, plan, phase, reads)
    lines.write("end")
    _tell_end(requesters[0], plan)


def _open(requesters: Sequence[Requester], phase: int) -> None:
    for requester in requesters:
        requester.open(phase)


def _reconnect(requesters: Sequence[Requester], plan: RequesterPlan, phase: int, lines: LineWriter) -> None:
    """Come back first, then tell the board: so its first ``ready`` is heard, however fast it is."""
    if plan.requester_reconnects:
        for requester in requesters:
            requester.connection.close()
        _open(requesters, phase)
    _tell_phase(requesters[0], plan, phase)
    _await_ready(requesters, plan, phase, lines, asking=True)


def _await_ready(
    requesters: Sequence[Requester], plan: RequesterPlan, phase: int, lines: LineWriter, *, asking: bool
) -> None:
    """Wait until the board's gateway says that it is ready. Raises RequesterError."""
    first = requesters[0]
    began_ns = time.monotonic_ns()
    until_ns = began_ns + plan.ready_timeout_ms * 1_000_000

    def is_ready() -> bool:
        return first.connection.ready_phase >= phase

    while not is_ready() and time.monotonic_ns() < until_ns:
        for requester in requesters[1:]:
            _serve(requester, phase)
        step_ns = min(until_ns, time.monotonic_ns() + int(TELL_AGAIN_S * 1e9))
        try:
            first.connection.pump(step_ns, is_ready)
        except LinkLostError:
            first.open(phase)
        if asking and not is_ready():
            _tell_phase(first, plan, phase)
    if not is_ready():
        raise RequesterError(
            f"the board's gateway did not say on {plan.topics.ready} that it is ready for phase {phase} "
            f"within {plan.ready_timeout_ms / 1000:g} s",
            owner="firmware",
        )
    for requester in requesters[1:]:
        _serve(requester, phase)
    lines.write("ready", phase=phase, waited_us=(time.monotonic_ns() - began_ns) // 1000)


def _serve(requester: Requester, phase: int) -> None:
    try:
        requester.connection.serve()
    except LinkLostError:
        requester.open(phase)


def _tell_phase(requester: Requester, plan: RequesterPlan, phase: int) -> None:
    """Announce a phase to the board; it drops its connections if ``reconnect`` is set."""
    try:
        requester.connection.publish_acknowledged(plan.topics.control, f'{{"phase":{phase}}}')
    except LinkLostError:
        requester.open(phase)


def _tell_end(requester: Requester, plan: RequesterPlan) -> None:
    for _ in range(END_REPEATS):
        try:
            requester.connection.publish_acknowledged(plan.topics.control, '{"end":1}')
            requester.connection.pump(time.monotonic_ns() + int(TELL_AGAIN_S * 1e9))
        except LinkLostError:
            requester.open(len(plan.phases))


def _read_credentials(plan: RequesterPlan) -> list[str]:
    if not plan.credentials_file:
        return []
    path = Path(plan.credentials_file)
    words = path.read_text().splitlines()
    path.unlink()
    return words


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        print("usage: python -m hil.network.peers.gateway.requester PLAN LINES", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with LineWriter(Path(arguments[1])) as lines:
        lines.tell_pauses()
        return _work(Path(arguments[0]), lines)


def _work(plan_file: Path, lines: LineWriter) -> int:
    try:
        plan = RequesterPlan.read(plan_file)
        credentials = _read_credentials(plan)
        facts = {"paho_version": version("paho-mqtt"), "python": platform.python_version()}
        lines.write("start", at_ns=time.monotonic_ns(), wall_ns=time.time_ns(), **facts)
        run(plan, credentials, lines)
    except RequesterError as error:
        lines.write("error", owner=error.owner, sentence=str(error))
        return STATUS_FAILED
    except Exception as error:  # of any thread: what is missing must not look like a short case
        lines.write("error", owner="rig", sentence=f"the requester cannot work: {error!r}")
        return STATUS_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

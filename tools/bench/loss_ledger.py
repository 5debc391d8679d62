# SPDX-License-Identifier: Apache-2.0
"""``make bench-ledger``: losses injected at each of the six points, and whether the ledger names the owners.

A virtual rack, plain and TLS. Exit 1 where an owner is wrong, where a scenario lost nothing, and where no
message was lost at one of the points; the last is not asked of ``--short``, which measures a few scenarios.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import cycle, product
from pathlib import Path

from hil.base.errors import HilError
from hil.model import Case
from hil.network.broker_client import reset_connections
from hil.network.capture import Capture
from hil.network.ledger.files import ARRIVALS_FILE
from hil.network.ledger.points import Owner
from hil.network.packet_filter import PacketFilter
from hil.network.peers.companion import Observed, Place
from hil.network.peers.mqtt.delivery import DROPPED_FILE, DeliveryCompanion
from hil.network.peers.mqtt.dissecting import ACCESS_POINT_FILE, BROKER_FILE
from hil.network.process import Process
from hil.run.plan import deadline_s
from tools.bench.figure import SHORT_PASS, fails, show, wide_console
from tools.bench.loss_compared import Compared, figure_of
from tools.bench.loss_scenarios import COMMON, SCENARIOS, Down, Scenario
from tools.bench.loss_truth import Truth, numbers_at, numbers_in, places_plain, places_tls, reached_from
from tools.bench.peer_case import place_of
from tools.bench.workbench import OUT, RACK_FILE, Workbench, workbench

TRANSPORTS = ("tcp", "tls")
SHORT = (SCENARIOS[2], SCENARIOS[4], *SCENARIOS[6:])  # the air taken away, the wire, broker, subscriber
SHORT_COUNT = 800
BOARD_INTERFACE = "wlan0"
WHOLE_FRAMES_BYTES = 262_144
POLL_S = 0.002
RESET_AT = 0.8  # of the time that the wire is down


class BoardSide:
    """Starts programs in a board's own network, behind its side of the air."""

    isolated = True
    enter_command = ""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    def spawn(self, argv: Sequence[str], *, log_path: Path) -> Process:
        return self._bench.rack.spawn(argv, netns=self._bench.board.id, log_path=log_path)


def compare(bench: Workbench, scenario: Scenario, transport: str) -> Compared:
    """Measure one scenario."""
    parameters = {**COMMON, **scenario.parameters, "transport": transport}
    place = replace(place_of(bench, "delivery", **parameters), keep_captures=True)
    capture = Capture.start(
        BoardSide(bench),
        [BOARD_INTERFACE],
        bench.folder / "board-side.pcapng",
        capture_filter="tcp",
        snap_bytes=WHOLE_FRAMES_BYTES,
    )
    try:
        outcome, port, key_log = _measure(bench, place, scenario.down)
        counts = capture.stop()
    finally:
        capture.kill()
    contradictions = [] if counts.complete else [f"the capture on the board's side missed {counts.missing}"]
    series = outcome.series
    run = int(str(series.device["message_run"]))
    if key_log:
        places = places_tls(capture.path, port, run, key_log)
    else:
        places = places_plain(capture.path, port, run)
    truth = Truth(
        outcomes=series.columns["outcome"],
        transmitted=frozenset(one.number for one in places),
        reached=reached_from(capture.path, port, places),
        at_access_point=numbers_at(place.folder / ACCESS_POINT_FILE, port, places),
        at_broker=numbers_at(place.folder / BROKER_FILE, port, places),
        dropped=numbers_in(place.folder / DROPPED_FILE, run),
        arrived=numbers_in(place.folder / ARRIVALS_FILE, run),
    )
    pairs = tuple(
        (truth.owner_of(number, scenario.takes), Owner(owner))
        for number, owner in enumerate(series.columns["owner"])
    )
    lost_in_broker = sum(true is Owner.BROKER_OUT for true, _ in pairs)
    told = outcome.environment["broker_dropped_messages"]
    if scenario.takes is Owner.BROKER_OUT and told != lost_in_broker:
        contradictions.append(f"{lost_in_broker} were lost in the broker, which says {told}")
    return Compared(scenario, transport, pairs, tuple(contradictions))


@contextmanager
def _taking(bench: Workbench, place: Place, port: int, down: Down | None) -> Iterator[None]:
    """Take a hop of the board's away again and again, where the scenario asks for it.

    Raises RigError where that failed: the scenario was not what its row says.
    """
    if down is None:
        yield
        return
    ended = threading.Event()
    failed: list[HilError] = []

    def work() -> None:
        try:
            _take(bench, place, port, down, ended)
        except HilError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failed:
        raise failed[0]


def _take(bench: Workbench, place: Place, port: int, down: Down, ended: threading.Event) -> None:
    arrivals = place.folder / ARRIVALS_FILE
    while not (arrivals.exists() and arrivals.read_text().count("\n") > 1):
        if ended.wait(POLL_S):
            return
    pause_ms = down.after_ms
    while not ended.wait(pause_ms / 1e3):
        if down.hop == "air":
            _air_down(bench, down.for_ms / 1e3, ended)
        else:
            _wire_down(bench, place, port, down.for_ms / 1e3, ended)
        pause_ms = down.every_ms - down.for_ms


def _air_down(bench: Workbench, for_s: float, ended: threading.Event) -> None:
    bench.rack.air.down(bench.board.id)
    ended.wait(for_s)
    bench.rack.air.up(bench.board.id)


def _wire_down(bench: Workbench, place: Place, port: int, for_s: float, ended: threading.Event) -> None:
    """Reset the connection towards the end: what it has sent since is then not sent again, and the client
    comes back when the wire is there again."""
    before_s = RESET_AT * for_s
    log = bench.folder / "wire.txt"
    interface, address = place.access_point_interface, place.board_address
    with PacketFilter(bench.rack, interface, address, port, log_path=log).drop("all"):
        ended.wait(before_s)
        reset_connections(bench.rack, address, [port], log)
        ended.wait(for_s - before_s)


def _measure(bench: Workbench, place: Place, down: Down | None) -> tuple[Observed, int, Path | None]:
    """Measure as a run does; returns the broker's port for the board, and a copy of its TLS keys."""
    companion = DeliveryCompanion(place)
    deadline = deadline_s(place.case)
    try:
        told = companion.start()
        bench.session.provision(told)
        port = int(told[f"broker_{_transport(place.case)}_port"])
        with _taking(bench, place, port, down), bench.rack.air.awake(deadline):
            series = bench.session.run_case(place.case, timeout_s=deadline, on_note=companion.note)
        key_log = _kept_keys(place)
        return companion.finish(series), port, key_log
    finally:
        companion.stop()


def _transport(case: Case) -> str:
    return str(case.parameters["transport"])


def _kept_keys(place: Place) -> Path | None:
    """Link the case's key log, for the companion removes it."""
    if _transport(place.case) == "tcp":
        return None
    keys = next(place.secrets_dir.glob("*.keys"))
    kept = place.secrets_dir / "kept"
    with suppress(FileNotFoundError):
        kept.unlink()
    os.link(keys, kept)
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.loss_ledger", description=__doc__)
    parser.add_argument("--rack", type=Path, default=RACK_FILE)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--short", action="store_true", help="few messages: whether it works, not for docs")
    options = parser.parse_args()
    compared: list[Compared] = []
    console = wide_console()
    if options.short:
        console.print(f"{SHORT_PASS}\n")
    with workbench(options.rack, options.out) as bench:
        for scenario, transport in _short() if options.short else product(SCENARIOS, TRANSPORTS):
            compared.append(compare(bench, scenario, transport))
            console.print(" · ".join(compared[-1].cells()), style="dim")
    figure = figure_of(compared, whole=not options.short)
    show(console, figure)
    return 1 if fails(figure, short=options.short) else 0


def _short() -> Iterator[tuple[Scenario, str]]:
    """Yield a few scenarios, over the transports in turn, with as many messages as one fault takes."""
    for scenario, transport in zip(SHORT, cycle(TRANSPORTS), strict=False):
        yield replace(scenario, parameters={**scenario.parameters, "count": SHORT_COUNT}), transport


if __name__ == "__main__":
    sys.exit(main())

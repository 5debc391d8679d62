# SPDX-License-Identifier: Apache-2.0
"""How far TCP throughput is from window / round trip, where nothing else limits it."""

from __future__ import annotations

from pathlib import Path

from tests.host_builds import PLAIN, build_programs
from tests.network.socket_flow import BoardEnd, Flow, FlowResult, run_flow
from tools.bench.figure import Figure
from tools.bench.workbench import Workbench

WINDOWS_BYTES = (2920, 5760, 11520, 23040, 46080, 65535)
DELAY_US = 5000
AIM = 0.05
OMIT_MS, RUN_MS = 1000, 3000
SHORT_WINDOWS_BYTES, SHORT_OMIT_MS, SHORT_RUN_MS = (5760,), 300, 700
PREFIX = ("chrt", "--fifo", "6")  # as a bench's task; and a peer that answers late would count as round trip
FIRST_PORT = 5301
FLOW = "test_lwip_flow"


def window_accuracy(bench: Workbench, *, short: bool) -> Figure:
    """Compare throughput with window / RTT, both directions, the RTT being what the air did to the frames."""
    program = build_programs(PLAIN, FLOW) / "test" / FLOW
    rows, missed = [], []
    omit_ms, run_ms = (SHORT_OMIT_MS, SHORT_RUN_MS) if short else (OMIT_MS, RUN_MS)
    for index, window in enumerate(SHORT_WINDOWS_BYTES if short else WINDOWS_BYTES):
        cells = [f"{window}"]
        for sends in (False, True):
            port = FIRST_PORT + 2 * index + sends
            options = {"buffer" if sends else "window": window, "omit_ms": omit_ms, "run_ms": run_ms}
            result, rtt_us = _measure(bench, program, Flow("client", sends=sends, options=options), port)
            bound_mbps = window * 8 / rtt_us
            error = result.mbps / bound_mbps - 1
            cells += [f"{bound_mbps:.2f}", f"{result.mbps:.2f}", f"{error * 100:+.1f} %"]
            if abs(error) > AIM:
                direction = "sending" if sends else "receiving"
                missed.append(f"{direction} with {window} bytes: {error * 100:+.1f} %, aim {AIM * 100:g} %")
        rows.append(cells)
    bench.rack.air.set(bench.board.id, "both", delay_us=0)
    columns = ("window, buffer (bytes)", "bound", "receiving", "error", "bound", "sending", "error")
    note = (
        f"{DELAY_US / 1000:g} ms one way, {run_ms / 1000:g} s after {omit_ms / 1000:g} s, virtual. Aim: 5 %."
    )
    return Figure("TCP throughput against window / RTT of the air (Mbit/s)", columns, rows, note, missed)


def _measure(bench: Workbench, program: Path, flow: Flow, port: int) -> tuple[FlowResult, float]:
    """Return the flow and the round trip of its frames, µs."""
    board = bench.board.id
    bench.rack.air.set(board, "both", delay_us=DELAY_US)
    bench.rack.air.reset_statistics(board)
    folder = bench.folder / "window"
    with bench.rack.air.awake((OMIT_MS + RUN_MS) / 1000 + 10):
        result = run_flow(BoardEnd(bench.rack, board), program, flow, folder, port, PREFIX)
    links = bench.rack.air.statistics(board)[board]
    return result, sum(float(links[direction]["delay_p50_us"]) for direction in ("uplink", "downlink"))

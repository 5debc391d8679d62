# SPDX-License-Identifier: Apache-2.0
"""Measure the air on this machine by its own statistics: ``python -m hil.virtual.air.accuracy``.

Prints delivered delay, rate and loss.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from hil.virtual.air.control import Number
from hil.virtual.air.profile import AirProfile
from hil.virtual.remote_process import RemoteProcess
from hil.virtual.virtual_rack import VirtualBoardSpec, VirtualRack

BOARD = "b1"
DELAYS_MS = (0, 2, 5, 10, 20)
RATES_MBPS = (10, 30, 50, 100)
LOSSES_PERCENT = (0.1, 1.0, 5.0)
PINGS = 500
RATE_WINDOW_S = 2.0
LOSS_FRAMES = 50_000

# A flood of datagrams to the discard port, for argv[2] datagrams of argv[3] bytes, 0 = for ever.
FLOOD = """
import itertools, socket, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
count, data = int(sys.argv[2]), bytes(int(sys.argv[3]))
for _ in range(count) if count else itertools.count():
    sock.sendto(data, (sys.argv[1], 9))
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="hil-air-") as folder:
        rack = VirtualRack.start(
            name="accuracy",
            state_dir=Path(folder),
            boards=[VirtualBoardSpec(BOARD)],
            profile=AirProfile("perfect"),
            air_seed=1,
            board_command=None,
        )
        try:
            print(f"real-time priority {rack.air.info()['priority']}")
            measure_delays(rack, Path(folder) / "log")
            measure_rates(rack, Path(folder) / "log")
            measure_losses(rack, Path(folder) / "log")
        finally:
            rack.stop()
    return 0


def measure_delays(rack: VirtualRack, log: Path) -> None:
    print("\n| set, one way | min | p50 | p99 | max | late p50 | late p99 |\n|---|---|---|---|---|---|---|")
    for delay_ms in DELAYS_MS:
        _reset(rack, delay_us=delay_ms * 1000)
        argv = ["ping", "-q", "-c", str(PINGS), "-i", "0.005", rack.host_address]
        rack.spawn(argv, netns=BOARD, log_path=log).wait(60)
        found = _uplink(rack)
        keys = ("delay_min_us", "delay_p50_us", "delay_p99_us", "delay_max_us", "lateness_p50_us")
        values = " | ".join(f"{float(found[key]):.0f} µs" for key in (*keys, "lateness_p99_us"))
        print(f"| {delay_ms} ms | {values} |")


def measure_rates(rack: VirtualRack, log: Path) -> None:
    print("\n| set | delivered | |\n|---|---|---|")
    for rate_mbps in RATES_MBPS:
        _reset(rack, rate_kbit=rate_mbps * 1000, limit_bytes=64 * 1024)
        flood = _flood(rack, log, 0, 1472)
        while int(_uplink(rack)["drop_queue"]) == 0:
            time.sleep(0.01)
        start, start_bytes = time.monotonic(), int(_uplink(rack)["delivered_bytes"])
        time.sleep(RATE_WINDOW_S)
        delivered = int(_uplink(rack)["delivered_bytes"]) - start_bytes
        mbps = delivered * 8 / (time.monotonic() - start) / 1e6
        flood.close()
        print(f"| {rate_mbps} Mbit/s | {mbps:.2f} Mbit/s | {(mbps / rate_mbps - 1) * 100:+.2f} % |")


def measure_losses(rack: VirtualRack, log: Path) -> None:
    print(f"\n| set | lost of {LOSS_FRAMES} |\n|---|---|")
    for percent in LOSSES_PERCENT:
        _reset(rack, loss_ppm=round(percent * 10_000))
        _flood(rack, log, LOSS_FRAMES, 64).wait(60)
        found = _uplink(rack)
        print(f"| {percent} % | {int(found['drop_loss']) / int(found['read_frames']) * 100:.3f} % |")


def _flood(rack: VirtualRack, log: Path, count: int, size_bytes: int) -> RemoteProcess:
    argv = [sys.executable, "-c", FLOOD, rack.host_address, str(count), str(size_bytes)]
    return rack.spawn(argv, netns=BOARD, log_path=log)


def _reset(rack: VirtualRack, **parameters: Number) -> None:
    rack.air.profile(AirProfile("perfect"))
    rack.air.set(BOARD, "both", **parameters)
    rack.air.seed(1)
    rack.air.reset_statistics()


def _uplink(rack: VirtualRack) -> Mapping[str, Number]:
    return rack.air.statistics(BOARD)[BOARD]["uplink"]


if __name__ == "__main__":
    sys.exit(main())

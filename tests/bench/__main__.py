"""``make bench``: print every figure; exit 1 where an aim is missed."""

from __future__ import annotations

import sys

from rich.console import Console

from tests.bench.broker_faults import broker_faults
from tests.bench.figure import show
from tests.bench.first_request import first_request
from tests.bench.flashing import flash_and_boot
from tests.bench.history_store import history_store
from tests.bench.latency import air_accuracy, awake_gain, harness_cost
from tests.bench.lease_share import lease_share
from tests.bench.overhead_bytes import overhead_bytes
from tests.bench.periodic_jitter import periodic_jitter
from tests.bench.throughput import air_rate, overhead, udp_loss
from tests.bench.window import window_accuracy
from tests.bench.workbench import workbench


def main() -> int:
    console = Console()
    missed: list[str] = []
    with workbench() as bench:
        # flashing last: esptool takes the console
        network = (window_accuracy, air_rate, udp_loss, overhead)
        latency = (air_accuracy, harness_cost, awake_gain)
        for measure in (*latency, *network, periodic_jitter, first_request, flash_and_boot):
            figure = measure(bench)
            show(console, figure)
            missed += figure.missed
    for measure_alone in (overhead_bytes, broker_faults, lease_share, history_store):
        figure = measure_alone()
        show(console, figure)
        missed += figure.missed
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

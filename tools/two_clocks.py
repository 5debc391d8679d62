# SPDX-License-Identifier: Apache-2.0
"""The same messages by two clocks: `python -m tools.two_clocks`.

One run of the sensor node with the component in it: a bench of its own times its readings on the board, while
the host times the lines that the node logs of them, as a probe does, and their arrival at a client of the
broker. Messages are joined by number. On a virtual board a line's bytes take no time (on a chip ten bits
a character): what is between the two clocks here is how late the host reads.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware.product.build import build_product
from hil.boards.rack import load_rack
from hil.metrics.stats import quantile
from hil.model import Case, Series
from hil.probe.peers import BrokerSession, PeerMessage
from tools.bench.workbench import RACK_FILE, workbench

EXAMPLES = PROJECT_ROOT / "examples"
OUT = PROJECT_ROOT / "out" / "two-clocks"
PARAMETERS = {"count": 200, "warmup": 5, "timeout_ms": 1000}
TICK_S = 0.001

_LINE = re.compile(r"pub +(q|ack) seq=(\d+)")
_SEQ = re.compile(rb'"seq":(\d+)')


@dataclass
class Seen:
    """When the host had each line's end, in µs, by message."""

    queued_us: dict[int, float] = field(default_factory=dict)
    acked_us: dict[int, float] = field(default_factory=dict)

    def line(self, text: str) -> None:
        now_us = time.monotonic_ns() / 1000
        if found := _LINE.search(text):
            (self.acked_us if found[1] == "ack" else self.queued_us)[int(found[2])] = now_us


class Lateness(threading.Thread):
    """How late this host wakes a process that sleeps for a millisecond, in µs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.late_us: list[float] = []
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.is_set():
            began = time.monotonic()
            time.sleep(TICK_S)
            self.late_us.append((time.monotonic() - began - TICK_S) * 1e6)

    def stop(self) -> None:
        self._end.set()
        self.join()


@dataclass(frozen=True)
class Row:
    """One message, in µs: by the board; by the console's lines; until a client of the broker had it."""

    board_us: float
    console_us: float
    arrived_us: float

    @property
    def apart_us(self) -> float:
        return self.console_us - self.board_us


def node() -> Path:
    """Build the sensor node with the component, for the virtual rack's network; return the build."""
    project = OUT / "node"
    shutil.rmtree(OUT, ignore_errors=True)
    shutil.copytree(EXAMPLES / "sensor-node", project)
    shutil.copytree(
        EXAMPLES / "sensor-node-component" / "components", project / "components", dirs_exist_ok=True
    )
    patch = EXAMPLES / "sensor-node-component" / "component.patch"
    subprocess.run(["patch", "-sp1", "-i", patch], cwd=project, check=True)
    (OUT / "hil").symlink_to(PROJECT_ROOT)  # where the patch looks for the component
    network = load_rack(RACK_FILE).access_point
    options = OUT / "sdkconfig"
    options.write_text(
        f'CONFIG_NODE_WIFI_SSID="{network.ssid}"\nCONFIG_NODE_WIFI_PASSWORD="{network.password}"\n'
        'CONFIG_NODE_MQTT_URI="mqtt://10.77.0.1:1883"\n'
    )
    return build_product(project, say=lambda _sentence: None, sdkconfig=options, build_root=OUT / "build")


def measure(parameters: Mapping[str, int]) -> tuple[list[Row], list[float]]:
    """Run the bench once, watched from outside; return rows and the host's lateness in µs."""
    seen, lateness = Seen(), Lateness()
    with workbench(build_dir=node(), log=seen.line, profile="lab") as bench:
        topic = f"sensors/{bench.board.mac.replace(':', '').lower()}/reading"
        client = BrokerSession(bench.rack, bench.broker, topic, bench.folder, bench.board.id, None)
        lateness.start()
        try:
            series = bench.session.run_case(Case("reading_published", parameters), timeout_s=120.0)
            messages = client.new_messages()
        finally:
            lateness.stop()
            client.stop()
        return joined(series, seen, messages), lateness.late_us


def joined(series: Series, seen: Seen, messages: Sequence[PeerMessage]) -> list[Row]:
    """Join a message's times by its number; the warm-up is out, and what one of the three lacks."""
    arrived = {int(found[1]): one.time_ns / 1000 for one in messages if (found := _SEQ.search(one.payload))}
    columns = [
        series.columns[name][series.warmup_rows :] for name in ("seq", "began_us", "done_us", "outcome")
    ]
    return [
        Row(
            done_us - began_us,
            seen.acked_us[seq] - seen.queued_us[seq],
            arrived[seq] - seen.queued_us[seq],
        )
        for seq, began_us, done_us, outcome in zip(*columns, strict=True)
        if outcome == 0 and seq in arrived and seq in seen.queued_us and seq in seen.acked_us
    ]


def table(rows: Sequence[Row], late_us: Sequence[float]) -> str:
    """Describe the reading of each clock, their difference, and how much of it is explained."""

    def line(name: str, values: Sequence[float]) -> str:
        low, middle, high = (quantile(sorted(values), share) for share in (0.05, 0.5, 0.95))
        return f"{name:62}{low:9.0f}{middle:9.0f}{high:9.0f}"

    # two lines are read, and each reading may be late by what this host lets a sleeper wait
    uncertain_us = 2 * quantile(sorted(late_us), 0.95)
    explained = sum(abs(row.apart_us) <= uncertain_us for row in rows)
    return "\n".join(
        [
            f"{len(rows)} messages, each by both clocks, µs{'p5':>39}{'p50':>9}{'p95':>9}",
            line("queued → acknowledged, the board's esp_timer", [row.board_us for row in rows]),
            line(
                "queued → acknowledged, the console's lines, host's clock", [row.console_us for row in rows]
            ),
            line("queued line → at a client of the broker, host's clock", [row.arrived_us for row in rows]),
            line("console - board", [row.apart_us for row in rows]),
            f"uncertain by {uncertain_us:.0f} µs: two wake-ups of this host (p95)",
            f"within it: {explained} of {len(rows)}; not explained: {len(rows) - explained}",
        ]
    )


def main() -> int:
    print(table(*measure(PARAMETERS)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""What faults of the broker take: a simulated slow disk, a stall, a kill, a flood; and what it dropped."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from hil.network.broker import Broker, BrokerOptions, SlowDisk
from hil.network.certificates import Certificates, make_certificates
from hil.network.flood import Flood
from hil.network.process import LocalSpawner
from tests.network.broker_rig import DB_BYTES, LOOPBACK, running_broker, seconds_of_saves
from tools.bench.figure import Figure

DISKS = (
    SlowDisk(rate_bytes_per_s=4_000_000, latency_us=500),
    SlowDisk(rate_bytes_per_s=1_000_000, latency_us=2000),
)
BLOCK_BYTES = 4096
SAVE_AIM = 0.25  # of what the setting says, besides what a save takes anyway
FLOOD_S = 1.0


class Times(NamedTuple):
    """How often each fault is made."""

    stalls: int = 20
    kills: int = 5
    questions: int = 3


def broker_faults(*, short: bool) -> Figure:
    """Time what faults of a broker of this machine take, the simulated slow disk against its setting."""
    with tempfile.TemporaryDirectory(prefix="hil-broker-") as name:
        folder = Path(name)
        certificates = make_certificates(folder / "certificates", LOOPBACK)
        saves, missed = _saves(folder, certificates, DISKS[:1] if short else DISKS)
        rows = [*saves, *_faults(folder, certificates, Times(1, 1, 1) if short else Times())]
    return Figure(
        title="Faults of the broker",
        columns=["what", "by the setting", "measured"],
        rows=rows,
        note=f"Saves are of a database of {DB_BYTES // 1000} kB. Aim: a disk adds at most {SAVE_AIM:.0%} "
        "more than its setting, and never less.",
        missed=missed,
    )


def _saves(
    folder: Path, certificates: Certificates, disks: Sequence[SlowDisk]
) -> tuple[list[list[str]], list[str]]:
    none_s = seconds_of_saves(folder / "none", certificates, None)
    rows, missed = [["save, no disk", "–", _ms(none_s)]], []
    for number, disk in enumerate(disks):
        set_s = DB_BYTES / disk.rate_bytes_per_s + (DB_BYTES // BLOCK_BYTES + 1) * disk.latency_us / 1e6
        took_s = seconds_of_saves(folder / f"disk{number}", certificates, disk)
        name = f"save, {disk.rate_bytes_per_s / 1e6:g} MB/s, {disk.latency_us / 1e3:g} ms"
        rows.append([name, _ms(set_s), _ms(took_s)])
        if not set_s <= took_s <= (1 + SAVE_AIM) * set_s + none_s:
            missed.append(f"{name}: {_ms(took_s)} instead of {_ms(set_s)}")
    return rows, missed


def _faults(folder: Path, certificates: Certificates, times: Times) -> Iterator[list[str]]:
    options = BrokerOptions(statistics=True)
    with running_broker(folder / "faults", certificates, options) as broker:
        stalls = [_timed(broker.stall, broker.go_on) for _ in range(times.stalls)]
        yield [
            f"stall() returns ({times.stalls})",
            "–",
            f"{_ms(statistics.median(stalls))}, max {_ms(max(stalls))}",
        ]
        asked = [_timed(broker.dropped_messages) for _ in range(times.questions)]
        yield [f"dropped_messages() ({times.questions})", "–", f"{min(asked):.1f} to {max(asked):.1f} s"]
        flood = Flood.start(
            LocalSpawner(), LOOPBACK, broker.ports.tcp, seconds=FLOOD_S, log_path=folder / "flood.log"
        )
        sent = flood.stop_when_done().sent_count
        yield [f"messages of a flood of {FLOOD_S:g} s", "–", f"{sent:,}"]
        kills = [_timed(lambda: _restart(broker)) for _ in range(times.kills)]
        yield [
            f"kill and start again ({times.kills})",
            "–",
            f"{_ms(statistics.median(kills))}, max {_ms(max(kills))}",
        ]


def _restart(broker: Broker) -> None:
    broker.interrupt()
    broker.resume()


def _timed(action: Callable[[], object], undo: Callable[[], object] | None = None) -> float:
    began = time.monotonic()
    action()
    took_s = time.monotonic() - began
    if undo:
        undo()
    return took_s


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.1f} ms"

# SPDX-License-Identifier: Apache-2.0
"""The rack that the stored data is of: its boards, what its boots measure, and what is noted round them.

All figures come from a model and a seed; none was measured.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hil.model import Case, Role, RunRecord, Scalar
from hil.thresholds import Thresholds, load_all
from tools.demo.samples import Boots, measure

ROOT = Path(__file__).resolve().parents[2]
RACK = "lab"
BOARDS: Mapping[str, str] = {
    "e1": "virtual-esp32",
    "e2": "virtual-esp32s3",
    "e3": "virtual-esp32c3",
    "e4": "virtual-esp32",
    "e5": "virtual-esp32s3",
    "e6": "virtual-esp32c3",
    "e7": "virtual-esp32",
}
CHANNELS, BSSIDS = (6, 11), ("02:00:5e:10:00:06", "02:00:5e:10:00:11")
QUARANTINE = {
    "board": "e7",
    "since_utc": "2026-11-18T07:40:00Z",
    "who": "anna",
    "why": "its port vanishes",
}
NOISE: Mapping[str, Scalar] = {"simulated": True, "profile": "typical", "seed": 3}
TOOL = {"commit": "", "dirty": False}
NOISE_INFO = {**NOISE, "description": "profile typical, seed 3: boots differ by 1.2 %"}
COUNT = 40
DAY = datetime.date(2026, 11, 21)  # on which the run was measured, and its limits were in force
SUITES: Mapping[str, str] = {
    "publish": "[{transport: [tcp, tls], count: 40, warmup: 2}, {qos: 2, count: 40, warmup: 2}]",
    "delivery": "[{interval_us: 10000, count: 40, warmup: 2}]",
    "throughput": "[{role: client, duration_s: 3, omit_s: 1}]",
    "jitter": "[{count: 40, warmup: 2}, {count: 40, warmup: 2, tick_hz: 100}, "
    "{resource: mutex, trace: outlier, break_us: 2000, count: 40, warmup: 2}]",
    "footprint": "[{}]",
}
_SUITES = re.compile(r"^suites:.*\n(?:(?:[ #].*)?\n)*", re.MULTILINE)  # up to the next key
# what is left out, to keep the stored verdict small: one metric of a kind is enough
_LEFT_OUT = (
    r"(?:send_lateness|mutex_wait|serialise|publish_call|period_(?:deviation|p50|max|raw)_|interrupt_|delivery_latency_p95|delivery_failed"
    r"|wake_lateness_(?:p95|p99|max)_us|resource_wait_(?:p50|p99|max))\w*"
)
_METRIC = re.compile(rf"^  {_LEFT_OUT}:.*\n(?:    .*\n)*", re.MULTILINE)
_COMPARED = "compare:\n  - where: {metric: wake_lateness_p50_us}\n    why: how late a task usually wakes\n\n"
_MODELLED = ("publish", "throughput", "jitter")
_IMAGE_BYTES = 316_000


def write_thresholds(folder: Path) -> dict[str, Thresholds]:
    """Write the limits of a rack with few, short cases: those of the checkout, with suites of their own and
    fewer metrics."""
    folder.mkdir(parents=True)
    for bench, suite in SUITES.items():
        text = (ROOT / "thresholds" / f"{bench}.yaml").read_text(encoding="utf-8")
        text = _SUITES.sub(lambda _found, suite=suite: f"suites:\n  pr: {suite}\n\n", text)
        text = re.sub(r"(api: publish, count: )\d+", rf"\g<1>{COUNT}", text)
        text = _METRIC.sub("", text)
        if bench == "jitter":
            text = text.replace("suppressions: []", f"{_COMPARED}suppressions: []")
        (folder / f"{bench}.yaml").write_text(text, encoding="utf-8")
    return load_all(folder, today=DAY)


def digest(*words: object) -> str:
    """Return 64 digits that hang on the words only."""
    return hashlib.sha256("\0".join(map(str, ("golden", *words))).encode()).hexdigest()


def image(role: Role, commit: str, target: str) -> str:
    """Return the SHA-256 of an image; the reference's never changes."""
    return digest("image", "reference" if role == "reference" else commit, target)


def later(time_utc: str, seconds: float) -> str:
    moment = datetime.datetime.fromisoformat(time_utc) + datetime.timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True)
class Level:
    """What a boot differs by from the usual, as logarithms: ``path`` of what goes through the network,
    ``board`` of all on the board; ``tail`` is the factor of the slowest messages, ``spread`` of boots."""

    path: float = 0.0
    board: float = 0.0
    tail: float = 1.0
    spread: float = 0.012


@dataclass(frozen=True)
class Boot:
    """One boot of one board within a run."""

    run_id: str
    started_utc: str
    board: str
    role: Role
    index: int
    firmware: str
    channel: int = 1  # index into CHANNELS

    def record(self, case: Case, level: Level, *, seconds: float = 0.0) -> RunRecord:
        """Return what the boot measures of a case ``seconds`` after the start of the run."""
        words = (self.run_id, self.board, self.role, self.index, case.case_id)
        rng = np.random.default_rng(int(digest(*words)[:12], 16))
        columns, warmup = _columns(case, level, rng)
        return RunRecord(
            run_id=self.run_id,
            rack=RACK,
            board=self.board,
            target=BOARDS[self.board],
            kind="virtual",
            role=self.role,
            boot_index=self.index,
            bench=case.bench,
            parameters=case.parameters,
            firmware_sha256=self.firmware,
            ruler_hash=digest("ruler", case.bench),
            protocol_version=2,
            clock="esp_timer",
            started_utc=later(self.started_utc, seconds),
            warmup_rows=warmup,
            columns=columns,
            environment=self._environment(rng),
        )

    def _environment(self, rng: np.random.Generator) -> dict[str, dict[str, Scalar]]:
        device: dict[str, Scalar] = {
            "bssid": BSSIDS[self.channel],
            "channel": CHANNELS[self.channel],
            "cpu_mhz": 160,
            "heap_free_bytes": 180_000 - 8 * self.index,
            "rssi_dbm": -52 - int(rng.integers(0, 4)),
            "sched": "fifo",
        }
        return {
            "device": device,
            "access_point": {"type": "virtual", "profile": "lab", "ssid": "hil-lab", "seed": 1},
            "broker": {"version": "2.0.11", "config_sha256": digest("broker")},
            "host": {
                "kernel": "6.1.0-31-amd64",
                "machine": "x86_64",
                "cpu_count": 4,
                "load_1min": round(float(rng.uniform(0.4, 0.9)), 2),
            },
            "air": {"uplink_lateness_p99_us": 180, "downlink_lateness_p99_us": 210},
            "rig": {"harness_version": "0.1.0"},
            "noise": {**NOISE, "session": self.run_id, "boot": self.index},
        }


def _columns(case: Case, level: Level, rng: np.random.Generator) -> tuple[dict[str, tuple[int, ...]], int]:
    if case.bench == "footprint":
        used = _IMAGE_BYTES + round(1000 * level.board)
        return {"image_bytes": (used,), "slot_free_bytes": (2_031_616 - used,)}, 0
    model = case if case.bench in _MODELLED else replace(case, bench="publish")
    noise = np.array([rng.normal(0, level.spread)])
    boots = Boots(noise=noise, path=level.path, board=level.board, tail=level.tail, rng=rng)
    columns, warmup = measure(model, boots)
    return {name: tuple(column[0].tolist()) for name, column in columns.items()}, warmup


def boards_info(boards: Sequence[str]) -> list[dict[str, str]]:
    """Return what run.json says of the boards."""
    return [{"id": board, "target": BOARDS[board], "kind": "virtual"} for board in boards]

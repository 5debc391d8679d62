# SPDX-License-Identifier: Apache-2.0
"""What boots measure, as columns of whole numbers with a row a boot: a model of each bench, not of a chip."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from hil.model import Case, Scalar
from hil.thresholds import Thresholds
from tools.demo.plan import TAIL

Columns = Mapping[str, np.ndarray]  # (boots, rows), warm-up rows first
_PUBLISH_US = 7000.0
_TLS = 1.2
_MBPS: Mapping[str, float] = {"client": 5.8, "server": 6.4}
_WAKE_US = 320.0
_INTERVAL_US = 100_000
_CPU_MHZ = 160
BOOT_SHARE = 0.3
CASES: Mapping[str, tuple[Mapping[str, Scalar], ...]] = {
    "publish": ({"count": 200}, {"transport": "tls", "count": 200}),
    "throughput": tuple({"role": role, "duration_s": 5, "omit_s": 1} for role in ("client", "server")),
    "jitter": ({"count": 200},),
}


def cases_of(thresholds: Mapping[str, Thresholds]) -> list[Case]:
    """Return the cases that every night measures on every board."""
    return [thresholds[bench].case(overrides) for bench, some in CASES.items() for overrides in some]


@dataclass(frozen=True)
class Boots:
    """What a night does to some boots, as logarithms: ``noise`` has one a boot, ``path`` is of what goes
    through the network, ``board`` of all on the board. ``tail`` is the factor of the slowest messages."""

    noise: np.ndarray
    path: float
    board: float
    tail: float
    rng: np.random.Generator


def measure(case: Case, boots: Boots) -> tuple[Columns, int]:
    """Return the columns that the boots leave, and how many rows of each are warm-up."""
    columns, warmup = _BENCHES[case.bench](case, boots)
    return {name: np.rint(column).astype(np.int64) for name, column in columns.items()}, warmup


_Measured = tuple[dict[str, np.ndarray], int]


def _messages(case: Case, boots: Boots) -> _Measured:
    """Messages sent on a plan, each answered; the broker is farther away through TLS."""
    warmup, rows = _number(case, "warmup"), _number(case, "warmup") + _number(case, "count")
    usual_us = _PUBLISH_US * (_TLS if case.parameters["transport"] == "tls" else 1.0)
    taken_us = _with_tail(usual_us * _spread(boots, rows, 0.12), boots.tail, warmup)
    planned = np.arange(rows) * _number(case, "interval_us") * np.ones((len(boots.noise), 1))
    late = 180 * _spread_within(boots, rows, 0.2)
    return {
        "planned_us": planned,
        "sent_us": planned + late,
        "done_us": planned + taken_us,
        "outcome": np.zeros_like(planned),
        "mutex_wait_us": 90 * _spread_within(boots, rows, 0.2),
        "serialise_us": 140 * _spread_within(boots, rows, 0.1),
        "publish_call_us": 260 * _spread_within(boots, rows, 0.1),
    }, warmup


def _stream(case: Case, boots: Boots) -> _Measured:
    """Intervals of a TCP stream, in which a slower path carries less."""
    warmup = _number(case, "omit_s") * 1_000_000 // _INTERVAL_US
    rows = _number(case, "duration_s") * 1_000_000 // _INTERVAL_US
    bps = _MBPS[str(case.parameters["role"])] * 1e6 / _spread(boots, rows, 0.04)
    nothing = np.zeros_like(bps)
    names = (
        *("expected_count", "lost_count", "out_of_order_count", "jitter_us"),
        *("transit_difference_mean_us", "transit_difference_max_us"),
    )
    received = {"received_bytes": bps * _INTERVAL_US / 8e6, "received_bps": bps}
    return {"interval_us": nothing + _INTERVAL_US, **received, **dict.fromkeys(names, nothing)}, warmup


def _wakes(case: Case, boots: Boots) -> _Measured:
    """Wakes of a periodic task, a little late each; radio and network do not touch them."""
    warmup, rows = _number(case, "warmup"), _number(case, "warmup") + _number(case, "count")
    period_us = _number(case, "period_us")
    late = _WAKE_US * _spread_within(boots, rows, 0.15)
    planned = np.arange(rows) * period_us * np.ones((len(boots.noise), 1))
    interval = period_us + np.diff(late, axis=1, prepend=late[:, :1])
    return {
        "planned_us": planned,
        "woke_us": planned + late,
        "acquired_us": planned + late,
        "interval_corrected_ns": interval * 1000,
        "interval_raw_cycles": interval * _CPU_MHZ,
        "interval_us": interval,
        "deviation_us": np.abs(interval - period_us),
        "start_core": np.zeros_like(late),
        "end_core": np.zeros_like(late),
        "host_late_us": np.zeros_like(late),
        "outcome": np.zeros_like(late),
    }, warmup


_BENCHES: Mapping[str, Callable[[Case, Boots], _Measured]] = {
    "publish": _messages,
    "throughput": _stream,
    "jitter": _wakes,
}


def _spread(boots: Boots, rows: int, deviation: float) -> np.ndarray:
    """Draw factors round 1 of what goes through the network."""
    return _factors(boots, rows, deviation, boots.noise + boots.path + boots.board)


def _spread_within(boots: Boots, rows: int, deviation: float) -> np.ndarray:
    """Draw factors round 1 of what stays on the board: a part of the noise comes with the boot."""
    return _factors(boots, rows, deviation, BOOT_SHARE * boots.noise + boots.board)


def _factors(boots: Boots, rows: int, deviation: float, level: np.ndarray) -> np.ndarray:
    own = boots.rng.normal(0, deviation, (len(level), rows))
    return np.asarray(np.exp(own + level[:, np.newaxis]))


def _with_tail(taken: np.ndarray, factor: float, warmup: int) -> np.ndarray:
    """Return the times with the slowest TAIL of the measured rows ``factor`` times as long."""
    measured = taken[:, warmup:]
    slowest = math.floor(measured.shape[1] * (1 - TAIL))
    bound = np.sort(measured, axis=1)[:, slowest, np.newaxis]
    return np.hstack([taken[:, :warmup], np.where(measured >= bound, measured * factor, measured)])


def _number(case: Case, name: str) -> int:
    return int(str(case.parameters[name]))

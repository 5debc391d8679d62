# SPDX-License-Identifier: Apache-2.0
"""Whether a candidate's boots and the other's were measured in the same surroundings.

What the firmware chooses by itself (its clock frequency, Wi-Fi's power saving, its heap) is no environment:
a difference there is a finding. What it cannot choose is, and where that differs nobody can say whether the
firmware or the room made the difference. All rules are in the tables below;
docs/reference/records.md lists them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hil.metrics.evaluation import Metric
from hil.metrics.values import count_voids
from hil.model import RunRecord, Scalar


@dataclass(frozen=True)
class Fact:
    """Something that is the same in all boots of a board, or they are not compared."""

    words: str
    group: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Band:
    """A figure of which the medians of candidate and other may differ by ``most``, in ``unit``."""

    words: str
    unit: str
    most: float
    read: Callable[[RunRecord], float | None]


@dataclass(frozen=True)
class Check:
    """What came of the checks of one board.

    ``reason`` is why its boots are not compared, "" where they are; where ``lasting``, more boots do not mend
    it. ``passed`` names what was asked and came out well.
    """

    reason: str = ""
    lasting: bool = False
    passed: tuple[str, ...] = ()


def number(record: RunRecord, group: str, key: str) -> float | None:
    """Return a figure of the record's environment, None where there is none."""
    value = record.environment.get(group, {}).get(key)
    return None if isinstance(value, bool | str) or value is None else float(value)


def load_per_cpu(record: RunRecord) -> float | None:
    """Return the host's load of the last minute a CPU, None where the record does not say."""
    load, cpus = number(record, "host", "load_1min"), number(record, "host", "cpu_count")
    return load / cpus if load is not None and cpus else None


def air_lateness_us(record: RunRecord) -> float | None:
    """Return how late the virtual air wrote 1 % of its frames, which no board's task can make it."""
    found = [number(record, "air", f"{way}_lateness_p99_us") for way in ("uplink", "downlink")]
    return max((late for late in found if late is not None), default=None)


FACTS = (
    Fact("access point", "access_point", ("type", "ssid")),
    Fact("BSSID", "device", ("bssid",)),
    Fact("channel", "device", ("channel",)),
    Fact("air", "access_point", ("profile", "seed")),
    Fact("broker", "broker", ("version", "config_sha256")),
    Fact("host", "host", ("kernel", "machine", "cpu_count", "governor")),
    Fact("real-time priority", "device", ("sched",)),
    Fact("simulated noise", "noise", ("profile", "seed", "session")),
)
BANDS = (
    # Wi-Fi steps down a modulation every 3 to 5 dB
    Band("RSSI", "dB", 6.0, lambda record: number(record, "device", "rssi_dbm")),
    # boots take turns, so that what else the host does falls on both alike
    Band("host load", "a CPU", 1.0, load_per_cpu),
    Band("lateness of the virtual air", "µs", 1000.0, air_lateness_us),
)
WEAKEST_RSSI_DBM = -85.0
VOID_SHARE_MOST = 0.10


def check_board(metric: Metric, candidate: Sequence[RunRecord], other: Sequence[RunRecord]) -> Check:
    """Compare the boots of one board; both sides have some."""
    records = (*candidate, *other)
    passed: list[str] = []
    for words, difference, known in (*_facts(records), ("clock", _differing_clocks(records), True)):
        if difference:
            return Check(f"its boots differ in the {words} ({difference})", lasting=True)
        passed += [words] if known else []
    for band in BANDS:
        medians = [_median(band, side) for side in (candidate, other)]
        if medians[0] is None or medians[1] is None:
            continue
        if abs(medians[0] - medians[1]) > band.most:
            between = f"{medians[0]:.3g} {band.unit} with the candidate, {medians[1]:.3g} with the other"
            return Check(f"the {band.words} differs by more than {band.most:g} {band.unit} ({between})")
        passed.append(band.words)
    reason = _too_weak(records) or _voids_differ(metric, candidate, other)
    return Check(reason) if reason else Check(passed=tuple(passed))


def _facts(records: Sequence[RunRecord]) -> list[tuple[str, str, bool]]:
    """Return of each fact its words, how it differs ("" where it does not), and whether it is known."""
    return [(fact.words, *_compare(fact, records)) for fact in FACTS]


def _compare(fact: Fact, records: Sequence[RunRecord]) -> tuple[str, bool]:
    """What a firmware does not report is unknown, which is no difference: the base may be older."""
    known = False
    for key in fact.keys:
        values: list[Scalar] = [record.environment.get(fact.group, {}).get(key) for record in records]
        found = sorted({str(value) for value in values if value not in (None, "")})
        if len(found) > 1:
            return f"{found[0]:.24} and {found[1]:.24}", True
        known = known or bool(found)
    return "", known


def _differing_clocks(records: Sequence[RunRecord]) -> str:
    clocks = sorted({record.clock for record in records})
    return " and ".join(clocks) if len(clocks) > 1 else ""


def _median(band: Band, records: Sequence[RunRecord]) -> float | None:
    values = [value for value in map(band.read, records) if value is not None]
    return statistics.median(values) if values else None


def _too_weak(records: Sequence[RunRecord]) -> str:
    """Say that a boot had hardly a link: what it measured is the room's."""
    found = [value for record in records if (value := number(record, "device", "rssi_dbm")) is not None]
    weakest = min(found, default=0.0)
    if weakest >= WEAKEST_RSSI_DBM:
        return ""
    return f"the RSSI was out of its band ({weakest:g} dBm in a boot, below {WEAKEST_RSSI_DBM:g} dBm)"


def _voids_differ(metric: Metric, candidate: Sequence[RunRecord], other: Sequence[RunRecord]) -> str:
    """Say that the host's scheduling was late under one side's boots more than under the other's."""
    if metric.outcome is None or metric.outcome.void is None:
        return ""
    shares = [count_voids(metric, side).ratio for side in (candidate, other)]
    if abs(shares[0] - shares[1]) <= VOID_SHARE_MOST:
        return ""
    return (
        f"the host's scheduling was late more often under one than the other ({shares[0]:.0%} of the "
        f"candidate's samples void, {shares[1]:.0%} of the other's)"
    )

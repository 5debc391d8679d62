# SPDX-License-Identifier: Apache-2.0
"""Whether a candidate's boots and the other's were measured in the same surroundings.

What the firmware chooses by itself (its clock frequency, Wi-Fi's power saving, its heap) is no environment:
a difference there is a finding. What it cannot choose is, and where that differs nobody can say whether the
firmware or the room made the difference. Between the two lies what a board tells of itself and a firmware may
bring about: its RSSI, its channel, its scheduling. Boots take turns, so where such a fact changes with the
image, and only with it, the image made it: that is an effect, and the comparison stands. All rules are in the
tables below; docs/reference/records.md lists them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    """A figure of which the medians of candidate and other may differ by ``most``, in ``unit``.

    ``of_device`` says that a firmware may change it.
    """

    words: str
    unit: str
    most: float
    read: Callable[[RunRecord], float | None]
    of_device: bool = False


@dataclass(frozen=True)
class Check:
    """What came of the checks of one board.

    ``reason`` is why its boots are not compared, "" where they are; where ``lasting``, more boots do not mend
    it. ``passed`` names what was asked and came out well, ``followed`` says what changed with the image.
    """

    reason: str = ""
    lasting: bool = False
    passed: tuple[str, ...] = ()
    followed: tuple[str, ...] = ()


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
    Fact("cable", "device", ("link_type", "speed_mbps", "duplex")),
    Fact("air", "access_point", ("profile", "seed")),
    Fact("broker", "broker", ("version", "config_sha256")),
    Fact("host", "host", ("kernel", "machine", "cpu_count", "governor")),
    Fact("real-time priority", "device", ("sched",)),
    Fact("emulator", "emulation", ("emulator", "icount")),
    Fact("simulated noise", "noise", ("profile", "seed", "session")),
)
BANDS = (
    # Wi-Fi steps down a modulation every 3 to 5 dB
    Band("RSSI", "dB", 6.0, lambda record: number(record, "device", "rssi_dbm"), of_device=True),
    # boots take turns, so that what else the host does falls on both alike
    Band("host load", "a CPU", 1.0, load_per_cpu),
    Band("lateness of the virtual air", "µs", 1000.0, air_lateness_us),
)
WEAKEST_RSSI_DBM = -85.0
HARDLY_HEARD = "hardly-heard"  # the cause of a limit that only such boots broke
_FEWEST_TURNS = 2
VOID_SHARE_MOST = 0.10


def check_board(metric: Metric, candidate: Sequence[RunRecord], other: Sequence[RunRecord]) -> Check:
    """Compare the boots of one board; both sides have some."""
    records = (*candidate, *other)
    passed: list[str] = []
    followed: list[str] = []
    for fact in FACTS:
        difference, known = _compare(fact, records)
        if difference and not (fact.group == "device" and _follows(_values(fact), candidate, other)):
            return Check(f"its boots differ in the {fact.words} ({difference})", lasting=True)
        followed += [f"the {fact.words} changed with the image ({difference})"] if difference else []
        passed += [fact.words] if known and not difference else []
    if clocks := _differing_clocks(records):
        return Check(f"its boots differ in the clock ({clocks})", lasting=True)
    passed.append("clock")
    for band in BANDS:
        medians = [_median(band, side) for side in (candidate, other)]
        if medians[0] is None or medians[1] is None:
            continue
        if abs(medians[0] - medians[1]) <= band.most:
            passed.append(band.words)
            continue
        between = f"{medians[0]:.3g} {band.unit} with the candidate, {medians[1]:.3g} with the other"
        if not (band.of_device and _follows(band.read, candidate, other)):
            return Check(f"the {band.words} differs by more than {band.most:g} {band.unit} ({between})")
        followed.append(f"the {band.words} changed with the image ({between})")
    reason = too_weak(other if followed else records) or _voids_differ(metric, candidate, other)
    return Check(reason) if reason else Check(passed=tuple(passed), followed=tuple(followed))


def _follows(
    read: Callable[[RunRecord], Scalar], candidate: Sequence[RunRecord], other: Sequence[RunRecord]
) -> bool:
    """Say whether what is read hangs on the image alone: all boots of one lie on one side of the other's.

    Boots of both have to have taken turns, twice at least: else time may have changed it.
    """
    turns = sorted((record.boot_index, side) for side in (0, 1) for record in (candidate, other)[side])
    changes = sum(one[1] != two[1] for one, two in pairwise(turns))
    values = [
        {value for record in side if (value := read(record)) is not None} for side in (candidate, other)
    ]
    if changes < _FEWEST_TURNS or not all(values) or values[0] & values[1]:
        return False
    mine, others = ([value for value in side if isinstance(value, float)] for side in values)
    if mine and others:
        return min(mine) > max(others) or max(mine) < min(others)
    return len(values[0]) == len(values[1]) == 1


def _values(fact: Fact) -> Callable[[RunRecord], Scalar]:
    """Return what reads a fact as one text, None of a record that says nothing of it."""

    def read(record: RunRecord) -> Scalar:
        found = [record.environment.get(fact.group, {}).get(key) for key in fact.keys]
        return " ".join(map(str, found)) if any(value not in (None, "") for value in found) else None

    return read


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


def hears_its_access_point(record: RunRecord) -> bool:
    """Say whether a boot had a link to speak of; where it says nothing of it, it had."""
    rssi_dbm = number(record, "device", "rssi_dbm")
    return rssi_dbm is None or rssi_dbm >= WEAKEST_RSSI_DBM


def too_weak(records: Sequence[RunRecord]) -> str:
    """Say that a boot had hardly a link, so that what it measured is the room's; "" where none had."""
    weak = [record for record in records if not hears_its_access_point(record)]
    if not weak:
        return ""
    weakest = min(number(record, "device", "rssi_dbm") or 0.0 for record in weak)
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

# SPDX-License-Identifier: Apache-2.0
"""Which boots of a board were measured in its usual surroundings: the others are left out, and said.

What the firmware chooses by itself (its clock frequency, Wi-Fi's power saving, its heap) is no surrounding:
a difference there is a finding. What it cannot choose is: the access point, the broker, the host. Between the
two lies what a board tells of itself and a firmware may bring about: its RSSI, its channel, its scheduling.
Boots take turns, so where such a fact is usually another with one image, the image made it: that is an
effect, and it is compared. All rules are in the tables below; docs/reference/records.md lists them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from hil.base import special
from hil.model import RunRecord


class Fact(NamedTuple):
    """Something that is usually the same in all boots of a board; several keys may bear the same words."""

    words: str
    group: str
    key: str

    @property
    def of_device(self) -> bool:
        """Whether a firmware may change it."""
        return self.group == "device"

    def read(self, record: RunRecord) -> str | None:
        """Return the fact as a text, None of a record that says nothing of it: the base may be older."""
        facts = record.environment.get(self.group, {}) if self.group else {"clock": record.clock}
        value = facts.get(self.key)
        return None if value in (None, "") else str(value)


class Band(NamedTuple):
    """A figure of which the medians of candidate and other may differ by ``most``, in ``unit``."""

    words: str
    unit: str
    most: float
    read: Callable[[RunRecord], float | None]
    of_device: bool = False


@dataclass(frozen=True)
class Check:
    """What came of the checks of one board.

    ``left_out`` says by boot index why a boot is left out, ``of_device`` which of these may be the image's
    doing. ``passed`` names what was asked and is alike in all boots, ``followed`` what changed with the
    image.
    """

    left_out: Mapping[int, str] = field(default_factory=dict)
    of_device: frozenset[int] = frozenset()
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


_GROUPS = (
    ("access point", "access_point", ("type", "ssid")),
    ("BSSID", "device", ("bssid",)),
    ("channel", "device", ("channel",)),
    ("cable", "device", ("link_type", "speed_mbps", "duplex")),
    ("air", "access_point", ("profile", "seed")),
    ("broker", "broker", ("version", "config_sha256")),
    ("host", "host", ("kernel", "machine", "cpu_count", "governor")),
    ("real-time priority", "device", ("sched",)),
    ("emulator", "emulation", ("emulator", "icount", "network")),
    ("simulated noise", "noise", ("profile", "seed", "session")),
    ("clock", "", ("clock",)),  # the record's own
)
FACTS = tuple(Fact(words, group, key) for words, group, keys in _GROUPS for key in keys)
RSSI = Band("RSSI", "dB", 6.0, lambda record: number(record, "device", "rssi_dbm"), of_device=True)
BANDS = (
    RSSI,  # Wi-Fi steps down a modulation every 3 to 5 dB
    # boots take turns, so that what else the host does falls on both alike
    Band("host load", "a CPU", 1.0, load_per_cpu),
    Band("lateness of the virtual air", "µs", 1000.0, air_lateness_us),
)
WEAKEST_RSSI_DBM = -85.0
HARDLY_HEARD = "hardly-heard"  # the cause of a limit that only such boots broke
_MOST_STRAY = 0.25  # of a board's boots: with more, a fact does not hang on the image
_FEWEST_BOOTS = 2  # of either image on a board
_CHANCE = 0.01  # of so many boots that are left out being the candidate's


def check_board(candidate: Sequence[RunRecord], other: Sequence[RunRecord]) -> Check:
    """Find the boots of one board that were not measured in its usual surroundings."""
    sides = (candidate, other)
    facts = [_check_fact(fact, sides) for fact in FACTS]
    differ = {
        fact.words for fact, found in zip(FACTS, facts, strict=True) if found.left_out or found.followed
    }
    found = [replace(one, passed=tuple(set(one.passed) - differ)) for one in facts]
    found += [check_band(band, sides) for band in BANDS]
    moved = any(words.startswith(f"the {RSSI.words} ") for one in found for words in one.followed)
    return combined(found if moved else [*found, _weak(sides)])


def combined(checks: Sequence[Check]) -> Check:
    """Return several checks as one; of a boot that several leave out the first reason stands."""
    return Check(
        {boot: why for check in reversed(checks) for boot, why in check.left_out.items()},
        frozenset().union(*(check.of_device for check in checks)),
        tuple(dict.fromkeys(words for check in checks for words in check.passed)),
        tuple(dict.fromkeys(words for check in checks for words in check.followed)),
    )


def take_back(checks: Mapping[str, Check], candidates: Mapping[str, Sequence[int]]) -> dict[str, Check]:
    """Take back the candidate's boots where provably more of them are left out than of the other's.

    Chance leaves out either image's boot alike, so that the image is the cause. ``candidates`` are the
    candidate's boots by board.
    """
    mine = {board: check.of_device & set(candidates.get(board, ())) for board, check in checks.items()}
    of_all, own = sum(len(check.of_device) for check in checks.values()), sum(map(len, mine.values()))
    if not own or not special.betainc(own, of_all - own + 1, 0.5) < _CHANCE:
        return dict(checks)
    words = f"{own} of the candidate's boots had other surroundings, {of_all - own} of the other's"
    return {
        board: replace(
            check,
            left_out={boot: why for boot, why in check.left_out.items() if boot not in mine[board]},
            followed=(*check.followed, words),
        )
        for board, check in checks.items()
    }


_Sides = tuple[Sequence[RunRecord], Sequence[RunRecord]]
_Value = TypeVar("_Value", str, float)
_Known = Sequence[Sequence[tuple[int, _Value]]]  # boot index and value, of candidate and other


def _known(read: Callable[[RunRecord], _Value | None], sides: _Sides) -> _Known[_Value]:
    return [
        [(record.boot_index, value) for record in side if (value := read(record)) is not None]
        for side in sides
    ]


def _check_fact(fact: Fact, sides: _Sides) -> Check:
    known = _known(fact.read, sides)
    if len({text for side in known for _, text in side}) < 2:
        return Check(passed=(fact.words,) if any(known) else ())
    usual = [_usual(side) for side in known]
    both = _usual(sorted((*known[0], *known[1])))
    between = f"{usual[0]:.24} and {usual[1]:.24}" if usual[0] != usual[1] else ""
    return _leave_out(
        fact, known, (usual, [both, both]), between,
        lambda text, own: f"{text:.24} (else {own:.24})" if text != own else "",
    )  # fmt: skip


def check_band(band: Band, sides: _Sides) -> Check:
    """Leave out what lies beyond a band, where the medians of candidate and other do not lie within it."""
    known = _known(band.read, sides)
    if not all(known):
        return Check()
    medians = [statistics.median(value for _, value in side) for side in known]
    if abs(medians[0] - medians[1]) <= band.most:
        return Check(passed=(band.words,))
    both = statistics.median_low([value for side in known for _, value in side])
    between = f"{medians[0]:.3g} {band.unit} with the candidate, {medians[1]:.3g} with the other"
    return _leave_out(
        band, known, (medians, [both, both]), between,
        lambda value, own: (
            f"of {value:.3g} {band.unit} (else {own:.3g})" if abs(value - own) > band.most else ""
        ),
    )  # fmt: skip


def _leave_out(
    rule: Fact | Band,
    known: _Known[_Value],
    usual: tuple[Sequence[_Value], Sequence[_Value]],
    between: str,
    told: Callable[[_Value, _Value], str],
) -> Check:
    """Leave out boots that are not as ``usual`` with their image, or with both, which ``told`` has words for.

    What is usual hangs on the image where few boots stray from it: time cannot have changed it then.
    """
    found = [
        {
            boot: f"the {rule.words} {words}"
            for side, own in zip(known, owns, strict=True)
            for boot, value in side
            if (words := told(value, own))
        }
        for owns in usual
    ]
    enough = min(map(len, known)) >= _FEWEST_BOOTS
    hangs = rule.of_device and enough and len(found[0]) < _MOST_STRAY * sum(map(len, known))
    left_out = found[0] if hangs and between else found[1]
    followed = (f"the {rule.words} changed with the image ({between})",) if hangs and between else ()
    return Check(left_out, frozenset(left_out) if rule.of_device else frozenset(), (), followed)


def _usual(side: Sequence[tuple[int, str]]) -> str:
    """Return the value that most boots have, of several the latest."""
    values = [text for _, text in side]
    places = {value: place for place, value in enumerate(values)}
    return max(places, key=lambda value: (values.count(value), places[value]), default="")


def hears_its_access_point(record: RunRecord) -> bool:
    """Return whether a boot had a link to speak of; where it says nothing of it, it had."""
    rssi_dbm = number(record, "device", "rssi_dbm")
    return rssi_dbm is None or rssi_dbm >= WEAKEST_RSSI_DBM


def too_weak(records: Sequence[RunRecord]) -> str:
    """Report boots with hardly a link, which measured the room; "" if there are none."""
    weak = [record for record in records if not hears_its_access_point(record)]
    if not weak:
        return ""
    weakest = min(number(record, "device", "rssi_dbm") or 0.0 for record in weak)
    return f"the RSSI was out of its band ({weakest:g} dBm in a boot, below {WEAKEST_RSSI_DBM:g} dBm)"


def _weak(sides: _Sides) -> Check:
    left_out = {
        record.boot_index: f"an RSSI of {number(record, 'device', 'rssi_dbm'):g} dBm"
        for side in sides
        for record in side
        if not hears_its_access_point(record)
    }
    return Check(left_out, frozenset(left_out))

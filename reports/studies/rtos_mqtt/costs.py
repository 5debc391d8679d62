# SPDX-License-Identifier: Apache-2.0
"""What TLS, the tasks' cores and a held mutex add to a publish, over boots."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hil.model import RunRecord
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import NONE, Table, number
from hil.reports.studies.estimate import ALPHA, Estimate, median
from hil.reports.studies.records import BoardRun
from hil.reports.studies.rtos_mqtt.messages import (
    MAPPINGS,
    Message,
    by_name,
    call_us,
    called,
    difference,
    narrowed,
    setting,
    whole_us,
)

UNPINNED, APART, BESIDE = ("none", "none"), ("0", "1"), ("1", "0")  # producer, publisher; Wi-Fi is on core 0
WHY_NOT = (
    "Of this virtual rack: the host schedules the tasks, computes TLS, and has no Wi-Fi on core 0. So it "
    "cannot be carried over to an ESP32."
)
_STUDY_TLS_US = {"unpinned": -1_460, "sensor 0, MQTT 1": -14_520, "sensor 1, MQTT 0": 160}
_STUDY_CORES_US = {
    ("plain", APART, UNPINNED): 14_500,
    ("TLS", APART, UNPINNED): 1_440,
    ("plain", BESIDE, UNPINNED): -1_620,
    ("TLS", BESIDE, UNPINNED): 0,
    ("plain", BESIDE, APART): -16_120,
    ("TLS", BESIDE, APART): -1_440,
}


@dataclass(frozen=True)
class Pair:
    """Two cases that differ in one thing, and the setting that they share."""

    name: str
    setting: str
    one: tuple[Message, ...]
    other: tuple[Message, ...]

    def above(self, value: Callable[[Message], float], alpha: float = ALPHA) -> Estimate:
        """Return how far ``one`` is above ``other``."""
        return difference(self.one, self.other, value, alpha)


def _matched(name: str, one: Iterable[RunRecord], other: Iterable[RunRecord]) -> list[Pair]:
    """Return a pair for each setting that was measured of both."""
    left, right = by_name(one, setting), by_name(other, setting)
    return [
        Pair(name, key, tuple(called(left[key])), tuple(called(right[key]))) for key in left if key in right
    ]


def _records(study: Study, run: BoardRun, how: str, cores: tuple[str, str]) -> tuple[RunRecord, ...]:
    base = study.table("publish").ours
    return narrowed(run, base, transport=how, producer_core=cores[0], publisher_core=cores[1], retain=0)


def tls_pairs(study: Study, run: BoardRun, how: str = "tls") -> list[Pair]:
    """Return each mapping with TLS and without."""
    return [
        pair
        for cores, name in MAPPINGS.items()
        for pair in _matched(name, _records(study, run, how, cores), _records(study, run, "tcp", cores))
    ]


def core_pairs(study: Study, run: BoardRun, cores: tuple[str, str], against: tuple[str, str]) -> list[Pair]:
    """Return the transports of the study with their tasks on ``cores``, and as ``against``."""
    return [
        pair
        for how, name in (("tcp", "plain"), ("tls", "TLS"))
        for pair in _matched(name, _records(study, run, how, cores), _records(study, run, how, against))
    ]


def tls_table(study: Study, run: BoardRun) -> Table | None:
    """Return what TLS adds to a publish call, by cores: as published by subtraction, and ours."""
    rows, data = [], []
    for how, words in (("tls", "TLS"), ("mtls", "mutual TLS")):
        for pair in tls_pairs(study, run, how):
            published = _STUDY_TLS_US[pair.name] if how == "tls" else None
            added, middle = pair.above(call_us), _p50_difference(pair)
            label = f"{words}, {pair.name}"
            rows.append((label, _whole_us(published), pair.setting, added.text, number(middle), *_ns(pair)))
            data.append(
                {
                    "label": label,
                    "published": published,
                    "ours": pair.setting,
                    "mean": added.data,
                    "p50": middle,
                }
            )
    if not rows:
        return None
    columns = ("", "published difference", "ours", "mean", "p50", "n", "boots")
    notes = (
        "published difference: the published table's TLS less its plain value; the study says about 1 ms. "
        "Ours: the publish call alone, by esp_timer, with and without TLS in the same boots",
        *carried(run),
    )
    title = "What TLS adds to a publish, µs"
    return Table("tls-cost", title, columns, tuple(rows), notes, tuple(data))


def cores_table(study: Study, run: BoardRun) -> Table | None:
    """Return what the mapping adds to a publish: to the call alone, and with mutex and serialising."""
    rows, data = [], []
    for cores, against in ((APART, UNPINNED), (BESIDE, UNPINNED), (BESIDE, APART)):
        for pair in core_pairs(study, run, cores, against):
            published = _STUDY_CORES_US[(pair.name, cores, against)]
            label = f"{pair.name}: {MAPPINGS[cores]}, less {MAPPINGS[against]}"
            call, all_of_it = pair.above(call_us), pair.above(whole_us)
            rows.append((label, _whole_us(published), pair.setting, call.text, all_of_it.text, *_ns(pair)))
            data.append(
                {"label": label, "published": published, "ours": pair.setting}
                | {"call": call.data, "whole": all_of_it.data}
            )
    if not rows:
        return None
    columns = ("", "published difference", "ours", "publish call", "mutex included", "n", "boots")
    notes = (
        "differences of means, pair by pair of one boot; mutex included: with the wait for it and "
        "serialising, as the study's time has them",
        *carried(run),
    )
    return Table(
        "cores", "What the tasks' cores add to a publish, µs", columns, tuple(rows), notes, tuple(data)
    )


def carried(run: BoardRun) -> tuple[str, ...]:
    """Return the note on what a virtual rack cannot tell, for such a rack."""
    return (WHY_NOT,) if run.kind == "virtual" else ()


def _whole_us(value: int | None) -> str:
    return NONE if value is None else f"{value:+,}".replace("+0", "0")


def _ns(pair: Pair) -> tuple[str, str]:
    """Return how many messages of both, and the boots that have both."""
    both = {message.boot for message in pair.one} & {message.boot for message in pair.other}
    return f"{len(pair.one):,} / {len(pair.other):,}", str(len(both))


def _p50_difference(pair: Pair) -> float | None:
    one, other = (
        median([call_us(message) for message in own], [message.boot for message in own]).value
        for own in (pair.one, pair.other)
    )
    return None if one is None or other is None else one - other

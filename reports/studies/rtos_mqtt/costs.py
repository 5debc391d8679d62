# SPDX-License-Identifier: Apache-2.0
"""What TLS, the tasks' cores and a held mutex add to a publish, over boots."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hil.model import RunRecord
from hil.reports.studies.declaration import Study
from hil.reports.studies.document import Table
from hil.reports.studies.estimate import ALPHA, Estimate, median
from hil.reports.studies.layout import Figures, lay_out
from hil.reports.studies.records import BoardRun, grouped
from hil.reports.studies.rtos_mqtt.messages import (
    MAPPINGS,
    Message,
    call_us,
    called,
    difference,
    narrowed,
    setting,
    whole_us,
)

UNPINNED, APART, BESIDE = ("none", "none"), ("0", "1"), ("1", "0")  # producer, publisher; Wi-Fi is on core 0


@dataclass(frozen=True)
class Pair:
    """Two cases that differ in one thing, and the setting that they share."""

    setting: str
    one: tuple[Message, ...]
    other: tuple[Message, ...]

    def above(self, value: Callable[[Message], float], alpha: float = ALPHA) -> Estimate:
        """Return how far ``one`` is above ``other``."""
        return difference(self.one, self.other, value, alpha)


def _matched(one: Iterable[RunRecord], other: Iterable[RunRecord]) -> list[Pair]:
    """Return a pair for each setting that was measured of both."""
    left, right = grouped(one, setting), grouped(other, setting)
    return [Pair(key, tuple(called(left[key])), tuple(called(right[key]))) for key in left if key in right]


def _records(study: Study, run: BoardRun, how: str, cores: tuple[str, str]) -> tuple[RunRecord, ...]:
    base = study.table("publish").ours
    return narrowed(run, base, transport=how, producer_core=cores[0], publisher_core=cores[1], retain=0)


def tls_pairs(study: Study, run: BoardRun, how: str, cores: tuple[str, str]) -> list[Pair]:
    """Return a mapping with TLS and without."""
    return _matched(_records(study, run, how, cores), _records(study, run, "tcp", cores))


def tls_table(study: Study, run: BoardRun) -> Table | None:
    """Return what TLS adds to a publish call, by cores: as published by subtraction, and ours."""
    lines: list[Figures] = []
    for how, words in (("tls", "TLS"), ("mtls", "mutual TLS")):
        for cores, name in MAPPINGS.items():
            for pair in tls_pairs(study, run, how, cores):
                line = {
                    "label": f"{words}, {name}",
                    "published": _published(study, (how, cores), ("tcp", cores)),
                }
                lines.append(
                    {**line, "ours": pair.setting, "mean": pair.above(call_us), "p50": _p50_difference(pair)}
                    | _ns(pair)
                )
    return lay_out(study, "tls-cost", lines)


def cores_table(study: Study, run: BoardRun) -> Table | None:
    """Return what the mapping adds to a publish: to the call alone, and with mutex and serialising."""
    lines: list[Figures] = []
    for cores, against in ((APART, UNPINNED), (BESIDE, UNPINNED), (BESIDE, APART)):
        for how, name in (("tcp", "plain"), ("tls", "TLS")):
            for pair in _matched(_records(study, run, how, cores), _records(study, run, how, against)):
                label = f"{name}: {MAPPINGS[cores]}, less {MAPPINGS[against]}"
                line = {"label": label, "published": _published(study, (how, cores), (how, against))}
                call, whole = pair.above(call_us), pair.above(whole_us)
                lines.append({**line, "ours": pair.setting, "call": call, "whole": whole} | _ns(pair))
    return lay_out(study, "cores", lines)


def _published(study: Study, *cases: tuple[str, tuple[str, str]]) -> int | None:
    """Return the published time of one case less that of another, in µs."""
    found = {
        tuple(
            str(row.ours.case[name][0]) for name in ("transport", "producer_core", "publisher_core")
        ): row.published
        for row in study.table("publish").rows
        if row.ours
    }
    one, other = (found.get((how, *cores)) for how, cores in cases)
    return None if one is None or other is None else round(1000 * (one - other))


def _ns(pair: Pair) -> Figures:
    """Return how many messages of both, and the boots that have both."""
    both = {message.boot for message in pair.one} & {message.boot for message in pair.other}
    return {"n": f"{len(pair.one):,} / {len(pair.other):,}", "boots": len(both)}


def _p50_difference(pair: Pair) -> float | None:
    one, other = (
        median([call_us(message) for message in own], [message.boot for message in own]).value
        for own in (pair.one, pair.other)
    )
    return None if one is None or other is None else one - other

# SPDX-License-Identifier: Apache-2.0
"""The published tables of rtos-mqtt beside ours: times of a publish, and how many there were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from hil.metrics.stats import mean
from hil.model import RunRecord
from hil.reports.studies.comparison import published_text, row_notes, table_notes
from hil.reports.studies.declaration import Row, Study
from hil.reports.studies.document import NONE, NOT_MEASURED, Table
from hil.reports.studies.estimate import Estimate, estimate, median
from hil.reports.studies.layout import lay_out, published_table
from hil.reports.studies.records import BoardRun, boots, grouped, whole
from hil.reports.studies.rtos_mqtt.messages import (
    BENCH,
    OK,
    OVERRUN,
    Message,
    called,
    mean_of,
    messages_of,
    setting,
    transport,
)

_RATE_OFF = 0.02


def their_mean_ms(messages: Sequence[Message]) -> float | None:
    """Return the study's average: whole ms read before and after, mutex and serialising between, of one run.

    The run is the first boot, and only what was published counts. None where nothing was.
    """
    done = [message for message in messages if message.outcome == OK]
    return mean([message.whole_ms for message in done if message.boot == done[0].boot]) if done else None


def time_table(table_id: str, study: Study, run: BoardRun) -> Table:
    """Return the study's rows: published, then ours for each setting that was measured; ms."""
    published = study.table(table_id)
    lines, notes = [], table_notes(published)
    for row in published.rows:
        groups = groups_of(row, run)
        head = {"label": row.label, "shown": published_text(row), "published": row.published}
        for name, records in groups.items():
            found = _Times(called(records))
            figures = {"mean": found.mean, "p50": found.p50, "p99": found.p99, "n": found.mean.n}
            counts = {"boots": boots(records), "lost": lost_of(records)}
            lines.append({**head, "ours": name, "their_way": found.theirs, **figures, **counts})
        if not groups:
            lines.append({**head, "ours": NOT_MEASURED, "n": 0, "boots": 0})
        notes += row_notes(row, run, measured=bool(groups))
    return published_table(study, "publish", published, lines, notes)


class _Times:
    """The figures of a row."""

    def __init__(self, messages: Sequence[Message]) -> None:
        values = [message.call_ms for message in messages]
        self.theirs = their_mean_ms(messages)
        self.mean: Estimate = mean_of(messages, attrgetter("call_ms"))
        self.p50: Estimate = median(values, [message.boot for message in messages])
        self.p99: Estimate = estimate(values, 0.99)


def lost_of(records: Sequence[RunRecord]) -> int | None:
    """Return how many messages after the warm-up did not arrive; None where no ledger was kept."""
    if not all("owner" in record.columns for record in records):
        return None
    return sum(message.owner != 0 for message in messages_of(records))


def groups_of(row: Row, run: BoardRun) -> Mapping[str, Sequence[RunRecord]]:
    """Return the records of a row by setting, that which is as often as the study says first."""
    records = run.select(row.ours) if row.ours else ()
    slowest_first = sorted(records, key=lambda record: -whole(record, "interval_us"))
    return grouped(slowest_first, setting)


def count_table(table_id: str, study: Study, run: BoardRun) -> Table:
    """Return how many were published, as the study counts and against duration × rate."""
    published = study.table(table_id)
    lines, notes = [], table_notes(published)
    corrected = any(row.formula for row in published.rows)
    for row in published.rows:
        groups = groups_of(row, run)
        head = {"label": row.label, "shown": published_text(row), "published": row.published, "of": row.of}
        head["corrected"] = row.formula or NONE
        for name, records in groups.items():
            lines.append({**head, "ours": name, "boots": boots(records), **_counts(records)})
        if not groups:
            lines.append({**head, "ours": NOT_MEASURED})
        notes += row_notes(replace(row, why=""), run, measured=bool(groups))
    notes += ["corrected: the published number over the 300 s of a run"] if corrected else []
    without = () if corrected else ("corrected",)
    return published_table(study, "publishes", published, lines, notes, without=without)


def _counts(records: Sequence[RunRecord]) -> Mapping[str, object]:
    """Return how many were planned, handed over and arrived, and how often, in messages a second."""
    each = [messages_of([record]) for record in records]
    done = sum(message.outcome == OK for own in each for message in own)
    planned = sum(map(len, each))
    spans = [_span_s(record, own) for record, own in zip(records, each, strict=True)]
    due = [len(own) * whole(record, "interval_us") / 1e6 for record, own in zip(records, each, strict=True)]
    achieved = done / sum(spans) if sum(spans) else None
    asked = planned / sum(due) if sum(due) else None
    return {
        "planned": planned,
        "handed_over": done,
        "overruns": sum(message.outcome == OVERRUN for own in each for message in own),
        "a_second": achieved,
        "planned_a_second": asked,
        "off": "yes" if _is_off(achieved, asked) else "no",
        "arrived": planned - lost if (lost := lost_of(records)) is not None else None,
    }


def _is_off(achieved: float | None, asked: float | None) -> bool:
    return achieved is None or not asked or abs(achieved / asked - 1) > _RATE_OFF


def _span_s(record: RunRecord, messages: Sequence[Message]) -> float:
    """Return from the first planned message to the interval's end after the last, planned or sent."""
    if not messages:
        return 0.0
    sent = [message.sent_us for message in messages if message.was_called]
    last_us = max(messages[-1].planned_us, *sent)
    return (last_us - messages[0].planned_us + whole(record, "interval_us")) / 1e6


def hold_groups(run: BoardRun) -> dict[int, tuple[RunRecord, ...]]:
    """Return the records by how long the producer holds the mutex, where more than one time was measured.

    The rest of their cases is the same; in µs, ascending.
    """
    found: dict[str, dict[int, list[RunRecord]]] = {}
    for record in run.of(BENCH):
        others = {name: value for name, value in record.parameters.items() if name != "hold_us"}
        key = repr(sorted(others.items(), key=lambda pair: pair[0]))
        found.setdefault(key, {}).setdefault(whole(record, "hold_us"), []).append(record)
    most = max(found.values(), key=len, default={})
    return {hold: tuple(most[hold]) for hold in sorted(most)} if len(most) > 1 else {}


def hold_table(study: Study, run: BoardRun) -> Table | None:
    """Return the publish call and the wait for the mutex by how long the producer holds it."""
    groups = hold_groups(run)
    lines = []
    for hold_us, records in groups.items():
        found = called(records)
        begun = estimate([(message.begun_us - message.planned_us) / 1000 for message in found], 0.5)
        means = {
            "call_ms": mean_of(found, attrgetter("call_ms")),
            "mutex_wait_ms": mean_of(found, attrgetter("mutex_ms")),
        }
        most = max((one.mutex_ms for one in found), default=None)
        lines.append(
            {
                "held": f"{hold_us / 1000:g} ms",
                "hold_us": hold_us,
                "hold_ms": hold_us / 1000,
                **means,
                "mutex_wait_max_ms": most,
            }
            | {"begun_after_plan_ms": begun, "their_way_ms": their_mean_ms(found), "n": len(found)}
            | {"boots": boots(records)}
        )
    if not lines:
        return None
    first = next(iter(groups.values()))[0]
    every = f"{whole(first, 'interval_us') / 1000:g}"
    return lay_out(study, "hold", lines, transport=transport(first), every=every)

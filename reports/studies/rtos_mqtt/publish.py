# SPDX-License-Identifier: Apache-2.0
"""The published tables of rtos-mqtt beside ours: times of a publish, and how many there were."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hil.metrics.stats import mean
from hil.model import RunRecord
from hil.reports.studies.comparison import published_text, row_notes, table_notes
from hil.reports.studies.declaration import Comparison, Row
from hil.reports.studies.declaration import Table as Published
from hil.reports.studies.document import NONE, NOT_MEASURED, Line, Picture, Table, number
from hil.reports.studies.estimate import Estimate, estimate, median
from hil.reports.studies.records import BoardRun, boots, whole
from hil.reports.studies.rtos_mqtt.messages import (
    BENCH,
    OK,
    OVERRUN,
    Message,
    by_name,
    call_ms,
    called,
    mean_of,
    messages_of,
    mutex_ms,
    setting,
    transport,
)

_TIME_COLUMNS = ("", "published", "ours", "their way", "mean", "p50", "p99", "n", "boots", "lost")
_COUNT_COLUMNS = (
    "",
    "published",
    "corrected",
    "ours",
    "duration × rate",
    "handed over",
    "a second",
    "rate off",
    "arrived",
)
_RATE_OFF = 0.02


def their_mean_ms(messages: Sequence[Message]) -> float | None:
    """Return the study's average: whole ms read before and after, mutex and serialising between, of one run.

    The run is the first boot, and only what was published counts. None where nothing was.
    """
    done = [message for message in messages if message.outcome == OK]
    return mean([message.whole_ms for message in done if message.boot == done[0].boot]) if done else None


def time_table(published: Published, run: BoardRun) -> Table:
    """Return the study's rows: published, then ours for each setting that was measured; ms."""
    rows, data, notes = [], [], table_notes(published)
    for row in published.rows:
        groups = groups_of(row, run)
        head = (row.label, published_text(row))
        if not groups:
            rows.append((*head, NOT_MEASURED, *[NONE] * 4, "0", "0", NONE))
        for name, records in groups.items():
            found = _Times(called(records, row.ours))
            cells = (number(found.theirs), found.mean.text, found.p50.short, found.p99.short)
            lost = lost_of(records)
            counts = (f"{found.mean.n:,}", str(boots(records)), NONE if lost is None else f"{lost:,}")
            rows.append((*head, name, *cells, *counts))
            data.append(
                {"label": row.label, "published": row.published, "ours": name, "their_way": found.theirs}
                | {"mean": found.mean.data, "p50": found.p50.data, "p99": found.p99.data}
                | {"boots": boots(records), "lost": lost}
            )
            head = ("", "")
        notes += row_notes(row, run, measured=bool(groups))
    notes.append(_OURS)
    title = f"{published.title}, ms"
    return Table(published.id, title, _TIME_COLUMNS, tuple(rows), tuple(notes), tuple(data))


_OURS = (
    "their way: mean of the first boot, whole ms read before and after, with the wait for the mutex and "
    "serialising between them; mean, p50, p99: the publish call alone, by esp_timer; lost: messages that did "
    "not arrive"
)


class _Times:
    """The figures of a row."""

    def __init__(self, messages: Sequence[Message]) -> None:
        values = [call_ms(message) for message in messages]
        self.theirs = their_mean_ms(messages)
        self.mean: Estimate = mean_of(messages, call_ms)
        self.p50: Estimate = median(values, [message.boot for message in messages])
        self.p99: Estimate = estimate(values, 0.99)


def lost_of(records: Sequence[RunRecord]) -> int | None:
    """Return how many messages after the warm-up did not arrive; None where no ledger was kept."""
    if not all("owner" in record.columns for record in records):
        return None
    return sum(message.owner != 0 for message in messages_of(records))


def groups_of(row: Row, run: BoardRun) -> Mapping[str, tuple[RunRecord, ...]]:
    """Return the records of a row by setting, that which is as often as the study says first."""
    records = run.select(row.ours) if row.ours else ()
    slowest_first = sorted(records, key=lambda record: -whole(record, "interval_us"))
    return by_name(slowest_first, setting)


def count_table(published: Published, run: BoardRun) -> Table:
    """Return how many were published, as the study counts and against duration × rate."""
    rows, data, notes = [], [], table_notes(published)
    corrected = any(row.formula for row in published.rows)
    for row in published.rows:
        groups = groups_of(row, run)
        head = (row.label, published_text(row), *([row.formula or NONE] if corrected else []))
        if not groups:
            rows.append((*head, NOT_MEASURED, *[NONE] * 5))
        for name, records in groups.items():
            found = _counts(records, row.ours)
            rows.append((*head, name, *_count_cells(found)))
            data.append(
                {"label": row.label, "published": row.published, "of": row.of, "corrected": row.formula}
                | {"ours": name, "boots": boots(records), **found}
            )
            head = ("",) * len(head)
        notes += row_notes(replace(row, why=""), run, measured=bool(groups))
    columns = tuple(name for name in _COUNT_COLUMNS if corrected or name != "corrected")
    notes += [f"corrected: {_WHY}"] if corrected else []
    notes.append(_COUNTED)
    return Table(published.id, published.title, columns, tuple(rows), tuple(notes), tuple(data))


_WHY = "the published number over the 300 s of a run"
_COUNTED = (
    "duration × rate: what was planned, all boots together; handed over: publish calls that succeeded; a "
    "second: those, over the time from the first planned to the last planned or sent; rate off: that is "
    "more than 2 % off the planned rate; arrived: what the subscriber noted"
)


def _counts(records: Sequence[RunRecord], ours: Comparison | None) -> Mapping[str, float | None]:
    """Return how many were planned, handed over and arrived, and how often, in messages a second."""
    each = [messages_of([record], ours) for record in records]
    done = sum(message.outcome == OK for own in each for message in own)
    planned = sum(map(len, each))
    spans = [_span_s(record, own) for record, own in zip(records, each, strict=True)]
    due = [len(own) * whole(record, "interval_us") / 1e6 for record, own in zip(records, each, strict=True)]
    return {
        "planned": planned,
        "handed_over": done,
        "overruns": sum(message.outcome == OVERRUN for own in each for message in own),
        "a_second": done / sum(spans) if sum(spans) else None,
        "planned_a_second": planned / sum(due) if sum(due) else None,
        "arrived": planned - lost if (lost := lost_of(records)) is not None else None,
    }


def _span_s(record: RunRecord, messages: Sequence[Message]) -> float:
    """Return from the first planned message to the interval's end after the last, planned or sent."""
    if not messages:
        return 0.0
    sent = [message.sent_us for message in messages if message.was_called]
    last_us = max(messages[-1].planned_us, *sent)
    return (last_us - messages[0].planned_us + whole(record, "interval_us")) / 1e6


def _count_cells(found: Mapping[str, float | None]) -> tuple[str, ...]:
    achieved, planned, arrived = (found[name] for name in ("a_second", "planned_a_second", "arrived"))
    off = achieved is None or not planned or abs(achieved / planned - 1) > _RATE_OFF
    return (
        f"{found['planned']:,}",
        f"{found['handed_over']:,}",
        number(achieved),
        "yes" if off else "no",
        NONE if arrived is None else f"{arrived:,}",
    )


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


def hold_table(run: BoardRun) -> Table | None:
    """Return the publish call and the wait for the mutex by how long the producer holds it."""
    groups = hold_groups(run)
    if not groups:
        return None
    rows, data = [], []
    for hold_us, records in groups.items():
        found = called(records)
        waits = [mutex_ms(message) for message in found]
        call, wait = mean_of(found, call_ms), mean_of(found, mutex_ms)
        theirs = their_mean_ms(found)
        begun = estimate([(message.begun_us - message.planned_us) / 1000 for message in found], 0.5)
        cells = (call.text, wait.text, number(max(waits, default=None)), begun.short)
        rows.append(
            (f"{hold_us / 1000:g} ms", *cells, number(theirs), f"{len(found):,}", str(boots(records)))
        )
        data.append(
            {"hold_us": hold_us, "call_ms": call.data, "mutex_wait_ms": wait.data, "their_way_ms": theirs}
            | {"mutex_wait_max_ms": max(waits, default=None), "begun_after_plan_ms": begun.data}
        )
    first = next(iter(groups.values()))[0]
    columns = (
        "held for",
        "publish call",
        "wait for mutex",
        "wait max",
        "begun after plan",
        "their way",
        "n",
        "boots",
    )
    notes = (
        f"{transport(first)}, every {whole(first, 'interval_us') / 1000:g} ms: the producer holds the mutex "
        "so long for each message, as the study's sensor task does while it reads; publish call and wait: "
        "means; begun after plan: median, from the planned time until the publisher asks for the mutex",
        "our publisher is woken once the mutex is free, so it waits only where the next reading begins "
        "before it has finished, and what the mutex is held delays the beginning instead; the study's "
        "publisher does not wait for a reading, and meets the mutex by chance",
    )
    title = "Publishing while the producer holds the mutex, ms"
    picture = _picture(groups)
    return Table("hold", title, columns, tuple(rows), notes, tuple(data), picture=picture)


def _picture(groups: dict[int, tuple[RunRecord, ...]]) -> Picture:
    lines = (
        ("wait for the mutex, mean", "stat-tail5", mutex_ms),
        ("publish call, mean", "stat-p95", call_ms),
    )
    return Picture(
        "",
        "mutex held, ms",
        tuple(Line(name, style, _points(groups, value)) for name, style, value in lines),
    )


def _points(
    groups: dict[int, tuple[RunRecord, ...]], value: Callable[[Message], float]
) -> tuple[tuple[float, float, float | None, float | None], ...]:
    found = []
    for hold_us, records in groups.items():
        one = mean_of(called(records), value)
        if one.value is not None:
            found.append((hold_us / 1000, one.value, None, None))
    return tuple(found)

"""Publishing while the producer holds the mutex that the publisher needs too."""

from __future__ import annotations

from collections.abc import Callable

from hil.model import RunRecord
from reports.reproduction.document import Line, Picture, Table, number
from reports.reproduction.estimate import estimate
from reports.reproduction.records import BoardRun, boots, whole
from reports.reproduction.rtos_messages import (
    BENCH,
    Message,
    call_ms,
    called,
    mean_of,
    mutex_ms,
    transport,
)
from reports.reproduction.rtos_publish import their_mean_ms


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

"""What the clocks themselves take: the least difference, a pair of readings, the call that is inside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.model import RunRecord
from hil.reference import Study
from reports.reproduction.comparison import published_text, row_notes, table_notes
from reports.reproduction.cycles import OK
from reports.reproduction.document import NONE, NOT_MEASURED, Table, number
from reports.reproduction.estimate import estimate, median
from reports.reproduction.records import BoardRun, boots, fact, word

_COLUMNS = ("", "published", "p50", "p95", "p99", "max", "n", "boots")
_GIVE = "give_ns"
_PLACEMENTS = {"same": "on core 0", "cross": "on core 1", "free": "anywhere"}  # where the giver runs


def cost_tables(study: Study, run: BoardRun) -> tuple[Table, ...]:
    """Return the granularity with the cost of reading, and the time of giving."""
    return _granularity(study, run), _give(study, run)


def _granularity(study: Study, run: BoardRun) -> Table:
    published = study.table("granularity")
    records = run.select(published.ours) if published.ours else ()
    row = published.rows[0]
    lines = [
        ("two readings of the counter, cycles", published_text(row), "clock_read_cycles"),
        ("a pair of stamps on esp_timer, µs", NONE, "clock_stamp_us"),
    ]
    rows, data = [], []
    for name, text, key in lines:
        found = sorted(value for record in records if (value := fact(record, "device", key)) is not None)
        ours = f"{found[0]:g} to {found[-1]:g}" if found else NOT_MEASURED
        rows.append((name, text, ours, str(len(found)), str(boots(records))))
        data.append({"quantity": name, "values": found})
    notes = (*table_notes(published), *row_notes(row, run, measured=bool(records)))
    return Table(
        published.id,
        "What reading the clocks takes",
        ("", "published", "ours, least to most", "cases", "boots"),
        tuple(rows),
        notes,
        tuple(data),
    )


def _give(study: Study, run: BoardRun) -> Table:
    published = study.table("give")
    records = run.select(published.ours) if published.ours else ()
    row = published.rows[0]
    rows: list[tuple[str, ...]] = []
    data: list[Mapping[str, object]] = []
    head = published_text(row)
    for placement, words in _PLACEMENTS.items():
        own = [record for record in records if word(record, "placement") == placement]
        values, of_boot = _give_us(own)
        if values:
            rows.append((f"{row.label}, {words}", head, *_cells(values, of_boot)))
            data.append(
                {"placement": placement, "p50_us": median(values, of_boot).data, "max_us": max(values)}
            )
    if not rows:
        rows.append((row.label, head, NOT_MEASURED, *[NONE] * 3, "0", "0"))
    notes = (*table_notes(published), *row_notes(row, run, measured=bool(data)))
    return Table(published.id, f"{published.title}, µs", _COLUMNS, tuple(rows), notes, tuple(data))


def _give_us(records: Sequence[RunRecord]) -> tuple[list[float], list[int]]:
    """Return the times of the calls, with nobody waiting, in µs, and the boots that they are from."""
    found = [
        (record.columns[_GIVE][row] / 1000, record.boot_index)
        for record in records
        for row in range(record.warmup_rows, record.rows)
        if record.columns["outcome"][row] == OK
    ]
    return [value for value, _ in found], [boot for _, boot in found]


def _cells(values: Sequence[float], of_boot: Sequence[int]) -> tuple[str, ...]:
    high = (estimate(values, share).short for share in (0.95, 0.99))
    counts = (f"{len(values):,}", str(len(set(of_boot))))
    return (median(values, of_boot).text, *high, number(max(values)), *counts)

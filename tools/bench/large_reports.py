# SPDX-License-Identifier: Apache-2.0
"""What large reports are made of: a year of nights of two racks, and a night of 10,000 results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from msgspec.structs import replace as replaced

from hil.gate import judge
from hil.history import keep
from hil.history.from_run import keep_run
from hil.history.summary import CaseFigures, StoredFigure, Summary
from hil.model import RunRecord, SeriesVerdict, Verdict, format_case_id, format_series_id
from hil.store import RunDirectory, read_judged_run, time_in
from tests.history.history_files import night, values_in
from tests.make_records import publish_record, publish_thresholds, run_info

RACKS, BOARDS, CASES, BOOTS = ("north", "south"), ("e1", "e2", "e3", "e4"), 20, 12
METRICS = ("publish_latency_p50_us", "publish_latency_p95_us", "publish_latency_p99_us")
LIMIT_US = 25_000
_NEWEST = "20261231T020000Z-nightly-north"


def write_year(out: Path, nights: int) -> Path:
    """Leave ``nights`` nights of eight boards with sixty series each below ``out``: boot values, what the
    gate said of each night, and the newest run's folder, which is returned.
    """
    for number in range(nights):
        for rack in RACKS:
            run = night(number, rack=rack, boards=BOARDS, cases=CASES, metrics=METRICS, boots=BOOTS)
            keep(out / "history", replaced(run, outcome="pass", cases=tuple(_cases(run))))
    newest = _store(out, _NEWEST, "north", [publish_record(board=board) for board in BOARDS])
    keep_run(read_judged_run(newest), out / "history")
    return newest


def write_results(out: Path, boards: int, cases: int, *, rows: int = 12) -> Path:
    """Leave a judged run of ``boards`` × ``cases`` cases of ``rows`` samples; return its folder."""
    names = [f"virtual-{number:02}" for number in range(boards)]
    first = [publish_record(board=board, rows=rows) for board in names]
    records = [_other_case(record, number) for record in first for number in range(cases)]
    verdict = judge(first, {"publish": publish_thresholds()})
    series = tuple(_of_case(item, number) for item in verdict.series for number in range(cases))
    return _store(out, "20261121T020000Z-nightly-many", "virtual", records, replace(verdict, series=series))


def _store(
    out: Path, run_id: str, rack: str, records: list[RunRecord], verdict: Verdict | None = None
) -> Path:
    own = [replace(record, run_id=run_id, rack=rack) for record in records]
    info = run_info(
        run_id=run_id,
        started_utc=time_in(run_id),
        rack=rack,
        suite="nightly",
        trigger="nightly",
        git={"commit": "f" * 40, "dirty": False},
        boards=[{"id": one, "kind": "virtual", "target": "virtual-esp32"} for one in _boards(own)],
    )
    directory = RunDirectory.create(out, info)
    for record in own:
        directory.append(record)
    judged = verdict or judge(own, {"publish": publish_thresholds()})
    directory.write_verdict(replace(judged, run_id=run_id))
    directory.write_summary("")
    return directory.path


def _boards(records: list[RunRecord]) -> list[str]:
    return sorted({record.board for record in records})


def _other_case(record: RunRecord, number: int) -> RunRecord:
    return replace(record, parameters={**record.parameters, "payload_bytes": 64 + number})


def _of_case(item: SeriesVerdict, number: int) -> SeriesVerdict:
    case_id = format_case_id("publish", _other_case(publish_record(rows=1), number).parameters)
    series_id = format_series_id("virtual", item.board, case_id, item.metric)
    return replace(item, case_id=case_id, case_label=f"payload_bytes={64 + number}", series_id=series_id)


def _cases(run: Summary) -> Iterator[CaseFigures]:
    """Yield what the gate would have said of a night: the first boot of each series."""
    held = values_in(run)
    found: dict[tuple[int, int], dict[str, StoredFigure]] = {}
    position = 0
    for case, metric, boots in zip(held.series.case, held.series.metric, held.series.boots, strict=True):
        for boot in held.boot_sets[boots]:
            figure = StoredFigure(held.values[position], "pass", LIMIT_US, blocking=True)
            found.setdefault((held.boots.board[boot], case), {}).setdefault(held.metrics[metric], figure)
            position += 1
    for (board, case), metrics in found.items():
        name, measured = held.cases[case], held.boards[board]
        yield CaseFigures(measured.id, "physical", measured.target, name, name.partition("/")[2], metrics)

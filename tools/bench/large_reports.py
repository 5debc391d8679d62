# SPDX-License-Identifier: Apache-2.0
"""What large reports are made of: a year of nights of two racks, and a night of 10,000 results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hil.gate import judge
from hil.history import append
from hil.history.segment import Segment
from hil.model import RunRecord, SeriesVerdict, Verdict, format_case_id, format_series_id
from hil.reports.history import append_run, with_runs, write_history
from hil.store import RunDirectory, read_judged_run, time_in
from tests.history.history_files import night
from tests.make_records import publish_record, publish_thresholds, run_info

RACKS, BOARDS, CASES, BOOTS = ("north", "south"), ("e1", "e2", "e3", "e4"), 20, 12
METRICS = ("publish_latency_p50_us", "publish_latency_p95_us", "publish_latency_p99_us")
LIMIT_US = 25_000
_NEWEST = "20261231T020000Z-nightly-north"


def write_year(out: Path, nights: int) -> Path:
    """Leave ``nights`` nights of eight boards with sixty series each below ``out``: boot values, what the
    gate said of each night, and the newest run's folder, which is returned.
    """
    lines = []
    for number in range(nights):
        for rack in RACKS:
            segment = night(number, rack=rack, boards=BOARDS, cases=CASES, metrics=METRICS, boots=BOOTS)
            append(out / "history", segment)
            lines.append(_line(segment))
    history = out / "history" / "metrics.jsonl"
    history.parent.mkdir(parents=True, exist_ok=True)
    write_history(history, with_runs([], lines))
    run = _store(out, _NEWEST, "north", [publish_record(board=board) for board in BOARDS])
    append_run(history, read_judged_run(run))
    return run


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


def _line(segment: Segment) -> dict[str, object]:
    """Return what the history of verdicts would hold of a night: the first boot of each series."""
    return {
        "schema": 1,
        "run_id": segment.run_id,
        "started_utc": segment.started_utc,
        "commit": segment.commit,
        "dirty": False,
        "trigger": segment.trigger,
        "rack": segment.rack,
        "profile": "",
        "suite": segment.suite,
        "outcome": "pass",
        "exit_code": 0,
        "url": "",
        "cases": list(_cases(segment)),
    }


def _cases(segment: Segment) -> Iterator[dict[str, object]]:
    found: dict[tuple[int, int], dict[str, float]] = {}
    position = 0
    for case, metric, boots in segment.series.tolist():
        for boot in segment.boot_sets[boots]:
            board = segment.boots[boot].board
            found.setdefault((board, case), {}).setdefault(
                segment.metrics[metric], float(segment.values[position])
            )
            position += 1
    for (board, case), metrics in found.items():
        yield {
            "board": segment.boards[board].id,
            "kind": segment.boards[board].kind,
            "target": segment.boards[board].target,
            "case_id": segment.cases[case],
            "label": segment.cases[case].partition("/")[2],
            "metrics": {name: _metric(value) for name, value in metrics.items()},
        }


def _metric(value: float) -> dict[str, object]:
    known = value if value != float("inf") else None
    return {"value": known, "outcome": "pass", "limit": LIMIT_US, "blocking": True}

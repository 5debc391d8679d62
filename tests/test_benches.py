"""What each bench asserts of its samples: it holds for what boards sent, and names what cannot be."""

from __future__ import annotations

import gzip
import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.campaign import BENCHES_DIR, bench_stems
from fixtures.options import Planned
from fixtures.results import fault_in_samples
from hil.errors import ConfigError
from hil.model import Case, RunRecord, Scalar
from hil.plan import BoardPlan
from hil.rack import load_rack
from hil.samples import Measure, Samples
from hil.store.entries import entry_from_json
from tests.lab import ROOT

DATA = (
    Path(__file__).parent / "data" / "bench_records.jsonl.gz"
)  # of virtual boards, one of each way to measure


def read_records() -> list[RunRecord]:
    entries = map(entry_from_json, map(json.loads, gzip.decompress(DATA.read_bytes()).splitlines()))
    return [entry for entry in entries if isinstance(entry, RunRecord)]


RECORDS = read_records()


def record_of(bench: str, **parameters: Scalar) -> RunRecord:
    return next(
        record
        for record in RECORDS
        if record.bench == bench and parameters.items() <= dict(record.parameters).items()
    )


def changed(record: RunRecord, by: int, row: int, *columns: str) -> RunRecord:
    """Return the record with another value in one row of these columns."""
    values = {name: list(record.columns[name]) for name in columns}
    for column in values.values():
        column[row] += by
    return replace(record, columns={**record.columns, **{name: tuple(v) for name, v in values.items()}})


def run_bench(*records: RunRecord) -> None:
    """Run the bench's own test on these boots."""
    bench = records[0].bench
    measure: Measure = lambda: [Samples(record) for record in records]  # noqa: E731
    getattr(importlib.import_module(f"hil.benches.test_{bench}"), f"test_{bench}")(measure)


def test_the_records_are_of_benches_that_there_are() -> None:
    """A bench that goes takes its records with it; a new one needs none, for runs try its assertions."""
    assert {record.bench for record in RECORDS} <= set(bench_stems(BENCHES_DIR))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.case_id)
def test_what_a_board_sent_can_be(record: RunRecord) -> None:
    """No assertion refuses what a virtual board really measured."""
    run_bench(record)


@pytest.mark.parametrize(
    ("bench", "parameters", "column", "row", "by"),
    [
        ("cyclictest", {"threads": "all"}, "loops_count", 0, 1),
        ("cyclictest", {}, "host_late_us", 0, 600),
        ("cyclictest", {}, "latency_us", 0, 1),
        ("delivery", {}, "tcp", 5, 2),
        ("delivery", {}, "connection", 5, 7),
        ("echo", {}, "order", 3, 1),
        ("echo", {}, "copies", 3, -1),
        ("footprint", {}, "slot_free_bytes", 0, 1),
        ("hartstone", {}, "activations_count", 0, 1),
        ("hartstone", {}, "sustained_permille", -1, 1),
        ("http_gateway", {}, "http_us", 0, 1_000_000),
        ("http_gateway", {}, "resumed", 0, 1),
        ("jitter", {}, "deviation_us", 7, 1),
        ("jitter", {"source": "gptimer"}, "isr_us", 7, -1000),
        ("mcrae", {}, "scenario", 3, 1),
        ("memory", {}, "corrected_ns", 0, 1_000_000),
        ("publish", {}, "sent_us", 7, -1000),
        ("publish", {}, "done_us", 7, 6_000_000),
        ("publish", {}, "outcome", 7, 4),
        ("reconnect", {"cause": "access_point"}, "detected_us", 0, 1),
        ("reconnect", {}, "gap_us", 0, -300_000),
        ("rhealstone", {}, "per_second_count", 0, 1),
        ("rhealstone", {}, "outcome", 6, 1),
        ("startup", {}, "boot_us", 3, 1),
        ("task_switch", {"placement": "cross"}, "end_core", 5, 1),
        ("task_switch", {"placement": "same"}, "corrected_ns", 5, 1_000_000),
        ("thread_metric", {}, "rate_ops", 0, 5),
        ("throughput", {}, "received_bps", 4, 1),
    ],
)
def test_what_cannot_be_is_named(
    bench: str, parameters: dict[str, Scalar], column: str, row: int, by: int
) -> None:
    """One value that contradicts another fails the bench's test; the sentence names the column."""
    record = record_of(bench, **parameters)
    with pytest.raises(AssertionError) as caught:
        run_bench(record, changed(replace(record, boot_index=1), by, row, column))
    said = f"{caught.value} {caught.traceback[-1].statement}"
    assert column in said or column in str(caught.traceback[-2].statement), said


def test_the_sentence_names_row_columns_and_values() -> None:
    """The way to the value is in it, of which boot and row, as pytest explains a comparison."""
    record = record_of("publish")
    with pytest.raises(AssertionError) as caught:
        run_bench(record, changed(replace(record, boot_index=1), -1000, 7, "sent_us"))
    planned, sent = record.columns["planned_us"][7], record.columns["sent_us"][7]
    said = str(caught.value)
    assert f"{sent - 1000} = boot[1].row[7].sent_us" in said
    assert f"{planned} = boot[1].row[7].planned_us" in said


def test_intervals_sum_to_what_the_timer_advanced() -> None:
    """A period that a task counted twice is seen, though each row agrees with itself."""
    record = record_of("jitter", source="delay_until")
    row = record.columns["deviation_us"].index(0)
    with pytest.raises(AssertionError, match=r"boot\[0\]\.row\[0\] to boot\[0\]\.row\[109\]"):
        run_bench(changed(record, 20_000, row, "interval_us", "deviation_us"))


def test_bytes_of_the_intervals_sum_to_the_total() -> None:
    """An interval that is not in the total is seen."""
    record = record_of("throughput", protocol="tcp")
    received, interval = record.columns["received_bytes"][9], record.columns["interval_us"][9]
    bps = (received + 1000) * 8_000_000 // interval - record.columns["received_bps"][9]
    with pytest.raises(AssertionError, match="received_bytes"):
        run_bench(changed(changed(record, 1000, 9, "received_bytes"), bps, 9, "received_bps"))


def test_a_column_that_is_missing_is_named() -> None:
    """The assertion and the firmware do not fit each other; nobody takes that for a broken one."""
    record = record_of("footprint")
    with pytest.raises(
        ConfigError, match="column 'image_bytes', which there is not; did you mean 'image_byte'"
    ):
        run_bench(replace(record, columns={"image_byte": (1,)}))
    with pytest.raises(ConfigError, match="fact 'cpu_mhz'"):
        run_bench(replace(record_of("memory"), environment={"device": {}}))
    with pytest.raises(ConfigError, match="parameter 'count'"):
        run_bench(replace(record_of("publish"), parameters={"schedule": "random", "timeout_ms": 1}))


def test_who_is_to_blame_for_what_a_test_raises() -> None:
    """A test of a bench that does not run is no fault of the firmware, nor is an assertion of the harness."""
    case = Case("publish", {"qos": 1})
    plan = BoardPlan(load_rack(ROOT / "hil" / "racks" / "virtual.yaml").boards[0], ((case,),), ())
    planned = Planned(plan, case, "qos=1")
    assert [
        fault_in_samples(planned, raised_by(error)).owner
        for error in (TypeError("no"), AssertionError("of the harness"), ConfigError("no column"))
    ] == ["rig", "rig", "configuration"]
    assert "publish/qos=1 on board v1: the harness failed in " in str(
        fault_in_samples(planned, raised_by(TypeError("no")))
    )


def raised_by(error: Exception) -> Exception:
    """Return the error with where it was raised: here, which is not in hil/benches."""
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value

# SPDX-License-Identifier: Apache-2.0
"""Records for tests: what four virtual boards would have sent, from a seed."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hil import thresholds
from hil.model import Entry, Kind, RunRecord, Scalar, Verdict
from hil.store import RunDirectory, RunInfo, time_in
from hil.store.codec import build
from hil.thresholds.types import Thresholds

THRESHOLDS_ROOT = Path(__file__).parent.parent / "thresholds"
RUN_ID = "20261120T221257Z-quick-3fa9"
_INFO: Mapping[str, object] = {
    "run_id": RUN_ID,
    "rack": "virtual",
    "suite": "quick",
    "trigger": "local",
    "started_utc": "2026-11-20T22:12:57Z",
    "argv": [],
    "user": "",
    "host": "",
    "git": {"commit": "", "dirty": False},
    "tool": {"commit": "", "dirty": False},
    "versions": {},
    "ci": {},
    "boards": [],
    "plan": {},
    "firmware": {},
}


def run_info(**changes: object) -> RunInfo:
    """Return what a run of the rack ``virtual`` says of itself; ``changes`` are keys as in run.json."""
    return build(RunInfo, {**_INFO, **changes})


def change_info(run: RunDirectory, **changes: object) -> None:
    """Change keys of a stored run.json."""
    stored = json.loads((run.path / "run.json").read_bytes())
    del stored["schema"]
    run.end(build(RunInfo, {**stored, **changes}))


def leave_run(
    out: Path, entries: Iterable[Entry] = (), verdict: Verdict | None = None, **info: object
) -> RunDirectory:
    """Leave on disk what a run of these entries leaves, judged where there is a verdict; as run_info()."""
    run = RunDirectory.create(out, run_info(**info))
    for entry in entries:
        run.append(entry)
    if verdict:
        run.write_verdict(verdict)
    return run


@functools.cache
def publish_thresholds() -> Thresholds:
    """Return the thresholds file of the bench ``publish`` as it is in the checkout."""
    return thresholds.load("publish", THRESHOLDS_ROOT)


def bench_record(
    bench: str,
    parameters: Mapping[str, Scalar],
    columns: Mapping[str, Sequence[int]],
    environment: Mapping[str, Mapping[str, Scalar]],
    *,
    run_id: str = RUN_ID,
    kind: Kind = "virtual",
    **more: Any,
) -> RunRecord:
    """Return the record of one case on one boot; ``more`` are fields that are not the usual."""
    usual = {
        "rack": "virtual",
        "board": "v1",
        "target": "esp32" if kind == "physical" else f"{kind}-esp32",
        "role": "candidate",
        "boot_index": 0,
        "firmware_sha256": "ab" * 32,
        "ruler_hash": "cd" * 32,
        "protocol_version": 1,
        "clock": "esp_timer",
        "started_utc": time_in(run_id),
        "warmup_rows": 0,
    }
    return RunRecord(
        run_id=run_id,
        kind=kind,
        bench=bench,
        parameters=parameters,
        columns={name: tuple(column) for name, column in columns.items()},
        environment=environment,
        **{**usual, **more},
    )


RECORD_FIELDS = frozenset(("board", "boot_index", "kind", "run_id", "warmup_rows"))


def case_record(
    bench: str,
    usual: Mapping[str, Scalar],
    given: Mapping[str, Any],
    columns: Mapping[str, Sequence[int]],
    environment: Mapping[str, Mapping[str, Scalar]],
) -> RunRecord:
    """Return a record whose parameters and fields are ``given``, the other parameters ``usual``."""
    fields = {name: value for name, value in given.items() if name in RECORD_FIELDS}
    own = {name: value for name, value in given.items() if name not in RECORD_FIELDS}
    return bench_record(bench, {**usual, **own}, columns, environment, **fields)


def publish_record(
    *,
    board: str = "virtual-1",
    boot_index: int = 0,
    overrides: Mapping[str, Scalar] | None = None,
    latency_ms: float = 7.0,
    failed: int = 0,
    rows: int | None = None,
    seed: int = 1,
    environment: Mapping[str, Mapping[str, Scalar]] | None = None,
) -> RunRecord:
    """Return a record whose latencies are spread by about a tenth round ``latency_ms``."""
    case = publish_thresholds().case(overrides or {})
    warmup = int(str(case.parameters["warmup"]))
    measured = int(str(case.parameters["count"])) if rows is None else rows
    environment = {
        "device": {"sched": "fifo", "heap_free_bytes": 180000},
        "access_point": {"profile": "lab"},
        **(environment or {}),
    }
    columns = _columns(warmup, measured, latency_ms, failed, f"{seed}/{board}/{boot_index}")
    own: dict[str, Any] = {"board": board, "boot_index": boot_index, "warmup_rows": warmup}
    return bench_record("publish", case.parameters, columns, environment, **own)


def void_record(count: int, void: int, *, failed: int = 0) -> RunRecord:
    """Return a record whose first measured rows are void: nothing came of them while the host was late.

    ``failed`` rows after them timed out.
    """
    record = publish_record(overrides={"count": count}, failed=void + failed)
    first = record.warmup_rows
    outcomes = tuple(
        2 if first <= n < first + void else outcome for n, outcome in enumerate(record.columns["outcome"])
    )
    late = tuple(5300 - n + first if outcome == 2 else 90 for n, outcome in enumerate(outcomes))
    return replace(record, columns={**record.columns, "outcome": outcomes, "host_late_us": late})


def void_thresholds() -> Thresholds:
    """Return publish_thresholds() with an outcome 2 that makes a row void."""
    base = publish_thresholds()
    metrics = {
        name: replace(each, outcome=each.outcome and replace(each.outcome, void=2))
        for name, each in base.metrics.items()
    }
    return replace(base, metrics=metrics)


@functools.lru_cache(1024)  # the same boots are drawn again and again
def _columns(
    warmup: int, measured: int, latency_ms: float, failed: int, seed: str
) -> dict[str, tuple[int, ...]]:
    chance = random.Random(seed)
    total = warmup + measured
    planned = [n * 20_000 for n in range(total)]
    lost = set(range(warmup, warmup + failed))
    latencies = [chance.gauss(latency_ms, latency_ms / 10) for _ in range(total)]
    done = [
        0 if n in lost else start + max(100, round(latency * 1000))
        for n, (start, latency) in enumerate(zip(planned, latencies, strict=True))
    ]
    return {
        "planned_us": tuple(planned),
        "sent_us": tuple(start + 60 for start in planned),
        "done_us": tuple(done),
        "outcome": tuple(1 if n in lost else 0 for n in range(total)),
        "mutex_wait_us": tuple(chance.randint(1, 30) for _ in range(total)),
        "serialise_us": tuple(chance.randint(20, 40) for _ in range(total)),
        "publish_call_us": tuple(chance.randint(50, 90) for _ in range(total)),
    }


def quick_run(
    boards: Sequence[str] = ("virtual-1", "virtual-2", "virtual-3", "virtual-4"),
) -> list[RunRecord]:
    """Return what a healthy quick run leaves: every case on every board, one boot."""
    return [
        publish_record(board=board, overrides=case.parameters, latency_ms=_usual_latency_ms(case.parameters))
        for board in boards
        for case in publish_thresholds().cases("quick")
    ]


def _usual_latency_ms(parameters: Mapping[str, Scalar]) -> float:
    if parameters["api"] == "enqueue":
        return 500.0
    return 14.0 if parameters["qos"] == 2 else 7.0

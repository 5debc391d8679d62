# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.golden.make``: make the stored run and history, where there are none.

They are data: once committed they are read as they are, and changed only where their format is.
The same program makes the same bytes; it refuses to write over what is there.
"""

from __future__ import annotations

import json
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hil.ci.plan import CiPlan, Leg, write_plan
from hil.model import Case, Cause, Comparison, Entry, Fault, NotRun, Role, RunRecord, Series
from hil.network.ledger.attribution import attribute
from hil.network.ledger.evidence import Arrival, Handed, LossEvidence, Sighting
from hil.network.ledger.files import write_ledger
from hil.store import Reported, RunDirectory, RunInfo
from hil.store.codec import build
from hil.thresholds import Thresholds
from hil.trace.files import Origin, store_trace
from tests.golden import past
from tests.golden.comparing import STORED, STORED_DIGEST, digest_of
from tests.golden.rig import (
    BOARDS,
    DAY,
    NOISE_INFO,
    QUARANTINE,
    RACK,
    TOOL,
    Boot,
    Level,
    boards_info,
    digest,
    image,
    later,
    write_thresholds,
)
from tests.trace.trace_events import inverted, on_a_host, series_of

RUN_ID = "20261121T141500Z-pr-60fd"
STARTED = f"{DAY}T14:15:00Z"
HEAD, BASE = digest("head")[:40], digest("base")[:40]
COMPARED = ("e1", "e2", "e4", "e5")
LOOKS = ((2, 2), (3, 3))
TICK_100 = "virtual-esp32+tick100"
PANIC = (
    "board e3 panicked in publish: Guru Meditation Error: Core 0 panic'ed (Load access fault). "
    "Next: decode the backtrace in console/e3.log."
)
NO_FLASH = (
    "board e6 could not be flashed over /dev/ttyUSB6: no answer from its loader. "
    "Next: look at its cable, then hil board flash e6."
)
BROKER_GONE = "the broker did not answer for 12 s. Next: look at its log, broker.log."
_ORDER: Sequence[Role] = ("candidate", "base", "base", "candidate", "candidate", "base")
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "hil/tests/golden")


def main() -> int:
    if STORED.exists():
        print(f"{STORED} is there: stored data is never made anew; remove it by hand if it must be.")
        return 2
    out = STORED / "out"
    run = RunDirectory.create(out, build(RunInfo, _info()))
    (out / "latest").unlink()
    thresholds = write_thresholds(run.path / "thresholds")
    with tempfile.TemporaryDirectory() as work:
        past.write_past(out, Path(work), thresholds, run.path / "thresholds")
    for entry in _entries(run.path, thresholds):
        run.append(entry)
    run.write_reported(_REPORTED)
    _write_consoles(run.path)
    _write_raw_results(run.path, thresholds)
    write_plan(_plan(), STORED / "plan.json")
    STORED_DIGEST.write_text(f"{digest_of(STORED)}\n", encoding="utf-8")
    return 0


def _cases(thresholds: dict[str, Thresholds]) -> dict[str, Case]:
    publish, tls, qos2 = thresholds["publish"].suites["pr"]
    wakes, tick_100, mutex = thresholds["jitter"].suites["pr"]
    return {
        "publish": publish,
        "tls": tls,
        "qos2": qos2,
        "throughput": thresholds["throughput"].suites["pr"][0],
        "footprint": thresholds["footprint"].suites["pr"][0],
        "jitter": wakes,
        "tick_100": tick_100,
        "mutex": mutex,
        "delivery": thresholds["delivery"].suites["pr"][0],
    }


_TOGETHER = ("footprint", "publish", "tls", "throughput")  # compared in all boots
_ALONE = ("qos2", "jitter", "mutex", "delivery")  # in the candidate's first boot of some boards


def _entries(run: Path, thresholds: dict[str, Thresholds]) -> Iterator[Entry]:
    cases = _cases(thresholds)
    yield from _comparisons(cases)
    for index, role in enumerate(_ORDER):
        for board in COMPARED:
            yield from _measured(run, cases, board, role, index)
    yield _boot("e3", "candidate", 0).record(cases["footprint"], Level(board=2.0), seconds=20)
    yield Fault(RUN_ID, "firmware", 1, PANIC, "e3", cases["publish"].case_id)
    yield Fault(RUN_ID, "rig", 3, NO_FLASH, "e6")
    yield Fault(RUN_ID, "rig", 3, BROKER_GONE)
    yield from _not_run(cases)


def _comparisons(cases: dict[str, Case]) -> Iterator[Comparison]:
    ids = tuple(sorted(cases[name].case_id for name in _TOGETHER))
    for target in ("virtual-esp32", "virtual-esp32s3", "virtual-esp32c3"):
        boards = (*COMPARED, "e3", "e6")
        yield Comparison(
            run_id=RUN_ID,
            rack=RACK,
            image=target,
            target=target,
            boards=tuple(board for board in boards if BOARDS[board] == target),
            role="base",
            candidate_sha256=image("candidate", HEAD, target),
            other_sha256=image("base", BASE, target),
            looks=LOOKS,
            cases=ids,
        )
    same = image("candidate", HEAD, TICK_100)
    yield Comparison(
        run_id=RUN_ID,
        rack=RACK,
        image=TICK_100,
        target="virtual-esp32",
        boards=("e1", "e4"),
        role="base",
        candidate_sha256=same,
        other_sha256=same,
        looks=(),
        identical=True,
        cases=(cases["tick_100"].case_id,),
    )


def _boot(board: str, role: Role, index: int) -> Boot:
    """Return a boot; the access point of one board's boots of the base is another one."""
    commit = HEAD if role == "candidate" else BASE
    moved = board == "e4" and role == "base"
    return Boot(
        RUN_ID, STARTED, board, role, index, image(role, commit, BOARDS[board]), channel=int(not moved)
    )


def _measured(run: Path, cases: dict[str, Case], board: str, role: Role, index: int) -> Iterator[RunRecord]:
    boot, seconds = _boot(board, role, index), 30.0 + 60 * index
    late = index >= sum(LOOKS[0])
    for name in _TOGETHER:
        if late and name == "throughput" and BOARDS[board] == "virtual-esp32s3":
            continue  # the time budget ended
        yield boot.record(cases[name], _level(name, board, role, index), seconds=seconds)
        seconds += 5
    for name in _ALONE if index == 0 and board in ("e1", "e4") else ():
        record = boot.record(cases[name], _level(name, board, role, index), seconds=seconds)
        yield _with_its_own(run, name, record)
        seconds += 5


def _level(name: str, board: str, role: Role, index: int) -> Level:
    """Return what the run shows: one figure worse, one better, one the same, others that cannot be told."""
    usual = Level(path=0.14, tail=1.35) if name in ("publish", "tls") else Level(path=-0.04)
    if name == "footprint":
        return Level(board=2.0 if role == "candidate" else 0.0)
    if name == "qos2":
        return replace(usual, path=1.9 if board == "e4" else 0.9)
    if role == "base":
        return usual
    first, second = BOARDS[board] == "virtual-esp32", BOARDS[board] == "virtual-esp32s3"
    if first and name == "publish":
        return replace(usual, path=usual.path + 0.25)
    if first and name == "throughput":
        return replace(usual, path=usual.path - 0.4)
    if second and name == "tls":
        return replace(usual, path=usual.path + (0.3 if board == "e2" else -0.3))
    if second and name == "throughput":
        return replace(usual, path=usual.path + 0.3 * (-1) ** index)
    return usual


def _with_its_own(run: Path, name: str, record: RunRecord) -> RunRecord:
    if name == "jitter":
        return _with_voids(record, 30 if record.board == "e4" else 5)
    if name == "mutex":
        return _with_trace(run, record)
    if name == "qos2" and record.board == "e1":
        return _with_timeouts(record, 6)
    if name == "delivery":
        return _with_ledger(run, record, lost=4 if record.board == "e1" else 0)
    return record


def _with_timeouts(record: RunRecord, timeouts: int) -> RunRecord:
    """Return the record with messages that nobody acknowledged, so many that a quantile falls among them."""
    columns = {name: list(column) for name, column in record.columns.items()}
    for row in range(record.warmup_rows, record.warmup_rows + timeouts):
        columns["outcome"][row], columns["done_us"][row] = 1, 0
    return replace(record, columns={name: tuple(column) for name, column in columns.items()})


def _with_voids(record: RunRecord, voids: int) -> RunRecord:
    """Return the record with rows in which the host under the board was late."""
    columns = {name: list(column) for name, column in record.columns.items()}
    for row in range(record.warmup_rows, record.warmup_rows + voids):
        columns["outcome"][row], columns["host_late_us"][row] = 2, 5_300 - row
        columns["woke_us"][row] += 5_000
        columns["acquired_us"][row] += 5_000
    return replace(record, columns={name: tuple(column) for name, column in columns.items()})


def _with_trace(run: Path, record: RunRecord) -> RunRecord:
    """Return the record with a scheduler's trace in the run's folder."""
    case = Case(record.bench, record.parameters)
    facts = {"sched": "fifo", "trace_events_count": 21, "trace_frozen": 1}
    series = Series(case, record.columns, record.warmup_rows, "esp_timer", "", "", 2, facts)
    origin = Origin(record.board, "virtual", record.boot_index, 1, case)
    group = store_trace(run, origin, series, series_of(on_a_host(inverted())))
    return replace(record, environment={**record.environment, "trace": group})


def _with_ledger(run: Path, record: RunRecord, *, lost: int) -> RunRecord:
    """Return the record with the columns and facts of its loss ledger, which lies in the run's folder.

    The first half of the ``lost`` never left the board, the others were not seen behind the broker.
    """
    rows = record.rows
    gone = {record.warmup_rows + 7 * n: n < lost // 2 for n in range(lost)}
    handed = [
        Handed(n, planned, int(gone.get(n, False)), 1, 1 if gone.get(n) else 3, 1)
        for n, planned in enumerate(record.columns["planned_us"])
    ]
    wall_us = 1_795_270_500_000_000
    seen = {n: wall_us + 20_000 * n for n in range(rows) if not gone.get(n)}
    out = {n: at + 900 for n, at in seen.items() if n not in gone}
    arrivals = tuple(Arrival(n, at + 400, 1, False, False) for n, at in out.items())
    points = [Sighting(one, complete=True) for one in (seen, seen, out)]
    evidence = LossEvidence(handed, *points, arrivals)
    ledger = attribute(evidence)
    folder = f"peer/{record.board}/01-delivery"
    (run / folder).mkdir(parents=True)
    write_ledger(run / folder / "ledger.csv", ledger, evidence)
    owners = {line.number: int(line.owner) for line in ledger.lines}
    columns = {
        **record.columns,
        "outcome": tuple(one.outcome for one in handed),
        "connection": (1,) * rows,
        "tcp": tuple(one.tcp for one in handed),
        "owner": tuple(owners[n] for n in range(rows)),
        "arrivals": tuple(int(n in out) for n in range(rows)),
        "arrived_us": tuple(out.get(n, 0) for n in range(rows)),
    }
    environment = {**record.environment, "peer": {"folder": folder, **ledger.facts()}}
    return replace(record, columns=columns, environment=environment)


def _not_run(cases: dict[str, Case]) -> Iterator[NotRun]:
    def each(board: str, names: Sequence[str], reason: str, cause: Cause) -> Iterator[NotRun]:
        for name in names:
            yield NotRun(RUN_ID, board, cases[name].case_id, reason, cause)

    every = (*_TOGETHER, *_ALONE)
    lost = ("publish", "tls", "throughput")
    yield from each("e3", lost, f"board e3 failed before: {PANIC.partition(' Next')[0]}", "failed")
    yield from each("e6", _TOGETHER, f"board e6 failed before: {NO_FLASH.partition(' Next')[0]}", "failed")
    kept_out = (
        f"quarantined since 2026-11-18 07:40 UTC by {QUARANTINE['who']}: {QUARANTINE['why']}; "
        "release it: hil board release e7 --rack lab.yaml"
    )
    yield from each("e7", every, kept_out, "ruled-out")
    too_few = "resource=mutex needs two cores, and virtual-esp32c3 has one"
    yield from each("e3", ["mutex"], too_few, "ruled-out")
    ended = "the time budget of 15 min ended after look 1 of 2"
    for board in ("e2", "e5"):
        yield from each(board, ["throughput"], ended, "cut-off")
    unknown = "not compared: the base could not measure it: it does not know the bench 'delivery'"
    for board in ("e1", "e4"):
        yield from each(board, ["delivery"], unknown, "not-compared")
    for board in ("e1", "e4"):
        yield from each(board, ["tick_100"], "the image is the base's, byte for byte", "identical")


def _info() -> dict[str, Any]:
    images = {target: image("candidate", HEAD, target) for target in sorted(set(BOARDS.values()))}
    images[TICK_100] = image("candidate", HEAD, TICK_100)
    return {
        "run_id": RUN_ID,
        "rack": RACK,
        "suite": "pr",
        "started_utc": later(STARTED, 3),
        "lease_acquired_utc": later(STARTED, 9),
        "lease_released_utc": later(STARTED, 700),
        "argv": ["pytest", "--suite=pr", "--base=out/bundle/base"],
        "user": "runner",
        "host": "rack-1",
        "profile": "lab",
        "noise": NOISE_INFO,
        "trigger": "pr",
        "git": {"commit": HEAD, "dirty": False},
        "tool": TOOL,
        "versions": {"hil": "0.1.0", "python": "3.11.2", "esptool": "5.1.0", "numpy": "2.3.5"},
        "ci": {
            "url": "https://github.com/example/hil/actions/runs/4711",
            "pull_request": 17,
            "head_sha": HEAD,
            "base_sha": BASE,
        },
        "boards": boards_info(tuple(BOARDS)),
        "quarantined": [QUARANTINE],
        "firmware": {
            name: {"sha256": sha256, "commit": HEAD, "dirty": False} for name, sha256 in images.items()
        },
        "plan": {},
    }


_REPORTED = Reported(report="out/report/index.html", warnings=("Pushgateway: no answer within 5 s.",))


def _write_consoles(run: Path) -> None:
    (run / "console").mkdir()
    for board, target in BOARDS.items():
        if board in ("e6", "e7"):
            continue
        lines = [
            "0.004 < ESP-ROM:virtual",
            f"0.212 < I (212) app_main: {target} ready",
            "0.214 > #1 hello versions=1,2",
            '0.215 < @hil {"ok":1,"version":2}',
            f"1.002 > #2 run publish count=40 qos=1 transport=tcp warmup=2 {_REST}",
            '1.004 < @begin {"bench":"publish"}',
        ]
        if board == "e3":
            lines += [
                "1.391 < Guru Meditation Error: Core 0 panic'ed (Load access fault).",
                "1.392 < Rebooting...",
            ]
        else:
            lines += ['2.731 < @end {"count":42}', "2.800 > #3 provision psk=***", '2.801 < @hil {"ok":1}']
        (run / "console" / f"{board}.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


_REST = (
    "api=publish hold_us=0 interval_us=20000 nodelay=1 payload_bytes=128 producer_core=none "
    "publisher_core=none retain=0 schedule=random seed=1 timeout_ms=5000"
)


def _write_raw_results(run: Path, thresholds: dict[str, Thresholds]) -> None:
    """Write what allure-pytest leaves of two items: one that passed with a step, one that failed."""
    label = thresholds["publish"].case_label(thresholds["publish"].suites["pr"][0].parameters)
    folder = run / "allure-pytest"
    folder.mkdir()
    note = f"{uuid.uuid5(_NAMESPACE, 'note')}-attachment.txt"
    (folder / note).write_text("a note of the bench's own test function\n", encoding="utf-8")
    passed: dict[str, Any] = {
        "status": "passed",
        "steps": [
            {
                "name": "look at the broker's log",
                "status": "passed",
                "attachments": [{"name": "note", "source": note, "type": "text/plain"}],
                "start": 1795270501000,
                "stop": 1795270501004,
            }
        ],
        "links": [{"type": "link", "url": "https://example.org/publish", "name": "what it measures"}],
    }
    failed = {
        "status": "failed",
        "statusDetails": {"message": PANIC, "trace": "hil/benches/test_publish.py:9"},
    }
    for board, content in (("e1", passed), ("e3", failed)):
        result = {
            "uuid": str(uuid.uuid5(_NAMESPACE, board)),
            "fullName": "hil.benches.test_publish#test_publish",
            "parameters": [
                {"name": "rack", "value": f"'{RACK}'"},
                {"name": "board", "value": f"'{board}'"},
                {"name": "case", "value": f"'{label}'"},
            ],
            "labels": [{"name": "tag", "value": "latency"}, {"name": "host", "value": "rack-1"}],
            **content,
        }
        path = folder / f"{result['uuid']}-result.json"
        path.write_text(json.dumps(result, ensure_ascii=False, indent=1), encoding="utf-8")


def _plan() -> CiPlan:
    """Return the plan of the pull request: a leg that compares, one that is skipped, one that is missing."""
    return CiPlan(
        event="pull_request",
        trigger="pr",
        repository="example/hil",
        pull_request=17,
        fork=False,
        head=HEAD,
        base=BASE,
        changes=("firmware",),
        build=("esp32",),
        legs=(
            Leg("virtual", "virtual", "quick", skip="the virtual rack is measured by the leg compare"),
            Leg("rack-esp32", "rack", "pr", "esp32"),
            Leg("compare", "compare", "pr"),
        ),
        virtual_targets=tuple(sorted(set(BOARDS.values()))),
    )


if __name__ == "__main__":
    sys.exit(main())

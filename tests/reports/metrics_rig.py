# SPDX-License-Identifier: Apache-2.0
"""Judged runs to push, and a history of a rack's health: what a Pushgateway and a Prometheus are fed with."""

from __future__ import annotations

import datetime
import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from hil.base.gateway_url import PASSWORD_VARIABLE, USER_VARIABLE
from hil.history.files import keep, path_of
from hil.history.summary import BoardInRun, Health, Summary
from hil.model import Fault, NotRun, Quarantine, Verdict
from tests.gate import compare_records
from tests.history.health_runs import run_of
from tests.judging import judge
from tests.make_records import RUN_ID, leave_run, publish_record, publish_thresholds, quick_run

BOARDS = ("virtual-1", "virtual-2")
TIMEOUT_S = 10.0
_NOW = datetime.datetime.now(datetime.UTC).replace(microsecond=0)


def only_own_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test have no credentials and no proxy but those that it sets."""
    for name in (USER_VARIABLE, PASSWORD_VARIABLE, "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def assert_says(warning: str | None, *words: str) -> None:
    assert warning
    for word in words:
        assert word in warning, warning


@functools.cache
def healthy() -> Verdict:
    """A quick run on two boards, judged by the real gate."""
    return judge(quick_run(BOARDS), {"publish": publish_thresholds()})


def broken() -> Verdict:
    """The same, but the second board was gone before it gave anything."""
    case_id = "publish/x=1"
    gone = Fault(RUN_ID, "rig", 3, "the port is gone", BOARDS[1])
    left_out = NotRun(RUN_ID, BOARDS[1], case_id, "the port is gone")
    return judge([*quick_run(BOARDS[:1]), gone, left_out], {"publish": publish_thresholds()})


@functools.cache
def slow() -> Verdict:
    """A run whose second board breaks a limit."""
    records = [publish_record(board=BOARDS[0]), publish_record(board=BOARDS[1], latency_ms=60.0)]
    return judge(records, {"publish": publish_thresholds()})


@functools.cache
def compared() -> Verdict:
    """A run of four boards whose candidate is a third slower than the base."""
    entries = compare_records.run(effect=0.3)
    return judge(entries, {"publish": compare_records.thresholds()})


def store(
    folder: Path, verdict: Verdict, *, rack: str, run_id: str = RUN_ID, commit: str = "0a9e", **info: object
) -> Path:
    """Write a judged run and return its folder."""
    facts = {
        "run_id": run_id,
        "rack": rack,
        "lease_released_utc": "2026-11-20T22:14:27Z",
        "git": {"commit": commit, "dirty": False},
        "boards": [{"id": board, "kind": "virtual", "target": "virtual-esp32"} for board in BOARDS],
    }
    return leave_run(folder, (), replace(verdict, run_id=run_id), **{**facts, **info}).path


def ago(hours: float) -> str:
    return (_NOW - datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def health_lines(rack: str) -> Sequence[Summary]:
    """Return five runs of a rack: one recovery, a quarantine at last."""
    sound, faulted = [], []
    for board in BOARDS:
        sound.append(BoardInRun(board, "virtual", "virtual-esp32", "measured"))
        faulted.append(
            BoardInRun(board, "virtual", "virtual-esp32", "faulted", {"rig": 1}, "the port is gone")
        )
    quarantine = Quarantine(BOARDS[1], ago(1), "anna", "its port vanishes")
    kept_out = BoardInRun(BOARDS[1], "virtual", "virtual-esp32", "quarantined", quarantine=quarantine)

    def run(hours: float, boards: Sequence[BoardInRun]) -> Summary:
        return run_of(f"health-{hours:g}", ago(hours), rack, Health(tuple(boards)), "nightly")

    return (
        run(50, sound),
        run(40, sound),
        run(30, [faulted[0], sound[1]]),
        run(20, sound),
        run(1, [sound[0], kept_out]),
    )


def store_health(out: Path, *racks: str) -> list[Path]:
    """Leave the runs of each rack in OUT/history; return their files."""
    runs = [
        structs.replace(run, run_id=f"{rack}-{run.run_id}") for rack in racks for run in health_lines(rack)
    ]
    assert all(keep(out / "history", run) for run in runs)
    return [path_of(out / "history", run) for run in runs]

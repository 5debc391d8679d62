# SPDX-License-Identifier: Apache-2.0
"""Runs of a rack's health, by hand: a run an hour, and boards whose part in it a word says."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import msgspec

from hil.history.health.types import unix_s
from hil.history.summary import BoardInRun, Health, Summary
from hil.model import Quarantine
from tests.history.history_files import summary_of

FIRST_S = unix_s("2026-11-01T00:00:00Z") or 0.0
HOUR_S = 3600.0
NOW = "2026-11-08T00:00:00Z"
KEPT_OUT = Quarantine("e1", "2026-11-01T05:00:00Z", "anna", "its port vanishes")

_PARTS: dict[str, dict[str, Any]] = {
    "ok": {"state": "measured"},
    "rig": {"state": "faulted", "faults": {"rig": 1}, "first_fault": "its port vanished"},
    "panic": {"state": "faulted", "faults": {"firmware": 1}, "first_fault": "panic: LoadProhibited"},
    "both": {"state": "faulted", "faults": {"firmware": 1, "rig": 2}, "first_fault": "its port vanished"},
    "absent": {"state": "not-run"},
    "quarantine": {"state": "quarantined"},
}


def at(hour: float) -> str:
    """Return the moment that many hours after the first run."""
    moment = datetime.datetime.fromtimestamp(FIRST_S + hour * HOUR_S, tz=datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def board_run(word: str, board: str = "e1") -> BoardInRun:
    quarantine = replace(KEPT_OUT, board=board) if word == "quarantine" else None
    part: dict[str, Any] = {"kind": "physical", "target": "esp32", **_PARTS[word], "quarantine": quarantine}
    return BoardInRun(board=board, **part)


def run_at(
    hour: float,
    *words: str,
    rack: str = "lab",
    faults: Mapping[str, int] = MappingProxyType({}),
    first_fault: str = "",
) -> Summary:
    """Return a run that started then; ``words`` say what became of e1, e2, …"""
    boards = tuple(board_run(word, f"e{n}") for n, word in enumerate(words or ("ok",), start=1))
    started = at(hour)
    run_id = started.replace("-", "").replace(":", "") + "-quick-0001"
    return run_of(run_id, started, rack, Health(boards, dict(faults), first_fault))


def run_of(run_id: str, started_utc: str, rack: str, health: Health, trigger: str = "local") -> Summary:
    """Return a run of which the health is known."""
    facts = {"trigger": trigger, "outcome": "pass", "health": health}
    return summary_of(run_id, rack, started_utc, **facts)


def with_boards(run: Summary, *boards: BoardInRun) -> Summary:
    """Return the run with other boards."""
    return msgspec.structs.replace(run, health=Health(boards))

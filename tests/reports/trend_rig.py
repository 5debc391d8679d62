# SPDX-License-Identifier: Apache-2.0
"""Runs, lines and histories for tests of the trend: small, and with figures that are easy to follow."""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator

from hil.metrics.sessions import BootSession, History, SessionBoard
from hil.model import Scalar, Verdict, format_series_id
from hil.reports.trend import TrendSources, trend_of
from hil.store import JudgedRun, RunInfo
from hil.store.journal import Journal
from tests.history.nights_rig import Row, series_of
from tests.make_records import run_info

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "reference" / "schema" / "trend.schema.json").read_text())
CASE, METRIC = "publish/qos=1", "publish_latency_p95_us"
LATEST = "20260301T120000Z-nightly-0001"
REFERENCE = "r" * 64


def started(run_id: str) -> str:
    """Return the time that a run id starts with."""
    return f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}T{run_id[9:11]}:{run_id[11:13]}:{run_id[13:15]}Z"


def line(
    run_id: str,
    metrics: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    board: str = "e1",
    kind: str = "physical",
    **facts: Any,
) -> dict[str, Any]:
    """Return the figures of a run; without ``metrics`` one in which nothing was measured."""
    case = {"board": board, "kind": kind, "target": "esp32", "case_id": CASE, "label": "defaults"}
    return {
        "schema": 1,
        "run_id": run_id,
        "started_utc": started(run_id),
        "commit": "a" * 40,
        "dirty": False,
        "trigger": "nightly",
        "rack": "lab",
        "profile": "",
        "suite": "nightly",
        "outcome": "pass",
        "exit_code": 0,
        "url": "",
        "cases": [{**case, "metrics": metrics}] if metrics else [],
        **facts,
    }


def figure(value: float | None, **more: Any) -> dict[str, Any]:
    """Return what a line says of a metric: "pass" under a limit of 25 ms."""
    return {"value": value, "outcome": "pass", "limit": 25000, "blocking": True, **more}


@dataclass(frozen=True)
class Boots:
    """A session of one series: boot values of the candidate and of the reference."""

    run_id: str
    candidate: Sequence[float]
    reference: Sequence[float] = ()
    board: str = "e1"
    rack: str = "lab"
    kind: str = "physical"
    trigger: str = "nightly"
    image: str = "i" * 64
    commit: str = "a" * 40
    metric: str = METRIC
    conditions: Mapping[str, Scalar] = field(default_factory=dict)
    product: str = ""


def nights(count: int, step_at: int, factor: float, *, reference: bool = True) -> list[Boots]:
    """Return nights with a commit each; from ``step_at`` on only the candidate is ``factor`` as slow."""
    chance = np.random.default_rng(7)
    found = []
    for number in range(count):
        boots = 7000 * np.exp(chance.normal(0, 0.01, 12))
        own = boots[:6] * (factor if number >= step_at else 1.0)
        other = boots[6:].tolist() if reference else []
        day = datetime.date(2026, 1, 1) + datetime.timedelta(days=number)
        run_id, image, commit = f"{day:%Y%m%d}T010000Z-nightly-0001", f"{number:064x}", f"{number:040x}"
        found.append(Boots(run_id, own.tolist(), other, image=image, commit=commit))
    return found


def history_of(*sessions: Boots) -> History:
    """Return a history in which each of these is a session of its own."""
    ordered = sorted(sessions, key=lambda one: one.run_id)
    columns: dict[tuple[str, str], list[Row]] = {}
    for number, one in enumerate(ordered):
        series_id = format_series_id(one.rack, one.board, CASE, one.metric, one.product)
        for role, values, image in (
            ("candidate", one.candidate, one.image),
            ("reference", one.reference, REFERENCE),
        ):
            rows = columns.setdefault((series_id, role), [])
            rows += [(number, boot, value, image, "ruler") for boot, value in enumerate(values)]
    entries = {key: series_of(*key, rows) for key, rows in sorted(columns.items()) if rows}
    return History(tuple(map(_session, ordered)), entries)


def _session(one: Boots) -> BootSession:
    return BootSession(
        one.run_id,
        started(one.run_id),
        one.rack,
        one.trigger,
        one.commit,
        False,
        conditions={f"{one.board}.{key}": fact for key, fact in one.conditions.items()},
        suite="nightly",
        boards={one.board: SessionBoard("esp32", one.kind)},  # type: ignore[arg-type]
        product=one.product,
    )


@dataclass(frozen=True)
class Reported:
    """A run that the report is about, of which only the line is asked."""

    line: Mapping[str, Any]
    info: RunInfo = field(default_factory=run_info)
    test_ids: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        return str(self.line["run_id"])

    @property
    def path(self) -> Path:
        return self.run.path

    @property
    def verdict(self) -> Verdict:
        return self.run.verdict

    @property
    def run(self) -> JudgedRun:
        """Nothing of it is left on disk."""
        verdict = Verdict(self.run_id, "pass", 0, "", (), (), ())
        return JudgedRun(Path("/nowhere") / self.run_id, self.info, Journal(()), verdict, {}, {})


def trend(
    *reported: Mapping[str, Any],
    lines: Sequence[Mapping[str, Any]] = (),
    history: History | None = None,
    most: int = 400,
    **sources: Any,
) -> dict[str, Any]:
    """Return the trend of reported lines as it is read back from JSON, checked against its schema."""
    found = trend_of(
        [Reported(one) for one in reported],
        lines,
        TrendSources(history or History(), **sources),
        title="title",
        remark="virtual figures",
        most=most,
    )
    data: dict[str, Any] = json.loads(json.dumps(found.data, allow_nan=False))
    validator().validate(data)
    return data


@functools.cache
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(SCHEMA)
    return Draft202012Validator(SCHEMA)


def only(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the trend's one series."""
    (series,) = data["series"]
    return dict(series)

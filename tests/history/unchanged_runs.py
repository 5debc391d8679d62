# SPDX-License-Identifier: Apache-2.0
"""Runs of unchanged firmware, as the history keeps them, and as a run's folder."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hil.history.judgements import GATE, UnchangedRun
from hil.history.summary import Judged, Judgement, Summary, Unchanged
from hil.model import ComparedSeries, Fault, Outcome, Verdict
from tests import make_records
from tests.history.history_files import summary_of
from tests.make_records import THRESHOLDS_ROOT, publish_record

CASE = publish_record().case_id
METRIC = "publish_latency_p50_us"
NOW = datetime.datetime(2026, 11, 21, 8, 0, tzinfo=datetime.UTC)


def judgement(outcome: Judged = "pass", **changes: Any) -> Judgement:
    made = Judgement("esp32", "physical", CASE, METRIC, outcome, 12, 0.08, True)
    return replace(made, **changes)


def unchanged_run(
    number: int,
    outcomes: Sequence[Judged] = ("pass",) * 10,
    *,
    days_ago: float = 1.0,
    rack: str = "lab",
    noise: str = "",
    **changes: Any,
) -> UnchangedRun:
    """Return a run of as many judgements as ``outcomes``, all on esp32."""
    started = NOW - datetime.timedelta(days=days_ago)
    judged = Unchanged(
        gate=GATE, alpha=0.01, judgements=tuple(judgement(outcome) for outcome in outcomes), noise=noise
    )
    return UnchangedRun(f"{started:%Y%m%dT%H%M%SZ}-pr-{number:04}", started, rack, replace(judged, **changes))


def kept(run: UnchangedRun, later: datetime.timedelta = datetime.timedelta()) -> Summary:
    """Return the run as the history keeps it, so much later."""
    started_utc = f"{run.started + later:%Y-%m-%dT%H:%M:%SZ}"
    facts = {"suite": "pr", "trigger": "nightly", "commit": "a" * 40, "outcome": "pass"}
    return summary_of(run.run_id, run.rack, started_utc, unchanged=run.judged, **facts)


def compared(outcome: Outcome = "pass", **changes: Any) -> ComparedSeries:
    made = ComparedSeries(
        series_id=f"lab/esp32/{CASE}/{METRIC}",
        rack="lab",
        target="esp32",
        kind="physical",
        boards=("b1",),
        role="base",
        case_id=CASE,
        case_label="",
        metric=METRIC,
        unit="us",
        direction="lower",
        outcome=outcome,
        blocking=True,
        sentence="as it was.",
        candidate_boots=8,
        other_boots=8,
        smallest_effect=0.07,
    )
    return replaced(made, **changes)


def leave_run(
    out: Path,
    items: Sequence[ComparedSeries],
    *,
    faults: Sequence[Fault] = (),
    unchanged: bool = True,
    number: int = 1,
    **info: Any,
) -> Path:
    """Leave the folder of a judged run whose comparisons are ``items``."""
    run_id = f"20261121T010203Z-pr-{number:04}"
    flags = {"unchanged": True, "gate": GATE} if unchanged else {}
    facts = {
        "run_id": run_id,
        "rack": "lab",
        "suite": "pr",
        "trigger": "nightly",
        "started_utc": "2026-11-21T01:02:03Z",
        "git": {"commit": "a" * 40, "dirty": False},
        "boards": [{"id": "b1", "target": "esp32", "kind": "physical"}],
        "compared": {"role": "base", "firmware": {}, **flags},
    }
    worst = 1 if any(item.outcome == "regressed" for item in items) else 0
    outcome: Outcome = "regressed" if worst else "pass"
    verdict = Verdict(run_id, outcome, worst, "judged.", (), tuple(faults), (), compared=tuple(items))
    directory = make_records.leave_run(out, (), verdict, **{**facts, **info})
    directory.keep([THRESHOLDS_ROOT / "publish.yaml", THRESHOLDS_ROOT / "footprint.yaml"], "thresholds")
    directory.path.joinpath("records.jsonl").touch()
    return directory.path

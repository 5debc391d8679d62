# SPDX-License-Identifier: Apache-2.0
"""Judged runs on disk, for tests of their Allure results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hil.model import Entry, Fault, NotRun, Scalar
from hil.reports.allure import complete_results
from hil.store import read_judged_run
from hil.thresholds.types import Thresholds
from tests.judging import judge
from tests.make_records import RUN_ID, THRESHOLDS_ROOT, leave_run, publish_record, publish_thresholds

COMMIT = "0123456789abcdef0123456789abcdef01234567"
INFO: dict[str, Any] = {
    "rack": "virtual",
    "suite": "quick",
    "trigger": "nightly",
    "started_utc": "2026-11-20T22:12:50Z",
    "boards": [{"id": f"virtual-{n}", "kind": "virtual", "target": "virtual-esp32"} for n in range(1, 6)],
    "firmware": {"virtual-esp32": {"sha256": "ab" * 32}},
    "git": {"commit": COMMIT, "dirty": False},
    "versions": {"hil": "0.1.0"},
    "ci": {"url": "https://example.org/owner/name/actions/runs/4711"},
    "argv": ["pytest", "--pushgateway=https://user:hunter2@example.org"],
}


def case_id(**overrides: Scalar) -> str:
    return publish_thresholds().case(overrides).case_id


def judged(
    out: Path,
    entries: Sequence[Entry],
    *,
    run_id: str = RUN_ID,
    info: Mapping[str, Any] | None = None,
    thresholds: Thresholds | None = None,
    benches: Mapping[str, Thresholds] | None = None,
) -> Path:
    """Write what a run of these entries leaves, its verdict included, and return its folder."""
    own = [replace(entry, run_id=run_id) for entry in entries]
    verdict = judge(own, {"publish": thresholds or publish_thresholds(), **(benches or {})})
    directory = leave_run(out, own, verdict, **{"run_id": run_id, **INFO, **(info or {})})
    directory.keep(sorted(THRESHOLDS_ROOT.glob("*.yaml")), "thresholds")
    return directory.path


def completed(out: Path, entries: Sequence[Entry], **more: Any) -> Path:
    """Do the same, and write its Allure results."""
    run = judged(out, entries, **more)
    complete_results(read_judged_run(run))
    return run


def metrics_of(run_path: Path) -> list[dict[str, Any]]:
    """Return a run's figures as Allure is given them."""
    (path,) = (run_path / "allure-results").glob("*-perf.json")
    found: list[dict[str, Any]] = json.loads(path.read_text())
    return found


def eventful_entries() -> list[Entry]:
    """Return a run in which each kind of outcome happens once or more."""
    lost = "board virtual-4 failed before: board virtual-4 could not be flashed."
    return [
        publish_record(board="virtual-1"),
        publish_record(board="virtual-1", overrides={"transport": "tls"}, latency_ms=60),
        publish_record(board="virtual-1", overrides={"qos": 0}, rows=20),
        publish_record(board="virtual-1", overrides={"qos": 2}, boot_index=0),
        Fault(RUN_ID, "rig", 3, "the broker went away", "virtual-1", case_id(qos=2)),
        Fault(RUN_ID, "firmware", 1, "panic: LoadProhibited", "virtual-2", case_id()),
        NotRun(RUN_ID, "virtual-2", case_id(qos=0), "board virtual-2 failed before: panic"),
        Fault(RUN_ID, "configuration", 2, "no such interface", "virtual-3", case_id()),
        Fault(RUN_ID, "rig", 3, "board virtual-4 could not be flashed.", "virtual-4"),
        NotRun(RUN_ID, "virtual-4", case_id(), lost),
        NotRun(RUN_ID, "virtual-4", case_id(qos=0), lost),
        NotRun(RUN_ID, "virtual-5", case_id(), "too large for it", "ruled-out"),
    ]


def results_of(run_path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return a run's completed results by (board, case label)."""
    found = {}
    for path in (run_path / "allure-results").glob("*-result.json"):
        result = json.loads(path.read_text())
        values = {item["name"]: item["value"] for item in result["parameters"]}
        found[values["board"], values["case"]] = result
    return found


def attached(run_path: Path, result: Mapping[str, Any], extension: str) -> list[bytes]:
    """Return the contents of a result's attachments with this extension."""
    names = [item["source"] for item in result["attachments"]]
    folder = run_path / "allure-results"
    return [(folder / name).read_bytes() for name in names if name.endswith(f".{extension}")]

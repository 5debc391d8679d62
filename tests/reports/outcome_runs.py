# SPDX-License-Identifier: Apache-2.0
"""A judged run of each outcome, as on disk: what banner, comment, summaries, pages and terminal are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hil.model import Entry, Fault, NotRun
from hil.store import Reported, RunDirectory
from tests.gate import compare_records
from tests.make_records import publish_record, publish_thresholds
from tests.reports.site_runs import BOARDS, CASES, healthy, store_run

RUN_ID = "20261120T221257Z-quick-3fa9"
OPEN_CHANGE = (
    "firmware: publish latency p95 12 % slower on 8 boards since 618e3a8 (Send at once, A. Author), "
    "open 59 nights"
)


def _compared(effect: float, deviation: float = 0.02) -> list[Entry]:
    """Return limits kept on two boards, and a comparison of an image exp(``effect``) times as slow."""
    looks = compare_records.boots(effect=effect, seed=1, deviation=deviation)
    return [*healthy(), compare_records.comparison(), *(record for look in looks for record in look)]


def _rig_failed() -> list[Entry]:
    case = publish_thresholds().case(CASES[1]).case_id
    gone = "the access point did not answer for 60 s; way out: hil rack check"
    return [
        *(record for record in healthy() if record.board == "v1"),
        Fault("", "rig", 3, gone, "v2"),
        NotRun("", "v2", case, "the rig failed"),
    ]


# each by what the real gate makes of it
OUTCOMES: dict[str, Callable[[], Sequence[Entry]]] = {
    "pass": healthy,
    "open-change": healthy,
    "regressed": lambda: _compared(0.18),
    "limit-broken": lambda: healthy(latency_ms=30.0),
    "undecided": lambda: _compared(0.12, 0.35),
    "too-few-samples": lambda: [publish_record(board=name, rows=20) for name in BOARDS],
    "exceeded-not-proven": lambda: healthy(latency_ms=22.0),
    "rig-failed": _rig_failed,
    "configuration": lambda: [Fault("", "configuration", 2, "thresholds/publish.yaml:3: no such metric", "")],
}


def leave(out: Path, outcome: str) -> Path:
    """Leave the judged run of ``outcome`` in ``out``, with summary and Allure results; return its folder."""
    boards = [{"id": name, "kind": "virtual", "target": "virtual-esp32"} for name in BOARDS]
    path = store_run(out, RUN_ID, OUTCOMES[outcome](), boards=boards)
    if outcome == "open-change":
        RunDirectory.open(path).write_reported(Reported(changes=(OPEN_CHANGE,)))
    return path

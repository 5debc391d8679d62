"""The files of the published benchmark, from the same requests: rtt.csv and metadata.json of each profile.

They hold what it publishes, by its estimators: whole milliseconds of the wall clock; ``rtt_payload_ms`` is
the gateway's clock minus the requester's, one way over two clocks; p50 and p95 are the nearest of few values,
so that the p95 of five is their maximum. ``rtt-one-clock.csv`` beside them holds the same requests on one
monotonic clock, in microseconds, with their parts.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hil.network.peers.gateway.joining import COLUMNS, Request
from hil.network.peers.gateway.plan import Outcome, RequesterPlan

RTT_CSV, METADATA, ONE_CLOCK_CSV = "rtt.csv", "metadata.json", "rtt-one-clock.csv"
OK = "ok"
ONE_CLOCK_COLUMNS = ("phase", "phase_read", "iteration", "request_id", *COLUMNS[2:])


@dataclass(frozen=True)
class PublishedRow:
    """One row of rtt.csv. Times in milliseconds; None where the request was not answered."""

    phase: str
    phase_read: int
    iteration: int
    request_id: str
    trigger_ms: int
    response_timestamp_ms: int | None
    response_received_ms: int | None
    rtt_payload_ms: int | None
    rtt_receive_ms: int | None
    status: str


def write_artefacts(
    folder: Path, plan: RequesterPlan, requests: Sequence[Request], started: datetime
) -> list[Path]:
    """Write the files of each profile; return their folders. ``started`` is when the requester began."""
    written = []
    for profile in plan.profiles:
        own = [request for request in requests if request.profile == profile]
        topic = plan.topics.endpoint(profile)
        place = folder / f"run_{started:%Y%m%d_%H%M%S_%f}_{topic.replace('/', '_')}"
        place.mkdir(parents=True)
        rows = [published_row(request) for request in own]
        _write_csv(
            place / RTT_CSV, [field.name for field in fields(PublishedRow)], (vars(row) for row in rows)
        )
        _write_csv(place / ONE_CLOCK_CSV, ONE_CLOCK_COLUMNS, (_one_clock_row(request) for request in own))
        metadata = metadata_of(rows, plan, topic, csv_path=f"{place.name}/{RTT_CSV}")
        (place / METADATA).write_text(json.dumps(metadata, indent=2) + "\n")
        written.append(place)
    return written


def published_row(request: Request) -> PublishedRow:
    """Return a request as the published benchmark would have written it."""
    line = request.line
    trigger_ms = int(line["trigger_ms"])
    outcome = Outcome(request.row["outcome"])
    done = outcome is Outcome.OK
    stamped_ms = int(line["answer"]["timestamp_ms"]) if done else None
    received_ms = int(line["received_ms"]) if done else None
    return PublishedRow(
        phase=f"phase{line['phase']}",
        phase_read=line["read"],
        iteration=line["iteration"],
        request_id=line["id"],
        trigger_ms=trigger_ms,
        response_timestamp_ms=stamped_ms,
        response_received_ms=received_ms,
        rtt_payload_ms=None if stamped_ms is None else stamped_ms - trigger_ms,
        rtt_receive_ms=None if received_ms is None else received_ms - trigger_ms,
        status=OK if done else outcome.name.lower(),
    )


def metadata_of(
    rows: Sequence[PublishedRow], plan: RequesterPlan, topic_root: str, *, csv_path: str
) -> dict[str, Any]:
    """Return metadata.json: what was asked for, and the published estimators of the rows."""
    reads = [*plan.phases, 0][:2]
    names = ["phase1"] + (["phase2"] if reads[1] else [])
    return {
        "generatedAt": datetime.now(UTC).isoformat(),
        "benchmark": {
            "topicRoot": topic_root,
            "phaseReads": {"phase1": reads[0], "phase2": reads[1]},
            "readsPlanned": sum(reads),
            "readsOk": _ok(rows),
            "readsTimeout": len(rows) - _ok(rows),
            "requestTimeoutSec": plan.timeout_ms / 1000,
            "waitBetweenReadsMs": plan.pause_ms,
        },
        "rttMs": _summaries(rows),
        "phaseRttMs": {name: _phase_summary([row for row in rows if row.phase == name]) for name in names},
        "artifacts": {"csvPath": csv_path},
    }


def summarise(values: Sequence[int]) -> dict[str, Any]:
    """Return the published figures of whole milliseconds; None each where there are none."""
    if not values:
        return {"count": 0, "min": None, "avg": None, "max": None, "p50": None, "p95": None}
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "count": len(ordered),
        "min": ordered[0],
        "avg": round(sum(ordered) / len(ordered), 3),
        "max": ordered[-1],
        "p50": ordered[round(last * 0.50)],
        "p95": ordered[round(last * 0.95)],
    }


def _ok(rows: Sequence[PublishedRow]) -> int:
    return sum(row.status == OK for row in rows)


def _summaries(rows: Sequence[PublishedRow]) -> dict[str, Any]:
    payload = [row.rtt_payload_ms for row in rows if row.rtt_payload_ms is not None]
    receive = [row.rtt_receive_ms for row in rows if row.rtt_receive_ms is not None]
    return {"payload": summarise(payload), "receive": summarise(receive)}


def _phase_summary(rows: Sequence[PublishedRow]) -> dict[str, Any]:
    return {"readsOk": _ok(rows), "readsTimeout": len(rows) - _ok(rows), **_summaries(rows)}


def _one_clock_row(request: Request) -> dict[str, int | str]:
    names = {"phase_read": request.row["read"], "iteration": request.line["iteration"]}
    return {**request.row, **names, "request_id": request.line["id"]}


def _write_csv(path: Path, names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(
            {name: "" if value is None else value for name, value in row.items()} for row in rows
        )

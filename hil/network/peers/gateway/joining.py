# SPDX-License-Identifier: Apache-2.0
"""Joins what requester, board and echo server saw of each request into the columns of a record.

The files of the published benchmark, from the same requests: rtt.csv and metadata.json of each profile.

They hold what it publishes, by its estimators: whole milliseconds of the wall clock; ``rtt_payload_ms`` is
the gateway's clock minus the requester's, one way over two clocks; p50 and p95 are the nearest of few values,
so that the p95 of five is their maximum. The record holds the same requests on one monotonic clock.

Facts of a case of http_gateway for its record, from the lines of the host's programs.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hil.base.errors import FirmwareError
from hil.model import Scalar, Series
from hil.network.peers.gateway.echo_server import PROBE_PATH
from hil.network.peers.gateway.plan import PROFILES, RequesterPlan, RequestOutcome

PARTS = ("dns_us", "tcp_us", "tls_us", "http_us", "reused", "resumed")
BOARD_TIMES = ("connect_us", "connack_us", "suback_us")
COLUMNS = (
    "phase",
    "read",
    "profile",
    "planned_us",
    "sent_us",
    "done_us",
    "outcome",
    "rtt_us",
    "first_rtt_us",
    "payload_us",
    "board_us",
    *PARTS,
    *BOARD_TIMES,
    *(f"board_{name}" for name in BOARD_TIMES),
    "server_us",
)
_BOARD_COLUMNS = ("phase", "read", "profile", "received_us", "published_us", "outcome", *PARTS)
_ANSWER_FIELDS = ("timestamp_ms", "status", "outcome", "gateway_us", *PARTS)

Row = dict[str, int]


@dataclass(frozen=True)
class JoinedRequest:
    """One request: the requester's line, and the row with all that is known of it."""

    line: Mapping[str, Any]
    row: Row

    @property
    def profile(self) -> str:
        return str(self.line["profile"])


def join(
    series: Series,
    requester_lines: Sequence[Mapping[str, Any]],
    server_lines: Sequence[Mapping[str, Any]],
) -> list[JoinedRequest]:
    """Return the requests in the order sent; timeouts are among them, with what the board did all the same.

    Raises FirmwareError: the board's answers and its samples contradict each other, or the requests.
    """
    origin_ns = next(int(line["at_ns"]) for line in requester_lines if line["event"] == "start")
    connected: dict[tuple[int, str], Mapping[str, Any]] = {}
    for line in requester_lines:
        if line["event"] == "connected":  # the first of a phase; a lost connection that came back is another
            connected.setdefault((line["phase"], line["profile"]), line)
    server_us = {line["id"]: int(line["server_us"]) for line in server_lines if line["id"]}
    board_rows = _board_rows(series)
    requests = []
    for line in requester_lines:
        if line["event"] != "request":
            continue
        board = board_rows.pop((line["phase"], line["read"], PROFILES.index(line["profile"])), None)
        row = _requester_part(line, origin_ns)
        row |= _board_part(line, board)
        first = line["read"] == 1
        row["first_rtt_us"] = row["rtt_us"] if first else 0
        times = connected.get((line["phase"], line["profile"]), {}) if first else {}
        row |= {name: int(times.get(name, 0)) for name in BOARD_TIMES}
        row |= {f"board_{name}": _board_time(series, line["phase"], name, first) for name in BOARD_TIMES}
        row["server_us"] = server_us.get(line["id"], 0)
        requests.append(JoinedRequest(line, row))
    if board_rows:
        phase, read, profile = min(board_rows)
        raise FirmwareError(
            f"The board's samples hold a request that was never sent: phase {phase}, read {read}, profile "
            f"{profile}."
        )
    return sorted(requests, key=lambda request: request.row["sent_us"])


def columns_of(requests: Sequence[JoinedRequest]) -> dict[str, tuple[int, ...]]:
    """Return the columns of a record."""
    return {name: tuple(request.row[name] for request in requests) for name in COLUMNS}


def _requester_part(line: Mapping[str, Any], origin_ns: int) -> Row:
    moments = {name: (line[f"{name}_ns"] - origin_ns) // 1000 for name in ("planned", "sent", "done")}
    return {
        "phase": line["phase"],
        "read": line["read"],
        "profile": PROFILES.index(line["profile"]),
        **{f"{name}_us": moment for name, moment in moments.items()},
        "rtt_us": moments["done"] - moments["sent"],
    }


def _board_part(line: Mapping[str, Any], board: Mapping[str, int] | None) -> Row:
    """Return what the board says of a request, in its answer and in its samples."""
    answer = line["answer"]
    if answer is None:
        parts = {name: board[name] if board else 0 for name in PARTS}
        took_us = board["published_us"] - board["received_us"] if board else 0
        return {"outcome": line["outcome"], "payload_us": 0, "board_us": took_us, **parts}
    _check_answer(line["id"], answer, board)
    return {
        "outcome": answer["outcome"],
        "payload_us": (answer["timestamp_ms"] - line["trigger_ms"]) * 1000,
        "board_us": answer["gateway_us"],
        **{name: answer[name] for name in PARTS},
    }


def _check_answer(request_id: str, answer: Mapping[str, Any], board: Mapping[str, int] | None) -> None:
    """Raise FirmwareError where an answer is not whole, or not what the board's samples say."""
    wrong = [name for name in _ANSWER_FIELDS if type(answer.get(name)) is not int]
    if wrong:
        raise FirmwareError(
            f"The board's answer to request {request_id} has no whole number for {', '.join(wrong)}: "
            f"{dict(answer)}."
        )
    if answer["outcome"] not in set(RequestOutcome):
        raise FirmwareError(
            f"The board's answer to request {request_id} has an unknown outcome, {answer['outcome']}."
        )
    if board is None:
        raise FirmwareError(f"The board answered request {request_id} but has no sample of it.")
    for name in ("outcome", *PARTS):
        if answer[name] != board[name]:
            raise FirmwareError(
                f"The board's answer to request {request_id} and its sample contradict each other: {name} is "
                f"{answer[name]} and {board[name]}."
            )


def _board_rows(series: Series) -> dict[tuple[int, int, int], Row]:
    """Return the board's samples by phase, read and profile; of a request handled twice the first.

    Phase 0 is a row that was kept free for a request that never came.
    """
    missing = [name for name in _BOARD_COLUMNS if name not in series.columns]
    if missing:
        raise FirmwareError(
            f"The board's samples of {series.case.bench} lack {', '.join(missing)}; it sent "
            f"{', '.join(series.columns)}.",
            next_step="build the firmware of this checkout.",
        )
    rows: dict[tuple[int, int, int], Row] = {}
    for values in zip(*(series.columns[name] for name in _BOARD_COLUMNS), strict=True):
        row = dict(zip(_BOARD_COLUMNS, values, strict=True))
        if row["phase"]:
            rows.setdefault((row["phase"], row["read"], row["profile"]), row)
    return rows


def _board_time(series: Series, phase: int, name: str, first: bool) -> int:
    """Return a part of the board's own (re)connection before a phase; 0 in all rows but the phase's first."""
    value = series.device.get(f"phase{phase}_{name}", 0) if first else 0
    return value if isinstance(value, int) else 0


RTT_CSV, METADATA = "rtt.csv", "metadata.json"
OK = "ok"


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
    folder: Path, plan: RequesterPlan, requests: Sequence[JoinedRequest], started: datetime
) -> list[Path]:
    """Write the files of each profile; return their folders. ``started`` is when the requester began."""
    written = []
    for profile in plan.profiles:
        own = [request for request in requests if request.profile == profile]
        topic = plan.topics.endpoint(profile)
        place = folder / f"run_{started:%Y%m%d_%H%M%S_%f}_{topic.replace('/', '_')}"
        place.mkdir(parents=True)
        rows = [published_row(request) for request in own]
        _write_csv(place / RTT_CSV, rows)
        metadata = metadata_of(rows, plan, topic, csv_path=f"{place.name}/{RTT_CSV}")
        (place / METADATA).write_text(json.dumps(metadata, indent=2) + "\n")
        written.append(place)
    return written


def published_row(request: JoinedRequest) -> PublishedRow:
    """Return a request as the published benchmark would have written it."""
    line = request.line
    trigger_ms = int(line["trigger_ms"])
    outcome = RequestOutcome(request.row["outcome"])
    done = outcome is RequestOutcome.OK
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


def _write_csv(path: Path, rows: Iterable[PublishedRow]) -> None:
    """Write the rows; the csv module writes None as an empty field."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(PublishedRow)])
        writer.writeheader()
        writer.writerows(map(vars, rows))


def requester_facts(lines: Sequence[Mapping[str, Any]]) -> dict[str, Scalar]:
    """What the requester's lines come to: versions, counts and the times of its connections."""
    counts = Counter(line["event"] for line in lines)
    start = next(line for line in lines if line["event"] == "start")
    facts: dict[str, Scalar] = {
        "suback_awaited": 1,
        "paho_version": start["paho_version"],
        "requester_python": start["python"],
        "requests_count": counts["request"],
        "duplicate_answers_count": counts["duplicate"],
        "late_answers_count": counts["late"],
        "requester_reconnects_count": counts["lost"],
    }
    for line in lines:
        if line["event"] == "connected":
            prefix = f"{line['profile']}_phase{line['phase']}"
            facts |= {f"{prefix}_{name}": line[name] for name in BOARD_TIMES}
        elif line["event"] == "ready":
            facts[f"phase{line['phase']}_ready_wait_us"] = line["waited_us"]
    return facts


def server_facts(lines: Sequence[Mapping[str, Any]]) -> dict[str, Scalar]:
    """What the echo server's lines come to: versions, and requests and connections by kind."""
    ready = next(line for line in lines if line["event"] == "ready")
    served = [line for line in lines if line["event"] == "request"]
    connections = {line["connection"]: line for line in served}.values()
    return {
        "server_version": ready["version"],
        "server_python": ready["python"],
        "server_openssl": ready["openssl"],
        "server_connections_count": len(connections),
        "server_probes_count": sum(line["path"] == PROBE_PATH for line in served),
        "server_requests_count": sum(line["path"] != PROBE_PATH for line in served),
        "tls_connections_count": sum(line["tls"] for line in connections),
        "tls_resumed_count": sum(line["session_reused"] for line in connections),
    }

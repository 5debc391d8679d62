"""Joins what requester, board and echo server saw of each request into the columns of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hil.base.errors import FirmwareError
from hil.model import Series
from hil.network.peers.gateway.plan import PROFILES, Outcome

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
class Request:
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
) -> list[Request]:
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
        requests.append(Request(line, row))
    if board_rows:
        phase, read, profile = min(board_rows)
        raise FirmwareError(
            f"The board's samples hold a request that was never sent: phase {phase}, read {read}, profile "
            f"{profile}."
        )
    return sorted(requests, key=lambda request: request.row["sent_us"])


def columns_of(requests: Sequence[Request]) -> dict[str, tuple[int, ...]]:
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
    if answer["outcome"] not in set(Outcome):
        raise FirmwareError(
            f"The board's answer to request {request_id} has an unknown outcome, {answer['outcome']}."
        )
    if board is None:
        raise FirmwareError(f"The board answered request {request_id} and has no sample of it.")
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

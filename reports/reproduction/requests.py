"""The requests in the records of the bench ``http_gateway``, and what groups of them come to.

A profile's request is sent when the one before was answered, so a stall delays one of them: within a boot
they count as independent, unlike intervals of a stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hil.model import RunRecord
from hil.reference import Comparison
from reports.reproduction.estimate import ALPHA, Estimate, estimate, median
from reports.reproduction.records import BoardRun, whole, word

BENCH = "http_gateway"
PROFILES = ("baseline", "agentoptions", "tight")
KEEPS_CONNECTIONS = "agentoptions"
PARTS = ("dns_us", "tcp_us", "tls_us", "http_us")
OK, TIMEOUT = 0, 1
_NAMED = ("transport", "http", "keep_alive", "resume", "resolve", "qos", "reconnect")
_USUAL = {
    "transport": "tcp",
    "http": "https",
    "keep_alive": "profile",
    "resume": "1",
    "resolve": "address",
    "qos": "0",
    "reconnect": "both",
}


@dataclass(frozen=True)
class Request:
    """One request; ``row`` holds its columns. ``index`` counts from 1 within its phase."""

    record: RunRecord
    row: Mapping[str, int]

    @property
    def profile(self) -> str:
        return PROFILES[self.row["profile"]] if "profile" in self.row else word(self.record, "profile")

    @property
    def index(self) -> int:
        return self.row["read"]

    @property
    def is_ok(self) -> bool:
        return self.row["outcome"] == OK

    @property
    def is_timeout(self) -> bool:
        return self.row["outcome"] == TIMEOUT

    @property
    def rtt_ms(self) -> float:
        """From sending to the answer on one clock; infinite where none came."""
        return self.row["rtt_us"] / 1000 if self.is_ok else math.inf

    @property
    def planned(self) -> int:
        """How many requests its phase was to have."""
        return whole(self.record, "reads" if self.row["phase"] == 1 else "reads_after_reconnect")

    @property
    def is_first(self) -> bool:
        return self.index == 1


def requests_of(records: Iterable[RunRecord]) -> list[Request]:
    """Return every request of the records, timeouts included, in the order sent."""
    found = []
    for record in records:
        names = list(record.columns)
        rows = zip(*record.columns.values(), strict=True)
        found += [Request(record, dict(zip(names, values, strict=True))) for values in rows]
    return found


def selected(run: BoardRun, wanted: Comparison) -> list[Request]:
    """Return the requests that a row compares with."""
    return [
        request
        for request in requests_of(run.select(wanted))
        if all(request.row.get(column) == value for column, value in wanted.samples.items())
    ]


def mode(record: RunRecord) -> str:
    """Return how profiles were measured: single, together or interleaved."""
    return word(record, "order") if word(record, "profile") == "all" else "single"


def setting(record: RunRecord) -> str:
    """Name what differs from the usual besides profile, order and pause: "http, keep_alive=1"."""
    values = [(name, word(record, name)) for name in _NAMED if word(record, name)]
    return ", ".join(
        value if name in ("transport", "http") else f"{name}={value}"
        for name, value in values
        if value != _USUAL.get(name)
    )


def named(*words: str) -> str:
    """Join what is not empty: "single; http"."""
    return "; ".join(filter(None, words))


def connection(request: Request) -> str:
    """Say whether a request has a new connection to the server, or the profile keeps one."""
    asked = word(request.record, "keep_alive")
    kept = asked == "1" or (asked == "profile" and request.profile == KEEPS_CONNECTIONS)
    return "kept" if kept else "new"


def by(requests: Iterable[Request], key: Callable[[Request], object]) -> dict[object, list[Request]]:
    """Return the requests by a key, in the order in which the keys appear."""
    found: dict[object, list[Request]] = {}
    for request in requests:
        found.setdefault(key(request), []).append(request)
    return found


def rtt(requests: Sequence[Request], alpha: float = ALPHA) -> Estimate:
    """Return the median round trip in ms; requests without an answer count as slower than all."""
    found = median([request.rtt_ms for request in requests], _boots(requests), alpha)
    return replace(found, never=_never(requests))


def rtt_quantile(requests: Sequence[Request], share: float) -> Estimate:
    """Return a quantile of the round trips that were measured, in ms, without bounds."""
    return replace(estimate([request.rtt_ms for request in requests], share), never=_never(requests))


def _never(requests: Sequence[Request]) -> str:
    """Say what became of the requests without a round trip: timeout, failed, or either."""
    failed, late = failures(requests), timeouts(requests)
    return "failed or timeout" if failed and late else "failed" if failed else "timeout"


def _boots(requests: Sequence[Request]) -> list[int]:
    return [request.record.boot_index for request in requests]


def part(requests: Sequence[Request], column: str) -> Estimate:
    """Return the median of a column in ms, of the requests that were answered."""
    answered = [request for request in requests if request.is_ok]
    return median([request.row.get(column, 0) / 1000 for request in answered], _boots(answered))


def timeouts(requests: Sequence[Request]) -> int:
    return sum(request.is_timeout for request in requests)


def failures(requests: Sequence[Request]) -> int:
    """Return how many were answered with a failure: neither in time and whole, nor not at all."""
    return sum(not request.is_ok and not request.is_timeout for request in requests)


def pause_ms(record: RunRecord) -> int:
    return whole(record, "pause_ms")

# SPDX-License-Identifier: Apache-2.0
"""The requests in the records of the bench ``http_gateway``, and what groups of them come to.

A profile's request is sent when the one before was answered, so a stall delays one of them: within a boot
they count as independent, unlike intervals of a stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hil.metrics.stats import quantile
from hil.model import RunRecord
from hil.reports.studies.declaration import Comparison, Study
from hil.reports.studies.document import NONE, Table, percent
from hil.reports.studies.estimate import ALPHA, Estimate, estimate, median
from hil.reports.studies.layout import lay_out
from hil.reports.studies.records import BoardRun, grouped, whole, word

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
    """Return whether a request has a new connection to the server, or the profile keeps one."""
    asked = word(request.record, "keep_alive")
    kept = asked == "1" or (asked == "profile" and request.profile == KEEPS_CONNECTIONS)
    return "kept" if kept else "new"


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


COLD_PARTS = ("dns_us", "tcp_us", "tls_us")
_UNDISTURBED = ("single", "interleaved")
_TIMES = ("connect_us", "connack_us", "suback_us")
_SIDES = ("", "board_")
_LABELS = {"first": "1st", "second": "2nd", "later": "later"}


@dataclass(frozen=True)
class Phase:
    """One profile's requests of one phase of one record, two or more, all answered, in their order."""

    requests: tuple[Request, ...]

    @property
    def boot(self) -> int:
        return self.requests[0].record.boot_index

    @property
    def first_is_slowest(self) -> bool:
        first, *later = self.requests
        return first.rtt_ms > max(request.rtt_ms for request in later)

    def excess_ms(self, column: str = "rtt_us") -> float:
        """Return how much more the first request took than the median of the later ones."""
        first, *later = (request.row.get(column, 0) / 1000 for request in self.requests)
        return first - quantile(later, 0.5)


def undisturbed(run: BoardRun) -> list[Request]:
    """Return the requests of profiles that did not disturb each other, without a pause between requests."""
    return requests_of(
        record for record in run.of(BENCH) if mode(record) in _UNDISTURBED and not pause_ms(record)
    )


def shortest(phases: Sequence[Phase]) -> list[Phase]:
    """Return the phases of the shortest length, on which the share that chance gives depends."""
    least = min((len(phase.requests) for phase in phases), default=0)
    return [phase for phase in phases if len(phase.requests) == least]


def phases_of(requests: Sequence[Request]) -> list[Phase]:
    """Return the phases of which each request was answered, of two or more."""
    groups = grouped(requests, lambda request: (id(request.record), request.profile, request.row["phase"]))
    whole = [sorted(own, key=lambda request: request.index) for own in groups.values()]
    answered = [own for own in whole if not any(math.isinf(request.rtt_ms) for request in own)]
    return [Phase(tuple(own)) for own in answered if len(own) > 1]


def excess(phases: Sequence[Phase], column: str = "rtt_us") -> Estimate:
    """Return the median over the phases of what the first request took more, in ms."""
    return median([phase.excess_ms(column) for phase in phases], [phase.boot for phase in phases])


def group(request: Request) -> str:
    """Name what decides what a first request has to set up: "kept, phase 2; reconnect=board"."""
    return named(f"{connection(request)}, phase {request.row['phase']}", setting(request.record))


def first_table(study: Study, run: BoardRun) -> Table | None:
    """Return the first, the second and the later requests with their parts: medians in ms."""
    lines = []
    for name, requests in grouped(undisturbed(run), group).items():
        for k, own in sorted(grouped(requests, lambda request: min(request.index, 3)).items(), key=str):
            label = list(_LABELS)[k - 1]
            found = {column: part(own, column) for column in ("board_us", *PARTS)}
            parts = {column.removesuffix("_us"): one for column, one in found.items()}
            shares = {column: _share(own, column) for column in ("reused", "resumed")}
            lines.append(
                {
                    "case": name,
                    "request": label,
                    "read": _LABELS[label],
                    "rtt_p50": rtt(own),
                    "n": len(own),
                }
                | {**parts, **shares, **{column: one.value for column, one in found.items()}}
            )
    return lay_out(study, "first", lines)


def _share(requests: Sequence[Request], column: str) -> str:
    """Return the share of those answered, or for ``resumed`` of those that set TLS up."""
    of = [request for request in requests if request.is_ok]
    if column == "resumed":
        of = [request for request in of if request.row.get("tls_us", 0) > 0]
    return percent(sum(request.row.get(column, 0) for request in of) / len(of)) if of else NONE


def excess_table(study: Study, run: BoardRun) -> Table | None:
    """Return what the first request takes more than the later ones of its own phase, part by part."""
    lines = []
    lengths: set[int] = set()
    for name, requests in grouped(undisturbed(run), group).items():
        if phases := phases_of(requests):
            short = shortest(phases)
            slowest = sum(phase.first_is_slowest for phase in short)
            lengths.add(len(short[0].requests))
            found = {column: excess(phases, column) for column in ("rtt_us", *PARTS)}
            told = {"first_is_slowest": slowest, "slowest": f"{slowest} of {len(short)}"}
            lines.append({"case": name, "phases": len(phases), **found, **told})
    return lay_out(study, "excess", lines, lengths=" or ".join(map(str, sorted(lengths))))


def connect_table(study: Study, run: BoardRun) -> Table | None:
    """Return what connecting to the broker took at both ends, by phase and transport: medians in ms."""
    firsts = [request for request in requests_of(run.of(BENCH)) if request.is_first]
    groups = grouped(
        firsts, lambda request: f"{word(request.record, 'transport')}, phase {request.row['phase']}"
    )
    names = [f"{side}{time}" for side in _SIDES for time in _TIMES]
    lines = [
        {"case": name, **{column: _nonzero(requests, column) for column in names}}
        for name, requests in sorted(groups.items(), key=str)
    ]
    return lay_out(study, "connect", lines)


def _nonzero(requests: Sequence[Request], column: str) -> Estimate:
    return part([request for request in requests if request.row.get(column, 0)], column)

"""The first request of a phase against the later ones, part by part, and what connecting takes before it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hil.metrics.stats import quantile
from reports.reproduction.document import NONE, Table, percent
from reports.reproduction.estimate import Estimate, median
from reports.reproduction.records import BoardRun, word
from reports.reproduction.requests import (
    BENCH,
    PARTS,
    Request,
    by,
    connection,
    mode,
    named,
    part,
    pause_ms,
    requests_of,
    rtt,
    setting,
)

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
    groups = by(requests, lambda request: (id(request.record), request.profile, request.row["phase"]))
    whole = [sorted(own, key=lambda request: request.index) for own in groups.values()]
    answered = [own for own in whole if not any(math.isinf(request.rtt_ms) for request in own)]
    return [Phase(tuple(own)) for own in answered if len(own) > 1]


def excess(phases: Sequence[Phase], column: str = "rtt_us") -> Estimate:
    """Return the median over the phases of what the first request took more, in ms."""
    return median([phase.excess_ms(column) for phase in phases], [phase.boot for phase in phases])


def group(request: Request) -> str:
    """Name what decides what a first request has to set up: "kept, phase 2; reconnect=board"."""
    return named(f"{connection(request)}, phase {request.row['phase']}", setting(request.record))


_GROUPS = "new: a connection for each request; kept: one for all of a phase (profile agentoptions)"


def first_table(run: BoardRun) -> Table | None:
    """Return the first, the second and the later requests with their parts: medians in ms."""
    rows: list[tuple[str, ...]] = []
    data: list[Mapping[str, object]] = []
    for name, requests in by(undisturbed(run), group).items():
        shown = str(name)
        for k, own in sorted(by(requests, lambda request: min(request.index, 3)).items(), key=str):
            label = list(_LABELS)[int(str(k)) - 1]
            found = [part(own, column) for column in ("board_us", *PARTS)]
            kept = [_share(own, column) for column in ("reused", "resumed")]
            cells = (rtt(own).text, *(one.short for one in found), *kept, str(len(own)))
            rows.append((shown, _LABELS[label], *cells))
            data.append(
                {"case": str(name), "request": label, "rtt_p50": rtt(own).data, "n": len(own)}
                | {column: one.value for column, one in zip(("board_us", *PARTS), found, strict=True)}
            )
            shown = ""
    if not rows:
        return None
    columns = ("", "read", "rtt", "gateway", "DNS", "TCP", "TLS", "HTTP", "reused", "resumed", "n")
    notes = (
        _GROUPS,
        "profiles in turns or alone, without pauses; gateway: on the board, from the MQTT message to its "
        "answer; reused: over an open connection; resumed: TLS sessions, of those that were set up",
    )
    title = "The first request of a phase and the later ones, medians in ms"
    return Table("first", title, columns, tuple(rows), notes, tuple(data))


def _share(requests: Sequence[Request], column: str) -> str:
    """Return the share of those answered, or for ``resumed`` of those that set TLS up."""
    of = [request for request in requests if request.is_ok]
    if column == "resumed":
        of = [request for request in of if request.row.get("tls_us", 0) > 0]
    return percent(sum(request.row.get(column, 0) for request in of) / len(of)) if of else NONE


def excess_table(run: BoardRun) -> Table | None:
    """Return what the first request takes more than the later ones of its own phase, part by part."""
    rows: list[tuple[str, ...]] = []
    lengths: set[int] = set()
    data: list[Mapping[str, object]] = []
    for name, requests in by(undisturbed(run), group).items():
        phases = phases_of(requests)
        if phases:
            found = [excess(phases, column) for column in ("rtt_us", *PARTS)]
            short = shortest(phases)
            slowest = sum(phase.first_is_slowest for phase in short)
            cells = (found[0].text, *(one.short for one in found[1:]))
            rows.append((str(name), *cells, str(len(phases)), f"{slowest} of {len(short)}"))
            lengths.add(len(short[0].requests))
            values = {column: one.data for column, one in zip(("rtt_us", *PARTS), found, strict=True)}
            data.append({"case": str(name), "phases": len(phases), "first_is_slowest": slowest, **values})
    if not rows:
        return None
    columns = ("", "rtt", "DNS", "TCP", "TLS", "HTTP", "phases", "slowest of its phase")
    notes = (
        "of each phase: the first request less the median of the later ones; medians over the phases",
        f"slowest: of the phases of {' or '.join(map(str, sorted(lengths)))} requests",
    )
    title = "What the first request takes more, ms"
    return Table("excess", title, columns, tuple(rows), notes, tuple(data))


def connect_table(run: BoardRun) -> Table | None:
    """Return what connecting to the broker took at both ends, by phase and transport: medians in ms."""
    firsts = [request for request in requests_of(run.of(BENCH)) if request.is_first]
    groups = by(firsts, lambda request: f"{word(request.record, 'transport')}, phase {request.row['phase']}")
    names = [f"{side}{time}" for side in _SIDES for time in _TIMES]
    rows: list[tuple[str, ...]] = []
    data: list[Mapping[str, object]] = []
    for name, requests in sorted(groups.items(), key=str):
        cells = [_nonzero(requests, column) for column in names]
        rows.append((str(name), *(one.short for one in cells)))
        values = {column: one.data for column, one in zip(names, cells, strict=True)}
        data.append({"case": str(name), **values})
    if not rows:
        return None
    sides = [f"{side} {time}" for side in ("requester", "board") for time in ("TCP", "CONNACK", "SUBACK")]
    title = "Connecting to the broker before a phase, medians in ms"
    notes = ("of the ends that connected; an end that stays connected, or does not tell a part, has none",)
    return Table("connect", title, ("", *sides), tuple(rows), notes, tuple(data))


def _nonzero(requests: Sequence[Request], column: str) -> Estimate:
    return part([request for request in requests if request.row.get(column, 0)], column)

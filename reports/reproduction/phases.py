"""The published phases of mqtt-http-rtt beside ours, by their estimator and by ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hil.metrics.stats import ratio_interval
from hil.reference import Row
from hil.reference import Table as Published
from reports.reproduction.comparison import published_text, table_notes
from reports.reproduction.document import NONE, NOT_MEASURED, Table, number
from reports.reproduction.estimate import ALPHA, Estimate, mean_whole_ms, share_text
from reports.reproduction.records import BoardRun, boots
from reports.reproduction.requests import (
    Request,
    by,
    failures,
    mode,
    named,
    rtt,
    rtt_quantile,
    selected,
    setting,
    timeouts,
)

_COLUMNS = ("", "published", "ours", "their way", "p50", "p95", "p99", "n", "boots")


def phase_table(published: Published, run: BoardRun) -> Table:
    """Return each phase: published, then ours for each setting and order that was measured."""
    rows, data, notes = [], [], table_notes(published)
    for row in published.rows:
        groups = _groups(row, run, lambda request: _length(request, published.n))
        head = (row.label, published_text(row))
        if not groups:
            rows.append((*head, NOT_MEASURED, *[NONE] * 4, "0", "0"))
            notes.append(_missing(row, run))
        for name, requests in groups:
            rows.append((*head, name, *_cells(requests, published.n)))
            data.append(
                {"label": row.label, "published": row.published, "ours": name}
                | {"their_way": _theirs(requests, published.n), "boots": _boots(requests)}
                | {stat: one.data for stat, one in zip(_STATS, _quantiles(requests), strict=True)}
            )
            head = ("", "")
    notes.append(
        f"their way: whole ms over two clocks, mean of the phase's {published.n} requests in the first run; "
        "p50, p95, p99: one clock, all runs"
    )
    title = f"{published.title}, ms"
    return Table(published.id, title, _COLUMNS, tuple(rows), tuple(notes), tuple(data))


_STATS = ("p50", "p95", "p99")


def _quantiles(requests: Sequence[Request]) -> tuple[Estimate, Estimate, Estimate]:
    """Return p50 with its interval, and p95 and p99 of what was measured."""
    return rtt(requests), rtt_quantile(requests, 0.95), rtt_quantile(requests, 0.99)


def _groups(
    row: Row, run: BoardRun, further: Callable[[Request], str] = lambda _: ""
) -> list[tuple[str, list[Request]]]:
    """Return the requests of a row by order and setting; those at the same instant, as published, first."""

    def place(request: Request) -> str:
        return named(mode(request.record), setting(request.record)) + further(request)

    found = by(selected(run, row.ours), place) if row.ours else {}
    return sorted(((str(name), own) for name, own in found.items()), key=lambda pair: _rank(pair[0]))


def _length(request: Request, published: int) -> str:
    """Name the length of a phase that is not as published: it decides how much its first request weighs."""
    return "" if request.planned == published else f", {request.planned}"


def _rank(name: str) -> tuple[int, bool]:
    order = name.partition(";")[0].partition(",")[0]
    return ("together", "single", "interleaved").index(order), "," in name


def _cells(requests: Sequence[Request], n: int) -> tuple[str, ...]:
    p50, p95, p99 = _quantiles(requests)
    theirs = number(_theirs(requests, n))
    return (theirs, p50.text, p95.short, p99.short, str(len(requests)), str(_boots(requests)))


def _theirs(requests: Sequence[Request], n: int) -> float | None:
    """Return the published way's mean: of the first run's phase, whole ms, over the clocks of both ends.

    None where phases have another length.
    """
    own = [request for request in requests if request.planned == n]
    first = [request for request in own if request.record is own[0].record]
    return mean_whole_ms([request.row["payload_us"] for request in first if request.is_ok])


def _boots(requests: Sequence[Request]) -> int:
    return boots(request.record for request in requests)


def _missing(row: Row, run: BoardRun) -> str:
    why = run.why_missing(row.ours) if row.ours else "nothing of ours compares"
    return f"{row.label} was not measured: {why if why.endswith('.') else why + '.'}"


def timeout_table(published: Published, run: BoardRun) -> Table:
    """Return how many requests were not answered in time, as published and with the bounds of the share."""
    rows, data, notes = [], [], table_notes(published)
    for row in published.rows:
        groups = _groups(row, run)
        head = (row.label, published_text(row))
        if not groups:
            rows.append((*head, NOT_MEASURED, NONE, NONE, NONE))
            notes.append(_missing(row, run))
        for name, requests in groups:
            late, of = timeouts(requests), len(requests)
            bounds = ratio_interval(late, of, ALPHA)
            share = share_text(late / of, bounds)
            rows.append((*head, name, f"{late} of {of}", share, str(failures(requests))))
            data.append({"label": row.label, "ours": name, "timeouts": late, "of": of})
            head = ("", "")
    columns = ("", "published", "ours", "timeouts", "share", "failed otherwise")
    return Table(published.id, published.title, columns, tuple(rows), tuple(notes), tuple(data))

"""What the link is good for: known streams, transfers and messages against published and measured rates."""

from __future__ import annotations

from collections.abc import Mapping

from hil.reference import Application, Study
from reports.reproduction.document import NONE, Table, number
from reports.reproduction.estimate import NOTHING, Estimate
from reports.reproduction.records import BoardRun, word
from reports.reproduction.sizes import segments
from reports.reproduction.throughput import BENCH, Throughput, direction, is_plain, throughput_of

_WAYS = {"receive": "RX", "send": "TX"}
_COLUMNS = ("", "direction", "needs", "published mean", "ours, 95 % of the intervals")


def tcp_baseline(run: BoardRun, way: str) -> Throughput:
    """Return the plain TCP rates of a direction, all turns together."""
    records = [
        record
        for record in run.of(BENCH)
        if word(record, "protocol") == "tcp" and direction(record) == way and is_plain(record)
        if not record.parameters.get("rate_kbps")
    ]
    return throughput_of(records)


def application_table(study: Study, run: BoardRun) -> Table:
    """Return which applications fit the rate that 95 % of the intervals reach, and the published mean."""
    published = {row.label: row.published for table in study.tables for row in table.rows}
    rows, data, notes = [], [], []
    for application in study.applications:
        way = _WAYS[application.direction]
        theirs, ours = _published(application, published, way), _ours(application, run, way)
        fits = ours.text if ours.value is None else _finding(application, ours.value)
        rows.append((application.name, way, _need(application), _finding(application, theirs), fits))
        data.append(
            {"label": application.name, "direction": way, "rate_kbps": application.rate_kbps}
            | {"size_bytes": application.size_bytes, "published_mbps": theirs, "ours_mbps": ours.data}
        )
        notes.append(f"{application.name}: {application.source}.")
    return Table("applications", "What fits over TCP", _COLUMNS, tuple(rows), tuple(notes), tuple(data))


def _published(application: Application, published: Mapping[str, float | None], way: str) -> float | None:
    """Return the published mean that counts for an application: messages go in small segments."""
    if application.kind != "messages":
        return published.get(f"TCP {way}")
    size = f"({application.size_bytes} B of data)"
    return next((rate for label, rate in published.items() if size in label), None)


def _ours(application: Application, run: BoardRun, way: str) -> Estimate:
    """Return the rate that 95 % of the intervals reach, of the case that counts for an application."""
    if application.kind != "messages":
        return tcp_baseline(run, way).floor
    rates = segments(run, way).rates.get(application.size_bytes)
    return rates.floor if rates else NOTHING


def _need(application: Application) -> str:
    if application.kind == "stream":
        return f"{number(application.rate_kbps / 1000)} Mbit/s"
    return f"{application.size_bytes:,} B" + (" each" if application.kind == "messages" else "")


def _finding(application: Application, mbps: float | None) -> str:
    if mbps is None:
        return NONE
    if application.kind == "stream":
        times = mbps * 1000 / application.rate_kbps
        return f"fits {times:,.0f} times" if times >= 2 else "fits once" if times >= 1 else "does not fit"
    bits = application.size_bytes * 8
    if application.kind == "messages":
        return f"up to {mbps * 1e6 / bits:,.0f} a second"
    return f"{number(bits / 1e6 / mbps)} s"

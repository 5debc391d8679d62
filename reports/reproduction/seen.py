"""Sizes as they were asked for and as the capture shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hil.model import RunRecord
from reports.reproduction.document import NONE, Table, number
from reports.reproduction.records import BoardRun, whole, word
from reports.reproduction.throughput import (
    BENCH,
    asked_mss,
    asked_window,
    direction,
    grouped,
    mean_fact,
    throughput_of,
)


def window_table(run: BoardRun) -> Table | None:
    """Return the windows that were asked for, those that the capture shows, and what they allow."""
    rows: list[tuple[str, ...]] = []
    data: list[Mapping[str, object]] = []
    for way in ("RX", "TX"):
        for end in ("receiver", "sender"):
            size_of = _window_at(end)
            for size, found in by_size(run, way, size_of).items():
                row, numbers = _window_row(found)
                rows.append((f"{way}, {end}", f"{size:,.0f}", *row))
                data.append({"direction": way, "end": end, "asked_bytes": size, **numbers})
    if not rows:
        return None
    columns = ("set at", "asked B", "seen B", "in flight B", "RTT µs", "window/RTT", "mean", "n")
    notes = (
        "set at: -w of the receiving or of the sending end; seen: the largest window that the receiver "
        "advertised in the capture; in flight: the most that was sent and not yet acknowledged; window/RTT: "
        "the rate in Mbit/s that the seen window allows at the median round trip",
        "RX: a board's window may be seen at more than was asked for a round trip, while it is being set; "
        "TX: the host sees one round trip, the handshake's, so window/RTT is rough; and the board's send "
        "buffer, 5,760 B unless it was built otherwise, bounds what is in flight too",
    )
    title = "Windows as asked and as seen, rates in Mbit/s"
    return Table("windows", title, columns, tuple(rows), notes, tuple(data))


def _window_at(end: str) -> Callable[[RunRecord], int]:
    return lambda record: asked_window(record, end)


def _window_row(records: Sequence[RunRecord]) -> tuple[tuple[str, ...], Mapping[str, object]]:
    """Return the cells behind the asked window, and the same in numbers."""
    ours = throughput_of(records)
    seen, flight, rtt_us = (mean_fact(records, f"capture_{name}") for name in _CAPTURED)
    allowed = seen * 8 / rtt_us if seen and rtt_us else None
    cells = (_whole(seen), _whole(flight), _whole(rtt_us), number(allowed), ours.mean.text, str(ours.n))
    return cells, {
        "seen_bytes": seen,
        "in_flight_bytes": flight,
        "rtt_us": rtt_us,
        "window_per_rtt_mbps": allowed,
        "mean": ours.mean.data,
    }


_CAPTURED = ("window_max_bytes", "in_flight_max_bytes", "rtt_p50_us")


def segment_table(run: BoardRun) -> Table | None:
    """Return the segment sizes that were asked for and those that crossed the link."""
    rows: list[tuple[str, ...]] = []
    data: list[Mapping[str, object]] = []
    for way in ("RX", "TX"):
        for size, found in by_size(run, way, asked_mss).items():
            offered, largest, again = (mean_fact(found, f"capture_{name}") for name in _SEGMENTS)
            ours = throughput_of(found)
            cells = (_whole(offered), _whole(largest), _whole(again), ours.mean.text, str(ours.n))
            rows.append((way, f"{size:,.0f}", *cells))
            data.append(
                {"direction": way, "asked_bytes": size, "announced_bytes": offered, "largest_bytes": largest}
                | {"retransmissions": again, "mean": ours.mean.data}
            )
    if not rows:
        return None
    columns = ("", "asked B", "announced B", "largest seen B", "sent again", "mean", "n")
    notes = (
        "announced: the receiver's MSS in its SYN; largest seen: data of the largest segment in the capture; "
        "sent again: retransmitted segments",
    )
    title = "Package sizes as asked and as seen, rates in Mbit/s"
    return Table("segments", title, columns, tuple(rows), notes, tuple(data))


_SEGMENTS = ("syn_mss_bytes", "mss_bytes", "retransmissions_count")


def by_size(
    run: BoardRun, way: str, size_of: Callable[[RunRecord], int]
) -> Mapping[float, tuple[RunRecord, ...]]:
    """Return the TCP tests for a time in a direction that were told a size, ascending."""
    records = [
        record
        for record in run.of(BENCH)
        if word(record, "protocol") == "tcp" and direction(record) == way
        if size_of(record) and not whole(record, "amount_bytes")
    ]
    return grouped(records, size_of)


def _whole(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"

"""Joins what the host's iperf, its capture and the board saw into the rows and facts of one case."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from hil.base.errors import FirmwareError
from hil.model import Scalar, Series
from hil.network.packets.datagrams import Datagram, Transit, transits
from hil.network.peers.iperf.facts import Captured
from hil.network.peers.iperf.losses import settle_losses
from hil.network.peers.iperf.report import Report, Span
from hil.network.peers.iperf.settings import Settings

COLUMNS = (
    "interval_us",
    "received_bytes",
    "received_bps",
    "expected_count",
    "lost_count",
    "out_of_order_count",
    "jitter_us",
    "transit_difference_mean_us",
    "transit_difference_max_us",
)


def merge(
    series: Series, report: Report, captured: Captured, settings: Settings
) -> tuple[Series, dict[str, Scalar]]:
    """Return the case with the receiver's rows, and the totals of both ends.

    Raises FirmwareError: the board says that it received more than was sent, or sent less than arrived.
    """
    total = report.total.bytes if report.total else None
    if settings.board_sends:
        merged = _with_host_rows(series, report, captured.datagrams, settings)
        sent, received = _told(series, "sent_bytes"), total
    else:
        merged = _with_board_rows(series, settings)
        sent, received = total, _told(series, "received_bytes")
    _check_bytes(sent, received, settings)
    facts: dict[str, Scalar] = {
        "receiver": "host" if settings.board_sends else "board",
        "sent_bytes": sent,
        "received_bytes": received,
        "whole_us": _whole_us(series, report, settings),
    }
    if received is not None:
        facts["last_partial_bytes"] = received - sum(merged.columns.get("received_bytes", ()))
    if report.total and report.total.retransmits_count is not None:
        facts["retransmits_count"] = report.total.retransmits_count
    if settings.udp:
        end = report.total if settings.board_sends else report.peer_report
        told = _end_report(end) if end else _board_report(series)
        facts |= told
        merged = _with_losses_settled(merged, _whole_lost(told, received, settings), settings)
        if settings.board_sends and report.total:
            facts |= _host_lost(report.total, captured)
    return merged, {name: value for name, value in facts.items() if value is not None}


def _with_board_rows(series: Series, settings: Settings) -> Series:
    columns = {name: series.columns[name][: settings.rows_max] for name in COLUMNS if name in series.columns}
    return dataclasses.replace(series, columns=columns)


def _with_host_rows(
    series: Series, report: Report, datagrams: Sequence[Datagram], settings: Settings
) -> Series:
    spans = _rows(series, report, settings)
    omit_s = settings.omit_s + 1e-6
    warmup = sum(1 for one in spans if report.intervals and one.end_s <= omit_s)
    found = transits(datagrams, interval_us=settings.interval_us, count=len(spans))
    rows = [_row(span, transit) for span, transit in zip(spans, found, strict=True)]
    columns = {name: tuple(row[index] for row in rows) for index, name in enumerate(COLUMNS)}
    return dataclasses.replace(series, columns=columns, warmup_rows=warmup)


def _rows(series: Series, report: Report, settings: Settings) -> Sequence[Span]:
    """Return the full intervals of the test.

    What comes after its duration is left out: queues drain, and a final datagram that was lost is waited for.
    A transfer by amount that was over within the first interval is one row, from the sender's first byte on
    where the board knows that: between the first and the last arrival there may be no time at all.
    """
    if report.intervals or not settings.amount_bytes or report.total is None:
        return report.intervals[: settings.rows_max]
    sender_s = (_told(series, "whole_us") or 0) / 1e6
    return (dataclasses.replace(report.total, end_s=max(report.total.end_s, sender_s)),)


def _whole_lost(end: Mapping[str, Scalar], received_bytes: int | None, settings: Settings) -> int | None:
    """Return what the whole test lost. Where datagrams pause, iperf's own count comes out too low."""
    lost, datagrams = end["report_lost_count"], end["report_datagrams_count"]
    if not isinstance(lost, int) or not isinstance(datagrams, int) or received_bytes is None:
        return None
    return max(lost, datagrams - received_bytes // settings.length)


def _with_losses_settled(series: Series, whole_lost: int | None, settings: Settings) -> Series:
    if "lost_count" not in series.columns:
        return series
    settled = settle_losses(series.columns, length_bytes=settings.length, whole_lost=whole_lost)
    return dataclasses.replace(series, columns={**series.columns, "lost_count": settled})


def _row(span: Span, transit: Transit) -> tuple[int, ...]:
    interval_us = round(span.lasting_s * 1e6)
    return (
        interval_us,
        span.bytes,
        round(span.bytes * 8e6 / interval_us) if interval_us else 0,
        span.expected_count or 0,
        span.lost_count or 0,
        span.out_of_order_count,
        span.jitter_us or 0,
        transit.difference_mean_us,
        transit.difference_max_us,
    )


def _told(series: Series, name: str) -> int | None:
    """Return a total that the board told in its environment."""
    total = series.device.get(name)
    return total if isinstance(total, int) and not isinstance(total, bool) else None


def _whole_us(series: Series, report: Report, settings: Settings) -> int | None:
    told = None if settings.board_sends else _told(series, "whole_us")
    if told is not None:
        return told
    return round(report.total.end_s * 1e6) if report.total else None


def _check_bytes(sent: int | None, received: int | None, settings: Settings) -> None:
    if settings.udp or sent is None or received is None or received <= sent:
        return  # of UDP, iperf counts the final datagrams too
    who, other = ("sent", "the host received") if settings.board_sends else ("received", "the host sent")
    own, theirs = (sent, received) if settings.board_sends else (received, sent)
    raise FirmwareError(
        f"The board says that it {who} {own} bytes, and {other} {theirs}: its count is wrong.",
        next_step="look at the bench's counting; --keep-captures shows what crossed.",
    )


def _end_report(span: Span) -> Mapping[str, Scalar]:
    return {
        "report_lost_count": span.lost_count,
        "report_datagrams_count": span.expected_count,
        "report_jitter_us": span.jitter_us,
        "report_out_of_order_count": span.out_of_order_count,
    }


def _host_lost(total: Span, captured: Captured) -> Mapping[str, Scalar]:
    """Return how many datagrams passed the host's interface and did not reach its iperf, where that is known.

    They are neither the board's loss nor the air's: iperf was kept waiting until its socket's buffer was
    full. It counts the final datagram too, of which the capture's facts say nothing.
    """
    if captured.distinct_datagrams is None or total.expected_count is None or not total.lost_count:
        return {}
    reached = total.expected_count - total.lost_count - 1
    lost = min(total.lost_count, captured.distinct_datagrams - reached)
    return {"host_lost_count": lost} if lost > 0 else {}


def _board_report(series: Series) -> Mapping[str, Scalar]:
    """Return what the board counted; of a test in reverse nobody sends a report."""
    names = (
        f"report_{what}" for what in ("lost_count", "datagrams_count", "jitter_us", "out_of_order_count")
    )
    return {name: _told(series, name) for name in names}

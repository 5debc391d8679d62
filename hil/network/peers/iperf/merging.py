# SPDX-License-Identifier: Apache-2.0
"""Joins what the host's iperf, its capture and the board saw into the rows and facts of one case.

A capture's facts for the record, and whether the host did what it was asked to do.

Datagrams that came late are no loss: takes them back from the intervals that counted them as lost.

A receiver counts a gap in the numbers as lost when it shows, and a datagram that fills it later as out of
order. iperf 2.1.8 takes what comes late off the losses of its own interval, and forgets the rest where these
are fewer (its line of the whole test forgets none); the board takes the rest off the intervals that follow.
Here it goes to where it was lost: the rows before, the latest first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import FirmwareError, RigError
from hil.model import Scalar, Series
from hil.network.capture import CaptureCounts
from hil.network.dissect.iperf_datagrams import Datagram, Transit, facts_of, read_datagrams, transits
from hil.network.dissect.tcp import TcpFacts, read_facts
from hil.network.peers.iperf.process import IperfSettings
from hil.network.peers.iperf.report import Report, Span

GROSS = 0.10
# SO_RCVBUF: Linux books twice what is asked for, and advertises between half and all of that
WINDOW_FACTOR_MAX = 2.0
WINDOW_LARGEST_BYTES = 65_535  # a board does not scale windows


@dataclass(frozen=True)
class Captured:
    """Facts for the environment group ``peer``; ``datagrams`` are those of a UDP test's direction.

    ``distinct_datagrams`` is how many of them there were, None where the capture is not whole.
    """

    facts: Mapping[str, Scalar]
    datagrams: Sequence[Datagram]
    payload_bytes: int | None
    distinct_datagrams: int | None = None


def analyse(
    path: Path, counts: CaptureCounts, settings: IperfSettings, *, port: int, board: str, host: str
) -> Captured:
    """Read a capture. Frames that the capture missed are counted, and void every exact count.

    Raises RigError: not a capture; or a window or MSS that was asked from the host is not what crossed.
    """
    sender = board if settings.board_sends else host
    missing: dict[str, Scalar] = {"capture_dropped_count": counts.missing} if not counts.complete else {}
    if settings.udp:
        return _of_datagrams(read_datagrams(path, port=port, sender=sender), missing)
    tcp = read_facts(path, port=port, sender=sender, host=host)
    if tcp is None:
        return Captured({**missing, "capture_segments_count": 0}, (), 0)
    return _of_segments(tcp, missing, _compare(tcp, settings, path))


def _of_datagrams(datagrams: Sequence[Datagram], missing: Mapping[str, Scalar]) -> Captured:
    if missing:
        return Captured(missing, datagrams, None, None)
    udp = facts_of(datagrams)
    facts: dict[str, Scalar] = {
        "capture_segments_count": udp.count,
        "capture_payload_bytes": udp.payload_bytes,
        "capture_header_bytes": udp.header_bytes,
    }
    return Captured(facts, datagrams, None, udp.count - udp.duplicate_count)


def _of_segments(tcp: TcpFacts, missing: Mapping[str, Scalar], remarks: Sequence[str]) -> Captured:
    exact: dict[str, Scalar] = {
        "capture_segments_count": tcp.segments_count,
        "capture_payload_bytes": tcp.payload_bytes,
        "capture_header_bytes": tcp.header_bytes,
        "capture_retransmissions_count": tcp.retransmissions_count,
        "capture_in_flight_max_bytes": tcp.in_flight_max_bytes,
    }
    facts: dict[str, Scalar] = {
        **(missing or exact),
        "capture_mss_bytes": tcp.largest_segment_bytes,
        "capture_syn_mss_bytes": tcp.receiver_syn_mss_bytes,
        "capture_sender_syn_mss_bytes": tcp.sender_syn_mss_bytes,
        "capture_window_max_bytes": tcp.window_max_bytes,
        "capture_window_min_bytes": tcp.window_min_bytes,
        "capture_rtt_p50_us": tcp.rtt_p50_us,
    }
    if remarks:
        facts["capture_remarks"] = "; ".join(remarks)
    return Captured(facts, (), None if missing else tcp.payload_bytes)


def _compare(tcp: TcpFacts, settings: IperfSettings, path: Path) -> list[str]:
    """Return what was asked from the host and came out differently. Raises RigError where grossly."""
    remarks = _compare_mss(tcp, settings, path)
    asked = min(settings.peer_window_bytes, WINDOW_LARGEST_BYTES)
    seen = tcp.window_max_bytes
    if settings.board_sends and asked and seen != asked:
        remarks.append(f"peer_window_bytes {asked} asked, {seen} advertised")
        if not asked * (1 - GROSS) <= seen <= asked * WINDOW_FACTOR_MAX * (1 + GROSS):
            raise _not_as_asked("window", "peer_window_bytes", asked, seen, path)
    largest_allowed = tcp.receiver_syn_mss_bytes
    if largest_allowed and tcp.largest_segment_bytes > largest_allowed:
        remarks.append(
            f"segments of {tcp.largest_segment_bytes} bytes captured, {largest_allowed} announced: "
            "the host's network card joins or splits segments, so counts are not those of the air "
            "(ethtool -K INTERFACE gro off gso off tso off)"
        )
    return remarks


def _compare_mss(tcp: TcpFacts, settings: IperfSettings, path: Path) -> list[str]:
    asked = settings.peer_mss_bytes
    if not asked:
        return []
    host_syn = tcp.receiver_syn_mss_bytes if settings.board_sends else tcp.sender_syn_mss_bytes
    remarks = []
    if host_syn and host_syn != asked:
        remarks.append(f"peer_mss_bytes {asked} asked, {host_syn} announced")
    # a write smaller than the MSS makes smaller segments, whatever the MSS
    full = settings.length >= asked and tcp.payload_bytes > asked
    if full and tcp.largest_segment_bytes != asked:
        remarks.append(f"peer_mss_bytes {asked} asked, segments of {tcp.largest_segment_bytes}")
    seen = tcp.largest_segment_bytes if full else host_syn
    if seen and abs(seen - asked) > GROSS * asked:
        raise _not_as_asked("MSS", "peer_mss_bytes", asked, seen, path)
    return remarks


def _not_as_asked(what: str, parameter: str, asked: int, seen: int, path: Path) -> RigError:
    return RigError(
        f"The host's {what} differs from the requested value: {parameter} {asked}, the capture shows {seen}.",
        log=str(path),
        next_step="look at that capture, and at the host's kernel settings (sysctl net.ipv4).",
    )


def settle_losses(
    columns: Mapping[str, Sequence[int]], *, length_bytes: int, whole_lost: int | None
) -> tuple[int, ...]:
    """Return ``lost_count`` of the rows so that their sum is at most what the whole test lost.

    Every datagram has ``length_bytes``. A row's own losses are what it expected and did not receive; a
    board's count is larger where datagrams came twice, which it can tell. ``whole_lost`` is None where
    nobody knows it.
    """
    settled: list[int] = []
    names = ("expected_count", "received_bytes", "lost_count", "out_of_order_count")
    for expected, received_bytes, lost, late in zip(*(columns[name] for name in names), strict=True):
        missing = expected - received_bytes // length_bytes
        _take_back(settled, min(late, max(0, -missing)))
        settled.append(max(0, lost, missing))
    if whole_lost is not None:  # what came late after the last row
        _take_back(settled, max(0, sum(settled) - whole_lost))
    return tuple(settled)


def _take_back(settled: list[int], late: int) -> None:
    for index in reversed(range(len(settled))):
        taken = min(late, settled[index])
        settled[index] -= taken
        late -= taken


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
    series: Series, report: Report, captured: Captured, settings: IperfSettings
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
        if not settings.board_sends and _told(series, "report_jitter_us") is not None:
            told = _board_report(series)  # the host prints the same, but iperf 2.2 its jitter as 0
        facts |= told
        merged = _with_losses_settled(merged, _whole_lost(told, received, settings), settings)
        if settings.board_sends and report.total:
            facts |= _host_lost(report.total, captured)
    return merged, {name: value for name, value in facts.items() if value is not None}


def _with_board_rows(series: Series, settings: IperfSettings) -> Series:
    columns = {name: series.columns[name][: settings.rows_max] for name in COLUMNS if name in series.columns}
    return dataclasses.replace(series, columns=columns)


def _with_host_rows(
    series: Series, report: Report, datagrams: Sequence[Datagram], settings: IperfSettings
) -> Series:
    spans = _rows(series, report, settings)
    omit_s = settings.omit_s + 1e-6
    warmup = sum(1 for one in spans if report.intervals and one.end_s <= omit_s)
    found = transits(datagrams, interval_us=settings.interval_us, count=len(spans))
    rows = [_row(span, transit) for span, transit in zip(spans, found, strict=True)]
    columns = {name: tuple(row[index] for row in rows) for index, name in enumerate(COLUMNS)}
    return dataclasses.replace(series, columns=columns, warmup_rows=warmup)


def _rows(series: Series, report: Report, settings: IperfSettings) -> Sequence[Span]:
    """Return the full intervals of the test.

    What comes after its duration is left out: queues drain, and a final datagram that was lost is waited for.
    A transfer by amount that was over within the first interval is one row, from the sender's first byte on
    where the board knows that: between the first and the last arrival there may be no time at all.
    """
    if report.intervals or not settings.amount_bytes or report.total is None:
        return report.intervals[: settings.rows_max]
    sender_s = (_told(series, "whole_us") or 0) / 1e6
    return (dataclasses.replace(report.total, end_s=max(report.total.end_s, sender_s)),)


def _whole_lost(end: Mapping[str, Scalar], received_bytes: int | None, settings: IperfSettings) -> int | None:
    """Return what the whole test lost. Where datagrams pause, iperf's own count comes out too low."""
    lost, datagrams = end["report_lost_count"], end["report_datagrams_count"]
    if not isinstance(lost, int) or not isinstance(datagrams, int) or received_bytes is None:
        return None
    return max(lost, datagrams - received_bytes // settings.length)


def _with_losses_settled(series: Series, whole_lost: int | None, settings: IperfSettings) -> Series:
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


def _whole_us(series: Series, report: Report, settings: IperfSettings) -> int | None:
    told = None if settings.board_sends else _told(series, "whole_us")
    if told is not None:
        return told
    return round(report.total.end_s * 1e6) if report.total else None


def _check_bytes(sent: int | None, received: int | None, settings: IperfSettings) -> None:
    if settings.udp or sent is None or received is None or received <= sent:
        return  # of UDP, iperf counts the final datagrams too
    who, other = ("sent", "the host received") if settings.board_sends else ("received", "the host sent")
    own, theirs = (sent, received) if settings.board_sends else (received, sent)
    raise FirmwareError(
        f"The board says that it {who} {own} bytes, and {other} {theirs}: its count is wrong.",
        next_step="look at the bench's counting; --keep-captures shows the packets.",
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

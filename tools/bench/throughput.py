# SPDX-License-Identifier: Apache-2.0
"""Whether throughput and loss that are reported are the air's: `throughput` against Debian's iperf."""

from __future__ import annotations

from collections.abc import Mapping

from hil.metrics.stats import ratio_interval
from hil.model import Scalar
from hil.network.peers.companion import Observed
from tools.bench.figure import Figure
from tools.bench.peer_case import measure_with_peer
from tools.bench.workbench import Workbench

LOSSES_PERCENT = (0, 1, 5)
LOSS_RATE_KBPS = 8000
LOSS_ALPHA = 0.0005  # on each side of 99.9 %
RATES_MBPS = (10, 20)
RATE_AIM_RATIO = 0.05
WINDOW_BYTES = 65_535
FRAME_HEADER_BYTES = 14
TCP_HEADERS_BYTES, TCP_SEGMENT_BYTES = 40, 1440
UDP_HEADERS_BYTES, UDP_DATAGRAM_BYTES = 28, 1470
AMOUNT_BYTES = 5000
PACKETS_BYTES = (200, 1400)
DURATION_S, SHORT_DURATION_S, OMIT_S = 6, 3, 2
# the board is the client and sends, or the server and receives
ROLES = {"client": ("board sends", "uplink"), "server": ("board receives", "downlink")}


def udp_loss(bench: Workbench, *, short: bool) -> Figure:
    """Compare the loss of a UDP test with what the air says it dropped."""
    rows, missed = [], []
    seconds = SHORT_DURATION_S if short else DURATION_S
    for role, (name, direction) in ROLES.items():
        for percent in LOSSES_PERCENT[-1:] if short else LOSSES_PERCENT:
            bench.rack.air.reset_statistics(bench.board.id)
            bench.rack.air.set(bench.board.id, direction, loss_ppm=percent * 10_000)
            try:
                outcome = _measure(bench, seconds, protocol="udp", role=role, rate_kbps=LOSS_RATE_KBPS)
            finally:
                bench.rack.air.set(bench.board.id, direction, loss_ppm=0)
            facts = outcome.environment
            air = bench.rack.air.statistics(bench.board.id)[bench.board.id][direction]
            dropped, frames = int(air["drop_loss"]), int(air["read_frames"])
            lost, count = _number(facts, "report_lost_count"), _number(facts, "report_datagrams_count")
            bounds = ratio_interval(lost, count, LOSS_ALPHA)
            interval = f"{bounds.low:.3%} … {bounds.high:.3%}"
            rows.append((name, f"{percent} %", f"{dropped} of {frames}", f"{lost} of {count}", interval))
            if not bounds.low <= dropped / frames <= bounds.high:
                missed.append(
                    f"{name}, {percent} %: the air dropped {dropped / frames:.3%}, not in {interval}"
                )
    note = (
        f"{LOSS_RATE_KBPS / 1000:g} Mbit/s for {seconds} s a row, virtual. Aim: the air's share lies in the "
        "99.9 % interval of the reported one. The air counts every frame of that direction."
    )
    columns = ("", "air set to", "air dropped", "reported lost", "reported, 99.9 % interval")
    return Figure(
        "UDP loss that is reported against the frames that the air dropped", columns, rows, note, missed
    )


def air_rate(bench: Workbench, *, short: bool) -> Figure:
    """Compare throughput with the payload rate of an air that is the bottleneck."""
    rows, missed = [], []
    seconds = SHORT_DURATION_S if short else DURATION_S
    for protocol, payload, headers in (
        ("tcp", TCP_SEGMENT_BYTES, TCP_HEADERS_BYTES),
        ("udp", UDP_DATAGRAM_BYTES, UDP_HEADERS_BYTES),
    ):
        for role, (name, _) in ROLES.items():
            for rate_mbps in RATES_MBPS[:1] if short else RATES_MBPS:
                bench.rack.air.set(bench.board.id, "both", rate_kbit=rate_mbps * 1000)
                try:
                    measured = _throughput_mbps(bench, seconds, protocol, role, rate_mbps)
                finally:
                    bench.rack.air.set(bench.board.id, "both", rate_kbit=0)
                carried = rate_mbps * payload / (payload + headers + FRAME_HEADER_BYTES)
                error = measured / carried - 1
                cells = (f"{rate_mbps} Mbit/s", f"{carried:.2f}", f"{measured:.2f}", f"{error:+.2%}")
                rows.append((f"{protocol.upper()}, {name}", *cells))
                if abs(error) > RATE_AIM_RATIO:
                    missed.append(
                        f"{protocol}, {name} at {rate_mbps} Mbit/s: {error:+.1%}, aim {RATE_AIM_RATIO:.0%}"
                    )
    note = (
        f"{seconds - OMIT_S} s a row after {OMIT_S} s, windows of {WINDOW_BYTES} bytes, UDP offered at twice "
        "the rate, virtual. "
        f"Aim: within {RATE_AIM_RATIO:.0%} of the payload that fits the air's rate."
    )
    columns = ("", "air", "payload rate", "measured", "error")
    return Figure("Throughput where the air is the limit (Mbit/s)", columns, rows, note, missed)


def overhead(bench: Workbench, *, short: bool) -> Figure:
    """Compare the bytes of headers in a capture with the formula."""
    rows, missed = [], []
    for packet_bytes in PACKETS_BYTES[:1] if short else PACKETS_BYTES:
        mss = packet_bytes - TCP_HEADERS_BYTES
        # the server sends in reverse: iperf's client begins with 60 bytes of its own
        facts = _measure(
            bench,
            DURATION_S,
            role="server",
            reverse=1,
            peer_mss_bytes=mss,
            amount_bytes=AMOUNT_BYTES,
            length_bytes=AMOUNT_BYTES,
            omit_s=0,
        ).environment
        expected = TCP_HEADERS_BYTES * -(-AMOUNT_BYTES // mss)
        captured = _number(facts, "capture_header_bytes")
        segments = _number(facts, "capture_segments_count")
        rows.append((f"MSS {mss}", str(segments), str(expected), str(captured)))
        if captured != expected:
            missed.append(f"MSS {mss}: {captured} bytes of headers captured, {expected} expected")
    note = f"{AMOUNT_BYTES} bytes over TCP from the board, virtual. Aim: the same to the byte."
    columns = ("", "segments", "40 · ceil(N / MSS)", "captured")
    return Figure("Bytes of IP and TCP headers", columns, rows, note, missed, exact=True)


def _throughput_mbps(bench: Workbench, seconds: int, protocol: str, role: str, rate_mbps: int) -> float:
    options: dict[str, int | str] = {"protocol": protocol, "role": role}
    options |= {"rate_kbps": rate_mbps * 2000} if protocol == "udp" else {"window_bytes": WINDOW_BYTES}
    series = _measure(bench, seconds, **options).series
    values = series.columns["received_bps"][series.warmup_rows :]
    return sum(values) / len(values) / 1e6


def _number(facts: Mapping[str, Scalar], name: str) -> int:
    return int(facts[name] or 0)


def _measure(bench: Workbench, seconds: int, **overrides: int | str) -> Observed:
    return measure_with_peer(bench, "throughput", **{"duration_s": seconds, "omit_s": OMIT_S, **overrides})

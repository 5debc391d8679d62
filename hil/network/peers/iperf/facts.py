"""A capture's facts for the record, and whether the host did what it was asked to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hil.base.errors import RigError
from hil.model import Scalar
from hil.network.capture import CaptureCounts
from hil.network.packets.datagrams import Datagram, facts_of, read_datagrams
from hil.network.packets.tcp import TcpFacts, read_facts
from hil.network.peers.iperf.settings import Settings

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
    path: Path, counts: CaptureCounts, settings: Settings, *, port: int, board: str, host: str
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


def _compare(tcp: TcpFacts, settings: Settings, path: Path) -> list[str]:
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


def _compare_mss(tcp: TcpFacts, settings: Settings, path: Path) -> list[str]:
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
        f"The host's {what} is not what was asked for: {parameter} {asked}, the capture shows {seen}.",
        log=str(path),
        next_step="look at that capture, and at the host's kernel settings (sysctl net.ipv4).",
    )

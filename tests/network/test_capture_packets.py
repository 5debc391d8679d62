# SPDX-License-Identifier: Apache-2.0
"""What is read from a capture, against tshark's reading of the same file."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from socket import inet_aton

import dpkt
import pytest
from dpkt.tcp import TH_ACK, TH_SYN

from hil.base.errors import RigError
from hil.model import Case
from hil.network.capture import Capture, CaptureCounts
from hil.network.dissect.iperf_datagrams import facts_of, read_datagrams, transits
from hil.network.dissect.tcp import TcpFacts, read_facts
from hil.network.peers.iperf.merging import analyse
from hil.network.peers.iperf.process import IperfSettings
from tests.network.iperf_rig import DEFAULTS, IperfLab, iperf_lab

MAKE_LAB = iperf_lab
TSHARK_TIMEOUT_S = 30


def captured(lab: IperfLab, path: Path, *options: str, udp: bool = False) -> CaptureCounts:
    """Let the board send with iperf, and the host receive; return the capture's counts."""
    kind = ["-u"] if udp else []
    server = lab.rack.spawn(["iperf", "-s", "-P", "1", *kind, "-p", "5001"], log_path=path.with_suffix(".s"))
    capture = Capture.start(lab.rack, ["hil0"], path, capture_filter=f"host {lab.board_address}")
    try:
        lab.board_client(5001, *kind, *options)
        server.wait(20)
        return capture.stop()
    finally:
        capture.kill()
        server.kill()


def tshark(path: Path, display_filter: str, *fields: str) -> list[list[str]]:
    words = [word for field in fields for word in ("-e", field)]
    argv = ["tshark", "-n", "-r", str(path), "-Y", display_filter, "-T", "fields", *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TSHARK_TIMEOUT_S, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("loss_ppm", [0, 10_000])
def test_tcp_facts_are_those_of_tshark(lab: IperfLab, tmp_path: Path, loss_ppm: int) -> None:
    """Segments, bytes, MSS, windows, flight and repeated segments agree with another reader, loss or not."""
    path = tmp_path / "tcp.pcapng"
    lab.rack.air.set("all", "both", loss_ppm=loss_ppm)
    assert captured(lab, path, "-n", "1M", "-M", "560").complete
    lab.rack.air.set("all", "both", loss_ppm=0)
    board, host = lab.board_address, lab.rack.host_address
    facts = read_facts(path, port=5001, sender=board, host=host)
    assert facts is not None
    names = ("len", "hdr_len", "analysis.bytes_in_flight", "analysis.retransmission", "analysis.out_of_order")
    fields = ("ip.hdr_len", *(f"tcp.{name}" for name in names))
    data = tshark(path, f"ip.src == {board} && tcp.len > 0", *fields)
    lengths = [int(row[1]) for row in data]
    assert facts.segments_count == len(lengths)
    assert facts.payload_bytes == sum(lengths)
    assert facts.largest_segment_bytes == max(lengths) == 560
    assert facts.header_bytes == sum(int(row[0]) + int(row[2]) for row in data)
    assert facts.in_flight_max_bytes == max(int(row[3]) for row in data if row[3])
    repeated = sum(1 for row in data if row[4] or row[5])
    assert facts.retransmissions_count + facts.out_of_order_count == repeated
    assert repeated or not loss_ppm  # a busy host repeats segments that were late, too
    plain = " && ".join(f"tcp.flags.{flag} == 0" for flag in ("syn", "fin", "reset"))
    windows = [int(row[0]) for row in tshark(path, f"ip.src == {host} && {plain}", "tcp.window_size")]
    assert (facts.window_min_bytes, facts.window_max_bytes) == (min(windows), max(windows))
    offered = tshark(path, "tcp.flags.syn == 1", "ip.src", "tcp.options.mss_val")
    announced = {source: int(mss) for source, mss in offered}
    assert (facts.sender_syn_mss_bytes, facts.receiver_syn_mss_bytes) == (announced[board], announced[host])


@pytest.mark.slow
def test_round_trips_are_the_airs(lab: IperfLab, tmp_path: Path) -> None:
    """The handshake shows the air's own delay of both directions: 3 ms ± 1 ms each way."""
    path = tmp_path / "rtt.pcapng"
    captured(lab, path, "-n", "1000", "-l", "1000")
    facts = read_facts(path, port=5001, sender=lab.board_address, host=lab.rack.host_address)
    assert facts is not None
    assert facts.rtts_us
    assert 4000 <= min(facts.rtts_us) <= 10_000


@pytest.mark.slow
def test_datagrams_that_the_air_dropped_are_the_lost_ones(lab: IperfLab, tmp_path: Path) -> None:
    """Loss and order by the ids in the capture: the air's own count of drops, to the datagram."""
    path = tmp_path / "udp.pcapng"
    lab.rack.air.reset_statistics("all")
    lab.rack.air.set("all", "uplink", loss_ppm=50_000)
    captured(lab, path, "-t", "1", "-b", "8m", udp=True)
    lab.rack.air.set("all", "uplink", loss_ppm=0)
    dropped = int(lab.rack.air.statistics("b1")["b1"]["uplink"]["drop_loss"])
    datagrams = read_datagrams(path, port=5001, sender=lab.board_address)
    facts = facts_of(datagrams)
    finals = tshark(path, f"ip.src == {lab.board_address} && udp.port == 5001", "udp.payload")
    finals_count = sum(1 for row in finals if int(row[0][:2], 16) >= 0x80)
    assert len(finals) == facts.count + finals_count
    assert facts.out_of_order_count == facts.duplicate_count == 0
    # the air may have dropped final datagrams, which are sent until they are answered, and a last one
    assert facts.lost_count <= dropped <= facts.lost_count + 10
    assert facts.lost_count > 10
    spans = transits(datagrams, interval_us=100_000, count=10)
    differences = [
        abs((b.arrived_us - b.sent_us) - (a.arrived_us - a.sent_us)) for a, b in itertools.pairwise(datagrams)
    ]
    assert max(span.difference_max_us for span in spans) <= max(differences)


@pytest.mark.slow
def test_a_capture_with_drops_gives_no_exact_counts(lab: IperfLab, tmp_path: Path) -> None:
    """Where the kernel dropped frames, the record says so and has no counts of segments or bytes."""
    path = tmp_path / "drops.pcapng"
    counts = captured(lab, path, "-n", "5000", "-l", "5000")
    ends = {"port": 5001, "board": lab.board_address, "host": lab.rack.host_address}
    settings = IperfSettings.of(Case("throughput", DEFAULTS))
    whole = analyse(path, counts, settings, **ends)  # type: ignore[arg-type]
    assert whole.facts["capture_payload_bytes"] == 5000
    torn = analyse(path, CaptureCounts(counts.captured, counts.received, 3), settings, **ends)  # type: ignore[arg-type]
    assert torn.facts["capture_dropped_count"] == 3
    assert not {"capture_segments_count", "capture_payload_bytes", "capture_retransmissions_count"} & set(
        torn.facts
    )


def test_a_file_that_is_no_capture_is_refused(tmp_path: Path) -> None:
    """A damaged file is a RigError that names it."""
    path = tmp_path / "broken.pcap"
    path.write_bytes(b"\x00" * 100)
    with pytest.raises(RigError, match=r"broken\.pcap"):
        read_facts(path, port=5001, sender="10.0.0.1", host="10.0.0.2")


class Wire:
    """Writes a conversation by hand, a frame a call, as a host's capture would show it."""

    host, board, port, board_port = "10.0.0.1", "10.0.0.2", 5001, 40000

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb")
        self._writer = dpkt.pcap.Writer(self._file)

    def add(
        self,
        time_us: int,
        source: str,
        seq: int,
        ack: int,
        length: int = 0,
        flags: int = TH_ACK,
        options: bytes = b"",
    ) -> None:
        ports = (self.port, self.board_port) if source == self.host else (self.board_port, self.port)
        tcp = dpkt.tcp.TCP(sport=ports[0], dport=ports[1], seq=seq % 2**32, ack=ack % 2**32, flags=flags)
        tcp.data, tcp.opts, tcp.off = bytes(length), options, 5 + len(options) // 4
        other = self.board if source == self.host else self.host
        ip = dpkt.ip.IP(src=inet_aton(source), dst=inet_aton(other), p=dpkt.ip.IP_PROTO_TCP, data=tcp)
        ip.len = len(ip)
        self._writer.writepkt(bytes(dpkt.ethernet.Ethernet(data=ip)), ts=time_us / 1e6)

    def facts(self, sender: str) -> TcpFacts:
        self._file.close()
        facts = read_facts(self.path, port=self.port, sender=sender, host=self.host)
        assert facts is not None
        return facts


def test_a_repeated_segment_gives_no_round_trip(tmp_path: Path) -> None:
    """The acknowledgement of a segment that was sent twice may be of either (Karn), so it counts as none."""
    wire = Wire(tmp_path / "karn.pcap")
    start = 2**32 - 600  # sequence numbers wrap in the middle
    wire.add(0, wire.host, start - 1, 0, flags=TH_SYN)
    wire.add(5_000, wire.board, 99, start, flags=TH_SYN | TH_ACK)
    wire.add(6_000, wire.host, start, 100, 500)
    wire.add(10_000, wire.board, 100, start + 500)
    wire.add(11_000, wire.host, start + 500, 100, 500)
    wire.add(1_011_000, wire.host, start + 500, 100, 500)
    wire.add(1_015_000, wire.board, 100, start + 1000)
    facts = wire.facts(wire.host)
    assert facts.rtts_us == (5_000, 4_000)
    assert (facts.segments_count, facts.payload_bytes) == (3, 1500)
    assert (facts.retransmissions_count, facts.out_of_order_count) == (1, 0)
    assert facts.in_flight_max_bytes == 500


@pytest.mark.parametrize(("of_board", "window"), [(b"", 65_535), (b"\x01\x03\x03\x00", 65_535 << 2)])
def test_a_window_is_scaled_where_both_sides_say_so(tmp_path: Path, of_board: bytes, window: int) -> None:
    """What one side offers in its SYN holds where the other's has the option too (RFC 7323, 2.2)."""
    wire = Wire(tmp_path / "window.pcap")
    wire.add(0, wire.host, 0, 0, flags=TH_SYN, options=b"\x01\x03\x03\x02")
    wire.add(1_000, wire.board, 99, 1, flags=TH_SYN | TH_ACK, options=of_board)
    wire.add(2_000, wire.host, 1, 100)
    wire.add(3_000, wire.board, 100, 1, 500)
    assert wire.facts(wire.board).window_max_bytes == window


def test_a_late_segment_is_told_from_one_that_was_sent_again(tmp_path: Path) -> None:
    """What fills a gap within half a round trip was overtaken; what comes later was lost and sent again."""
    wire = Wire(tmp_path / "order.pcap")
    wire.add(0, wire.board, 99, 0, flags=TH_SYN)
    wire.add(1, wire.host, 0, 100, flags=TH_SYN | TH_ACK)
    wire.add(6_001, wire.board, 100, 1)  # a round trip of 6 ms
    wire.add(7_000, wire.board, 600, 1, 500)
    wire.add(7_000, wire.board, 100, 1, 500)  # first of the connection, after its second
    wire.add(8_000, wire.board, 1600, 1, 500)
    wire.add(9_000, wire.board, 1100, 1, 500)  # 1 ms after the gap showed
    wire.add(10_000, wire.board, 2600, 1, 500)
    wire.add(18_000, wire.board, 2100, 1, 500)  # 8 ms after
    facts = wire.facts(wire.board)
    assert facts.segments_count == 6
    assert facts.out_of_order_count == 1
    assert facts.retransmissions_count == 2  # the first gap is not known to be one
    assert facts.rtt_p50_us == 6_000

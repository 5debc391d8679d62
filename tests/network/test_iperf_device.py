# SPDX-License-Identifier: Apache-2.0
"""The board's iperf peer against Debian's iperf and itself; peers that misbehave end with an owner each."""

from __future__ import annotations

import re
import threading

import pytest

from hil.base.errors import ConfigError, FirmwareError, RigError
from hil.model import Scalar, Series
from hil.network.peers.iperf.process import require_version
from tests.network.iperf_device_rig import Board, Network

pytestmark = pytest.mark.slow

LENGTH_BYTES = {"tcp": 16384, "udp": 1470}
UDP_KBPS = 4000
OPTIONS = {"tcp": [], "udp": ["-u", "-b", f"{UDP_KBPS}k"]}
RATE = {"tcp": 0, "udp": UDP_KBPS}


def check_moved(series: Series, receiver: str) -> None:
    """The board's full intervals and the rest are all that it sent or that came."""
    columns, facts = series.columns, series.device
    moved, idle = ("received", "sent") if receiver == "board" else ("sent", "received")
    assert facts["receiver"] == receiver
    assert series.rows >= 9
    assert set(columns["interval_us"]) == {100_000}
    bits = [min(80 * count, 2**32 - 1) for count in columns["received_bytes"]]
    assert receiver == "host" or list(columns["received_bps"]) == bits
    whole = sum(columns[f"{moved}_bytes"]) + int(facts["last_partial_bytes"] or 0)
    assert whole == facts[f"{moved}_bytes"]
    assert not any(columns[f"{idle}_bytes"])
    check_steady(series, f"{moved}_bytes")


def check_steady(series: Series, moved: str) -> None:
    """CPU load and its bytes are of the time that was asked for, 1 s; of less where the peer ended before."""
    facts, planned = series.device, 10
    whole = series.rows < planned
    assert facts["steady_bytes"] == (facts[moved] if whole else sum(series.columns[moved][:planned]))
    assert int(facts["host_cpu_wall_us"] or 0) > 900_000 or whole


def iperf_bytes(output: str) -> list[int]:
    """The transfers that iperf printed, last line last."""
    return [int(count) for count in re.findall(r"sec +(\d+) Bytes", output)]


def printed_jitter(series: Series) -> str:
    """Return the milliseconds that iperf prints of the board's report; 2.2 prints 0 of any server's."""
    jitter_us = int(series.device["report_jitter_us"] or 0)
    return "0.000" if require_version().startswith("2.2") else f"{jitter_us / 1000:.3f}"


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_board_sends_to_an_iperf_server(board: Board, network: Network, protocol: str) -> None:
    """iperf counts each byte that the board says it sent, and calls nothing lost."""
    server = network.iperf_server("-fB", *OPTIONS[protocol][:1])
    series = board.run(protocol=protocol, rate_kbps=RATE[protocol])
    said = server.end()
    check_moved(series, "host")
    assert iperf_bytes(said)[-1] == series.device["sent_bytes"]
    if protocol == "udp":
        facts = series.device
        count = int(facts["report_datagrams_count"] or 0)
        assert f"0/{count} (0%)" in said
        assert facts["report_lost_count"] == facts["report_out_of_order_count"] == 0
        assert facts["report_received_bytes"] == facts["sent_bytes"] == count * LENGTH_BYTES["udp"]
        assert "peer_version" not in facts
    else:
        assert series.device["peer_version"] == require_version()


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_board_receives_from_an_iperf_server(board: Board, network: Network, protocol: str) -> None:
    """With -R the iperf server sends as the board asked, and the board counts all of it."""
    server = network.iperf_server("-fB", *OPTIONS[protocol][:1])
    series = board.run(protocol=protocol, reverse=1, rate_kbps=RATE[protocol])
    said = server.end()
    check_moved(series, "board")
    assert "(reverse)" in said
    if protocol == "tcp":
        assert iperf_bytes(said)[-1] == series.device["received_bytes"]
    else:
        assert series.device["end_seen"] == series.device["timestamps"] == 1
        assert sum(series.columns["lost_count"]) == 0


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_board_serves_an_iperf_client(board: Board, network: Network, protocol: str) -> None:
    """iperf's client sends all it has, warns of nothing, and prints the board's report as the server's."""
    series, said = serve(board, network, protocol, reverse=0)
    check_moved(series, "board")
    assert "WARNING" not in said
    if protocol == "tcp":
        assert iperf_bytes(said)[-1] == series.device["received_bytes"]
        return
    report = said.partition("Server Report:")[2]
    count = series.device["report_datagrams_count"]
    assert iperf_bytes(report) == [series.device["received_bytes"]]
    assert f"{printed_jitter(series)} ms 0/{count} (0%)" in report


def test_header_is_acknowledged(board: Board, network: Network) -> None:
    """iperf's client that asks what its server is (-X) sends nothing before the board has answered."""
    options = ("-X", "-n", "50000", "-fB")
    board.run(lambda: network.iperf_client(*options), role="server", amount_bytes=50_000, interval_ms=10_000)
    said = network.programs[-1].output()
    assert "recvack" not in said
    assert iperf_bytes(said) == [50_000]


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_board_sends_to_an_iperf_client(board: Board, network: Network, protocol: str) -> None:
    """An iperf client that asks for -R receives all that the board says it sent."""
    series, said = serve(board, network, protocol, reverse=1)
    check_moved(series, "host")
    assert iperf_bytes(said)[-1] == series.device["sent_bytes"]


def serve(board: Board, network: Network, protocol: str, *, reverse: int) -> tuple[Series, str]:
    """Run the board as a server with an iperf client; iperf's words with the series."""
    options = ["-t", "1", "-fB", *OPTIONS[protocol], *(["-R"] if reverse else [])]
    case = {"protocol": protocol, "reverse": reverse, "rate_kbps": RATE[protocol]}
    series = board.run(lambda: network.iperf_client(*options), role="server", **case)
    assert dict(board.notes[0].fields) == {"port": "5001"}
    return series, network.programs[-1].output()


@pytest.mark.parametrize(("protocol", "reverse"), [("tcp", 0), ("tcp", 1), ("udp", 0), ("udp", 1)])
def test_board_to_board(board: Board, network: Network, protocol: str, reverse: int) -> None:
    """Two boards measure each other in both directions, and agree on every byte."""
    other = network.board(1)
    served: list[Series] = []
    parameters: dict[str, Scalar] = {"protocol": protocol, "reverse": reverse, "rate_kbps": UDP_KBPS}
    server = threading.Thread(target=lambda: served.append(other.run(role="server", **parameters)))
    server.start()
    network.await_port(protocol)
    ours = board.run(**parameters)
    server.join()
    sender, receiver = (served[0], ours) if reverse else (ours, served[0])
    check_moved(sender, "host")
    check_moved(receiver, "board")
    assert sender.device["sent_bytes"] == receiver.device["received_bytes"]
    if protocol == "udp" and not reverse:
        names = [
            f"report_{name}" for name in ("lost_count", "datagrams_count", "jitter_us", "out_of_order_count")
        ]
        assert [ours.device[name] for name in names] == [served[0].device[name] for name in names]


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("reverse", [0, 1])
def test_amount_instead_of_time(board: Board, network: Network, protocol: str, reverse: int) -> None:
    """With -n exactly so many bytes cross, and one done within an interval is a row of that length."""
    network.iperf_server(*OPTIONS[protocol][:1])
    series = board.run(
        protocol=protocol, reverse=reverse, amount_bytes=20_000, interval_ms=10_000, rate_kbps=RATE[protocol]
    )
    facts, columns = series.device, series.columns
    told = int(facts["received_bytes" if reverse else "sent_bytes"] or 0)
    last = LENGTH_BYTES["udp"] if protocol == "udp" else 0  # of UDP the final datagram counts
    assert told == 20_000 + last
    assert series.rows == 1
    assert 0 < columns["interval_us"][0] < 10_000_000
    assert columns["received_bytes" if reverse else "sent_bytes"] == (told,)


def test_loss_is_reported_to_iperf(board: Board, network: Network) -> None:
    """Where each tenth datagram is lost the board counts them, and iperf prints count and jitter."""

    def start() -> None:
        network.peer("lossy_path", 5050, 10)
        network.iperf_client("-u", "-t", "1", "-b", "2000k", "-fB", port=5050)

    series = board.run(start, protocol="udp", role="server", rate_kbps=2000)
    said = network.programs[-1].output()
    facts, columns = series.device, series.columns
    lost, count = int(facts["report_lost_count"] or 0), int(facts["report_datagrams_count"] or 0)
    assert lost == (count - 1) // 10 > 10
    assert lost - sum(columns["lost_count"]) in (0, 1)  # one in the last, partial one
    assert sum(columns["expected_count"]) <= count  # each interval has its own, not all up to it
    assert f"{printed_jitter(series)} ms {lost}/{count} (" in said.partition("Server Report:")[2]


def test_old_peers_without_header_are_measured(board: Board, network: Network) -> None:
    """The iperf example of older ESP-IDFs says neither what it wants, nor when it sent, nor when it ends."""
    tcp = board.run(lambda: network.peer("headerless_tcp_client"), role="server")
    check_moved(tcp, "board")
    udp = board.run(
        lambda: network.peer("headerless_udp_client"), protocol="udp", role="server", timeout_ms=3500
    )
    assert udp.device["received_bytes"] == 100 * LENGTH_BYTES["udp"]
    assert udp.device["timestamps"] == udp.device["end_seen"] == 0
    assert not any(udp.columns["jitter_us"])
    assert not any(udp.columns["lost_count"])


def test_disorder_is_told_apart(board: Board, network: Network) -> None:
    """Lost, late and twice are three things; a number from nowhere is ignored; the report repeats."""
    case = {"protocol": "udp", "role": "server", "amount_bytes": 1, "interval_ms": 10_000}
    series = board.run(lambda: network.peer("disorderly_client"), **case)
    facts, columns = series.device, series.columns
    assert (columns["expected_count"], columns["lost_count"]) == ((10,), (5,))  # 4, 5, 7, 8, 9
    assert columns["out_of_order_count"] == (1,)
    assert (facts["duplicate_count"], facts["ignored_count"]) == (1, 1)
    assert network.programs[-1].output().split() == ["128", "0x88000000", "8820", "5", "2", "10", "True"]


def test_offer_above_what_the_link_takes_is_a_result(board: Board, network: Network) -> None:
    """An offer of 80 Mbit/s through a link of 4 Mbit/s is what got through, and what did not."""
    shaping = ["rate", "4mbit", "burst", "4kb", "latency", "5ms"]
    network.start("tc", "qdisc", "add", "dev", "lo", "root", "tbf", *shaping).output()
    try:
        network.iperf_server("-u")
        facts = board.run(protocol="udp", rate_kbps=80_000, length_bytes=1000).device
    finally:
        network.start("tc", "qdisc", "del", "dev", "lo", "root").output()
    sent, lost = int(facts["sent_bytes"] or 0), int(facts["report_lost_count"] or 0)
    assert lost > 0
    assert int(facts["report_datagrams_count"] or 0) * 1000 >= sent
    assert int(facts["report_received_bytes"] or 0) < sent
    assert int(facts["late_max_us"] or 0) >= int(facts["late_end_us"] or 0) >= 0


@pytest.mark.parametrize(
    ("peer", "parameters", "sentence"),
    [
        ((), {}, "Connection refused"),
        ((), {"protocol": "udp"}, "refused"),
        ((), {"protocol": "udp", "reverse": 1}, "refused, asking for -R"),
        (("mute_server",), {"timeout_ms": 400, "duration_s": 20}, "no data for 400 ms"),
        (("mute_server",), {"timeout_ms": 400, "reverse": 1}, "silent for 400 ms, after 0 bytes"),
        (("rude_server",), {}, "broke .* off, sending"),
        (("hasty_server",), {"reverse": 1}, r"ended after \d+ ms of 1000 ms"),
        (("hasty_server",), {"reverse": 1, "amount_bytes": 60_000}, "50000 bytes of 60000"),
        (("lying_server", -3, 60), {"protocol": "udp"}, "negative counts"),
        (("lying_server", 90, 60), {"protocol": "udp"}, "lost 90 of 60"),
        (("lying_server", 0, 90_000), {"protocol": "udp"}, "another test"),
        (("deaf_server",), {"protocol": "udp"}, "no report, .* 10 times every 250 ms"),
    ],
)  # fmt: skip
def test_trouble_with_a_server(
    board: Board, network: Network, peer: tuple[str, ...], parameters: dict[str, int], sentence: str
) -> None:
    """A server that is not there, silent, resets, closes early or lies is the rig's fault."""
    if peer:
        network.peer(*peer)
    with pytest.raises(RigError, match=f"iperf peer 127.0.0.1:5001 .*{sentence}"):
        board.run(**parameters)


@pytest.mark.parametrize(
    ("peer", "parameters", "sentence"),
    [
        ((), {"timeout_ms": 300}, "no iperf client .* TCP port 5001 in 300"),
        ((), {"timeout_ms": 300, "protocol": "udp"}, "no iperf client .* UDP port"),
        (("stranger",), {"timeout_ms": 300, "protocol": "udp"}, "start of an iperf stream"),
        (("tcp_client", ""), {"timeout_ms": 300}, "no header for 300"),
        (("tcp_client", "40010078"), {"timeout_ms": 300}, "no header for 300"),
        (("tcp_client", b"GET / HTTP/1.1\r\n".hex()), {}, "garbage"),
        (("tcp_client", b"ab2cd3ef4gh5".hex()), {}, "speaks iperf 3"),
        (("tcp_client", "40010078" + "00" * 56), {}, "another iperf than 2"),
        (("falling_silent_client",), {"timeout_ms": 1500, "protocol": "udp"}, "silent for"),
    ],
)  # fmt: skip
def test_trouble_with_a_client(
    board: Board, network: Network, peer: tuple[str, ...], parameters: dict[str, int], sentence: str
) -> None:
    """A client that does not come, speaks something else or falls silent is the rig's fault."""
    with pytest.raises(RigError, match=sentence):
        board.run((lambda: network.peer(*peer)) if peer else None, role="server", **parameters)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-t", "1", "-R"], "-R, .* reverse=0"),
        (["-t", "7"], "another -t or -n "),
        (["-t", "1", "-l", "999"], "another -l "),
        (["-t", "1", "-d"], "-d or -r"),
        (["-t", "1", "--full-duplex"], " --full-duplex"),
        (["-t", "1", "--trip-times"], " --trip-times"),
        (["-t", "1", "--bounceback"], " --bounceback"),
        (["-t", "1", "-P", "2"], " -P "),
        (["-t", "1", "-P", "2", "-u"], " -P "),
        (["-t", "1", "-P", "2", "-u", "-R"], " -P "),
    ],
)
def test_iperf_asks_for_what_the_case_does_not(
    board: Board, network: Network, options: list[str], sentence: str
) -> None:
    """A client that asks for another test, or for what is not spoken, is misconfigured."""
    protocol = "udp" if "-u" in options else "tcp"
    with pytest.raises(ConfigError, match=sentence):
        board.run(lambda: network.iperf_client(*options), role="server", protocol=protocol)


@pytest.mark.parametrize(("reverse", "option"), [(0, "TCP_SND_BUF"), (1, "TCP_WND")])
def test_socket_options(board: Board, network: Network, reverse: int, option: str) -> None:
    """-w, -M and -N are read back as they are in force; what is impossible names the option to build with."""
    network.iperf_server()
    facts = board.run(
        reverse=reverse, amount_bytes=50_000, window_bytes=4096, mss_bytes=536, nodelay=1
    ).device
    assert (facts["window_bytes"], facts["nodelay"]) == (4096, 1)
    assert 0 < int(facts["mss_bytes"] or 0) <= 536
    build_with = f"5760 bytes; .* CONFIG_LWIP_{option}_DEFAULT=2440 to 65535"
    with pytest.raises(ConfigError, match=f"window_bytes=1000000 .*{build_with}"):
        board.run(reverse=reverse, window_bytes=1_000_000)
    with pytest.raises(ConfigError, match=r"mss_bytes=9 .* CONFIG_LWIP_TCP_MSS=9"):
        board.run(reverse=reverse, mss_bytes=9)


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_port_in_use(board: Board, network: Network, kind: str) -> None:
    """A port that somebody has is named, with its protocol."""
    network.peer("hold_port", kind)
    with pytest.raises(FirmwareError, match=f"{kind.upper()} port 5001 .*Address already"):
        board.run(protocol=kind, role="server")


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"duration_s": 200}, "duration_s has more intervals"),
        ({"omit_s": 1}, "omit_s is not shorter"),
        ({"protocol": "udp", "length_bytes": 15}, "length_bytes .* 16"),
        ({"reverse": 1, "amount_bytes": 2**31}, " 2147483647"),
    ],
)
def test_contradicting_parameters(board: Board, parameters: dict[str, int], sentence: str) -> None:
    """What cannot be measured is refused before anything is sent."""
    with pytest.raises(ConfigError, match=sentence):
        board.run(**parameters)


def test_peer_not_provisioned(network: Network) -> None:
    """A board that was not told where its peer is says so."""
    with pytest.raises(ConfigError, match=r"\(peer_host, peer_port\) .*not provisioned"):
        network.new_board().run()


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_abort_while_waiting(board: Board, protocol: str) -> None:
    """A host that gives up on a board that waits for its peer ends the run."""
    with pytest.raises(RigError, match="aborted"):
        board.run(
            lambda: board.process.write(b"abort\n"), protocol=protocol, role="server", timeout_ms=60_000
        )


@pytest.mark.parametrize(
    "parameters", [{"rate_kbps": 100}, {"protocol": "udp", "rate_kbps": 1}, {"reverse": 1}]
)
def test_abort_in_the_middle(board: Board, network: Network, parameters: dict[str, int | str]) -> None:
    """A run that sends, even if its next datagram is seconds away, or waits for data ends at once."""
    kind = str(parameters.get("protocol", "tcp"))
    server = network.peer("witness", kind)

    def abort_when_met() -> None:
        assert server.ready() == "met\n"
        board.process.write(b"abort\n")

    witness = threading.Thread(target=abort_when_met)
    witness.start()
    with pytest.raises(RigError, match="was aborted"):
        board.run(duration_s=100, timeout_ms=60_000, **parameters)
    witness.join()

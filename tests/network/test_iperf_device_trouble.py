# SPDX-License-Identifier: Apache-2.0
"""The board's iperf peer against peers that misbehave: each ends with a sentence and an owner."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from hil.base.errors import ConfigError, FirmwareError, RigError
from tests.network.iperf_device_rig import Board, Network

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared() -> Iterator[Network]:
    with Network.open() as network:
        yield network


@pytest.fixture
def network(shared: Network) -> Iterator[Network]:
    yield shared
    shared.clear()


@pytest.fixture
def board(network: Network) -> Board:
    return network.board()


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


def abort(board: Board) -> None:
    assert board.process.stdin is not None
    board.process.stdin.write(b"abort\n")
    board.process.stdin.flush()


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_abort_while_waiting(board: Board, protocol: str) -> None:
    """A host that gives up on a board that waits for its peer ends the run."""
    with pytest.raises(RigError, match="aborted"):
        board.run(lambda: abort(board), protocol=protocol, role="server", timeout_ms=60_000)


@pytest.mark.parametrize(
    "parameters", [{"rate_kbps": 100}, {"protocol": "udp", "rate_kbps": 1}, {"reverse": 1}]
)
def test_abort_in_the_middle(board: Board, network: Network, parameters: dict[str, int | str]) -> None:
    """A run that sends, even if its next datagram is seconds away, or waits for data ends at once."""
    kind = str(parameters.get("protocol", "tcp"))
    server = network.peer("witness", kind)

    def abort_when_met() -> None:
        assert server.ready() == "met\n"
        abort(board)

    witness = threading.Thread(target=abort_when_met)
    witness.start()
    with pytest.raises(RigError, match="was aborted"):
        board.run(duration_s=100, timeout_ms=60_000, **parameters)
    witness.join()

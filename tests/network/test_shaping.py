# SPDX-License-Identifier: Apache-2.0
"""tc at an access point's interface: the virtual air's parameters on one board's packets, gone afterwards.

The interface is that of a virtual rack's access point, whose own air is perfect and counts what crosses it.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hil.base.errors import ConfigError, RigError
from hil.model import Case
from hil.network.peers.mqtt.board_air import BoardAir
from hil.network.peers.mqtt.settings import AirChange
from hil.network.process import run_to_end
from hil.network.shaping import IFB, ShapedAir, check_shaping, commands_for, netem_words, remove
from hil.virtual.air.profile import Impairment, load_profile
from hil.virtual.virtual_rack import VirtualRack
from tests.boards.rack_tools import start_rack

TIMEOUT_S = 60.0
BYTES = 150_000
# sends so many bytes in packets of 1000, as fast as the socket takes them; or receives as many
SEND = """
import socket, sys
to = socket.create_connection((sys.argv[1], 5999), timeout=50)
left = int(sys.argv[2])
while left > 0:
    to.sendall(bytes(1000))
    left -= 1000
to.shutdown(socket.SHUT_WR)
assert to.recv(1) == b"!"
"""
RECEIVE = """
import socket, sys
server = socket.create_server(("", 5999))
print("ready", flush=True)
for _ in range(int(sys.argv[1])):
    peer, _ = server.accept()
    while peer.recv(65536):
        pass
    peer.sendall(b"!")
"""


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualRack]:
    started = start_rack(
        tmp_path_factory.mktemp("rack"), boards=("b1", "b2"), profile=load_profile("perfect")
    )
    try:
        folder = tmp_path_factory.mktemp("kernel")
        for argv in commands_for("lo", "127.0.0.9", "uplink", Impairment(rate_kbit=1000)):
            code, said = asked(started, argv, folder)
            if code != 0 and "nknown" in said:
                pytest.skip(f"this kernel has no {argv[-1]}, for {' '.join(argv)}: {said.strip()}")
        remove(started, "lo", folder / "tc.log")
        yield started
    finally:
        started.stop()


@pytest.fixture
def air(rack: VirtualRack, tmp_path: Path) -> Iterator[ShapedAir]:
    made = ShapedAir(rack, rack.host_interface, "b1", address_of(rack, "b1"), tmp_path / "tc.log")
    yield made
    made.remove()
    assert shaped(rack, tmp_path) == (False, False)


def address_of(rack: VirtualRack, board: str) -> str:
    return {"b1": "10.77.0.11", "b2": "10.77.0.12"}[board] if rack else ""


def asked(rack: VirtualRack, argv: list[str], folder: Path) -> tuple[int, str]:
    return run_to_end(rack, argv, TIMEOUT_S, log_path=folder / "asked.log")


def shaped(rack: VirtualRack, folder: Path) -> tuple[bool, bool]:
    """Return whether anything of ours is at the interface, and whether our own interface is there."""
    _code, said = asked(rack, ["tc", "qdisc", "show", "dev", rack.host_interface], folder)
    return ("7a1:" in said or "ingress" in said), asked(rack, ["ip", "link", "show", IFB], folder)[0] == 0


def class_bytes(rack: VirtualRack, device: str, folder: Path) -> int:
    _code, said = asked(rack, ["tc", "-s", "class", "show", "dev", device], folder)
    return sum(int(count) for count in re.findall(r"class htb 7a1:1 .*?\n Sent (\d+) bytes", said))


def carry(rack: VirtualRack, board: str, *, up: bool, folder: Path) -> float:
    """Send BYTES to or from a board over TCP, and return how many seconds that took."""
    sender, receiver = (board, "rack") if up else ("rack", board)
    target = rack.host_address if up else address_of(rack, board)
    log = folder / f"receive-{board}-{up}.log"
    log.unlink(missing_ok=True)
    listening = rack.spawn([sys.executable, "-c", RECEIVE, "1"], netns=receiver, log_path=log)
    while "ready" not in (log.read_text() if log.exists() else ""):
        assert listening.returncode is None, log.read_text()
        time.sleep(0.01)
    began = time.monotonic()
    argv = [sys.executable, "-c", SEND, target, str(BYTES)]
    sending = rack.spawn(argv, netns=sender, log_path=folder / "send.log")
    assert sending.wait(TIMEOUT_S) == 0, (folder / "send.log").read_text()
    assert listening.wait(TIMEOUT_S) == 0  # who sent it may have left with the last bytes on their way
    return time.monotonic() - began


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["uplink", "downlink"])
def test_a_rate_holds_one_boards_packets_in_one_direction(
    rack: VirtualRack, air: ShapedAir, tmp_path: Path, direction: str
) -> None:
    """No faster than the rate, however the host is; what the class counted is what the virtual air delivered
    of that board, and nothing of another's. Given back, nothing is left."""
    rate_kbit, up = 2000, direction == "uplink"
    rack.air.reset_statistics()
    air.set("b1", direction, rate_kbit=rate_kbit)
    device = IFB if up else rack.host_interface
    at_once = 20_000  # the burst, and the last of what the kernel hands on in one piece (GSO)
    least_s = 8 * (BYTES - at_once) / (rate_kbit * 1000)
    assert carry(rack, "b1", up=up, folder=tmp_path) >= least_s
    counted = class_bytes(rack, device, tmp_path)
    facts = rack.air.statistics("b1")["b1"][direction]
    frames, crossed = int(facts["delivered_frames"]), int(facts["delivered_bytes"])
    assert BYTES < counted <= crossed + 14 * frames
    assert crossed - counted < 10_000  # ARP and IPv6 of the link, which no filter takes
    carry(rack, "b2", up=up, folder=tmp_path)
    assert class_bytes(rack, device, tmp_path) - counted < 2000  # the first board's last words at most
    assert air.show("b1")["b1"][direction]["rate_kbit"] == rate_kbit
    air.set("b1", direction, rate_kbit=0)
    assert shaped(rack, tmp_path) == (False, False)


@pytest.mark.slow
def test_a_case_changes_its_boards_air_and_gives_it_back(
    rack: VirtualRack, air: ShapedAir, tmp_path: Path
) -> None:
    """What the peers of `delivery` and `echo` do at a virtual air they do at this one, and say where."""
    place: Any = SimpleNamespace(air=air, board=SimpleNamespace(id="b1"), case=Case("echo", {}))
    changed = BoardAir(place, AirChange(rate_up_kbit=3000, rate_down_kbit=2000))
    changed.start()
    assert "uplink 3000 kbit/s, downlink 2000 kbit/s" in changed.impaired
    assert f" tc at {rack.host_interface}:" in changed.impaired
    assert shaped(rack, tmp_path) == (True, True)
    changed.put_back()
    assert shaped(rack, tmp_path) == (False, False)


@pytest.mark.slow
def test_delay_and_loss_are_netems_or_a_sentence(rack: VirtualRack, air: ShapedAir, tmp_path: Path) -> None:
    """Where the kernel has netem, no answer is faster than both delays, as through the virtual air's own.
    Where it has none, that is said with a way out, nothing is left, and a rate works still."""
    if not check_shaping("lo", ["delay"], tmp_path).ok:
        with pytest.raises(RigError, match=r"netem .*kind is unknown") as caught:
            air.set("b1", "both", delay_us=20_000)
        assert "linux-modules-extra" in caught.value.next_step
        assert shaped(rack, tmp_path) == (False, False)
        air.set("b1", "both", rate_kbit=5000)
        assert shaped(rack, tmp_path) == (True, True)
        return
    air.set("b1", "both", delay_us=20_000)
    by_tc = fastest_ms(rack, tmp_path)
    air.set("b1", "both", delay_us=0)
    rack.air.set("b1", delay_us=20_000)
    try:
        by_air = fastest_ms(rack, tmp_path)
    finally:
        rack.air.set("b1", delay_us=0)
    assert min(by_tc, by_air) >= 40.0
    air.set("b1", "both", loss_ppm=1_000_000)
    code, said = asked(rack, ["ping", "-c", "3", "-i", "0.2", "-W", "1", address_of(rack, "b1")], tmp_path)
    assert code != 0
    assert "100% packet loss" in said


def fastest_ms(rack: VirtualRack, folder: Path) -> float:
    argv = ["ping", "-c", "10", "-i", "0.2", address_of(rack, "b1")]
    code, said = asked(rack, argv, folder)
    assert code == 0, said
    return min(float(ms) for ms in re.findall(r"time=([\d.]+) ms", said))


@pytest.mark.slow
def test_what_somebody_else_shapes_is_left_alone(rack: VirtualRack, air: ShapedAir, tmp_path: Path) -> None:
    """A qdisc of the host's own is no loss that a run may cause: it is named, and stays."""
    interface = rack.host_interface
    own = f"tc qdisc add dev {interface} root tbf rate 1gbit burst 1mb latency 9ms".split()
    assert asked(rack, own, tmp_path)[0] == 0
    try:
        with pytest.raises(RigError, match=rf"{interface} has .*\(tbf "):
            air.set("b1", "downlink", rate_kbit=1000)
        assert "tbf" in asked(rack, ["tc", "qdisc", "show", "dev", interface], tmp_path)[1]
    finally:
        asked(rack, ["tc", "qdisc", "del", "dev", interface, "root"], tmp_path)


def test_parameters_become_tcs_words() -> None:
    """Microseconds, millionths and kbit/s, each with its unit; a rate alone asks netem for nothing."""
    assert netem_words(Impairment(rate_kbit=9)) == []
    spread = {"delay_us": 5000, "jitter_us": 900, "correlation_ppm": 250_000, "keep_order": 0}
    link = Impairment(**spread, distribution="normal", loss_ppm=1500)
    words = ["delay", "5000us", "900us", "25.0000%", "distribution", "normal", "loss", "random", "0.1500%"]
    assert netem_words(link) == words
    bursts = Impairment(burst_start_ppm=2000, burst_end_ppm=200_000, duplicate_ppm=10)
    words = ["loss", "gemodel", "0.2000%", "20.0000%", "100.0000%", "0.0000%", "duplicate", "0.0010%"]
    assert netem_words(bursts) == words
    made = commands_for("wlan0", "10.0.0.9", "downlink", Impairment(rate_kbit=8000))
    assert json.dumps(made).count('"wlan0"') == len(made)
    assert "match ip dst 10.0.0.9/32" in " ".join(made[2])


@pytest.mark.parametrize(
    ("parameters", "what"),
    [
        ({"jitter_us": 5}, "jitter"),
        ({"loss_ppm": 5, "burst_start_ppm": 5}, "loss and bursts"),
        ({"overhead_bytes": 40}, "overhead_bytes=40"),
        ({"limit_bytes": 4096, "loss_ppm": 9}, "limit_bytes=4096"),
        ({"reorder_ppm": 5}, "reordering"),
    ],
)
def test_what_tc_has_not_is_refused(
    rack: VirtualRack, air: ShapedAir, tmp_path: Path, parameters: dict[str, int], what: str
) -> None:
    """What it would do otherwise than the virtual air is refused before anything is made."""
    with pytest.raises(ConfigError, match=what):
        air.set("b1", "both", **parameters)
    for refused in (lambda: air.down("b1"), lambda: air.gap("b1", interval_us=5)):
        with pytest.raises(ConfigError):
            refused()
    assert shaped(rack, tmp_path) == (False, False)


def test_a_check_tries_it_apart(tmp_path: Path) -> None:
    """`hil rack check` tries it in a namespace of its own; an interface that is not there is named."""
    rate = check_shaping("lo", ["rate"], tmp_path)
    if not rate.ok:
        assert re.search(": unshare|nknown", rate.sentence)
        return
    every = check_shaping("lo", ["rate", "delay", "loss"], tmp_path)
    assert every.ok or "kind is unknown" in every.sentence
    assert "no such interface" in check_shaping("hil-none", ["rate"], tmp_path).sentence

# SPDX-License-Identifier: Apache-2.0
"""Packets of a board that are dropped between access point and broker: those named, and only meanwhile.

The rack has a real bridge; a client in the board's namespace talks MQTT's first packets with a server on the
host's side, each step in turn, and says how far it came.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.base import process
from hil.base.errors import RigError
from hil.network.capture import Capture, CaptureCounts
from hil.network.dissect.tshark import read_fields
from hil.network.packet_filter import Dropped, PacketFilter
from hil.network.process import LocalSpawner, Spawner
from hil.virtual.air.build import build_air
from hil.virtual.virtual_rack import VirtualRack
from tests.boards.rack_tools import AIR_DIR, UnprivilegedSpawner, running_rack, wait_until
from tests.virtual.test_virtual_rack_privileges import as_user

PORT = 1883
BOARD = "b1"
OTHER = "b2"

# Answers CONNECT with CONNACK and PINGREQ with PINGRESP, of any number of clients one after the other.
SERVER = f"""
import socket
listener = socket.create_server(("", {PORT}))
print("listening", flush=True)
answers = {{0x10: bytes([0x20, 2, 0, 0]), 0xC0: bytes([0xD0, 0])}}
while True:
    client, _ = listener.accept()
    try:
        while head := client.recv(2, socket.MSG_WAITALL):
            client.recv(head[1], socket.MSG_WAITALL)
            client.sendall(answers[head[0]])
    except OSError:
        pass
"""
# Says each step that worked. A segment that carries the server's answer to a ping begins with another packet.
CLIENT = f"""
import socket, struct, sys
client = socket.socket()
client.settimeout(float(sys.argv[2]))
try:
    client.connect((sys.argv[1], {PORT}))
    print("connected", flush=True)
    client.sendall(bytes([0xC0, 0]))
    if client.recv(2, socket.MSG_WAITALL) == bytes([0xD0, 0]):
        print("pinged", flush=True)
    client.sendall(bytes([0x10, 16, 0, 4]) + b"MQTT" + bytes([4, 2, 0, 60, 0, 4]) + b"test")
    if client.recv(4, socket.MSG_WAITALL) == bytes([0x20, 2, 0, 0]):
        print("accepted", flush=True)
except OSError as error:
    print("ended", flush=True)
client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
client.close()
"""
WHOLE = ["connected", "pinged", "accepted"]
SHORT_S = 0.3  # for a client that gets no answer
LONG_S = 20.0


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualRack]:
    folder = tmp_path_factory.mktemp("filter")
    with running_rack(folder / "rack", boards=(BOARD, OTHER)) as started:
        log = folder / "server.txt"
        server = started.spawn([sys.executable, "-c", SERVER], log_path=log)
        wait_until(lambda: log.exists() and "listening" in log.read_text(), "the server listens")
        yield started
        server.kill()


def filter_of(rack: VirtualRack, folder: Path) -> PacketFilter:
    port = rack.access_point_interface(BOARD)
    return PacketFilter(rack, port, rack.board_address(BOARD), PORT, log_path=folder / "nft.txt")


def talk(rack: VirtualRack, folder: Path, *, board: str = BOARD, timeout_s: float = LONG_S) -> list[str]:
    """Let a board's client go as far as it comes; return its steps."""
    log = folder / f"{board}.txt"
    log.unlink(missing_ok=True)
    argv = [sys.executable, "-c", CLIENT, rack.host_address, str(timeout_s)]
    assert rack.spawn(argv, netns=board, log_path=log).wait(2 * LONG_S) == 0
    return log.read_text().split()


def rules(rack: VirtualRack, folder: Path) -> str:
    log = folder / "ruleset.txt"
    log.unlink(missing_ok=True)
    assert rack.spawn(["nft", "list", "ruleset", "netdev"], log_path=log).wait(LONG_S) == 0
    return log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("what", "passed"), [("syn", 0), ("connect", 2), ("connack", 2), ("all", 0)])
def test_what_is_named_is_dropped_and_nothing_else(
    rack: VirtualRack, tmp_path: Path, what: Dropped, passed: int
) -> None:
    """A client comes as far as the dropped packet; another board's is not touched; afterwards all pass."""
    dropping = filter_of(rack, tmp_path)
    assert talk(rack, tmp_path) == WHOLE
    with dropping.drop(what):
        assert talk(rack, tmp_path, timeout_s=SHORT_S) == [*WHOLE[:passed], "ended"]
        assert talk(rack, tmp_path, board=OTHER) == WHOLE
        meanwhile = dropping.dropped_count()
        assert meanwhile >= 1
    assert dropping.dropped_count() >= meanwhile
    assert rules(rack, tmp_path) == ""
    assert talk(rack, tmp_path) == WHOLE


def flags_and_payload(capture: Capture, interface: str) -> list[tuple[int, bytes]]:
    """Return the TCP segments that a capture has of one interface."""
    rows = read_fields(capture.path, ("frame.interface_name", "tcp.flags", "tcp.payload"), (), "tcp")
    return [
        (int(flags, 16), bytes.fromhex(payload.decode()))
        for name, flags, payload in rows
        if name.decode() == interface
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "seen_at_the_port"), [("connect", True), ("connack", False), ("all", True)])
def test_dropped_frames_are_seen_on_one_side_only(
    rack: VirtualRack, tmp_path: Path, what: Dropped, seen_at_the_port: bool
) -> None:
    """A capture at the access point has what the board sent and the broker's side has not, or the reverse."""
    port = rack.access_point_interface(BOARD)
    only = f"host {rack.board_address(BOARD)}"
    capture = Capture.start(rack, [port, "hil0"], tmp_path / "x.pcapng", capture_filter=only)
    try:
        with filter_of(rack, tmp_path).drop(what):
            talk(rack, tmp_path, timeout_s=SHORT_S)
        assert capture.stop().complete
    finally:
        capture.kill()
    first = {"connect": b"\x10", "connack": b"\x20", "all": b""}[what]
    at_port, behind = (
        [payload for _, payload in flags_and_payload(capture, interface) if payload.startswith(first)]
        for interface in (port, "hil0")
    )
    assert bool(at_port) == seen_at_the_port
    assert bool(behind) != seen_at_the_port


@pytest.mark.slow
def test_rules_are_gone_after_an_error_and_after_a_killed_run(rack: VirtualRack, tmp_path: Path) -> None:
    """Whatever happens meanwhile is told as it is. A new filter of the same board takes away what an earlier
    one left; counts begin at 0."""

    def fail() -> None:
        with filter_of(rack, tmp_path).drop("all"):
            assert "hil_10_77_0_11" in rules(rack, tmp_path)
            raise ValueError("an error of the case")

    with pytest.raises(ValueError, match="of the case"):
        fail()
    assert rules(rack, tmp_path) == ""
    left = filter_of(rack, tmp_path).drop("all")
    left.__enter__()  # and nobody comes to end it
    dropping = filter_of(rack, tmp_path)
    with dropping.drop("syn"):
        assert dropping.dropped_count() == 0
        assert talk(rack, tmp_path, timeout_s=SHORT_S) == ["ended"]
    assert rules(rack, tmp_path) == ""
    assert talk(rack, tmp_path) == WHOLE


@pytest.mark.slow
def test_rules_take_header_lengths_into_account(rack: VirtualRack, tmp_path: Path) -> None:
    """CONNECT is found behind TCP options too: with time stamps a header has 32 bytes."""
    setting = ["sh", "-c", "echo $0 > /proc/sys/net/ipv4/tcp_timestamps"]

    def set_timestamps(value: str) -> None:
        for netns in ("rack", BOARD):
            process = rack.spawn([*setting, value], netns=netns, log_path=tmp_path / "sysctl.txt")
            assert process.wait(LONG_S) == 0

    set_timestamps("1")
    try:
        with filter_of(rack, tmp_path).drop("connect"):
            assert talk(rack, tmp_path, timeout_s=SHORT_S) == ["connected", "pinged", "ended"]
    finally:
        set_timestamps("0")


AS_USER = """
from pathlib import Path
from hil.network.capture import Capture
from hil.network.packet_filter import PacketFilter
from tests.boards import rack_tools
rack_tools.build_air = lambda _: Path("{air}")
rack = rack_tools.start_rack(Path("/mnt/rack"))
port, address = rack.access_point_interface("b1"), rack.board_address("b1")
dropping = PacketFilter(rack, port, address, 1883, log_path=Path("/mnt/nft.txt"))
def ping(timeout_s):
    argv = ["ping", "-c", "1", "-W", str(timeout_s), rack.host_address]
    return rack.spawn(argv, netns="b1", log_path=Path("/mnt/ping.log")).wait(20)
capture = Capture.start(rack, [port, "hil0"], Path("/mnt/x.pcapng"), capture_filter="icmp")
print("before", ping(10), "captured", capture.stop())
with dropping.drop("all"):
    print("meanwhile", ping(1))
print("afterwards", ping(10), "dropped", dropping.dropped_count() > 0)
rack.stop()
"""


@pytest.mark.slow
@pytest.mark.needs_root
def test_a_user_who_is_not_root_drops_and_captures_packets_in_a_rack() -> None:
    """In a rack of a user namespace the same rules hold, without root; a ping is two frames, at the access
    point and on the bridge."""
    program = AS_USER.format(air=build_air(AIR_DIR))
    before, *dropped = as_user(program, tun_mode="666").splitlines()
    assert before == f"before 0 captured {CaptureCounts(captured=4, received=4, dropped=0)}"
    assert dropped == ["meanwhile 1", "afterwards 0 dropped True"]


def check_refused(spawner: Spawner, interface: str, folder: Path, said: str) -> None:
    dropping = PacketFilter(spawner, interface, "10.0.0.1", PORT, log_path=folder / "nft.txt")
    with pytest.raises(RigError, match=said), dropping.drop("all"):
        raise AssertionError("it must not come here")


@pytest.mark.slow
def test_what_cannot_be_filtered_is_named(rack: VirtualRack, tmp_path: Path) -> None:
    """An interface that is not there is an error that lists them, not rules without effect; a user who may
    not filter is told what permits it."""
    check_refused(rack, "nosuch0", tmp_path, r"on nosuch0: .*ip -br link")
    check_refused(UnprivilegedSpawner(), "lo", tmp_path, r"not permitted.*setcap cap_net_admin")


def test_a_missing_nft_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nft is not installed the error says how to install it."""
    for tool in ("ip", "sh", "setpriv"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(process, "SYSTEM_FOLDERS", str(tmp_path))
    check_refused(LocalSpawner(), "lo", tmp_path, r"nft .*apt-get install nftables")

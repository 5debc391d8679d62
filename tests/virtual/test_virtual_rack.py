# SPDX-License-Identifier: Apache-2.0
"""The virtual rack: what its boards and the programs in it can do."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.virtual.virtual_rack import VirtualRack
from tests.boards import rack_tools
from tests.boards.rack_tools import inner_namespace, running_rack, start_rack, unshare_pid, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualRack]:
    with running_rack(tmp_path_factory.mktemp("rack") / "rack", boards=("b1", "b2")) as started:
        yield started


def output(rack: VirtualRack, tmp_path: Path, *argv: str, netns: str = "rack") -> str:
    log = tmp_path / "output.log"
    log.unlink(missing_ok=True)
    assert rack.spawn(argv, netns=netns, log_path=log).wait(20) == 0, log.read_text()
    return log.read_text()


def test_boards_reach_the_host_through_the_air(rack: VirtualRack, tmp_path: Path) -> None:
    """A program in a board's namespace reaches the rack's host, and the air has carried its frames."""
    output(rack, tmp_path, "ping", "-c", "2", "-i", "0.05", rack.host_address, netns="b2")
    assert rack.air.statistics()["b2"]["uplink"]["delivered_frames"] >= 2
    assert rack.board_address("b2") in output(rack, tmp_path, "ip", "addr", "show", "wlan0", netns="b2")
    rack.air.down("b2")
    log = tmp_path / "down.log"
    silent = rack.spawn(["ping", "-c", "1", "-W", "1", rack.host_address], netns="b2", log_path=log)
    assert silent.wait(10) == 1
    rack.air.up("b2")


SHOW = ("ip", "-4", "addr", "show", "wlan0")


def test_an_address_that_is_gone_is_seen(rack: VirtualRack, tmp_path: Path) -> None:
    """Whoever took it away; another board keeps its own."""
    assert rack.way_of("b2").has_its_address
    (address,) = re.findall(r"inet (\S+)", output(rack, tmp_path, *SHOW, netns="b2"))
    output(rack, tmp_path, "ip", "address", "flush", "dev", "wlan0", netns="b2")
    assert not rack.way_of("b2").has_its_address
    assert rack.way_of("b1").has_its_address
    output(rack, tmp_path, "ip", "address", "add", "10.77.0.99/24", "dev", "wlan0", netns="b2")
    assert not rack.way_of("b2").has_its_address
    output(rack, tmp_path, "ip", "address", "flush", "dev", "wlan0", netns="b2")
    output(rack, tmp_path, "ip", "address", "add", address, "dev", "wlan0", netns="b2")


SENDS = """
import socket, sys
SIZE = 900
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
    for _ in range(5):
        for address in sys.argv[1:]:
            sender.sendto(bytes(SIZE), (address, 9))
"""


def test_packets_that_a_rule_throws_away_are_counted_and_no_others(rack: VirtualRack, tmp_path: Path) -> None:
    """A group nobody joined, an address without a route, a port where nobody listens are the sender's. What
    comes in fragments is one packet."""

    def sent(*addresses: str, size: int = 900) -> int:
        before = rack.way_of("b1").dropped_count
        program = SENDS.replace("900", str(size))
        output(rack, tmp_path, sys.executable, "-c", program, *addresses, netns="b1")
        after = rack.way_of("b1").dropped_count
        assert before is not None
        assert after is not None
        return after - before

    assert sent("239.1.2.3", "192.0.2.7", rack.host_address) == 0
    assert sent(rack.host_address, size=3000) == 0
    rule = "table ip test { chain in { type filter hook input priority 0; ip length > 500 drop; }; }"
    output(rack, tmp_path, "nft", rule)
    try:
        assert sent(rack.host_address) == 5
        assert sent(rack.host_address, size=3000) == 5
    finally:
        output(rack, tmp_path, "nft", "delete table ip test")
    assert sent(rack.host_address) == 0


ANSWERS = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
    peer.bind(("10.77.0.1", 7))
    peer.settimeout(10)
    for _ in range(5):
        peer.sendto(bytes(900), peer.recvfrom(2000)[1])
"""
ASKS = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
    asker.connect(("10.77.0.1", 7))
    asker.settimeout(0.2)
    for _ in range(5):
        while True:
            try:
                asker.send(b"x")
                asker.recv(2000)
                break
            except OSError:  # nobody listens yet
                continue
"""


def test_what_the_host_begins_to_send_is_counted(rack: VirtualRack, tmp_path: Path) -> None:
    """By board and port. Answers are not, nor mDNS, which has no connections, nor another board's."""
    board, other = (rack.board_address(each) for each in ("b1", "b2"))

    def sent(program: str, *arguments: str) -> tuple[int, int, dict[int, int]]:
        before = rack.way_of("b1")
        output(rack, tmp_path, sys.executable, "-c", program, *arguments)
        after = rack.way_of("b1")
        assert None not in (before.sent_bytes, after.sent_bytes, before.begun_bytes, after.begun_bytes)
        first = before.begun_bytes_by_port
        grown = {port: size - first.get(port, 0) for port, size in after.begun_bytes_by_port.items()}
        return (
            (after.sent_bytes or 0) - (before.sent_bytes or 0),
            (after.begun_bytes or 0) - (before.begun_bytes or 0),
            {port: size for port, size in grown.items() if size},
        )

    five_packets = 5 * (900 + 28)
    assert sent(SENDS, board) == (five_packets, five_packets, {9: five_packets})
    assert sent(SENDS, other) == (0, 0, {})
    assert sent(SENDS.replace("9)", "5001)"), board) == (five_packets, five_packets, {5001: five_packets})
    mdns = SENDS.replace("    for _", "    sender.bind(('', 5353))\n    for _")
    assert sent(mdns, board) == (five_packets, 0, {})
    ping = f"import subprocess\nsubprocess.run(['ping', '-c', '1', '{board}'], check=True)"
    assert sent(ping) == (84, 84, {})
    asker = rack.spawn([sys.executable, "-c", ASKS], netns="b1", log_path=tmp_path / "asker.log")
    answered, begun, _ports = sent(ANSWERS)
    assert asker.wait(10) == 0
    assert answered >= five_packets
    assert begun == 0


def test_each_board_has_a_port_at_the_access_point(rack: VirtualRack, tmp_path: Path) -> None:
    """The port that the rack names for a board is the bridge's, and it receives what that board sends."""
    ports = [rack.access_point_interface(board) for board in ("b1", "b2")]
    assert len(set(ports)) == 2
    for port in ports:
        assert "master hil0" in output(rack, tmp_path, "ip", "link", "show", "dev", port)

    def frames_count(port: str) -> int:
        fields = output(rack, tmp_path, "grep", f"{port}:", "/proc/net/dev").partition(":")[2].split()
        return int(fields[1])  # received

    before = frames_count(ports[1])
    output(rack, tmp_path, "ping", "-c", "1", rack.host_address, netns="b2")
    assert frames_count(ports[1]) > before
    with pytest.raises(RigError, match="no board 'b9'; boards: b1, b2"):
        rack.access_point_interface("b9")


def test_kernel_settings_are_those_of_the_lab(rack: VirtualRack, tmp_path: Path) -> None:
    """A board's TCP sends no timestamps, no SACK, no window scale, no IPv6, and never BBR."""
    settings = output(
        rack,
        tmp_path,
        "sh",
        "-c",
        "cd /proc/sys/net/ipv4 && cat tcp_timestamps tcp_sack tcp_window_scaling tcp_congestion_control;"
        "ip -6 addr show",
        netns="b1",
    )
    assert settings.split() == ["0", "0", "0", "reno"]
    assert rack.environment()["host_congestion_control"] in ("cubic", "reno")


def test_serial_ports_are_on_the_callers_loopback(rack: VirtualRack) -> None:
    """A board's serial port answers outside the namespaces, at the port that the rack names."""
    ports = {board.port for board in rack.boards.values()}
    assert len(ports) == 2
    for port in ports:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as serial:
            assert serial.recv(16) == b"board\n"


def test_spawned_processes_are_seen_and_controlled(rack: VirtualRack, tmp_path: Path) -> None:
    """A spawned process has a pid of this side, its output in the log, and a status when it has ended."""
    log = tmp_path / "out.log"
    env = {**os.environ, "WORD": "w"}
    process = rack.spawn(["sh", "-c", "echo $WORD; exec sleep 600"], log_path=log, env=env)
    wait_until(lambda: log.read_text() == "w\n", "the process writes")
    assert "sleep" in Path(f"/proc/{process.pid}/cmdline").read_text()
    assert process.returncode is None
    with pytest.raises(TimeoutError):
        process.wait(0.05)
    process.terminate()
    assert process.wait(10) == -signal.SIGTERM
    assert rack.spawn(["sh", "-c", "exit 7"], log_path=log).wait(10) == 7


def test_a_spawned_process_dies_with_its_connection(rack: VirtualRack, tmp_path: Path) -> None:
    """Letting go of a spawned process kills it and what it started; the rack stays whole."""
    process = rack.spawn(["sh", "-c", "sleep 601 & sleep 602"], log_path=tmp_path / "log")
    namespace = inner_namespace(unshare_pid(rack))
    words = ("sleep\x00601", "sleep\x00602")
    wait_until(lambda: all(word in _command_lines(namespace) for word in words), "both children run")
    process.close()
    wait_until(lambda: not any(word in _command_lines(namespace) for word in words), "both children end")
    rack.check()


def test_orphans_are_reaped(rack: VirtualRack, tmp_path: Path) -> None:
    """A process whose parent has ended leaves no zombie behind."""
    output(rack, tmp_path, "sh", "-c", "(sleep 0.05 &)")
    namespace = inner_namespace(unshare_pid(rack))

    def zombies() -> list[int]:
        found = []
        for pid in rack_tools.members(namespace):
            status = Path(f"/proc/{pid}/stat")
            if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
                found.append(pid)
        return found

    wait_until(lambda: "sleep\x000.05" not in _command_lines(namespace), "the orphan ends")
    wait_until(lambda: not zombies(), "the orphan is reaped")


def _command_lines(namespace: str) -> str:
    lines = []
    for pid in rack_tools.members(namespace):
        with contextlib.suppress(OSError):
            lines.append(Path(f"/proc/{pid}/cmdline").read_text())
    return "\n".join(lines)


def test_spawn_errors_name_the_mistake(rack: VirtualRack, tmp_path: Path) -> None:
    """An unknown program and an unknown namespace are refused with their names and the known ones."""
    with pytest.raises(RigError, match="program no-such-program is not on PATH"):
        rack.spawn(["no-such-program"], log_path=tmp_path / "log")
    with pytest.raises(RigError, match="no network namespace 'b9'; namespaces: rack, b1, b2"):
        rack.spawn(["true"], netns="b9", log_path=tmp_path / "log")
    with pytest.raises(RigError, match="no board 'b9'; boards: b1, b2"):
        rack.board_address("b9")


def test_racks_live_side_by_side_at_long_paths(rack: VirtualRack, tmp_path: Path) -> None:
    """Two racks do not see each other, and a path longer than a socket address is no obstacle."""
    before = rack.air.statistics()["b1"]["uplink"]["delivered_frames"]
    second = start_rack(tmp_path / ("long-" * 20) / ("name-" * 20) / "rack")
    try:
        output(second, tmp_path, "ping", "-c", "1", "-W", "5", second.host_address, netns="b1")
        assert rack.air.statistics()["b1"]["uplink"]["delivered_frames"] == before
    finally:
        second.stop()

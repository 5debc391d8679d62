# SPDX-License-Identifier: Apache-2.0
"""The name server: one name, one address, and errors that name what is in the way."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.base.process import SYSTEM_FOLDERS
from hil.boards.rack import load_rack
from hil.boards.rack.access_point import Dhcp
from hil.boards.rack.network import Network
from hil.network.name_server import PEER_NAME, Leases, NameServer, leases_of
from hil.network.process import LocalSpawner
from hil.virtual.virtual_rack import VirtualRack
from tests.boards.rack_tools import start_rack
from tests.lab import ROOT

TIMEOUT_S = 20
# asks for the IPv4 (1) and IPv6 (28) address of a name; says reply code, answers and the first address
ASK = """
import socket, struct, sys
for kind in (1, 28):
    ask = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ask.settimeout(5)
    name = b"".join(bytes([len(part)]) + part.encode() for part in sys.argv[2].split(".")) + bytes(1)
    head = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0)
    ask.sendto(head + name + struct.pack(">HH", kind, 1), (sys.argv[1], 53))
    reply = ask.recv(512)
    _, flags, _, answers, _, _ = struct.unpack(">HHHHHH", reply[:12])
    print(kind, flags & 15, answers, socket.inet_ntoa(reply[-4:]) if answers else "none")
"""


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualRack]:
    started = start_rack(tmp_path_factory.mktemp("rack"))
    yield started
    started.stop()


def ask(rack: VirtualRack, name: str, log: Path) -> list[str]:
    argv = [sys.executable, "-c", ASK, rack.host_address, name]
    client = rack.spawn(argv, netns="b1", log_path=log)
    assert client.wait(TIMEOUT_S) == 0, log.read_text()
    return log.read_text().splitlines()


def start(rack: VirtualRack, log: Path, leases: Leases | None = None) -> NameServer:
    return NameServer.start(rack, rack.host_interface, rack.host_address, PEER_NAME, log, leases)


def test_a_board_resolves_its_peer(rack: VirtualRack, tmp_path: Path) -> None:
    """Through the air a board gets the host's address for the name, no IPv6 one, and no other name at all. A
    second name server on the address says that port 53 is taken and how to find by whom."""
    server = start(rack, tmp_path / "dnsmasq.log")
    try:
        assert ask(rack, PEER_NAME, tmp_path / "a.log") == [f"1 0 1 {rack.host_address}", "28 0 0 none"]
        assert ask(rack, "example.org", tmp_path / "b.log") == ["1 5 0 none", "28 5 0 none"]  # refused
        server.check()
        assert f"query[A] {PEER_NAME}" in server.log_path.read_text()
        with pytest.raises(RigError, match=r"port 53: .*in use.*--target \d+ ss -lnup sport = :53"):
            start(rack, tmp_path / "second.log")
    finally:
        server.stop()
    with pytest.raises(RigError, match=r"\(dnsmasq, pid \d+, .*\) .* status 0"):
        server.check()


def test_a_name_server_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong address in the rack file leads back to it; without dnsmasq the error says how to install it."""
    with pytest.raises(RigError, match=r"on 192\.0\.2\.1, port 53: .*host\.address in the rack file"):
        NameServer.start(LocalSpawner(), "lo", "192.0.2.1", PEER_NAME, tmp_path / "log")
    monkeypatch.setattr("hil.network.process.shutil.which", lambda *_args, **_kwargs: None)
    with pytest.raises(RigError, match="apt-get install dnsmasq-base"):
        NameServer.start(LocalSpawner(), "lo", "127.0.0.1", PEER_NAME, tmp_path / "log")


# udhcpc's script prints what a lease holds, and sets nothing
LEASE_SCRIPT = '#!/bin/sh\n[ "$1" = bound ] && echo "lease $ip $mask $dns ${lease}s" || true\n'
DHCP = Dhcp("10.77.0.100", "10.77.0.109", 24, 600.0)
UDHCPC = shutil.which("udhcpc") or shutil.which("udhcpc", path=SYSTEM_FOLDERS)


def lease_of(rack: VirtualRack, board: str, folder: Path, *words: str) -> str:
    """Ask by DHCP as a board, and return what it got."""
    script, log = folder / "script", folder / f"{board}.log"
    script.write_text(LEASE_SCRIPT)
    script.chmod(0o755)
    argv = [str(UDHCPC), "-i", "wlan0", "-f", "-q", "-n", "-t", "20", "-s", str(script), *words]
    assert rack.spawn(argv, netns=board, log_path=log).wait(60) == 0, log.read_text()
    return next(line for line in log.read_text().splitlines() if line.startswith("lease "))


@pytest.mark.skipif(UDHCPC is None, reason="udhcpc is not installed (sudo apt-get install udhcpc)")
@pytest.mark.slow
def test_a_board_gets_its_own_address_and_name(tmp_path: Path) -> None:
    """A real DHCP client: the board's address is its MAC's, its name is known to others, a stranger gets
    none of the boards'; with the run all of it ends."""
    rack = start_rack(tmp_path / "rack", boards=("b1", "b2"))
    lab = load_rack(ROOT / "hil" / "racks" / "virtual.yaml")
    own = [replace(lab.boards[0], kind="physical", id=f"b_{n}", mac=f"24:0a:c4:00:00:0{n}") for n in (7, 0)]
    leases = leases_of(DHCP, own)
    assert [name for name, _mac, _address in leases.fixed] == ["b-7", "b-0"]
    server = start(rack, tmp_path / "dnsmasq.log", leases)
    try:
        here = rack.host_address
        assert lease_of(rack, "b1", tmp_path) == f"lease 10.77.0.101 24 {here} 600s"  # the second of the two
        stranger = lease_of(rack, "b2", tmp_path).split()[1]
        assert stranger not in ("10.77.0.100", "10.77.0.101")
        assert stranger.startswith("10.77.0.10")
        assert ask(rack, "b-0.hil.test", tmp_path / "a.log") == ["1 0 1 10.77.0.101", "28 0 0 none"]
        assert ask(rack, PEER_NAME, tmp_path / "b.log") == [f"1 0 1 {here}", "28 0 0 none"]
        server.check()
    finally:
        server.stop()
        rack.stop()


def test_names_are_no_words_of_dnsmasqs() -> None:
    """An id that dnsmasq would take for a lease's time is a name all the same; a cable's MAC is its own."""
    board = load_rack(ROOT / "hil" / "racks" / "virtual.yaml").boards[0]
    cable = Network("w5500", mac="02:00:00:00:00:09")
    boards = [
        replace(board, id="12"),
        replace(board, id="3h"),
        replace(board, id="c", network=replace(cable, mac="")),
        replace(board, id="d", network=cable),
        replace(board, id="e", network=replace(cable, address="10.77.0.5/24")),
    ]
    fixed = leases_of(DHCP, boards).fixed
    assert [(name, address) for name, _mac, address in fixed] == [
        ("board-12", "10.77.0.100"),
        ("board-3h", "10.77.0.101"),
        ("d", "10.77.0.102"),
    ]
    assert fixed[2][1] == "02:00:00:00:00:09"

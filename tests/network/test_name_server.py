# SPDX-License-Identifier: Apache-2.0
"""The name server: one name, one address, and errors that name what is in the way."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.network.name_server import PEER_NAME, NameServer
from hil.network.process import LocalSpawner
from hil.virtual.virtual_rack import VirtualRack
from tests.boards.rack_tools import start_rack

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


def test_a_board_resolves_its_peer(rack: VirtualRack, tmp_path: Path) -> None:
    """Through the air a board gets the host's address for the name, no IPv6 one, and no other name at all."""
    server = NameServer.start(rack, rack.host_address, PEER_NAME, tmp_path / "dnsmasq.log")
    try:
        assert ask(rack, PEER_NAME, tmp_path / "a.log") == [f"1 0 1 {rack.host_address}", "28 0 0 none"]
        assert ask(rack, "example.org", tmp_path / "b.log") == ["1 5 0 none", "28 5 0 none"]  # refused
        server.check()
        assert f"query[A] {PEER_NAME}" in server.log_path.read_text()
    finally:
        server.stop()
    with pytest.raises(RigError, match=r"name server \(dnsmasq, pid \d+, .*\) ended with status 0"):
        server.check()


def test_a_taken_port_is_named(rack: VirtualRack, tmp_path: Path) -> None:
    """A second name server on the address says that port 53 is taken and how to find by whom."""
    first = NameServer.start(rack, rack.host_address, PEER_NAME, tmp_path / "first.log")
    try:
        with pytest.raises(
            RigError, match=r"port 53: dnsmasq: .*Address already in use.*--target \d+ ss -lnup sport = :53"
        ):
            NameServer.start(rack, rack.host_address, PEER_NAME, tmp_path / "second.log")
    finally:
        first.stop()


def test_a_missing_dnsmasq_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dnsmasq the error says how to install it."""
    monkeypatch.setattr("hil.network.name_server.shutil.which", lambda *_args, **_kwargs: None)
    with pytest.raises(RigError, match="apt-get install dnsmasq-base"):
        NameServer.start(LocalSpawner(), "127.0.0.1", PEER_NAME, tmp_path / "log")


def test_an_address_that_is_not_the_hosts_is_named(tmp_path: Path) -> None:
    """A wrong address in the rack file leads back to it."""
    with pytest.raises(RigError, match=r"on 192\.0\.2\.1, port 53: .*check host\.address in the rack file"):
        NameServer.start(LocalSpawner(), "192.0.2.1", PEER_NAME, tmp_path / "log")

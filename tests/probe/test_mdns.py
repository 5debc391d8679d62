# SPDX-License-Identifier: Apache-2.0
"""The rack's mDNS: what it answers, and that a board hears it through its air."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hil.base.errors import ConfigError
from hil.base.given import read_given
from hil.probe.mdns import AnnouncedBroker, answer, questions
from hil.probe.peers import Announcer
from tests.boards.rack_tools import running_rack

# A question for _mqtt._tcp.local PTR; and one whose name has a pointer to itself.
QUESTION = bytes.fromhex("000000000001000000000000055f6d717474045f746370056c6f63616c00000c0001")
CIRCLE = bytes.fromhex("000000000001000000000000c00c000c0001")

ASK = """
import socket, sys
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(sys.argv[2]))
asking.settimeout(2)
for _ in range(5):
    asking.sendto(bytes.fromhex(sys.argv[1]), ("224.0.0.251", 5353))
    try:
        print(asking.recv(9000).hex())
        break
    except TimeoutError:
        pass
"""


def test_a_question_is_answered_with_what_belongs_to_it() -> None:
    """A service comes with its server, texts and address; another name, or what is no question, with none."""
    broker = AnnouncedBroker("rack-broker", "10.77.0.1", 1883)
    assert questions(QUESTION) == [("_mqtt._tcp.local", 12)]
    said = answer(QUESTION, broker, plain=False)
    assert said[:12].hex() == "000084000000000100000003"
    assert bytes([10, 77, 0, 1]) in said
    assert (1883).to_bytes(2, "big") + b"\x0brack-broker\x05local\0" in said
    for other in (QUESTION.replace(b"mqtt", b"http"), said, CIRCLE, QUESTION[:20]):
        assert answer(other, broker, plain=False) == b""


def test_a_name_that_is_none_is_told() -> None:
    """It is one label, without .local."""
    assert read_given({"mdns": "rack-broker"}, "hil.toml").mdns == "rack-broker"
    for name in ("rack.local", "-a", "a" * 64, 7):
        with pytest.raises(ConfigError, match=r"given\.mdns .*\.local"):
            read_given({"mdns": name}, "hil.toml")


@pytest.mark.slow
def test_a_board_hears_the_rack(tmp_path: Path) -> None:
    """What a board asks all comes through its air to the rack's host, and the answer back."""
    with running_rack(tmp_path / "rack", boards=("b1",)) as rack:
        broker: Any = SimpleNamespace(address=rack.host_address, ports=SimpleNamespace(tcp=1883))
        announcer = Announcer(rack, broker, "rack-broker", tmp_path / "mdns")
        try:
            log = tmp_path / "asked.log"
            argv = [sys.executable, "-c", ASK, QUESTION.hex(), rack.board_address("b1")]
            assert rack.spawn(argv, netns="b1", log_path=log).wait(20) == 0
        finally:
            announcer.stop()
    assert b"rack-broker" in bytes.fromhex(log.read_text())

"""Captures of a board's traffic: complete, bounded, and refused with the way out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hil.errors import RigError
from hil.network import capture as capture_module
from hil.network.capture import Capture, CaptureCounts
from hil.network.packets.datagrams import read_datagrams
from hil.network.packets.frames import read_udp
from hil.network.process import LocalProcess, LocalSpawner
from hil.virtual.air import build_air
from tests.iperf_rig import BOARD, IperfLab, iperf_lab
from tests.rack_tools import AIR_DIR
from tests.test_virtual_rack_privileges import as_user

PORT = 9901
BURST = 3000
# numbered datagrams with iperf's header, no faster than the air's queues take them
SENDER = f"""
import socket, struct, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(1, {BURST} + 1):
    out.sendto(struct.pack("!iII", number, 0, 0) + bytes(88), (sys.argv[1], {PORT}))
    if number % 50 == 0:
        time.sleep(0.001)
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IperfLab]:
    with iperf_lab(tmp_path_factory.mktemp("capture"), profile="perfect") as started:
        yield started


def start(lab: IperfLab, path: Path) -> Capture:
    return Capture.start(lab.rack, "hil0", lab.board_address, path)


def send_burst(lab: IperfLab, log: Path) -> None:
    assert lab.on_board("ping", "-c", "1", lab.rack.host_address).wait(20) == 0  # resolves the address
    argv = [sys.executable, "-c", SENDER, lab.rack.host_address]
    assert lab.rack.spawn(argv, netns=BOARD, log_path=log).wait(20) == 0, log.read_text()


def test_a_capture_holds_the_first_frame_and_the_last(lab: IperfLab, tmp_path: Path) -> None:
    """It is ready when start() returns, and stop() leaves nothing behind in the kernel."""
    capture = start(lab, tmp_path / "burst.pcap")
    send_burst(lab, tmp_path / "sender.txt")
    counts = capture.stop()
    assert counts.complete
    assert counts.missing == 0
    numbers = [one.id for one in read_datagrams(capture.path, port=PORT, sender=lab.board_address)]
    assert numbers == list(range(1, BURST + 1))


def test_without_root_the_same_frames_are_captured(
    lab: IperfLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stand-in for tcpdump in a user namespace writes the same frames, to the byte of what is kept."""
    theirs = start(lab, tmp_path / "tcpdump.pcap")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    ours = start(lab, tmp_path / "ours.pcap")
    monkeypatch.undo()
    assert "tcpdump" not in ours.log_path.read_text()
    send_burst(lab, tmp_path / "sender.txt")
    assert theirs.stop().complete
    assert ours.stop().complete

    def frames(capture: Capture) -> list[tuple[object, ...]]:
        udp = (one for one in read_udp(capture.path) if one.destination_port == PORT)
        return [
            (one.source, one.source_port, one.header_bytes, one.payload_bytes, one.payload) for one in udp
        ]

    assert len(frames(ours)) == BURST
    assert frames(ours) == frames(theirs)
    pairs = zip(read_udp(ours.path), read_udp(theirs.path), strict=True)
    # both clocks are the kernel's, read once a frame for everybody who captures it
    assert all(abs(one.time_us - other.time_us) <= 1 for one, other in pairs)


AS_USER = """
from pathlib import Path
from hil.network.capture import Capture
from tests import rack_tools
rack_tools.build_air = lambda _: Path("{air}")
rack = rack_tools.start_rack(Path("/mnt/rack"))
capture = Capture.start(rack, "hil0", rack.board_address("b1"), Path("/mnt/x.pcap"))
argv = ["ping", "-c", "3", "-i", "0.05", "-W", "5", rack.host_address]
rack.spawn(argv, netns="b1", log_path=Path("/mnt/ping.log")).wait(20)
counts = capture.stop()
rack.stop()
print("complete", counts.complete, "captured", counts.captured)
"""


def test_a_user_who_is_not_root_captures_in_a_rack() -> None:
    """In a rack of a user namespace, where tcpdump refuses, three pings are six frames."""
    program = AS_USER.format(air=build_air(AIR_DIR))
    assert as_user(program, tun_mode="666").strip() == "complete True captured 6"


def test_dropped_and_unread_frames_make_a_capture_incomplete() -> None:
    """What the kernel dropped and what was never read both count as missing."""
    assert CaptureCounts(captured=10, received=10, dropped=0).complete
    assert CaptureCounts(captured=10, received=10, dropped=2).missing == 2
    assert CaptureCounts(captured=7, received=10, dropped=0).missing == 3
    assert not CaptureCounts(captured=7, received=10, dropped=0).complete


def test_an_unknown_interface_is_named(lab: IperfLab, tmp_path: Path) -> None:
    """A wrong host.interface is refused with tcpdump's words and the command that lists interfaces."""
    with pytest.raises(RigError, match=r"nosuch0.*No such device.*ip -br link"):
        Capture.start(lab.rack, "nosuch0", lab.board_address, tmp_path / "x.pcap")


class UnprivilegedSpawner:
    """Starts programs as a user who may not capture."""

    isolated = False
    enter_command = ""

    def spawn(self, argv: Sequence[str], *, log_path: Path) -> LocalProcess:
        as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", *argv]
        return LocalSpawner().spawn(as_nobody, log_path=log_path)


def test_a_missing_permission_is_named_with_its_fix(tmp_path: Path) -> None:
    """A user who may not capture is told what permits it."""
    with pytest.raises(RigError, match=r"permission.*setcap cap_net_raw"):
        Capture.start(UnprivilegedSpawner(), "lo", "127.0.0.1", tmp_path / "x.pcap")


def test_a_missing_tcpdump_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tcpdump is not installed the error says how to install it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(capture_module, "SYSTEM_FOLDERS", str(tmp_path))
    with pytest.raises(RigError, match=r"tcpdump is not installed.*apt-get install tcpdump"):
        Capture.start(LocalSpawner(), "lo", "127.0.0.1", tmp_path / "x.pcap")


def test_a_capture_that_was_killed_is_an_error(lab: IperfLab, tmp_path: Path) -> None:
    """A capture that is gone when it is to be stopped gives no counts, so nobody takes it for a whole one."""
    capture = start(lab, tmp_path / "x.pcap")
    capture.kill()
    capture._process.wait(5)
    with pytest.raises(RigError, match=r"tcpdump, pid \d+\) was killed by signal 9 too early"):
        capture.stop()


def test_the_end_of_a_capture_is_bounded(
    lab: IperfLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traffic that does not end does not keep a capture from ending."""
    monkeypatch.setattr(capture_module, "QUIET_TIMEOUT_S", 0.2)
    ping = lab.rack.spawn(
        ["ping", "-q", "-i", "0.01", lab.rack.host_address], netns=BOARD, log_path=tmp_path / "p"
    )
    try:
        assert start(lab, tmp_path / "x.pcap").stop().dropped == 0
    finally:
        ping.kill()
        ping.wait(5)

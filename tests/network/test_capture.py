# SPDX-License-Identifier: Apache-2.0
"""Captures of a board's traffic: complete, bounded, and refused with the way out."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from hil.base import process
from hil.base.errors import RigError
from hil.network import capture as capture_module
from hil.network.capture import Capture, CaptureCounts
from hil.network.dissect.iperf_datagrams import read_datagrams
from hil.network.dissect.tshark import read_fields
from hil.network.process import LocalSpawner
from tests.boards.rack_tools import CHECKOUT, UnprivilegedSpawner
from tests.network.iperf_rig import BOARD, IperfLab, iperf_lab

MAKE_LAB = functools.partial(iperf_lab, profile="perfect")
PORT = 9901
BURST = 3000
FRAME_BYTES = 14 + 28 + 12 + 88
# numbered datagrams with iperf's header, no faster than the air's queues take them
SENDER = f"""
import socket, struct, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(1, {BURST} + 1):
    out.sendto(struct.pack("!iII", number, 0, 0) + bytes(88), (sys.argv[1], {PORT}))
    if number % 50 == 0:
        time.sleep(0.001)
"""


def start(lab: IperfLab, path: Path, *interfaces: str, **options: int) -> Capture:
    only = f"host {lab.board_address}"
    return Capture.start(lab.rack, interfaces or ["hil0"], path, capture_filter=only, **options)


def send_burst(lab: IperfLab, log: Path) -> None:
    assert lab.on_board("ping", "-c", "1", lab.rack.host_address).wait(20) == 0  # resolves the address
    argv = [sys.executable, "-c", SENDER, lab.rack.host_address]
    assert lab.rack.spawn(argv, netns=BOARD, log_path=log).wait(20) == 0, log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("held", [False, True])
def test_a_capture_holds_the_first_frame_and_the_last(lab: IperfLab, tmp_path: Path, held: bool) -> None:
    """It is ready when start() returns, and stop() leaves nothing behind in the kernel: frames that came
    before it are in the file, also where dumpcap gets to read them only later."""
    capture = start(lab, tmp_path / "burst.pcapng")
    pid = capture._process.pid
    if held:
        os.kill(pid, signal.SIGSTOP)
    resume = threading.Timer(2 * capture_module.HAND_OVER_S, os.kill, (pid, signal.SIGCONT))
    try:
        send_burst(lab, tmp_path / "sender.txt")
    finally:
        resume.start()
    counts = capture.stop()
    resume.cancel()
    assert (counts.complete, counts.missing) == (True, 0)
    numbers = [one.id for one in read_datagrams(capture.path, port=PORT, sender=lab.board_address)]
    assert numbers == list(range(1, BURST + 1))


@pytest.mark.slow
def test_one_file_holds_several_interfaces(lab: IperfLab, tmp_path: Path) -> None:
    """Frames of each interface are in the file under its name, a burst's too, and the drops of all add up."""
    port = lab.rack.access_point_interface(BOARD)
    capture = start(lab, tmp_path / "both.pcapng", port, "hil0")
    send_burst(lab, tmp_path / "sender.txt")
    counts = capture.stop()
    assert counts.complete
    frames = list(read_fields(capture.path, ("frame.interface_name", "frame.len"), (), "frame"))
    seen = Counter(interface.decode() for interface, length in frames if int(length) == FRAME_BYTES)
    assert seen == {port: BURST, "hil0": BURST}
    assert counts.captured == counts.received == len(frames)


@pytest.mark.slow
def test_frames_that_were_dropped_are_counted(lab: IperfLab, tmp_path: Path) -> None:
    """A capture that does not come to read says how many frames it lost, however many interfaces it has."""
    capture = start(lab, tmp_path / "small.pcapng", "hil0", "lo", buffer_mib=1, snap_bytes=65535)
    os.kill(capture._process.pid, signal.SIGSTOP)
    try:
        for _ in range(4):
            send_burst(lab, tmp_path / "sender.txt")
    finally:
        os.kill(capture._process.pid, signal.SIGCONT)
    counts = capture.stop()
    assert not counts.complete
    numbers = [one.id for one in read_datagrams(capture.path, port=PORT, sender=lab.board_address)]
    assert 0 < 4 * BURST - len(numbers) <= counts.missing


def test_dropped_and_unread_frames_make_a_capture_incomplete() -> None:
    """What the kernel dropped and what was never read both count as missing."""
    assert CaptureCounts(captured=10, received=10, dropped=0).complete
    assert CaptureCounts(captured=10, received=10, dropped=2).missing == 2
    assert CaptureCounts(captured=7, received=10, dropped=0).missing == 3
    assert not CaptureCounts(captured=7, received=10, dropped=0).complete


@pytest.mark.slow
def test_what_cannot_be_captured_is_named(lab: IperfLab, tmp_path: Path) -> None:
    """A wrong host.interface is refused with dumpcap's words and the command that lists interfaces, a filter
    that is none in libpcap's; a user who may not capture is told what permits it."""
    for spawner, interface, only, said in (
        (lab.rack, "nosuch0", "", r"nosuch0.*No such device.*ip -br link"),
        (lab.rack, "hil0", "host somewhere else", "Invalid capture filter .host somewhere else"),
        (UnprivilegedSpawner(), "lo", "", r"permission.*setcap cap_net_raw"),
    ):
        with pytest.raises(RigError, match=said):
            Capture.start(spawner, [interface], tmp_path / "x.pcapng", capture_filter=only)


def test_a_missing_dumpcap_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where dumpcap is not installed, or is the group's only, the error says how to get it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for module in (capture_module, process):
        monkeypatch.setattr(module, "SYSTEM_FOLDERS", str(tmp_path))
    with pytest.raises(RigError, match=r"dumpcap .*apt-get install wireshark-common"):
        Capture.start(LocalSpawner(), ["lo"], tmp_path / "x.pcapng", capture_filter="")
    (tmp_path / "dumpcap").write_text("not for everybody")
    with pytest.raises(RigError, match=r"dumpcap.*usermod .* wireshark"):
        Capture.start(LocalSpawner(), ["lo"], tmp_path / "x.pcapng", capture_filter="")


# A dumpcap that its user may capture with, as on a physical rack, and a run that is killed.
KILLED_RUN = """
mount -t tmpfs -o mode=1777 tmpfs /mnt
ip link set lo up
cp "$(command -v dumpcap)" /mnt/dumpcap
setcap cap_net_raw,cap_net_admin=eip /mnt/dumpcap
cd "$0"
PATH=/mnt:$PATH setpriv --reuid=65534 --regid=65534 --clear-groups "$1" -B -c "$2" || true
timeout 10 tail --pid="$(cat /mnt/pid)" -f /dev/null && echo gone
"""
KILLED_PROGRAM = """
import os, signal
from pathlib import Path
from hil.network.capture import Capture
from hil.network.process import LocalSpawner
capture = Capture.start(LocalSpawner(), ["lo"], Path("/mnt/x.pcapng"), capture_filter="")
Path("/mnt/pid").write_text(str(capture._process.pid))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.needs_root
def test_a_killed_run_takes_its_capture_along() -> None:
    """Also where dumpcap has capabilities of its own: the kernel does not end it with the run then."""
    argv = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    argv += ["sh", "-ec", KILLED_RUN]
    argv += [str(CHECKOUT), sys.executable, KILLED_PROGRAM]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "gone", done.stderr


@pytest.mark.slow
def test_a_capture_that_was_killed_is_an_error(lab: IperfLab, tmp_path: Path) -> None:
    """A capture that is gone when it is to be stopped gives no counts, so nobody takes it for a whole one."""
    capture = start(lab, tmp_path / "x.pcapng")
    capture.kill()
    capture._process.wait(5)
    with pytest.raises(RigError, match=r"dumpcap, pid \d+\) was killed by signal 9"):
        capture.stop()


@pytest.mark.slow
def test_a_capture_ends_while_traffic_goes_on(lab: IperfLab, tmp_path: Path) -> None:
    """Traffic that does not end does not keep a capture from ending."""
    ping = lab.rack.spawn(
        ["ping", "-q", "-i", "0.01", lab.rack.host_address], netns=BOARD, log_path=tmp_path / "p"
    )
    try:
        assert start(lab, tmp_path / "x.pcapng").stop().dropped == 0
    finally:
        ping.kill()
        ping.wait(5)

# SPDX-License-Identifier: Apache-2.0
"""Emulated boards in a virtual rack, from its file to its end: namespace and tap; stand-ins play
emulators.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.boards.firmware import image
from hil.boards.rack import load_rack
from hil.virtual.air.profile import load_profile
from hil.virtual.emulator.drivers import emulators_of
from hil.virtual.rack_state import VirtualBoardSpec
from hil.virtual.virtual_rack import VirtualRack, start_virtual_rack
from tests.boards import rack_tools
from tests.virtual import stand_in_qemu, test_emulator_esp_emu
from tests.virtual.virtual_board_rig import (
    Console,
    console,
    flash_files,
    is_alive,
    run_esptool,
    wait_until,
)

pytestmark = pytest.mark.slow

MAC = "02:00:00:77:00:0e"
IP_LINK = ["ip", "-o", "link"]
CHIPS = {"q1": "esp32c3", "e6": "esp32c6", "e3": "esp32s3"}
RACK = """\
schema: 1
name: e
host: {interface: hil0, address: 10.77.0.1}
access_point: {type: virtual, profile: lab, ssid: lab, password: eight or more}
boards:
  - {id: q1, kind: emulated, target: esp32c3, emulator: qemu, mac: "02:00:00:77:00:01"}
  - {id: e6, kind: emulated, target: esp32c6, emulator: esp-emu, mac: "02:00:00:77:00:02"}
  - {id: e3, kind: emulated, target: esp32s3, emulator: esp-emu, mac: "02:00:00:77:00:03",
      network: {type: wifi}}
"""


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualRack]:
    """One virtual and one emulated board behind one air."""
    monkeypatch.setenv("HIL_QEMU_RISCV32", str(stand_in_qemu.install(tmp_path / "bin")))
    boards = [
        VirtualBoardSpec("v1", mac="02:00:00:77:00:01"),
        VirtualBoardSpec("e1", chip="esp32c3", mac=MAC, kind="emulated", emulator="qemu"),
    ]
    with rack_tools.rack_of(boards, tmp_path / "state") as running:
        yield running


class Served:
    """What ``console`` needs of a board: where it is."""

    def __init__(self, port: int) -> None:
        self._port = port

    def url(self, scheme: str) -> str:
        return f"{scheme}://127.0.0.1:{self._port}"


def output(rack: VirtualRack, argv: list[str], log: Path) -> str:
    process = rack.spawn(argv, netns="e1", log_path=log)
    assert process.wait(20) == 0
    return log.read_text()


def test_an_emulated_board_stands_beside_a_virtual_one(rack: VirtualRack, tmp_path: Path) -> None:
    """QEMU gets the tap that is bridged with the board's air, and the board's address, which nothing else in
    its namespace has. What a record says of the emulator is asked of the board."""
    with console(Served(rack.boards["e1"].port)) as monitor:  # type: ignore[arg-type]
        said = monitor.reset("mac=").decode() + monitor.expect("\r\n").decode()
    assert f"hello from {MAC}" in said
    assert re.search(f"nic tap,ifname=eth0,.*={MAC}", said)
    links = output(rack, IP_LINK, tmp_path / "links")
    assert all(f"{device}:" in links for device in ("wlan0", "eth0", "br0"))
    assert links.count("master br0") == 2
    assert MAC not in links
    assert "inet 10." not in output(rack, ["ip", "-o", "addr"], tmp_path / "addresses")
    emulation = {"emulator": "qemu 9.2.2", "icount": "3,sleep=on", "network": "openeth"}
    assert rack.emulation("e1") == emulation
    assert rack.emulation("v1") == {}


def test_frames_pass_between_the_tap_and_the_air(rack: VirtualRack, tmp_path: Path) -> None:
    """What QEMU's tap sends arrives at the rack's host: here a program holds the tap and asks by ARP."""
    script = tmp_path / "arp.py"
    script.write_text(ARP)
    rack.board_control("e1").power("off")
    argv = [sys.executable, str(script), MAC, rack.host_address, rack.board_address("e1")]
    assert "reply from" in output(rack, argv, tmp_path / "arp")


ARP = """
import fcntl, os, select, struct, sys, time
mac = bytes.fromhex(sys.argv[1].replace(":", ""))
asked, own = (bytes(map(int, text.split("."))) for text in sys.argv[2:])
tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", b"eth0", 0x1002))  # TUNSETIFF: IFF_TAP, IFF_NO_PI
question = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, mac, own, bytes(6), asked)
deadline = time.monotonic() + 10
while time.monotonic() < deadline:
    os.write(tap, (b"\\xff" * 6 + mac + b"\\x08\\x06" + question).ljust(60, b"\\0"))
    while select.select([tap], [], [], 0.2)[0]:
        frame = os.read(tap, 2048)
        if frame[:6] == mac and frame[12:14] == b"\\x08\\x06" and frame[20:22] == b"\\0\\2":
            print("reply from", frame[22:28].hex(":"))
            sys.exit(0)
sys.exit("no reply")
"""


def test_boards_on_wifi_of_their_own_emulators_have_the_address_that_the_rack_gave_them(
    tmp_path: Path,
) -> None:
    """Every station is 192.168.4.2. Behind address translation the host knows each by its own address, for
    what a station begins and for what the host begins; a program plays the station at the tap."""
    boards = [
        VirtualBoardSpec(name, "esp32c6", f"02:00:00:77:00:0{n}", kind="emulated", network="wifi")
        for n, name in enumerate(("w1", "w2"), start=1)
    ]
    for name, text in (("station", STATION), ("host", HOST)):
        (tmp_path / f"{name}.py").write_text(text)
    with rack_tools.rack_of(boards, tmp_path / "state", board_command=None) as rack:
        addresses = [rack.board_address(board.id) for board in boards]
        script, log = str(tmp_path / "station.py"), tmp_path / "stations"
        stations = [
            rack.spawn([sys.executable, script, rack.host_address], netns=board.id, log_path=log)
            for board in boards
        ]
        host = rack.spawn(
            [sys.executable, str(tmp_path / "host.py"), *addresses], netns="rack", log_path=tmp_path / "host"
        )
        assert host.wait(20) == 0, log.read_text()
        said = (tmp_path / "host").read_text().splitlines()
        assert sorted(said) == sorted(
            [f"{word} {address}" for address in addresses for word in ("begun by", "answered by")]
        )
        assert all(rack.way_of(board.id).has_its_address for board in boards)
        assert len({station.pid for station in stations}) == 2


# Answers ARP for the station, echoes UDP, and asks the host again and again, until it is killed.
STATION = """
import fcntl, os, select, socket, struct, sys
me, gateway, host = map(socket.inet_aton, ("192.168.4.2", "192.168.4.1", sys.argv[1]))
mac = bytes.fromhex("020000000042")
tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH22x", b"eth0", 0x1002))  # TUNSETIFF: IFF_TAP, IFF_NO_PI

def arp(operation, to, target):
    words = struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, operation, mac, me, to[-6:], target)
    os.write(tap, (to + mac + b"\\x08\\x06" + words).ljust(60, b"\\0"))

def send(to_mac, to, source_port, port, data):
    udp = struct.pack("!HHHH", source_port, port, 8 + len(data), 0) + data
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, me, to)
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    head = head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
    os.write(tap, (to_mac + mac + b"\\x08\\0" + head + udp).ljust(60, b"\\0"))

router = None
while True:
    if router is None:
        arp(1, b"\\xff" * 6, gateway)
    else:
        send(router, host, 4242, 9000, b"hello")
    while select.select([tap], [], [], 0.1)[0]:
        frame = os.read(tap, 2048)
        if frame[12:14] == b"\\x08\\x06" and frame[38:42] == me:
            router = frame[22:28]
            if frame[20:22] == b"\\0\\1":
                arp(2, router, frame[28:32])
        elif frame[12:14] == b"\\x08\\0" and frame[23] == 17 and frame[36:38] == b"\\0\\7":
            send(frame[6:12], frame[26:30], 7, int.from_bytes(frame[34:36], "big"), b"echo")
"""
HOST = """
import socket, sys
begun, answered = set(), set()
server, client = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
server.bind(("", 9000))
for one in (server, client):
    one.settimeout(0.2)
for _ in range(80):
    for address in sys.argv[1:]:
        client.sendto(b"who", (address, 7))
    for one, found in ((server, begun), (client, answered)):
        try:
            found.add(one.recvfrom(100)[1][0])
        except TimeoutError:
            pass
    if len(begun) == len(answered) == len(sys.argv) - 1:
        break
for word, found in (("begun by", begun), ("answered by", answered)):
    for address in found:
        print(word, address)
"""


def test_the_end_of_qemu_is_in_the_sentence_of_the_rack(rack: VirtualRack, tmp_path: Path) -> None:
    """The board is named, with what QEMU said last."""
    with console(Served(rack.boards["e1"].port)) as monitor:  # type: ignore[arg-type]
        monitor.reset("hello from")
        monitor.write("die no more memory")
        wait_until(lambda: bool(rack.state()["dead"]), "the supervisor notices")
    with pytest.raises(RigError, match=r"board e1 .* 3: QEMU .* 1 .*: .*no more"):
        rack.spawn(["true"], log_path=tmp_path / "log")


def test_nothing_is_left_of_a_rack_whose_outer_process_is_killed(rack: VirtualRack) -> None:
    """kill -9 of the outermost process takes QEMU along."""
    with console(Served(rack.boards["e1"].port)) as monitor:  # type: ignore[arg-type]
        monitor.reset("hello from")
    qemu = rack_tools.pid_of(rack_tools.inner_namespace(rack_tools.unshare_pid(rack)), "stand_in_qemu")
    os.kill(rack_tools.unshare_pid(rack), signal.SIGKILL)
    wait_until(lambda: not is_alive(qemu), "the end of QEMU")


def test_a_rack_of_emulated_boards_is_not_started_without_qemu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence is the one that names the command; no namespace was made for it."""
    monkeypatch.setenv("HIL_QEMU_RISCV32", "")
    monkeypatch.setenv("IDF_TOOLS_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
    path = tmp_path / "rack.yaml"
    path.write_text(RACK.partition("  - {id: e6")[0])
    loaded = load_rack(path)
    with pytest.raises(RigError, match="qemu-system-riscv32") as caught:
        start_virtual_rack(loaded, loaded.boards, load_profile("perfect"), tmp_path, tmp_path / "state")
    assert "install qemu-riscv32" in caught.value.next_step
    assert not (tmp_path / "state").exists()


Running = Callable[[], VirtualRack]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Running:
    """Start the rack of RACK, anew with the same flash each time."""
    program = test_emulator_esp_emu.install(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}:/usr/sbin:/sbin")
    monkeypatch.setenv("HIL_QEMU_RISCV32", str(stand_in_qemu.install(tmp_path / "bin")))
    path = tmp_path / "rack.yaml"
    path.write_text(RACK)
    rack = load_rack(path)
    assert emulators_of(rack.boards) == [("esp-emu", "esp32c6"), ("esp-emu", "esp32s3"), ("qemu", "esp32c3")]
    return lambda: start_virtual_rack(
        rack, rack.boards, load_profile("perfect"), tmp_path, tmp_path / "state"
    )


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A build for each chip; of an ESP32-C6, which no virtual board is, like an ESP32-C3's."""
    layout = replace(image.layout_of("esp32c3"), chip="esp32c6", min_revision=0)
    monkeypatch.setitem(image._LAYOUTS, "esp32c6", layout)
    folders = {board: tmp_path / f"build-{chip}" for board, chip in CHIPS.items()}
    for board, folder in folders.items():
        image.build_image_dir(Path("/bin/true"), folder, chip=CHIPS[board], version="1")
    return folders


@contextmanager
def monitor_of(rack: VirtualRack, board: str) -> Iterator[Console]:
    with console(Served(rack.boards[board].port)) as monitor:  # type: ignore[arg-type]
        yield monitor


def hello(monitor: Console) -> str:
    """Reset the board; return what its program says first."""
    monitor.reset("hello from")
    return monitor.expect("\n").decode()


def keep(rack: VirtualRack, board: str, word: str) -> None:
    with monitor_of(rack, board) as monitor:
        monitor.write(f"keep {word}")
        monitor.expect(f"done {word}")


def test_a_rack_of_two_emulators_from_its_file_to_its_end(start: Running, builds: dict[str, Path]) -> None:
    """Each board is flashed by esptool and runs; a fault of a board is that board's; a rack that is stopped
    has kept what was written, and kill -9 leaves no process, and the flash of the last start."""
    rack = start()
    try:
        for board, chip in CHIPS.items():
            files = [word for at, file in flash_files(builds[board]).items() for word in (hex(at), str(file))]
            url = Served(rack.boards[board].port).url("fastrfc2217")
            status, said = run_esptool("--port", url, "--chip", chip, "write-flash", *files)
            assert status == 0, said
        for number, board in enumerate(CHIPS, start=1):
            with monitor_of(rack, board) as monitor:
                assert f"02:00:00:77:00:0{number}" in hello(monitor)
        rack.board_control("e6").fault("silent")
        keep(rack, "e3", "one")
        with monitor_of(rack, "e3") as monitor:
            rack.board_control("e3").fault("brownout", 1)
            monitor.expect("kept one")
        rack.board_control("e6").clear()
        keep(rack, "e6", "one")
    finally:
        rack.stop()
    rack = start()
    try:
        for board in ("e6", "e3"):
            with monitor_of(rack, board) as monitor:
                assert "kept one" in hello(monitor)
            keep(rack, board, "two")
        inside = rack_tools.inner_namespace(rack_tools.unshare_pid(rack))
        members = rack_tools.members(inside)
        assert len(members) > len(CHIPS)
        assert len({rack.board_control(board).state()["emulator_pid"] for board in CHIPS}) == len(CHIPS)
        os.kill(rack_tools.unshare_pid(rack), signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, members)), "the end of every process")
    finally:
        rack.stop()
    rack = start()
    try:
        with monitor_of(rack, "e6") as monitor:
            assert "kept one" in hello(monitor)
    finally:
        rack.stop()

# SPDX-License-Identifier: Apache-2.0
"""The virtual air does what its parameters say, judged by the air's own clock on real frames."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.virtual.air.build import build_air
from hil.virtual.air.control import AirControl, Number
from hil.virtual.air.profile import AirProfile, Gap, Impairment, load_profile, load_profiles
from hil.virtual.virtual_rack import VirtualRack
from tests.boards import rack_tools
from tests.boards.rack_tools import running_rack, wait_until

PERFECT = AirProfile("perfect")
HEADER_BYTES = 42  # Ethernet 14, IPv4 20, UDP 8

# Sends argv[3] datagrams of argv[4] bytes to the discard port, argv[5] seconds apart.
SENDER = """
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
for number in range(int(sys.argv[2])):
    sock.sendto(number.to_bytes(4, "big") + bytes(int(sys.argv[3]) - 4), (sys.argv[1], 9))
    time.sleep(float(sys.argv[4]))
"""

# Binds the discard port, says so, and writes the number of each datagram until it is killed.
RECEIVER = """
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
sock.bind(("0.0.0.0", 9))
print("bound", flush=True)
while True:
    print(int.from_bytes(sock.recv(4), "big"), flush=True)
"""


@pytest.fixture(scope="module")
def shared_rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualRack]:
    folder = tmp_path_factory.mktemp("air")
    with running_rack(folder / "rack", boards=("b1", "b2")) as started:
        make_neighbours_permanent(started, folder)
        yield started


def make_neighbours_permanent(rack: VirtualRack, folder: Path) -> None:
    """Keep ARP out of the air: its probes would be among the frames that the tests count."""
    mac = output(rack, folder / "mac", ["ip", "-br", "link", "show", "hil0"]).split()[2]
    board_mac = rack.boards["b1"].mac
    replace_neighbour = "ip neigh replace {} lladdr {} dev {} nud permanent"
    on_board = replace_neighbour.format(rack.host_address, mac, "wlan0").split()
    on_host = replace_neighbour.format(rack.board_address("b1"), board_mac, "hil0").split()
    output(rack, folder / "board", on_board, netns="b1")
    output(rack, folder / "host", on_host)


def output(rack: VirtualRack, log: Path, argv: list[str], *, netns: str = "rack") -> str:
    assert rack.spawn(argv, netns=netns, log_path=log).wait(20) == 0, log.read_text()
    return log.read_text()


@pytest.fixture
def rack(shared_rack: VirtualRack, tmp_path: Path) -> VirtualRack:
    """A rack with a perfect air and statistics at zero."""
    shared_rack.air.profile(PERFECT)
    shared_rack.air.up("all")
    ping(shared_rack, tmp_path, count=1)
    wait_until(lambda: uplink(shared_rack)["in_flight_frames"] == 0, "the air is empty")
    shared_rack.air.seed(1)
    shared_rack.air.reset_statistics()
    return shared_rack


def uplink(rack: VirtualRack) -> Mapping[str, Number]:
    return rack.air.statistics("b1")["b1"]["uplink"]


def ping(rack: VirtualRack, tmp_path: Path, *, count: int) -> None:
    argv = ["ping", "-c", str(count), "-i", "0.02", "-W", "5", rack.host_address]
    process = rack.spawn(argv, netns="b1", log_path=tmp_path / "ping.log")
    assert process.wait(30) == 0, (tmp_path / "ping.log").read_text()


def send(
    rack: VirtualRack, tmp_path: Path, count: int, *, size_bytes: int = 58, interval_s: float = 0
) -> None:
    """Send UDP frames of size_bytes + HEADER_BYTES from the board; returns when the air has read them all."""
    before = int(uplink(rack)["read_frames"])
    argv = ["/usr/bin/env", "python3", "-c", SENDER, rack.host_address, str(count), str(size_bytes)]
    process = rack.spawn([*argv, str(interval_s)], netns="b1", log_path=tmp_path / "send.log")
    assert process.wait(30) == 0, (tmp_path / "send.log").read_text()
    wait_until(lambda: int(uplink(rack)["read_frames"]) >= before + count, "the air has read every frame")


def wait_until_drained(rack: VirtualRack) -> None:
    def drained() -> bool:
        found = uplink(rack)
        return found["backlog_bytes"] == 0 and found["in_flight_frames"] == 0

    wait_until(drained, "the air is empty")


@pytest.mark.slow
@pytest.mark.parametrize("delay_ms", [0, 2, 5, 20])
def test_delay_is_the_one_set(delay_ms: int, rack: VirtualRack, tmp_path: Path) -> None:
    """No frame arrives early; half of them take the delay, and what is on top is the air's own lateness."""
    rack.air.set("b1", "both", delay_us=delay_ms * 1000)
    ping(rack, tmp_path, count=15)
    for direction in ("uplink", "downlink"):
        found = rack.air.statistics()["b1"][direction]
        assert int(found["delay_count"]) >= 15
        assert float(found["delay_min_us"]) >= delay_ms * 1000
        late_us = float(found["delay_p50_us"]) - delay_ms * 1000
        assert late_us <= float(found["lateness_max_us"]) + 1


@pytest.mark.slow
def test_each_direction_has_its_own_delay(rack: VirtualRack, tmp_path: Path) -> None:
    """Parameters of one direction and one link leave the others alone."""
    rack.air.set("b1", "downlink", delay_us=10_000)
    ping(rack, tmp_path, count=5)
    found = rack.air.statistics()["b1"]
    assert float(found["downlink"]["delay_min_us"]) >= 10_000
    assert float(found["uplink"]["delay_min_us"]) < 10_000
    shown = rack.air.show()
    ways = [(link, way) for link in ("b1", "b2") for way in ("uplink", "downlink")]
    assert [shown[link][way]["delay_us"] for link, way in ways] == [0, 10_000, 0, 0]


@pytest.mark.slow
def test_jitter_stays_within_its_width_and_order_is_kept(rack: VirtualRack, tmp_path: Path) -> None:
    """Uniform jitter moves frames by its half width at most, and none overtakes another."""
    receiver = rack.spawn(["python3", "-uc", RECEIVER], log_path=tmp_path / "received.log")
    wait_until(lambda: "bound" in (tmp_path / "received.log").read_text(), "the receiver listens")
    rack.air.set("b1", "uplink", delay_us=3000, jitter_us=1000)
    send(rack, tmp_path, 300, interval_s=0.0005)
    wait_until(lambda: len((tmp_path / "received.log").read_text().split()) == 301, "every frame arrives")
    receiver.kill()
    numbers = [int(word) for word in (tmp_path / "received.log").read_text().split()[1:]]
    assert numbers == list(range(300))
    found = uplink(rack)
    assert float(found["delay_min_us"]) >= 2000
    assert float(found["delay_p95_us"]) - float(found["delay_min_us"]) > 500
    assert float(found["delay_p50_us"]) <= 4000 + float(found["lateness_max_us"])


def arrived_of(rack: VirtualRack, tmp_path: Path, seed: int, count: int) -> list[int]:
    """Return the numbers of the frames that got through with this seed."""
    log = tmp_path / "received.log"
    log.unlink(missing_ok=True)
    receiver = rack.spawn(["python3", "-uc", RECEIVER], log_path=log)
    wait_until(lambda: "bound" in log.read_text(), "the receiver listens")
    rack.air.reset_statistics()
    rack.air.seed(seed)
    send(rack, tmp_path, count, interval_s=0.0002)
    wait_until_drained(rack)
    through = int(uplink(rack)["delivered_frames"])
    wait_until(lambda: len(log.read_text().split()) >= through + 1, "the receiver has them all")
    receiver.kill()
    return [int(word) for word in log.read_text().split()[1:]]


@pytest.mark.slow
def test_loss_repeats_with_its_seed(rack: VirtualRack, tmp_path: Path) -> None:
    """The same seed loses the same frames, whatever else is set; another seed loses others."""
    rack.air.set("b1", "uplink", loss_ppm=100_000, burst_start_ppm=20_000, burst_end_ppm=400_000)
    first = arrived_of(rack, tmp_path, 7, 400)
    found = uplink(rack)
    lost = int(found["drop_loss"]) + int(found["drop_burst"])
    assert len(first) == 400 - lost
    assert int(found["drop_loss"]) > 0
    assert int(found["drop_burst"]) > 0
    rack.air.set("b1", "uplink", delay_us=1000, jitter_us=500)
    assert arrived_of(rack, tmp_path, 7, 400) == first
    assert arrived_of(rack, tmp_path, 8, 400) != first


@pytest.mark.slow
def test_a_new_rate_applies_to_the_backlog(rack: VirtualRack, tmp_path: Path) -> None:
    """Frames that wait at 8 kbit/s leave at once when the rate is raised."""
    rack.air.set("b1", "uplink", rate_kbit=8)
    send(rack, tmp_path, 100)
    assert int(uplink(rack)["backlog_bytes"]) >= 50 * 100  # 100 bytes take 100 ms each
    rack.air.set("b1", "uplink", rate_kbit=100_000)
    wait_until_drained(rack)
    found = uplink(rack)
    assert found["delivered_frames"] == 100
    assert float(found["delay_max_us"]) < 100 * 100_000


@pytest.mark.slow
def test_the_rate_bounds_what_is_delivered(rack: VirtualRack, tmp_path: Path) -> None:
    """The last of a burst of frames takes at least the time that all of them need at the rate."""
    rack.air.set("b1", "uplink", rate_kbit=8000)
    send(rack, tmp_path, 50, size_bytes=1000 - HEADER_BYTES)
    wait_until_drained(rack)
    found = uplink(rack)
    assert found["delivered_bytes"] == 50_000
    assert float(found["delay_min_us"]) >= 1000  # 1000 bytes at 8 Mbit/s
    rack.air.reset_statistics()
    rack.air.set("b1", "uplink", rate_kbit=8000, overhead_bytes=1000)
    send(rack, tmp_path, 1, size_bytes=1000 - HEADER_BYTES)
    wait_until_drained(rack)
    assert float(uplink(rack)["delay_min_us"]) >= 2000


@pytest.mark.slow
def test_the_backlog_is_limited_in_bytes(rack: VirtualRack, tmp_path: Path) -> None:
    """The backlog never exceeds its limit, and what does not fit is counted as drop_queue."""
    rack.air.set("b1", "uplink", rate_kbit=8, limit_bytes=5000)
    send(rack, tmp_path, 80)
    found = uplink(rack)
    assert int(found["backlog_max_bytes"]) <= 5000
    assert int(found["drop_queue"]) >= 25
    rack.air.set("b1", "uplink", rate_kbit=0)
    wait_until_drained(rack)
    found = uplink(rack)
    assert int(found["delivered_frames"]) + int(found["drop_queue"]) == 80


@pytest.mark.slow
def test_duplicates_and_reordering_are_counted(rack: VirtualRack, tmp_path: Path) -> None:
    """Every frame twice; and frames that skip the delay are counted as reordered."""
    rack.air.set("b1", "uplink", duplicate_ppm=1_000_000)
    send(rack, tmp_path, 20)
    wait_until_drained(rack)
    assert uplink(rack)["delivered_frames"] == 40
    rack.air.set("b1", "uplink", duplicate_ppm=0, delay_us=50_000, reorder_ppm=500_000)
    send(rack, tmp_path, 40)
    wait_until_drained(rack)
    assert 0 < int(uplink(rack)["reordered_frames"]) < 40


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["hold", "drop"])
def test_a_gap_silences_the_link(mode: str, rack: VirtualRack, tmp_path: Path) -> None:
    """In a gap nothing gets through: frames wait for its end, or are dropped, as the profile says."""
    rack.air.gap("b1", interval_us=1, min_us=60_000_000, max_us=60_000_000, mode=mode)
    send(rack, tmp_path, 10)
    found = uplink(rack)
    assert found["delivered_frames"] == 0
    assert found["drop_gap"] == (0 if mode == "hold" else 10)
    rack.air.gap("b1", interval_us=0)
    wait_until_drained(rack)
    assert uplink(rack)["delivered_frames"] == (10 if mode == "hold" else 0)


@pytest.mark.slow
def test_an_unknown_key_is_answered_with_its_name(rack: VirtualRack) -> None:
    """A mistyped key, value, link or command is refused by name, and nothing changes."""
    with pytest.raises(ConfigError, match=r"'dleay_us' .*'delay_us'"):
        rack.air.set("b1", "both", rate_kbit=5, dleay_us=5)
    with pytest.raises(ConfigError, match=r"delay_us = -1; allowed: 0\.\.60000000"):
        rack.air.set("b1", "both", delay_us=-1)
    with pytest.raises(ConfigError, match="unknown-link link=b9"):
        rack.air.down("b9")
    with pytest.raises(ConfigError, match="unknown-command command=fly"):
        rack.air.command("fly")
    assert {facts["rate_kbit"] for facts in rack.air.show("b1")["b1"].values()} == {0}


@pytest.mark.slow
def test_every_parameter_of_a_profile_arrives(rack: VirtualRack) -> None:
    """What a profile states is what the air has in force, for every parameter of both directions."""
    profile = AirProfile(
        "all",
        uplink=Impairment(**{**dict.fromkeys(_names(), 7), "distribution": "normal", "keep_order": 0}),
        downlink=replace(Impairment(), rate_kbit=9),
        gap=Gap(interval_us=3_000_000, min_us=5, max_us=6, mode="drop"),
    )
    rack.air.profile(profile, "b2")
    shown = rack.air.show("b2")["b2"]
    gap = {f"gap_{key}": value for key, value in profile.gap.parameters().items()}
    for direction, impairment in (("uplink", profile.uplink), ("downlink", profile.downlink)):
        expected = {**impairment.parameters(), **gap, "up": 1}
        assert dict(shown[direction]) == expected


def _names() -> list[str]:
    return list(Impairment().parameters())


@pytest.mark.slow
def test_keeping_cpus_awake_yields_to_everything_and_ends(rack: VirtualRack, tmp_path: Path) -> None:
    """Threads of the lowest priority alone keep the CPUs busy, and only as long as they are asked to."""
    with rack.air.awake(for_s=30):
        wait_until(lambda: sum(ticks for _, ticks in idle_class(rack, tmp_path)) > 10, "the threads run")
    wait_until(lambda: {state for state, _ in idle_class(rack, tmp_path)} == {"S"}, "the threads sleep")
    with pytest.raises(ConfigError, match="for_ms"):
        rack.air.command("awake for_ms=600001")


def idle_class(rack: VirtualRack, folder: Path) -> list[tuple[str, int]]:
    """Return state and CPU time (clock ticks) of the air's SCHED_IDLE threads."""
    log = folder / "stat"
    log.unlink(missing_ok=True)
    stats = output(rack, log, ["sh", "-c", f"cat /proc/{rack.state()['parts']['air']}/task/*/stat"])
    fields = [line.rpartition(")")[2].split() for line in stats.splitlines()]  # from field 3 on, proc(5)
    return [(values[0], int(values[11]) + int(values[12])) for values in fields if values[38] == "5"]


def test_no_air_is_a_rig_error(tmp_path: Path) -> None:
    """An air that is not there is named by its socket."""
    with pytest.raises(RigError, match=r"air\.sock did not answer 'info'"):
        AirControl(tmp_path / "air.sock").info()


def test_the_lab_profile_is_what_the_documents_say() -> None:
    """lab is 3 ms ± 1 ms one way at 30 Mbit/s; hotspot falls silent for 1 to 4 s; perfect does nothing."""
    lab, hotspot = load_profile("lab"), load_profile("hotspot")
    assert lab.uplink == lab.downlink
    assert (lab.uplink.delay_us, lab.uplink.jitter_us, lab.uplink.rate_kbit) == (3000, 1000, 30_000)
    assert (hotspot.gap.min_us, hotspot.gap.max_us, hotspot.gap.mode) == (1_000_000, 4_000_000, "hold")
    assert load_profile("perfect").uplink == Impairment()
    assert list(load_profiles()) == ["perfect", "lab", "crowded", "hotspot"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("both: {dleay: 3 ms}", "unknown key 'dleay'"),
        ("both: {delay: 3}", "'delay' in 'both' is the integer '3'"),
        ("both: {loss: 120 %}", "'loss'"),
        ("both: {}\n    uplink: {}", "'both' excludes 'uplink'"),
        ("gap: {interval: 9 s, min: 4 s, max: 1 s}", "longest gap is shorter"),
    ],
)
def test_mistakes_in_profiles_name_file_and_line(text: str, sentence: str, tmp_path: Path) -> None:
    """A mistake in a profile file is a ConfigError with file, line and what is wrong."""
    path = tmp_path / "profiles.yaml"
    path.write_text(f"schema: 1\nprofiles:\n  mine:\n    {text}\n")
    with pytest.raises(ConfigError, match=rf"profiles\.yaml:[45]: .*{sentence}"):
        load_profiles(path)


def test_an_unknown_profile_names_the_nearest() -> None:
    """A mistyped profile name is answered with the nearest one and all of them."""
    with pytest.raises(ConfigError, match=r"'crowdd'; .*'crowded'\? Profiles: perfect"):
        load_profile("crowdd")


@pytest.mark.slow
def test_the_c_tests_pass_under_sanitizers() -> None:
    """Heap, statistics, impairments, link and control are right, without undefined behaviour."""
    folder = rack_tools.AIR_DIR.with_name("air-sanitized")
    build_air(folder, sanitize="address,undefined", target="air_tests")
    done = subprocess.run(
        ["ctest", "--output-on-failure"], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "0 tests failed out of 4" in done.stdout

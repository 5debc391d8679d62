"""The virtual rack: what runs in it, and that nothing of it outlives its owner, however that ends."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hil.errors import ConfigError, RigError
from hil.virtual import rack_state, unix_socket
from hil.virtual.air import AirProfile, build_air
from hil.virtual.virtual_rack import VirtualBoardSpec, VirtualRack
from tests import rack_tools
from tests.rack_tools import CHECKOUT, start_rack, wait_until

# Starts a rack, says where its namespaces are, and waits to be killed.
KEEPER = """
import sys, signal
from pathlib import Path
from tests.rack_tools import start_rack
rack = start_rack(Path(sys.argv[1]), boards=("b1", "b2"))
rack.spawn(["sleep", "600"], log_path=Path(sys.argv[1]) / "sleep.log")
print(rack._owner.process.pid, rack.boards["b1"].port, flush=True)
signal.pause()
"""


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[VirtualRack]:
    started = start_rack(tmp_path / "rack", boards=("b1", "b2"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def long_lived_rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualRack]:
    started = start_rack(tmp_path_factory.mktemp("rack"))
    yield started
    started.stop()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Another process that keeps a rack up: the process, the pid of unshare, the port of b1."""
    build_air(rack_tools.AIR_DIR)
    argv = [sys.executable, "-c", KEEPER, str(tmp_path / "rack")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as process:
        try:
            assert process.stdout is not None
            unshare, port = map(int, process.stdout.readline().split())
            yield process, unshare, port
        finally:
            process.kill()


def unshare_pid(rack: VirtualRack) -> int:
    assert rack._owner is not None
    return rack._owner.process.pid


def namespace_of(unshare: int) -> str:
    return rack_tools.namespace_of(rack_tools.children_of(unshare)[0])


def output(rack: VirtualRack, tmp_path: Path, *argv: str, netns: str = "rack") -> str:
    log = tmp_path / "output.log"
    log.unlink(missing_ok=True)
    assert rack.spawn(argv, netns=netns, log_path=log).wait(20) == 0, log.read_text()
    return log.read_text()


def port_refuses(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_boards_reach_the_host_through_the_air(rack: VirtualRack, tmp_path: Path) -> None:
    """A program in a board's namespace reaches the rack's host, and the air has carried its frames."""
    output(rack, tmp_path, "ping", "-c", "2", "-i", "0.05", rack.host_address, netns="b2")
    assert rack.air.statistics()["b2"]["uplink"]["delivered_frames"] >= 2
    assert rack.board_address("b2") in output(rack, tmp_path, "ip", "addr", "show", "wlan0", netns="b2")
    rack.air.down("b2")
    log = tmp_path / "down.log"
    silent = rack.spawn(["ping", "-c", "1", "-W", "1", rack.host_address], netns="b2", log_path=log)
    assert silent.wait(10) == 1


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
    namespace = namespace_of(unshare_pid(rack))
    words = ("sleep\x00601", "sleep\x00602")
    wait_until(lambda: all(word in _command_lines(namespace) for word in words), "both children run")
    process.close()
    wait_until(lambda: not any(word in _command_lines(namespace) for word in words), "both children end")
    rack.check()


def test_orphans_are_reaped(rack: VirtualRack, tmp_path: Path) -> None:
    """A process whose parent has ended leaves no zombie behind."""
    output(rack, tmp_path, "sh", "-c", "(sleep 0.05 &)")
    namespace = namespace_of(unshare_pid(rack))

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


SPAWN = {"op": "spawn", "argv": ["true"], "netns": "rack", "env": None, "cwd": None}
MALFORMED = {
    "no-json": b"{",
    "no-text": b"\xff",
    "no-object": b"5",
    "too-deep": b"[" * 100_000,
    "no-fields": b'{"op": "spawn"}',
    "no-program": json.dumps({**SPAWN, "argv": []}).encode(),
    "argv-no-list": json.dumps({**SPAWN, "argv": 5}).encode(),
    "argv-no-text": json.dumps({**SPAWN, "argv": [5]}).encode(),
    "env-no-object": json.dumps({**SPAWN, "env": 5}).encode(),
    "no-word": b'{"op": ["state"]}',
    "signal-to-nothing": b'{"op": "signal", "signal": 15}',
}


@pytest.mark.parametrize(
    ("request_bytes", "descriptors"),
    [
        *(
            pytest.param(request, count, id=f"{name}-{count}")
            for name, request in MALFORMED.items()
            for count in (0, 3)
        ),
        pytest.param(json.dumps(SPAWN).encode(), 0, id="no-log"),
    ],
)
def test_a_malformed_request_is_answered_and_changes_nothing(
    long_lived_rack: VirtualRack, request_bytes: bytes, descriptors: int, tmp_path: Path
) -> None:
    """What is no request gets an error; its descriptors are closed, connection and rack go on."""
    rack = long_lived_rack
    supervisor = rack_tools.children_of(unshare_pid(rack))[0]
    path = rack._paths.supervisor_socket
    with unix_socket.connect(path, timeout_s=10.0) as client, (tmp_path / "file").open("w") as file:
        unix_socket.send_message(client, {"op": "state"})
        unix_socket.receive_message(client)
        before = len(os.listdir(f"/proc/{supervisor}/fd"))  # noqa: PTH208
        socket.send_fds(client, [request_bytes], [file.fileno()] * descriptors)
        answer, _ = unix_socket.receive_message(client)
        assert set(answer) == {"error"}
        unix_socket.send_message(client, {"op": "state"})
        assert unix_socket.receive_message(client)[0]["dead"] == []
        assert len(os.listdir(f"/proc/{supervisor}/fd")) == before  # noqa: PTH208
    rack.check()


def test_a_second_spawn_on_one_connection_is_refused(rack: VirtualRack, tmp_path: Path) -> None:
    """A connection has one process: the second is refused, and the end of the first ends nothing else."""
    process = rack.spawn(["sleep", "600"], log_path=tmp_path / "log")
    with (tmp_path / "second.log").open("w") as log:
        unix_socket.send_message(process._connection, SPAWN, fds=[log.fileno()])
        assert "error" in unix_socket.receive_message(process._connection)[0]
    process.terminate()
    assert process.wait(10) == -signal.SIGTERM
    rack.check()


def test_a_client_that_does_not_read_is_let_go_of(rack: VirtualRack) -> None:
    """Replies that nobody reads do not keep the supervisor from serving others."""
    path = rack._paths.supervisor_socket
    with unix_socket.connect(path, timeout_s=10.0) as deaf:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while True:
                unix_socket.send_message(deaf, {"op": "state"})
        rack.check()


def test_stop_leaves_nothing(tmp_path: Path) -> None:
    """After stop() no process, namespace, mount, device or socket of the rack is left; its port is free."""
    before = rack_tools.host_traces()
    rack = start_rack(tmp_path / "rack")
    namespace, port = namespace_of(unshare_pid(rack)), rack.boards["b1"].port
    rack.stop()
    assert rack_tools.members(namespace) == []
    assert rack_tools.host_traces() == before
    assert not list((tmp_path / "rack").glob("*.sock"))
    assert port_refuses(port)
    rack.stop()


@pytest.mark.parametrize("victim", ["starter", "unshare", "supervisor"])
def test_a_killed_parent_takes_everything_along(
    victim: str, keeper: tuple[subprocess.Popen[str], int, int], tmp_path: Path
) -> None:
    """kill -9 of any parent ends every process of the rack and leaves nothing; the folder serves again."""
    process, unshare, port = keeper
    before = rack_tools.host_traces()
    supervisor = rack_tools.children_of(unshare)[0]
    namespace = rack_tools.namespace_of(supervisor)
    assert len(rack_tools.members(namespace)) >= 6
    os.kill({"starter": process.pid, "unshare": unshare, "supervisor": supervisor}[victim], signal.SIGKILL)
    wait_until(lambda: not rack_tools.members(namespace), "every process of the rack ends")
    assert rack_tools.host_traces() == before
    wait_until(lambda: port_refuses(port), "the port is free")
    process.kill()
    process.wait()
    again = start_rack(tmp_path / "rack", ports=(port, 0))
    try:
        again.check()
        assert again.boards["b1"].port == port
    finally:
        again.stop()


@pytest.mark.parametrize(
    ("part", "word", "sentence"),
    [
        ("air", "hil-air", "air was killed by signal 9"),
        ("board", "b2.sock", "board b2 was killed by signal 9"),
    ],
)
def test_a_dead_part_is_named_on_next_use(
    part: str, word: str, sentence: str, rack: VirtualRack, tmp_path: Path
) -> None:
    """When the air or a board dies, the next use raises RigError that names it and its log."""
    namespace = namespace_of(unshare_pid(rack))
    os.kill(rack_tools.pid_of(namespace, word), signal.SIGKILL)
    wait_until(lambda: bool(rack.state()["dead"]), "the supervisor notices")
    with pytest.raises(RigError, match=sentence) as caught:
        rack.spawn(["true"], log_path=tmp_path / "log")
    assert f"{part if part == 'air' else 'b2'}.log" in str(caught.value)
    if part == "air":
        with pytest.raises(RigError, match=sentence):
            rack.air.set("b1", delay_us=5)
    else:
        assert port_refuses(rack.boards["b2"].port)


def test_a_dead_supervisor_is_named_on_next_use(rack: VirtualRack, tmp_path: Path) -> None:
    """When the supervisor is killed, the next use says so and a spawned process counts as killed."""
    process = rack.spawn(["sleep", "600"], log_path=tmp_path / "log")
    supervisor = rack_tools.children_of(unshare_pid(rack))[0]
    os.kill(supervisor, signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL
    with pytest.raises(RigError, match="the supervisor died"):
        rack.check()
    with pytest.raises(RigError, match=r"did not answer 'statistics'.*the supervisor died"):
        rack.air.statistics()


def test_a_second_start_names_the_holder(
    keeper: tuple[subprocess.Popen[str], int, int], tmp_path: Path
) -> None:
    """While a rack lives, a second start in its folder is refused and names the holder's pid."""
    with pytest.raises(RigError, match=f"already kept up by process {keeper[0].pid} "):
        start_rack(tmp_path / "rack")


def test_of_two_starts_at_once_one_wins(tmp_path: Path) -> None:
    """Two starts in one folder at the same moment give one whole rack and one refusal."""
    build_air(rack_tools.AIR_DIR)
    with ThreadPoolExecutor(max_workers=2) as pool:
        starts = [pool.submit(start_rack, tmp_path / "rack") for _ in range(2)]
        errors = [start.exception(timeout=60) for start in starts]
    winners = [start.result() for start, error in zip(starts, errors, strict=True) if error is None]
    try:
        assert [type(error) for error in errors if error] == [RigError]
        winners[0].check()
    finally:
        for winner in winners:
            winner.stop()


def test_an_attached_rack_is_used_but_not_owned(
    keeper: tuple[subprocess.Popen[str], int, int], tmp_path: Path
) -> None:
    """attach() gives the whole rack; stop() ends only what was spawned through it."""
    assert VirtualRack.attach(name="other", state_dir=tmp_path / "rack") is None
    attached = VirtualRack.attach(name="test", state_dir=tmp_path / "rack")
    assert attached is not None
    assert not attached.owned
    process = attached.spawn(["sleep", "600"], log_path=tmp_path / "log")
    attached.stop()
    wait_until(lambda: not Path(f"/proc/{process.pid}").exists(), "the spawned process ends")
    again = VirtualRack.attach(name="test", state_dir=tmp_path / "rack")
    assert again is not None
    again.check()
    again.shut_down()
    wait_until(lambda: VirtualRack.attach(name="test", state_dir=tmp_path / "rack") is None, "the rack ends")


def test_no_rack_means_nothing_to_attach(tmp_path: Path) -> None:
    """attach() returns None for a folder without a rack, and for one with only a stale record."""
    assert VirtualRack.attach(name="test", state_dir=tmp_path) is None
    paths = rack_state.RackPaths(tmp_path)
    rack_state.write_holder(paths, "test", [VirtualBoardSpec("b1")])
    assert VirtualRack.attach(name="test", state_dir=tmp_path) is None


def test_stale_state_is_replaced(tmp_path: Path) -> None:
    """What a killed run left in the folder is removed; a board's flash stays."""
    folder = tmp_path / "rack"
    folder.mkdir()
    paths = rack_state.RackPaths(folder)
    rack_state.write_holder(paths, "test", [VirtualBoardSpec("b1")])
    (folder / "old.sock").touch()
    paths.board_flash("b1").write_bytes(b"kept")
    rack = start_rack(folder)
    try:
        assert not (folder / "old.sock").exists()
        assert paths.board_flash("b1").read_bytes() == b"kept"
        held = rack_state.read_holder(paths)
        assert held is not None
        assert held.boards == tuple(rack.boards.values())
    finally:
        rack.stop()


def test_racks_live_side_by_side_at_long_paths(rack: VirtualRack, tmp_path: Path) -> None:
    """Two racks do not see each other, and a path longer than a socket address is no obstacle."""
    second = start_rack(tmp_path / ("long-" * 20) / ("name-" * 20) / "rack")
    try:
        output(second, tmp_path, "ping", "-c", "1", "-W", "5", second.host_address, netns="b1")
        assert rack.air.statistics()["b1"]["uplink"]["delivered_frames"] == 0
    finally:
        second.stop()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    """A serial port that somebody else holds is refused by number, and nothing stays behind."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RigError, match=f"port {port} of 127.0.0.1 for virtual board b1"):
            start_rack(tmp_path / "rack", ports=(port,))
    start_rack(tmp_path / "rack", ports=(port,)).stop()


def test_a_board_that_dies_at_once_fails_the_start(tmp_path: Path) -> None:
    """A board that ends while the rack starts is named, and the rack is taken down."""
    before = rack_tools.host_traces()
    with pytest.raises(RigError, match="board b1 ended with status 1"):
        VirtualRack.start(
            name="test",
            state_dir=tmp_path / "rack",
            boards=[VirtualBoardSpec("b1")],
            profile=AirProfile("perfect"),
            air_seed=1,
            board_command=lambda _: ["false"],
            air_binary=build_air(rack_tools.AIR_DIR),
        )
    assert rack_tools.host_traces() == before
    assert not rack_state.is_held(rack_state.RackPaths(tmp_path / "rack"))


@pytest.mark.parametrize("boards", [(), ("b1", "b1"), ("rack",), ("../b",)])
def test_bad_board_ids_are_refused(boards: tuple[str, ...], tmp_path: Path) -> None:
    """No boards, a name twice, a reserved name or one that is no file name: ConfigError."""
    with pytest.raises(ConfigError):
        start_rack(tmp_path / "rack", boards=boards)

# SPDX-License-Identifier: Apache-2.0
"""The virtual rack: nothing of it outlives its owner, however that ends; one folder has one rack.

Bad requests to its supervisor change nothing, and what dies in a rack is named.
"""

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

from hil.base.errors import ConfigError, RigError
from hil.virtual import rack_state, unix_socket
from hil.virtual.air.build import build_air
from hil.virtual.air.profile import AirProfile
from hil.virtual.virtual_rack import VirtualBoardSpec, VirtualRack
from tests.boards import rack_tools
from tests.boards.rack_tools import (
    CHECKOUT,
    inner_namespace,
    port_refuses,
    running_rack,
    start_rack,
    unshare_pid,
    wait_until,
)

pytestmark = pytest.mark.slow

# Starts a rack, says where its namespaces are, and waits to be killed.
KEEPER = """
import sys, signal
from pathlib import Path
from tests.boards.rack_tools import start_rack
rack = start_rack(Path(sys.argv[1]), boards=("b1", "b2"))
rack.spawn(["sleep", "600"], log_path=Path(sys.argv[1]) / "sleep.log")
print(rack._owner.process.pid, rack.boards["b1"].port, flush=True)
signal.pause()
"""


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


def test_stop_leaves_nothing(tmp_path: Path) -> None:
    """After stop() no process, namespace, mount, device or socket of the rack is left; its port is free."""
    before = rack_tools.host_traces()
    rack = start_rack(tmp_path / "rack")
    namespace, port = inner_namespace(unshare_pid(rack)), rack.boards["b1"].port
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


def test_a_second_start_names_the_holder(
    keeper: tuple[subprocess.Popen[str], int, int], tmp_path: Path
) -> None:
    """While a rack lives, a second start in its folder is refused and names the holder's pid."""
    with pytest.raises(RigError, match=f"already running in process {keeper[0].pid} "):
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
    with running_rack(folder) as rack:
        assert not (folder / "old.sock").exists()
        assert paths.board_flash("b1").read_bytes() == b"kept"
        held = rack_state.read_holder(paths)
        assert held is not None
        assert held.boards == tuple(rack.boards.values())


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


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[VirtualRack]:
    with running_rack(tmp_path / "rack", boards=("b1", "b2")) as started:
        yield started


@pytest.fixture(scope="module")
def long_lived_rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualRack]:
    with running_rack(tmp_path_factory.mktemp("rack")) as started:
        yield started


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
    "no-board": b'{"op": "address", "netns": "b9"}',
    "signal-to-nothing": b'{"op": "signal", "signal": 15}',
}


@pytest.mark.parametrize(
    ("request_bytes", "counts"),
    [
        *(pytest.param(request, (0, 3), id=name) for name, request in MALFORMED.items()),
        pytest.param(json.dumps(SPAWN).encode(), (0,), id="no-log"),
    ],
)
def test_a_malformed_request_is_answered_and_changes_nothing(
    long_lived_rack: VirtualRack, request_bytes: bytes, counts: tuple[int, ...], tmp_path: Path
) -> None:
    """What is no request gets an error; its descriptors are closed, connection and rack go on."""
    rack = long_lived_rack
    supervisor = rack_tools.children_of(unshare_pid(rack))[0]
    path = rack._paths.supervisor_socket
    with unix_socket.connect(path, timeout_s=10.0) as client, (tmp_path / "file").open("w") as file:
        unix_socket.send_message(client, {"op": "state"})
        unix_socket.receive_message(client)
        before = len(os.listdir(f"/proc/{supervisor}/fd"))  # noqa: PTH208
        for count in counts:
            socket.send_fds(client, [request_bytes], [file.fileno()] * count)
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
    """When the air or a board dies, the next use raises RigError that names it and its log; the supervisor
    starts nothing more, whoever asks it before they look."""
    namespace = inner_namespace(unshare_pid(rack))
    os.kill(rack_tools.pid_of(namespace, word), signal.SIGKILL)
    wait_until(lambda: bool(rack.state()["dead"]), "the supervisor notices")
    with pytest.raises(RigError, match=sentence) as caught:
        rack.spawn(["true"], log_path=tmp_path / "log")
    assert f"{part if part == 'air' else 'b2'}.log" in str(caught.value)
    socket_path = rack._paths.supervisor_socket
    with unix_socket.connect(socket_path, timeout_s=10.0) as client, (tmp_path / "log").open("w") as log:
        unix_socket.send_message(client, SPAWN, fds=[log.fileno()])
        assert sentence in unix_socket.receive_message(client)[0]["error"]
    if part == "air":
        with pytest.raises(RigError, match=sentence):
            rack.air.set("b1", delay_us=5)
    else:
        assert port_refuses(rack.boards["b2"].port)


def test_what_took_a_rack_down_is_told_when_all_of_it_is_gone(rack: VirtualRack) -> None:
    """Whoever keeps a rack up ends it when a part dies; a run that uses it still names the part."""
    attached = VirtualRack.attach(name=rack.name, state_dir=rack._paths.folder)
    assert attached is not None
    os.kill(rack_tools.pid_of(inner_namespace(unshare_pid(rack)), "hil-air"), signal.SIGKILL)
    wait_until(lambda: bool(rack.state()["dead"]), "the supervisor notices")
    rack.stop()
    with pytest.raises(RigError, match=r"broke .*: air was killed by signal 9"):
        attached.check()


def test_a_supervisor_that_tells_no_address_is_named(
    rack: VirtualRack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that stands still is a broken rack, and no defect of whoever asks."""
    monkeypatch.setattr("hil.virtual.virtual_rack.REQUEST_TIMEOUT_S", 0.2)
    supervisor = rack_tools.children_of(unshare_pid(rack))[0]
    os.kill(supervisor, signal.SIGSTOP)
    try:
        with pytest.raises(RigError, match="broke \\(asking for the address of board b1\\)"):
            rack.way_of("b1")
    finally:
        os.kill(supervisor, signal.SIGCONT)


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

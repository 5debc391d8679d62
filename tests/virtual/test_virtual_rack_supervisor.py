# SPDX-License-Identifier: Apache-2.0
"""The virtual rack's supervisor: bad requests change nothing, and what dies in a rack is named."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.base.errors import RigError
from hil.virtual import unix_socket
from hil.virtual.virtual_rack import VirtualRack
from tests.boards import rack_tools
from tests.boards.rack_tools import inner_namespace, port_refuses, running_rack, unshare_pid, wait_until

pytestmark = pytest.mark.slow


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

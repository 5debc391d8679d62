# SPDX-License-Identifier: Apache-2.0
"""The virtual rack: nothing of it outlives its owner, however that ends; one folder has one rack."""

from __future__ import annotations

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
from hil.virtual import rack_state
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

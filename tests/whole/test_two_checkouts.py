# SPDX-License-Identifier: Apache-2.0
"""Two checkouts on one machine: the same rack file in both at the same time, and neither sees the other."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.boards import rack_tools
from tests.boards.rack_tools import CHECKOUT, start_rack
from tests.in_process import hil
from tests.lab import Lab, free_ports, make_lab

pytestmark = pytest.mark.slow

NewLab = Callable[..., Lab]
MEASURING = r"b1 \[0/1\b[^]]*\] measuring"


def options(lab: Lab) -> tuple[str, ...]:
    return ("--rack", str(lab.rack), "--out", str(lab.out))


def two_checkouts(new_lab: NewLab) -> tuple[Lab, Lab]:
    """Two labs with the same rack file and one temporary folder, as two checkouts of a person have them."""
    first, second = new_lab(1), new_lab(1)
    assert first.rack.read_text() == second.rack.read_text()
    second.env["TMPDIR"] = first.env["TMPDIR"]
    return first, second


@contextmanager
def up(lab: Lab) -> Iterator[str]:
    """A rack that is kept up; gives the address of its board b1."""
    running = lab.keep_up()
    try:
        running.await_line(r"serial\.tools\.miniterm")
        yield running.await_line(r"rfc2217://127\.0\.0\.1:\d+")
        running.send(signal.SIGINT)
        assert running.wait() == 130
    finally:
        running.close()
    lab.await_nothing_left()


@pytest.mark.heavy
def test_both_measure_at_once(new_lab: NewLab) -> None:
    """A run passes while one of another checkout measures on the boards of the same names."""
    first, second = two_checkouts(new_lab)
    running = first.start("--suite", "pr")
    try:
        running.await_line(MEASURING)
        done = second.run()
        assert done.returncode == 0, done.stdout
        held = f"pid {running.process.pid}"
        assert held in first.hil("rack", "status", *options(first)).stdout
        assert held not in second.hil("rack", "status", *options(second)).stdout
        running.send(signal.SIGINT)
        assert running.wait() == 130
    finally:
        running.close()
    first.await_nothing_left()
    second.await_nothing_left()


def test_both_keep_a_rack_up_and_each_finds_its_own_board(new_lab: NewLab, virtual_firmware: Path) -> None:
    """`hil virtual up` says where a board is, and so does each command of the same checkout. No other one
    flashes it: a run measures on the rack that its own checkout keeps up."""
    first, second = two_checkouts(new_lab)
    with ExitStack() as stack:
        addresses = [stack.enter_context(up(lab)) for lab in (first, second)]
        assert addresses[0] != addresses[1]
        for lab, address in zip((first, second), addresses, strict=True):
            port = address.rpartition(":")[2]
            said = [hil("rack", what, *options(lab), env=lab.env).stdout for what in ("status", "check")]
            assert f"free, up at 127.0.0.1:{port}\n" in said[0]
            assert f"ok   b1: port {port} is served" in said[1]
        flashes = [lab.out / "virtual" / "lab" / "up" / "b1.flash" for lab in (first, second)]
        done = first.run()
        assert done.returncode == 0, done.stdout
        assert [set(path.read_bytes()) == {0xFF} for path in flashes] == [False, True]
        measured_on = flashes[0].read_bytes()
        flashed = second.hil("board", "flash", "b1", "--firmware", str(virtual_firmware), *options(second))
        assert flashed.returncode == 0, flashed.stdout
        assert b"hil-firmware" in flashes[1].read_bytes()
        assert flashes[0].read_bytes() == measured_on


def test_a_port_that_the_rack_file_names_is_the_boards(tmp_path: Path) -> None:
    """Who wants an address that stays gives it, and the second rack that asks for it is refused by number."""
    labs = []
    (port,) = free_ports(1)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        labs.append(make_lab(tmp_path / name, 1, ports=(port,)))
    with up(labs[0]) as address:
        assert address == f"rfc2217://127.0.0.1:{port}"
        refused = labs[1].hil("virtual", "up", *options(labs[1]))
        assert refused.returncode == 3
        assert re.search(rf"port {port} of 127\.0\.0\.1 .* b1: .*in use", refused.stdout)


# A machine with two free ports, in a network namespace, and a rack of three boards.
TWO_PORTS = """
ip link set lo up
echo 40000 40001 >/proc/sys/net/ipv4/ip_local_port_range
exec "$@"
"""
THREE_BOARDS = """
import sys
from pathlib import Path
from hil.base.errors import RigError
from tests.boards.rack_tools import start_rack
try:
    start_rack(Path(sys.argv[1]), boards=("b1", "b2", "b3")).stop()
except RigError as error:
    print(error)
"""


def test_a_machine_without_a_free_port_is_named(tmp_path: Path) -> None:
    """What ran out is said for the board that got none, with the setting that gives more."""
    rack_tools.build_air(rack_tools.AIR_DIR)
    argv = ["unshare", "--map-root-user", "--net", "sh", "-ec", TWO_PORTS, "sh"]
    argv += [sys.executable, "-c", THREE_BOARDS, str(tmp_path / "rack")]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=CHECKOUT, timeout=60, check=False)
    assert re.search(r"No free port .*\bb3\.", done.stdout), done.stderr
    assert "ip_local_port_range" in done.stdout


def test_a_port_is_leased_until_the_rack_ends(tmp_path: Path) -> None:
    """From the kernel's choice to the board's end somebody holds the port: no other program gets it."""
    rack = start_rack(tmp_path / "rack")
    port = rack.boards["b1"].port
    try:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
    finally:
        rack.stop()
    assert rack_tools.port_refuses(port)

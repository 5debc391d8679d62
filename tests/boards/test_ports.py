# SPDX-License-Identifier: Apache-2.0
"""`hil board scan`: which ports there are, which board answers, and whose port is left alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.boards import ports
from hil.boards.flash.identify import Identity
from hil.boards.ports import Port, named, openers, owners, who_answers
from hil.cli.board import scanned
from tests.in_process import hil
from tests.virtual.virtual_board_rig import MAC, BoardProcess

RACK = """\
schema: 1
name: desk-test
host: {{interface: lo, address: 127.0.0.1}}
access_point: {{type: external, ssid: lab, psk_env: PSK}}
boards:
  - {{id: b1, kind: physical, target: esp32, serial: '{port}'}}
"""
LEASING = """\
import sys
from pathlib import Path
from hil.boards.lease import lease_boards
with lease_boards(Path(sys.argv[1]), ["b1"], run_id="a-run"):
    print("held", flush=True)
    sys.stdin.read()
"""
HERE = Identity("esp32s3", "34:85:18:00:00:03", "ef 4018", "16 MB")


@pytest.fixture
def port() -> Iterator[str]:
    """A terminal that nobody has open by this name: what a serial port is to who looks at it."""
    end, side = os.openpty()
    name = os.ttyname(side)
    os.close(side)
    yield name
    os.close(end)


def rack_at(folder: Path, port: str) -> Path:
    path = folder / "rack.yaml"
    path.write_text(RACK.format(port=port))
    return path


@pytest.mark.slow
def test_a_board_at_a_port_is_told_with_what_to_type(tmp_path: Path) -> None:
    """Chip, MAC address and flash as esptool reads them; the entry is a rack file's, and takes more keys."""
    with BoardProcess(tmp_path / "board") as board:
        done = hil("board", "scan", board.url("rfc2217"))
    assert done.returncode == 0, done.stdout
    row, _, command, _, *entry = done.stdout.splitlines()
    assert row.split("  ")[:4] == [board.url("rfc2217"), "esp32", MAC, "16 MB"]
    assert command.endswith(f" hil run --port {board.url('rfc2217')}")
    rack = tmp_path / "rack.yaml"
    rack.write_text(f"{RACK.format(port='').partition('  - ')[0]}{chr(10).join(entry)}\n    labels: [desk]\n")
    ((address, owner),) = owners([rack]).items()
    assert (address, owner.board) == (f"127.0.0.1:{board.port}", "esp32-000001")


def test_ports_without_a_board_are_told_with_the_reason() -> None:
    """In one table with the boards, each of which has an entry to paste."""
    found = [Port("/dev/ttyUSB0", "/dev/serial/by-id/one", "CP2102N"), Port("/dev/ttyS0", "/dev/ttyS0")]
    lines = scanned([*found, found[0]], [HERE, "nothing answers", HERE])
    assert re.split("  +", lines[0])[:5] == ["/dev/ttyUSB0", "esp32s3", HERE.mac, "16 MB", "CP2102N"]
    assert lines[0].endswith(" in no rack file")
    assert re.split("  +", lines[1]) == ["/dev/ttyS0", "-", "nothing answers"]
    assert lines[2] == lines[0]
    assert len(lines) == 8
    assert all(entry.startswith("  - id: esp32s3-000003\n") for entry in lines[6:])
    assert all("serial: '/dev/serial/by-id/one'\n" in entry for entry in lines[6:])
    assert len(scanned(found[1:], ["nothing answers"])) == 1


def test_a_port_that_a_rack_file_names_is_left_alone(
    tmp_path: Path, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its board is named; nobody resets it."""
    monkeypatch.setattr("hil.cli.board.who_answers", lambda _port: pytest.fail("it was asked"))
    monkeypatch.setattr("hil.cli.board.DEFAULT_RACK", rack_at(tmp_path, port))
    done = hil("board", "scan", port)
    assert f"board b1 of {tmp_path / 'rack.yaml'}" in done.stdout


@pytest.mark.slow
def test_a_port_that_a_run_has_leased_is_left_alone(
    tmp_path: Path, port: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever rack file the run was given, from its own folder; its holder is named."""
    monkeypatch.setattr(ports, "PHYSICAL_LOCK_DIR", tmp_path / "lock")
    monkeypatch.setattr("hil.boards.lease.PHYSICAL_LOCK_DIR", tmp_path / "lock")
    rack_at(tmp_path, port)
    argv = [sys.executable, "-c", LEASING, str(tmp_path / "lock" / "desk-test"), "--rack=rack.yaml"]
    with subprocess.Popen(
        argv, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    ) as run:  # fmt: skip
        assert run.stdout
        assert run.stdout.readline() == "held\n"
        told = owners([])[port].describe()
        assert re.search(rf"^board b1 of .*rack\.yaml, .*pid {run.pid} .*run a-run", told), told
        assert run.stdin
        run.stdin.close()
    assert owners([]) == {}


def test_a_port_that_another_program_has_open_is_left_alone(port: str) -> None:
    """The program is named, by its number too."""
    assert openers(port) == []
    side = os.open(port, os.O_RDWR | os.O_NOCTTY)
    try:
        with pytest.raises(RigError, match=rf"port {port} is open in .* \(pid {os.getpid()}\)\. Next: end"):
            who_answers(named(port))
    finally:
        os.close(side)


@pytest.mark.parametrize(
    ("address", "error", "words"),
    [
        ("COM3", ConfigError, "'COM3' is neither a device file"),
        ("/dev/no-such-port", RigError, "does not exist"),
        ("/dev", RigError, "is no serial port"),
    ],
)
def test_what_is_no_port_is_refused(address: str, error: type[Exception], words: str) -> None:
    """With its owner, before esptool is started."""
    with pytest.raises(error, match=words):
        who_answers(named(address))


@pytest.mark.parametrize(
    ("chip", "mac", "words"),
    [("esp32c61", MAC, "esp32c61, .*esp32s3"), ("esp32", "02:00:00:77:00:01", "virtual .*Next: hil run")],
)
def test_a_chip_that_is_not_measured_at_a_port_is_refused(
    port: str, monkeypatch: pytest.MonkeyPatch, chip: str, mac: str, words: str
) -> None:
    """It answers, and nothing here measures it: the configuration's matter, with the chips that are known.
    `hil virtual up` gives a virtual board a port, but no chip's image runs there."""
    monkeypatch.setattr(ports, "ask", lambda *_: Identity(chip, mac, ""))
    with pytest.raises(ConfigError, match=words):
        who_answers(named(port))


def test_a_host_without_ports_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 3: a cable may be missing, or the board may hang on another host."""
    monkeypatch.setattr("hil.cli.board.ports_here", list)
    done = hil("board", "scan")
    assert (done.returncode, "rfc2217://HOST:PORT" in done.stdout) == (3, True)

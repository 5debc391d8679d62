# SPDX-License-Identifier: Apache-2.0
"""`hil run --port`: which rack file a run gets, and where the network's name and password are."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pexpect
import pytest

from hil.base.errors import ConfigError, RigError
from hil.boards import desk as desk_files
from hil.boards.desk import rack_file, route
from hil.boards.flash.identify import Identity
from hil.boards.ports import Port, PortOwner
from hil.boards.rack import load_rack
from hil.cli import desk
from hil.cli.desk import at_port
from hil.run.options import RunOptions
from tests.lab import ROOT, own_environment, path_without
from tests.virtual.virtual_board_rig import BoardProcess, own_board

PORT = "/dev/ttyUSB7"
FOUND = Identity("esp32s3", "34:85:18:00:00:03", "ef 4018", "16 MB")
OTHER = """\
schema: 1
name: bench
host: {interface: lo, address: 127.0.0.1}
access_point: {type: external, ssid: lab, psk_env: PSK}
boards:
  - {id: b1, kind: physical, target: esp32, serial: /dev/ttyUSB0}
"""


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunOptions:
    """Options of a run in an empty folder; an ESP32-S3 answers at each port, and no network is known."""
    monkeypatch.setattr(desk, "who_answers", lambda _port: FOUND)
    monkeypatch.setattr(desk, "owners", lambda _files: {})
    monkeypatch.setattr(desk, "route", lambda: ("eth7", "192.168.1.20"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("HIL_WIFI_SSID", "HIL_WIFI_PSK"):
        monkeypatch.delenv(name, raising=False)
    return RunOptions(rack=tmp_path / "hil" / "rack.yaml", out=tmp_path / "out")


@pytest.fixture
def network(options: RunOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    del options  # which forgets the variables
    monkeypatch.setenv("HIL_WIFI_SSID", "desk net")
    monkeypatch.setenv("HIL_WIFI_PSK", "correct horse battery")


@pytest.mark.usefixtures("network")
def test_the_first_run_writes_a_rack_file_that_the_second_uses(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chip, MAC address and port as found, this host by its route; the second time nobody is asked, but for a
    network that is not known any more."""
    first = at_port(options, PORT)
    assert first == replace(options, boards=("esp32s3-000003",))
    rack = load_rack(options.rack)
    (board,) = rack.boards
    assert (board.target, board.mac, board.serial) == (FOUND.chip, FOUND.mac, PORT)
    assert (rack.host.interface, rack.host.address) == ("eth7", "192.168.1.20")
    assert (rack.access_point.ssid, rack.access_point.psk_env) == ("desk net", "HIL_WIFI_PSK")
    monkeypatch.setattr(desk, "who_answers", lambda _port: pytest.fail("it was asked"))
    assert at_port(options, PORT) == first
    monkeypatch.delenv("HIL_WIFI_PSK")
    with pytest.raises(ConfigError, match=r"export HIL_WIFI_SSID=… and HIL_WIFI_PSK=…"):
        at_port(options, PORT)


def test_only_a_board_that_joins_a_network_needs_a_route(
    options: RunOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A probe of the console is measured by a host without any network."""

    def none() -> tuple[str, str]:
        raise RigError("no route")

    monkeypatch.setattr(desk, "route", none)
    with pytest.raises(RigError, match="no route"):
        at_port(options, PORT)
    joins_none = SimpleNamespace(joins_network=False)
    monkeypatch.setattr(desk, "read_campaign", lambda _options: joins_none)
    assert load_rack(at_port(options, PORT).rack).host.interface == "lo"


def test_each_line_of_the_rack_file_is_a_persons() -> None:
    """No line without a comment but those that say all themselves, and nothing of the network in it."""
    text = rack_file(Port(PORT, "/dev/serial/by-id/usb-one"), FOUND, ("eth7", "192.168.1.20"))
    plain = [line.split(":")[0].strip() for line in text.splitlines() if line and "#" not in line]
    assert plain == ["schema", "interface", "access_point", "boards", "kind", "serial"]
    assert "16 MB" in text
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.usefixtures("network")
def test_a_rack_file_without_the_port_stays(options: RunOptions, capsys: pytest.CaptureFixture[str]) -> None:
    """The new one lies in OUT, and the sentence names both."""
    options.rack.parent.mkdir()
    options.rack.write_text(OTHER)
    found = at_port(options, PORT)
    assert found.rack == options.out / "rack.yaml"
    assert load_rack(found.rack).boards[0].serial == PORT
    assert options.rack.read_text() == OTHER
    assert re.search(r"out/rack\.yaml, .*hil/rack\.yaml", capsys.readouterr().out)
    assert at_port(options, "/dev/ttyUSB0").boards == ("b1",)


def test_an_unknown_network_without_a_terminal_names_both_variables(options: RunOptions) -> None:
    """Exit 2, and no rack file is left."""
    with pytest.raises(ConfigError, match=r"no terminal.*Next: export HIL_WIFI_SSID=… and HIL_WIFI_PSK=…"):
        at_port(options, PORT)
    assert not options.rack.exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"boards": ("b1",)}, "--port with --board"), ({"suite": "quik"}, "'quik' .* 'quick'")],
)
def test_wrong_options_are_refused_before_a_file_is_written(
    options: RunOptions, changes: dict[str, Any], words: str
) -> None:
    """Before the network is asked for, too."""
    with pytest.raises(ConfigError, match=words):
        at_port(replace(options, **changes), PORT)
    assert not options.rack.exists()


def test_a_port_of_a_run_under_way_is_refused(options: RunOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its board and rack file are named."""
    owner = PortOwner(Path("/etc/hil/lab.yaml"), "b3", None)
    monkeypatch.setattr(desk, "owners", lambda _files: {PORT: owner})
    with pytest.raises(RigError, match=r"belongs to board b3 of /etc/hil/lab\.yaml"):
        at_port(options, PORT)


def test_a_chip_without_wifi_needs_a_person() -> None:
    """How its cable is wired nobody can find out."""
    with pytest.raises(ConfigError, match="esp32h2, which has no Wi-Fi"):
        rack_file(Port(PORT, PORT), replace(FOUND, chip="esp32h2"), ("lo", "127.0.0.1"))


def test_a_host_is_where_its_route_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `ip route get` says it, with and without a gateway; nothing is sent."""
    for via in ("via 192.168.1.1 ", ""):
        said = f"203.0.113.1 {via}dev wlp2s0 src 192.168.1.20 uid 1000 \\    cache "
        monkeypatch.setattr(desk_files, "output_of", lambda *_words, said=said: said)
        assert route() == ("wlp2s0", "192.168.1.20")


@pytest.mark.parametrize("status", [0, 2])
def test_a_host_without_a_route_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """The rig's fault: no board could reach the broker, whether ip says nothing or fails."""
    (tmp_path / "ip").write_text(f"#!/bin/sh\necho 'Network is unreachable' >&2; exit {status}\n")
    (tmp_path / "ip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(RigError, match="no route to a network"):
        route()


@pytest.fixture
def board(tmp_path: Path) -> Iterator[BoardProcess]:
    with own_board(tmp_path) as process:
        yield process


@pytest.mark.slow
def test_the_network_is_asked_for_once(tmp_path: Path, board: BoardProcess) -> None:
    """The password is not shown, and lies in a file of this user's alone; neither is in the project."""
    project, password = tmp_path / "project", "correct horse battery"
    project.mkdir()
    (project / "hil.toml").write_text('schema = 1\n[firmware]\nfolder = "."\ntargets = ["esp32"]\n')
    environment = {
        **own_environment(), "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "PATH": path_without("idf.py"),
    }  # fmt: skip
    words = ["-P", "-m", "hil", "run", "--port", board.url("rfc2217"), "--suite", "first"]
    typed = pexpect.spawn(sys.executable, words, cwd=project, env=environment, encoding="utf-8", timeout=60)
    typed.expect("Wi-Fi that the board joins: ")
    typed.sendline("desk net")
    typed.expect("not shown")
    typed.sendline(password)
    typed.expect("idf.py is not on PATH")
    typed.expect(pexpect.EOF)
    typed.close()
    assert typed.exitstatus == 2
    assert password not in str(typed.before)
    (kept,) = (tmp_path / "config" / "hil").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.read_text() == f'HIL_WIFI_SSID="desk net"\nHIL_WIFI_PSK="{password}"\n'
    written = "".join(path.read_text(errors="replace") for path in project.rglob("*") if path.is_file())
    assert "esp32-" in written
    assert password not in written
    assert "desk net" not in written

    again = pexpect.spawn(sys.executable, words, cwd=project, env=environment, encoding="utf-8", timeout=60)
    assert again.expect([r"idf\.py is not", "Wi-Fi that"]) == 0
    again.close()

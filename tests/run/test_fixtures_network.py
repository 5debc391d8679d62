# SPDX-License-Identifier: Apache-2.0
"""The network of a run on a rack of its own and on one that somebody keeps up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hil.base.errors import ConfigError, RigError
from hil.base.given import Given
from hil.boards.rack import load_rack
from hil.boards.rack.access_point import AccessPoint, Commands
from hil.boards.rack.network import WIFI, Network
from hil.model import Case
from hil.network.access_point import CommandedAccessPoint, ExternalAccessPoint, VirtualAccessPoint
from hil.network.peers.gateway.companion import GatewayCompanion
from hil.network.process import LocalSpawner
from hil.run.campaign import Campaign
from hil.run.network import HostSide, RunNetwork, read_access_point, start_network
from hil.run.options import RunOptions
from hil.run.run_air import RunAir
from hil.virtual.air.profile import AirProfile, load_profile
from hil.virtual.virtual_rack import VirtualRack, attach_virtual_rack, profile_in_force, up_dir
from tests.boards.rack_tools import send_packets, start_rack

RACK = load_rack(Path(__file__).resolve().parents[2] / "hil" / "racks" / "virtual.yaml")
BOARD = RACK.boards[0]
LAB = load_profile("lab")


class BrokenRack:
    """A rack whose board has died, with its log in ``folder``."""

    def __init__(self, folder: Path, *, owned: bool) -> None:
        self.boards = {BOARD.id: BOARD}
        self.owned = owned
        self._folder = folder

    def state(self) -> dict[str, list[str]]:
        return {"dead": [f"board {BOARD.id} ended, see {self._folder.resolve()}/{BOARD.id}.log"]}

    def stop(self) -> None:
        self.owned = False


class Broker:
    def stop(self) -> None:
        """It has ended."""


def network_on(
    rack: BrokenRack | VirtualRack, state_dir: Path, log_dir: Path, profile: AirProfile | None = None
) -> RunNetwork:
    broker: Any = Broker()
    virtual_rack: Any = rack
    certificates: Any = None  # no board is provisioned
    secrets_dir = state_dir.parent / "secrets"
    secrets_dir.mkdir(exist_ok=True)
    (secrets_dir / "client.key").write_text("secret")
    host = HostSide(virtual_rack, "10.77.0.1", "hil0", secrets_dir)
    point = VirtualAccessPoint("lab", 1)
    air = RunAir(virtual_rack, [BOARD.id], profile, None) if profile else None
    return RunNetwork(point, host, broker, certificates, virtual_rack, state_dir, log_dir, air)


@pytest.mark.parametrize("owned", [True, False])
def test_the_evidence_is_that_of_the_rack_measured_on(tmp_path: Path, owned: bool) -> None:
    """Logs of the run's own rack move into the run, those of an attached one stay; secrets go in any case."""
    state_dir, log_dir = tmp_path / "state", tmp_path / "run" / "rack"
    state_dir.mkdir()
    (state_dir / f"{BOARD.id}.log").write_text("it died\n")
    network = network_on(BrokenRack(state_dir, owned=owned), state_dir, log_dir)
    with pytest.raises(RigError) as caught:
        network.check(BOARD)
    assert f"see {log_dir if owned else state_dir}/{BOARD.id}.log" in str(caught.value)
    assert ("hil virtual up" in str(caught.value)) != owned
    network.stop()
    assert (log_dir / f"{BOARD.id}.log").exists() == owned
    assert not (tmp_path / "secrets").exists()


def test_a_board_is_told_its_link_or_a_network_that_it_has_to_name(tmp_path: Path) -> None:
    """Credentials go to boards with Wi-Fi alone, which are told no link: older firmware does not know it. A
    virtual board finds the virtual air without a word; a chip's own image asks for a name. The address that a
    station says is the same on each board."""
    certificates: Any = SimpleNamespace(ca_pem="", client_cert_pem="", client_key_pem="")
    broker: Any = SimpleNamespace(provision=dict)
    nothing: Any = None
    point = ExternalAccessPoint("lab", "correct horse")
    network = RunNetwork(point, nothing, broker, certificates, None, tmp_path, tmp_path)
    wifi = replace(BOARD, kind="physical")
    cable = replace(wifi, network=Network("w5500", (("cs", 15),), "10.0.0.2/24"))
    told = network.provision(wifi)
    assert (told["ssid"], told["psk"], "link" in told) == ("lab", "correct horse", False)
    told = network.provision(cable)
    assert told["link"] == "w5500 cs=15 address=10.0.0.2/24"
    assert not {"ssid", "psk"} & set(told)
    rack: Any = SimpleNamespace(board_address=lambda _board: "10.77.0.11", owned=False)
    virtual = VirtualAccessPoint("lab", 1, "lab", "eight and more")
    network = RunNetwork(virtual, nothing, broker, certificates, rack, tmp_path, tmp_path)
    station = replace(BOARD, kind="emulated", emulator="esp-emu", network=WIFI)
    told = network.provision(station)
    assert (told["ssid"], told["psk"]) == ("lab", "eight and more")
    assert "ssid" not in network.provision(BOARD)
    assert network.address_of(station, "192.168.4.2") == "10.77.0.11"
    assert network.address_of(BOARD, "10.77.0.12") == "10.77.0.12"


def test_a_case_has_the_radio_in_its_record(tmp_path: Path) -> None:
    """The radio is looked at before and after; a case later has its own figures, one without a look none."""
    program = tmp_path / "station"
    program.write_text(
        f'#!/bin/sh\necho >>"$0.looks"\nprintf "Station {BOARD.mac} (on ap)\\n\\ttx retries:\\t%d\\n" '
        '$(($(wc -l <"$0.looks") * 10))\n'
    )
    program.chmod(0o755)
    settings = AccessPoint("external", ssid="lab", commands=Commands(station=str(program)))
    driven = CommandedAccessPoint.start(settings, LocalSpawner(), tmp_path / "log")
    nothing: Any = SimpleNamespace(environment=dict)
    point = ExternalAccessPoint("lab", "correct horse", settings)
    network = RunNetwork(point, nothing, nothing, nothing, None, tmp_path, tmp_path, driven=driven)
    board = replace(BOARD, kind="physical")
    assert "radio" not in network.environment(board)
    for _case in range(2):
        with network.around(board):
            pass
        assert network.environment(board)["radio"]["tx_retries_count"] == 10
    with pytest.raises(RigError), network.around(board):
        raise RigError("the case failed.")
    assert "radio" not in network.environment(board)


@pytest.mark.slow
def test_a_run_makes_its_access_point_and_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up before the broker, down at the end; a second run meanwhile is told who has it; one whose broker
    cannot start leaves nothing behind."""
    monkeypatch.setattr("hil.network.access_point.LEASES", tmp_path / "leases")
    monkeypatch.setenv("PSK", "correct horse")
    program = tmp_path / "ap"
    program.write_text('#!/bin/sh\necho "$1" >>"$0.log"\n')
    program.chmod(0o755)
    path = tmp_path / "rack.yaml"
    path.write_text(
        "schema: 1\nname: r\nhost: {interface: lo, address: 127.0.0.1}\n"
        f"access_point: {{type: external, ssid: lab, psk_env: PSK, up: {program} up, down: {program} down}}\n"
        "boards:\n- {id: a, kind: physical, target: esp32, serial: /dev/ttyUSB0}\n"
    )
    rack = load_rack(path)
    plan = SimpleNamespace(present=[])
    options = RunOptions(out=tmp_path)
    campaign: Any = SimpleNamespace(rack=rack, plan=plan, noise=None, profile="", options=options)
    log = program.with_name("ap.log")
    first = start_network(campaign, tmp_path / "first", read_access_point(rack, ""))
    try:
        first.check(rack.boards[0])
        assert first.environment(rack.boards[0])["access_point"] == {"type": "external", "ssid": "lab"}
        with pytest.raises(RigError, match=r"access point 'lab' \(external-lab\) is held by .* run first"):
            start_network(campaign, tmp_path / "second", read_access_point(rack, ""))
        assert log.read_text().split() == ["up"]
    finally:
        first.stop()
    assert log.read_text().split() == ["up", "down"]
    campaign.rack = replace(rack, host=replace(rack.host, address="192.0.2.1"))
    with pytest.raises(RigError, match=r"192\.0\.2\.1"):
        start_network(campaign, tmp_path / "third", read_access_point(rack, ""))
    assert log.read_text().split() == ["up", "down"] * 2


@pytest.mark.parametrize(
    ("bench", "given", "joins"),
    [
        ("boot", Given(), False),
        ("boot", Given({"mqtt.uri": "mqtt://{broker_host}"}, ("hello",)), False),
        ("boot", Given({"wifi.ssid": "{ssid}"}), True),
        ("boot", Given(console=("join {password}",)), True),
        ("publish", Given(), True),
    ],
)
def test_who_is_told_no_network_needs_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: str, given: Given, joins: bool
) -> None:
    """A probe of a console asks for no Wi-Fi; a product that is given one does, and so does hil's agent."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("PSK", raising=False)
    plan: Any = SimpleNamespace(boards=[SimpleNamespace(cases=[Case(bench, {})])])
    probes: Any = {"boot": None}
    campaign = Campaign(RunOptions(), RACK, {}, plan, "", probes=probes, given=given)
    assert campaign.joins_network == joins
    wifi = replace(RACK, access_point=AccessPoint("external", ssid="lab", psk_env="PSK"))
    if joins:
        with pytest.raises(ConfigError, match="PSK"):
            read_access_point(wifi, "", joined=campaign.joins_network)
    else:
        point = read_access_point(wifi, "", joined=campaign.joins_network)
        assert point.environment() == {"type": "none"}


@pytest.mark.parametrize("named", ["", "ap0"])
def test_a_case_is_told_where_captures_are_taken_and_who_answers_names(tmp_path: Path, named: str) -> None:
    """On a physical rack the access point's interface is the rack file's; keys go to the run's secrets. Where
    the run answers names already, a case starts no second one, nor ends the first."""
    nothing: Any = None
    host = HostSide(nothing, "192.168.77.1", "eth0", tmp_path, named)
    point = VirtualAccessPoint("lab", 1)
    network = RunNetwork(point, host, nothing, nothing, None, tmp_path, tmp_path)
    case = Case("publish", {})
    place = network.place(case, BOARD, "192.168.77.9", folder=tmp_path / "peer", keep_captures=False)
    assert (place.access_point_interface, place.secrets_dir) == (named, tmp_path)
    names: Any = SimpleNamespace(address="10.0.0.1", stop=pytest.fail)
    host = HostSide(nothing, "10.0.0.1", "eth0", tmp_path)
    network = RunNetwork(point, host, nothing, nothing, None, tmp_path, tmp_path, name_server=names)
    case = Case("http_gateway", {"resolve": "name"})
    place = network.place(case, BOARD, "10.0.0.9", folder=tmp_path, keep_captures=False)
    companion = GatewayCompanion(place)
    assert companion._start_name_server() is names
    companion.stop()


def test_a_case_on_a_virtual_rack_captures_at_its_boards_own_port(tmp_path: Path) -> None:
    """A virtual rack finds the access point's side of each board's air itself."""
    boards = RACK.boards[:2]
    running = start_rack(tmp_path / "rack", boards=[board.id for board in boards])
    try:
        network = network_on(running, tmp_path / "state", tmp_path / "logs")
        for board in boards:
            place = network.place(
                Case("publish", {}), board, "", folder=tmp_path / "peer", keep_captures=False
            )
            assert place.access_point_interface == running.access_point_interface(board.id)
    finally:
        running.stop()


def test_what_a_cases_peer_sends_to_its_board_is_the_runs_own(tmp_path: Path) -> None:
    """Where the peer has told its port, that is no neighbour's; in the next case it would be."""
    board = RACK.boards[0]
    running = start_rack(tmp_path / "rack", boards=[board.id], profile=LAB)
    address = running.board_address(board.id)
    try:
        network = network_on(running, tmp_path / "state", tmp_path / "logs", LAB)
        network.apply_profile()
        place = network.place(Case("publish", {}), board, "", folder=tmp_path / "peer", keep_captures=False)
        with network.around(board):
            place.sends_to(9)
            send_packets(running, 50, address, tmp_path)
        with pytest.raises(RigError, match="do not belong to this run"), network.around(board):
            send_packets(running, 50, address, tmp_path)
    finally:
        running.stop()


def reaches_the_host(rack: VirtualRack, board: str, folder: Path, within_s: int = 8) -> bool:
    """Whether one answer comes; the air of a lab loses some."""
    argv = ["ping", "-c", "1", "-w", str(within_s), rack.host_address]
    return rack.spawn(argv, netns=board, log_path=folder / "ping.log").wait(20) == 0


@pytest.mark.slow
def test_a_link_that_a_killed_run_left_down_is_raised(tmp_path: Path) -> None:
    """Who attaches to a rack raises its own boards' links, and leaves those of other runs' boards alone."""
    own, other = RACK.boards[:2]
    running = start_rack(up_dir(RACK, tmp_path), name=RACK.name, boards=(own.id, other.id), profile=LAB)
    try:
        for board in (own.id, other.id):
            running.air.down(board)
        assert not profile_in_force(running, LAB)
        with pytest.raises(RigError, match=r"another access point than \S+virtual\.yaml now sets"):
            attach_virtual_rack(RACK, [own], tmp_path)  # whose network has a name
        anyones = replace(RACK, access_point=replace(RACK.access_point, ssid="", password=""))
        attached = attach_virtual_rack(anyones, [own], tmp_path)
        assert attached
        assert reaches_the_host(attached, own.id, tmp_path)
        # another run's: it may be measuring
        assert not reaches_the_host(attached, other.id, tmp_path, within_s=1)
        network = network_on(attached, tmp_path / "state", tmp_path / "logs", LAB)
        network.apply_profile()
        assert not reaches_the_host(attached, other.id, tmp_path, within_s=1)
        assert profile_in_force(running, LAB, board=own.id)
    finally:
        running.stop()

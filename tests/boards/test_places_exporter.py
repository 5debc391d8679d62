# SPDX-License-Identifier: Apache-2.0
"""What `hil exporter` writes, as labgrid's own exporter, coordinator and client take it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hil.boards.places.exporter import exporter_config, place_commands
from hil.boards.rack import load_rack
from tests.boards.farm import farm_in
from tests.lab import wait_for

PLUG = "http://10.0.0.9/cm?cmnd=Power{index}%20{value}"


@pytest.mark.slow
def test_labgrid_sees_virtual_boards(tmp_path: Path) -> None:
    """`hil exporter` writes what labgrid's exporter serves: each board's port as labgrid knows ports;
    labgrid-client acquires, shows and releases it."""
    with farm_in(tmp_path) as farm:
        rack = farm.boards_rack(1)
        board = load_rack(rack).board("b1")
        farm.start_coordinator()
        farm.start_exporter("exporter-1", exporter_config(load_rack(rack), {}))
        for line in place_commands(load_rack(rack), farm.address):
            farm.client(*shlex.split(line)[3:])
        farm.client("-p", "b1", "acquire")
        shown = farm.client("-p", "b1", "show")
        assert f"'port': {board.tcp_port}" in shown
        assert "'protocol': 'rfc2217'" in shown
        assert "target=virtual-esp32" in shown
        farm.client("-p", "b1", "release")


def test_a_device_is_exported_as_labgrid_serves_devices(tmp_path: Path) -> None:
    """A device becomes a RawSerialPort, which labgrid's exporter hands to ser2net; its switch stays here."""
    path = tmp_path / "rack.yaml"
    path.write_text(
        "schema: 1\nname: lab\nhost: {interface: eth0, address: 10.0.0.1}\n"
        "access_point: {type: wired}\nboards:\n"
        "  - {id: p1, kind: physical, target: esp32, serial: /dev/serial/by-id/x, labels: [a],\n"
        "     network: {type: rmii, phy: lan87xx, clock: in},\n"
        "     power: {type: command, command: 'sw {action}'}}\n"
    )
    config = YAML(typ="safe").load(exporter_config(load_rack(path), {}))
    assert config["p1"]["RawSerialPort"] == {"port": "/dev/serial/by-id/x", "speed": 921600}
    entry = json.loads(config["p1"]["HilBoard"]["entry"])
    assert entry["labels"] == ["a"]
    assert not entry.keys() & {"serial", "power"}


@pytest.mark.parametrize(
    ("power", "port"),
    [
        (
            "type: uhubctl, location: 1-1.2, port: 2",
            {"USBPowerPort": {"match": {"sys_name": "1-1.2:1.0"}, "index": 2}},
        ),
        ("type: uhubctl, location: '1', port: 2", {}),
        (
            "type: tasmota, url: 'http://10.0.0.9', relay: 3",
            {"NetworkPowerPort": {"model": "simplerest", "host": PLUG, "index": 3}},
        ),
        ("type: tasmota, url: 'http://10.0.0.9', password_env: PLUG", {}),
        ("type: shelly, url: 'http://10.0.0.9'", {}),
        ("type: command, command: 'sw {action}'", {}),
    ],
)
def test_a_switch_that_labgrid_can_use_is_a_power_port(
    tmp_path: Path, power: str, port: dict[str, object]
) -> None:
    """A hub's port and a plug without a password are exported, and the place is told to match them; what
    labgrid has no driver for stays here."""
    path = tmp_path / "rack.yaml"
    path.write_text(
        "schema: 1\nname: lab\nhost: {interface: eth0, address: 10.0.0.1}\n"
        "access_point: {type: wired}\nboards:\n"
        "  - {id: p1, kind: physical, target: esp32, serial: /dev/serial/by-id/x,\n"
        f"     network: {{type: rmii, phy: lan87xx, clock: in}}, power: {{{power}}}}}\n"
    )
    found = YAML(typ="safe").load(exporter_config(load_rack(path), {}))["p1"]
    assert {cls: told for cls, told in found.items() if "Power" in cls} == port
    matched = [line for line in place_commands(load_rack(path), "c:1") if "PowerPort" in line]
    classes = [cls if cls.startswith("Network") else f"Network{cls}" for cls in port]
    assert [line.rpartition("/")[2].rstrip("'") for line in matched] == classes


@pytest.mark.slow
def test_labgrids_exporter_takes_a_hubs_port(tmp_path: Path) -> None:
    """labgrid's own exporter reads a hub's port in its file, and offers the rest though there is no hub."""
    with farm_in(tmp_path) as farm:
        rack = farm.boards_rack(1)
        config = YAML(typ="safe").load(exporter_config(load_rack(rack), {}))
        port = {"match": {"sys_name": "1-1.2:1.0"}, "index": 2}
        farm.start_coordinator()
        farm.start_exporter("hub", json.dumps({"b1": {**config["b1"], "USBPowerPort": port}}))
        wait_for(lambda: "hub/b1/NetworkSerialPort" in farm.client("resources"), lambda: "no serial port")

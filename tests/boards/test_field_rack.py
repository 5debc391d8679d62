# SPDX-License-Identifier: Apache-2.0
"""Rack files as people really write them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hil.base.errors import ConfigError, RigError
from hil.boards.places.exporter import exporter_config
from hil.boards.power.tasmota import Tasmota
from hil.boards.rack import Rack, load_rack
from hil.boards.rack.check import check_rack
from tests.boards.switch_rig import Plug, served

HEAD = """\
schema: 1
name: r
host: {interface: lo, address: ADDRESS}
access_point: {type: external, ssid: lab, psk_env: PSK}
boards:
"""


def read(folder: Path, *boards: str, address: str = "10.0.0.1") -> Rack:
    lines = [
        f"  - {{id: b{number}, kind: physical, target: esp32, {board}}}\n"
        for number, board in enumerate(boards)
    ]
    path = folder / "rack.yaml"
    path.write_text(HEAD.replace("ADDRESS", address) + "".join(lines), encoding="utf-8")
    return load_rack(path)


@pytest.mark.parametrize(
    "serial",
    ["COM3", "~/port", "/dev/tty0 ", "rfc2271://l:4000", "rfc2217://lab", "rfc2217://l:99999", "lab:4000"],
)
def test_a_port_that_nobody_can_open_is_told_by_line(tmp_path: Path, serial: str) -> None:
    """It is the configuration's fault, before a board is asked anything."""
    with pytest.raises(ConfigError, match=f"rack.yaml:6: serial port {re.escape(repr(serial))} is neither"):
        read(tmp_path, f'serial: "{serial}"')


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rfc2217://lab:4000", "rfc2217://LAB:4000?ign_set_control"),
        ("rfc2217://lab:4000", "socket://lab:4000/"),
        ("FOLDER/ttyUSB0", "FOLDER/usb-bridge-if00"),
        ("/dev/ttyUSB0", "/dev//ttyUSB0"),
    ],
)
def test_one_port_by_two_names_is_told_by_line(tmp_path: Path, one: str, other: str) -> None:
    """A link of /dev/serial/by-id and the device that it leads to are one port, and one board's."""
    (tmp_path / "usb-bridge-if00").symlink_to("ttyUSB0")
    ports = [f'serial: "{name.replace("FOLDER", str(tmp_path))}"' for name in (one, other)]
    with pytest.raises(ConfigError, match=r"rack.yaml:7: duplicate serial .*rack.yaml:6"):
        read(tmp_path, *ports)


def test_an_option_of_a_network_port_is_taken_everywhere(tmp_path: Path) -> None:
    """`?ign_set_control` is pyserial's; labgrid, which adds its own, gets host and port."""
    rack = read(tmp_path, 'serial: "rfc2217://lab:4000?ign_set_control"')
    assert rack.boards[0].stock_serial == "rfc2217://lab:4000?ign_set_control"
    port = YAML(typ="safe").load(exporter_config(rack, {}))["b0"]["NetworkSerialPort"]
    assert (port["host"], port["port"], port["protocol"]) == ("lab", 4000, "rfc2217")


def test_a_port_of_another_host_is_opened_by_the_fast_client(tmp_path: Path) -> None:
    """The documented form, too: pyserial's own client polls, and loses the first lines of a boot."""
    boards = read(tmp_path, "serial: rfc2217://lab:4000", "serial: fastrfc2217://lab:4001").boards
    assert [board.serial for board in boards] == ["fastrfc2217://lab:4000", "fastrfc2217://lab:4001"]


def test_all_missing_keys_are_told_at_once(tmp_path: Path) -> None:
    """Each with its line, in one sentence: a file is not mended key by key."""
    path = tmp_path / "rack.yaml"
    path.write_text("schema: 1\nname: lab\nhost: {interface: eth0}\nboards:\n  - serial: /dev/ttyUSB0\n")
    with pytest.raises(ConfigError) as caught:
        load_rack(path)
    told = caught.value.sentence.replace(str(path), "").split("; ")
    missing = {part.split(":")[1]: part.partition("no ")[2] for part in told}
    assert missing == {"1": "'access_point'", "3": "'address'", "5": "'id', no 'kind', no 'target'."}


def test_a_folder_is_no_port(tmp_path: Path) -> None:
    """`hil rack check` says so, where it is there and may be read and written."""
    rack = read(tmp_path, f'serial: "{tmp_path}"')
    (found,) = [one for one in check_rack(rack, tmp_path / "locks", served={}) if one.subject == "b0"]
    assert (found.ok, found.sentence) == (False, f"{tmp_path} is no serial port.")


@pytest.mark.parametrize(
    ("mac", "way_out"),
    [
        ("60:55:f9:ff:fe:f7:2c:a2", "write 60:55:f9:f7:2c:a2."),
        ("24-0A-C4-12-34-56", "write 24:0a:c4:12:34:56."),
        ("240AC4123456", "write 24:0a:c4:12:34:56."),
        ("24:0a:c4:12:34", "esptool read-mac tells it (BASE MAC)."),
    ],
)
def test_a_mac_as_another_tool_writes_it_is_told_in_ours(tmp_path: Path, mac: str, way_out: str) -> None:
    """The way out is the address itself, of an EUI-64 the base address that the chip is known by."""
    with pytest.raises(ConfigError, match=r"rack.yaml:6: mac ") as caught:
        read(tmp_path, f'serial: /dev/ttyUSB0, mac: "{mac}"')
    assert caught.value.next_step == way_out


EVERYWHERE = "0.0.0.0"  # noqa: S104 (refused)


@pytest.mark.parametrize(
    "address",
    [EVERYWHERE, "192.168.1.10/24", "localhost", "hil.local", "192.168.1.300", "'::1'", "224.0.0.1"],
)
def test_an_address_that_no_board_can_connect_to_is_told_by_line(tmp_path: Path, address: str) -> None:
    """Boards get it as it stands: a mask, a name, or the address to listen everywhere helps none."""
    with pytest.raises(ConfigError, match=r"rack.yaml:3: '.*' is not the IPv4"):
        read(tmp_path, "serial: /dev/ttyUSB0", address=address)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1", "finds itself"),
        ("192.0.2.77", "192.0.2.77, but 127.0.0.1"),
    ],
)
def test_an_address_that_is_not_the_interfaces_is_told(tmp_path: Path, address: str, words: str) -> None:
    """`hil rack check` asks the interface itself, and knows that a board is another host."""
    rack = read(tmp_path, "serial: /dev/none", address=address)
    found = {one.subject: one for one in check_rack(rack, tmp_path / "locks", served={})}["interface lo"]
    assert not found.ok
    assert words in found.sentence


def test_a_plug_with_words_of_its_own_is_told_so() -> None:
    """StateText is Tasmota's setting, which home automation changes: no relay is missing."""
    with served(Plug("tasmota", bool, words=("0", "1"))) as plug, pytest.raises(RigError, match="StateText1"):
        Tasmota(plug.url, 1).switch(on=True)

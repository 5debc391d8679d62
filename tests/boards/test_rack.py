# SPDX-License-Identifier: Apache-2.0
"""The rack file: what a right one gives, and what a wrong one is told."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hil.base.errors import ConfigError
from hil.boards import environment
from hil.boards.firmware.build import VIRTUAL_TARGETS
from hil.boards.places.exporter import exporter_config
from hil.boards.rack import Rack, load_rack
from hil.boards.rack.check import check_rack
from tests.lab import ROOT

RACKS = Path(__file__).resolve().parents[2] / "hil" / "racks"

RACK = """\
schema: 1
name: r
host: {interface: br0, address: 10.0.0.1}
access_point: {type: virtual, profile: lab, seed: 7}
boards:
  - id: a
    kind: virtual
    target: esp32
    serial: fastrfc2217://127.0.0.1:47001
    power: {type: virtual}
    mac: 02:00:00:00:00:01
    limits: {max_payload_bytes: 512}
  - id: b
    kind: virtual
    target: esp32
    serial: fastrfc2217://127.0.0.1:47002
    mac: 02:00:00:00:00:02
"""
SWITCH = "{type: virtual}"  # board a's


def write(folder: Path, text: str) -> Path:
    path = folder / "rack.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_virtual_rack_has_four_boards() -> None:
    """The rack that needs no hardware has four virtual boards of three chips, and claims no port for them."""
    rack = load_rack(RACKS / "virtual.yaml")
    targets = ["virtual-esp32", "virtual-esp32", "virtual-esp32s3", "virtual-esp32c3"]
    assert [board.target for board in rack.boards] == targets
    assert set(targets) == set(VIRTUAL_TARGETS)
    assert [(board.serial, board.tcp_port) for board in rack.boards] == [("", 0)] * 4


def test_the_example_pushes_and_captures_where_that_is_wanted(tmp_path: Path) -> None:
    """No Pushgateway and no capture at the access point unless one is named; the commented lines of the
    example are what to write. Its password is kept outside."""
    text = (RACKS / "lab-example.yaml").read_text(encoding="utf-8")
    rack = load_rack(write(tmp_path, text))
    assert rack.access_point.psk_env == "HIL_WIFI_PSK"
    assert (rack.board("esp32-1").power.off_time_s, rack.board("esp32s3-1").target) == (2.0, "esp32s3")
    assert (rack.pushgateway, rack.capture.access_point) == ("", "")
    commented = r"^# (?=(?:metrics|  pushgateway|capture|  access_point):)"
    wanted = re.sub(commented, "", text, flags=re.MULTILINE)
    rack = load_rack(write(tmp_path, wanted))
    assert (rack.pushgateway, rack.capture.access_point) == ("http://192.168.77.1:9091", "wlan0")
    for wrong, nearest in (
        ("acces_point", "'access_point'"),
        ("access_point: []\n  x", "expected a single value"),
    ):
        with pytest.raises(ConfigError, match=nearest):
            load_rack(write(tmp_path, wanted.replace("  access_point: wlan0", f"  {wrong}: wlan0")))


def test_only_a_virtual_board_may_be_without_a_serial_port(tmp_path: Path) -> None:
    """Its rack gives it one, which is then as if the file had named it. The port of a chip must be named.
    Every entry of a board arrives in its dataclass; of one that is not there those that are are listed."""
    rack = load_rack(write(tmp_path, RACK))
    board = rack.board("a")
    assert (board.tcp_port, board.limits, board.power.type) == (47001, {"max_payload_bytes": 512}, "virtual")
    assert board.stock_serial == "rfc2217://127.0.0.1:47001"
    with pytest.raises(ConfigError, match=r"no board 'c'.*Boards: a, b"):
        rack.select(["c"])
    path = write(tmp_path, RACK.replace("    serial: fastrfc2217://127.0.0.1:47001\n", ""))
    board = load_rack(path).board("a")
    assert (board.serial, board.tcp_port) == ("", 0)
    assert board.at(47001).serial == rack.board("a").serial
    text = (RACKS / "lab-example.yaml").read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match="'serial'"):
        load_rack(write(tmp_path, re.sub("    serial: .*\n", "", text, count=1)))


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("    power:", "    pwoer:", 10, ["'pwoer'", "'power'"]),
        ("seed: 7", "sead: 7", 4, ["'sead'", "'seed'"]),
        ("schema: 1", "schema: 9", 1, ["schema is 9"]),
        ("  - id: b", "  - id: a", 13, ["duplicate id 'a'", "rack.yaml:6"]),
        (":47002", ":47001", 16, ["duplicate serial", "47001"]),
        ("00:02\n", "00:01\n", 17, ["duplicate mac '02:00:00:00:00:01'", "rack.yaml:6 has it already"]),
        ("target: esp32\n", "target: esp33\n", 8, ["'esp33'", "esp32"]),
        ("kind: virtual", "kind: real", 7, ["'real'", "physical"]),
        ("max_payload_bytes", "payload_bytes", 12, ["payload_bytes", "max_"]),
        ("{type: virtual, profile: lab, seed: 7}", "{type: external, ssid: x}", 4, ["psk_env", "psk_file"]),
        ("seed: 7", f"ssid: {'x' * 33}", 4, ["33 bytes"]),
        ("seed: 7", "password: secret-42", 4, ["needs a name"]),
        ("seed: 7", "ssid: x, password: short", 4, ["5 characters", "8 to 63"]),
        ("fastrfc2217://127.0.0.1:47001", "/dev/ttyUSB0", 9, ["/dev/ttyUSB0", "127.0.0.1:PORT", "delete"]),
        ("02:00:00:00:00:01", "02:00:00", 11, ["six hexadecimal pairs"]),
        (SWITCH, "{type: command, command: uhubctl -a on}", 10, ["{action}"]),
        (SWITCH, """{type: command, command: 'hub "-a {action}'}""", 10, ["No closing quotation", "hub"]),
        (SWITCH, '{type: command, command: "x {action}", timeout: 20 kg}', 10, ["kg"]),
        (SWITCH, '{type: command, command: "x {action}", timeout: 20}', 10, ["unit"]),
        ("name: r", "name: pytest", 2, ["`hil import`", "another name"]),
        ("name: r", "name: imported", 2, ["`hil import`", "another name"]),
        ("boards:", "capture: {access_point: air0}\nboards:", 5, ["virtual rack", "by itself"]),
        ("boards:", "metrics: {pushgatewy: 'http://x:1'}\nboards:", 5, ["'pushgatewy'", "'pushgateway'"]),
        ("boards:", "metrics: {pushgateway: l:9091}\nboards:", 5, ["'l:9091'", "http://lab.example:9091"]),
        (
            "boards:",
            "metrics: {pushgateway: 'http://me:word@lab'}\nboards:",
            5,
            ["'http://***@lab'", "HIL_PUSHGATEWAY_PASSWORD"],
        ),
    ],
)
def test_a_mistake_is_named_with_file_and_line(
    tmp_path: Path, old: str, new: str, line: int, words: list[str]
) -> None:
    """A wrong rack file is a configuration error that names file, line and what to write instead."""
    assert old in RACK
    path = write(tmp_path, RACK.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_rack(path)
    sentence = str(caught.value)
    assert f"rack.yaml:{line}:" in sentence
    for word in words:
        assert word in sentence


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (([], "esp32", ["psram"]), "devkitc; esp32s3-1 is esp32s3."),
        (([], "esp32", ["psram"]), "'psram'; nearest: esp32-1 has not"),
        ((["esp32-1"], "esp32s3", []), "esp32-1 is esp32; esp32s3-1 is not"),
        (([], "", ["psrm"]), "'psrm'; there is esp32, esp32s3, with the labels devkitc, psram."),
        (([], "esp32c6", []), "'esp32c6'; there is esp32, esp32s3, with"),
        ((["esp32-1"], "esp32c6", ["psram"]), "one of esp32-1; there is esp32, esp32s3"),
    ],
)  # fmt: skip
def test_boards_that_lack_one_thing_are_named(asked: tuple[list[str], str, list[str]], words: str) -> None:
    """Where none has all that is asked for: the nearest with what they lack, or what there is."""
    rack = load_rack(RACKS / "lab-example.yaml")
    with pytest.raises(ConfigError) as caught:
        rack.select(*asked)
    assert words in str(caught.value)


def test_boards_are_chosen_by_label() -> None:
    """Each label that is asked for has to be there; with a target, both."""
    rack = load_rack(RACKS / "lab-example.yaml")
    assert [board.id for board in rack.select([], labels=["devkitc"])] == ["esp32-1", "esp32-2"]
    assert [board.id for board in rack.select([], "esp32s3", ["psram"])] == ["esp32s3-1"]
    assert [board.id for board in rack.select(["esp32-2"], "esp32", ["devkitc"])] == ["esp32-2"]


EMULATED = """\
  - id: e
    kind: emulated
    emulator: qemu
    target: esp32c3
    power: {type: virtual}
    mac: 02:00:00:00:00:03
"""


def test_an_emulated_board_stands_beside_virtual_ones(tmp_path: Path) -> None:
    """Its records' target says what it is; the firmware that it runs is the chip's own."""
    rack = load_rack(write(tmp_path, RACK + EMULATED))
    board, virtual = rack.board("e"), rack.board("a")
    assert (board.target, board.firmware_target) == ("emulated-esp32c3", "esp32c3")
    assert (virtual.target, virtual.firmware_target) == ("virtual-esp32", "virtual-esp32")
    assert (board.emulator, board.is_process, board.tcp_port) == ("qemu", True, 0)
    assert board.at(47009).tcp_port == 47009


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("    emulator: qemu\n", "", ["emulator"]),
        ("    mac: 02:00:00:00:00:03\n", "", ["mac"]),
        ("kind: emulated", "kind: virtual", ["a virtual board has no emulator", "kind: emulated"]),
        ("power:", "serial: /dev/ttyUSB0\n    power:", ["an emulated board's serial", "free port"]),
    ],
)
def test_a_wrong_emulated_board_is_told_what_it_takes(
    tmp_path: Path, old: str, new: str, words: list[str]
) -> None:
    """Each sentence names file and line, and the way out."""
    with pytest.raises(ConfigError) as caught:
        load_rack(write(tmp_path, RACK + EMULATED.replace(old, new)))
    assert "rack.yaml:" in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_virtual_air_is_for_boards_of_this_host_alone(tmp_path: Path) -> None:
    """An emulated board's network is a tap behind that air, and a physical board's packets never pass it."""
    physical = RACK.replace("kind: virtual", "kind: physical", 1).replace("{type: virtual}", "{type: none}")
    with pytest.raises(ConfigError, match=r"board 'a' is physical .* virtual"):
        load_rack(write(tmp_path, physical))
    external = "{type: external, ssid: lab, psk_env: PSK}"
    head = RACK.partition("  - id: a")[0].replace("{type: virtual, profile: lab, seed: 7}", external)
    with pytest.raises(ConfigError, match=r"board 'e' is emulated .* external"):
        load_rack(write(tmp_path, head + EMULATED))


@pytest.mark.parametrize(("asked", "said"), [(True, "fail"), (False, "warn"), (None, None)])
def test_a_virtual_rig_says_how_strict_its_project_is(
    monkeypatch: pytest.MonkeyPatch, asked: bool | None, said: str | None
) -> None:
    """A reader of a virtual record knows what hil.toml asked for; a board's chip is strict by itself."""
    monkeypatch.setattr(environment, "strict_here", lambda: asked)
    rack = load_rack(ROOT / "hil" / "racks" / "virtual.yaml")
    assert environment.rig_environment(rack).get("strict") == said
    physical = replace(rack, access_point=replace(rack.access_point, type="external"))
    assert "strict" not in environment.rig_environment(physical)


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
    """`?ign_set_control` is pyserial's; labgrid, which adds its own, gets host and port. The fast client
    opens a port of another host, in the documented form too: pyserial's polls, and loses the first lines."""
    boards = read(tmp_path, "serial: rfc2217://lab:4000", "serial: fastrfc2217://lab:4001").boards
    assert [board.serial for board in boards] == ["fastrfc2217://lab:4000", "fastrfc2217://lab:4001"]
    rack = read(tmp_path, 'serial: "rfc2217://lab:4000?ign_set_control"')
    assert rack.boards[0].stock_serial == "rfc2217://lab:4000?ign_set_control"
    port = YAML(typ="safe").load(exporter_config(rack, {}))["b0"]["NetworkSerialPort"]
    assert (port["host"], port["port"], port["protocol"]) == ("lab", 4000, "rfc2217")


def test_all_missing_keys_are_told_at_once(tmp_path: Path) -> None:
    """Each with its line, in one sentence: a file is not mended key by key."""
    path = tmp_path / "rack.yaml"
    path.write_text("schema: 1\nname: lab\nhost: {interface: eth0}\nboards:\n  - serial: /dev/ttyUSB0\n")
    with pytest.raises(ConfigError) as caught:
        load_rack(path)
    told = caught.value.sentence.replace(str(path), "").split("; ")
    missing = {part.split(":")[1]: re.findall(r"no '(\w+)'", part) for part in told}
    assert missing == {"1": ["access_point"], "3": ["address"], "5": ["id", "kind", "target"]}


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
    [("127.0.0.1", "finds itself"), ("192.0.2.77", "192.0.2.77, but 127.0.0.1")],
)
def test_an_address_that_is_not_the_interfaces_is_told(tmp_path: Path, address: str, words: str) -> None:
    """`hil rack check` asks the interface itself, and knows that a board is another host."""
    rack = read(tmp_path, "serial: /dev/none", address=address)
    found = {one.subject: one for one in check_rack(rack, tmp_path / "locks", served={})}["interface lo"]
    assert not found.ok
    assert words in found.sentence

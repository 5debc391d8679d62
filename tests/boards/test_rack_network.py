# SPDX-License-Identifier: Apache-2.0
"""A board's section `network` and a rack's `access_point`: what right ones give, and wrong ones are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.chips import CHIPS, MODELLED
from hil.base.errors import ConfigError
from hil.boards.rack import load_rack
from hil.boards.rack.access_point import AccessPoint, Commands, Dhcp, Radio
from hil.boards.rack.loader import Rack
from hil.network.access_point import external_access_point

RACK = """\
schema: 1
name: r
host: {interface: eth0, address: 10.0.0.1}
access_point: {type: POINT}
boards:
  - id: a
    kind: physical
    target: TARGET
    serial: /dev/ttyUSB0
    network: NETWORK
"""
RMII = "{type: rmii, phy: lan87xx, addr: 1, clock: out, clock_gpio: 17}"
W5500 = "{type: w5500, sclk: 14, mosi: 13, miso: 12, cs: 15, int: 4, address: 10.0.0.2/24, gateway: 10.0.0.1}"


def rack_of(folder: Path, network: str, *, target: str = "esp32", point: str = "wired") -> Rack:
    path = folder / "rack.yaml"
    text = RACK.replace("NETWORK", network).replace("TARGET", target).replace("POINT", point)
    path.write_text(text, encoding="utf-8")
    return load_rack(path)


@pytest.mark.parametrize(
    ("network", "target", "link"),
    [
        (RMII, "esp32", "rmii phy=lan87xx addr=1 mdc=23 mdio=18 reset=-1 clock=out clock_gpio=17"),
        (
            W5500,
            "esp32",
            "w5500 host=1 sclk=14 mosi=13 miso=12 cs=15 int=4 reset=-1 mhz=20 "
            "address=10.0.0.2/24 gateway=10.0.0.1",
        ),
        (
            "{type: rmii, phy: ip101, clock: in, mac: '02:00:00:00:00:01'}",
            "esp32",
            "rmii phy=ip101 addr=-1 mdc=23 mdio=18 reset=-1 clock=in clock_gpio=0 mac=02:00:00:00:00:01",
        ),
        (
            "{type: rmii, phy: ip101, clock: in, clock_gpio: 50}",
            "esp32p4",
            "rmii phy=ip101 addr=-1 mdc=31 mdio=52 reset=-1 clock=in clock_gpio=50",
        ),
    ],
)
def test_a_cable_becomes_the_words_that_the_board_is_told(
    tmp_path: Path, network: str, target: str, link: str
) -> None:
    """Every key arrives, and what is left out has its chip's value; the longest fits the firmware's field."""
    board = rack_of(tmp_path, network, target=target).board("a")
    assert (board.network.is_wifi, board.network.link) == (False, link)
    assert len(link) < 160 - len(" mac=02:00:00:00:00:01")


def test_a_chip_without_wifi_needs_a_cable(tmp_path: Path) -> None:
    """Its entry is named, with what it may have."""
    path = tmp_path / "rack.yaml"
    text = RACK.replace("POINT", "wired").replace("TARGET", "esp32h2").replace("    network: NETWORK\n", "")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"rack.yaml:6: target esp32h2 has no Wi-Fi.*type w5500"):
        load_rack(path)


@pytest.mark.parametrize("chip", sorted(set(CHIPS) - set(MODELLED)))
def test_a_virtual_board_is_a_chip_that_is_modelled(tmp_path: Path, chip: str) -> None:
    """Others are boards of a real rack; their names are told where a virtual rack asks for one."""
    assert rack_of(tmp_path, W5500, target=chip).board("a").chip == chip
    path = tmp_path / "rack.yaml"
    path.write_text(path.read_text().replace("physical", "virtual"), encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"'{chip}'.*esp32, esp32s3, esp32c3"):
        load_rack(path)


def test_a_board_has_wifi_unless_its_entry_says_otherwise(tmp_path: Path) -> None:
    """A physical board's network may be named, or not; an external access point takes both."""
    external = "external, ssid: lab, psk_env: PSK"
    for network in ("{type: wifi}", RMII):
        board = rack_of(tmp_path, network, point=external).board("a")
        assert board.network.is_wifi == (network != RMII)
    path = tmp_path / "rack.yaml"
    path.write_text(path.read_text().replace(f"    network: {RMII}\n", ""), encoding="utf-8")
    assert load_rack(path).board("a").network.is_wifi


@pytest.mark.parametrize(
    ("network", "target", "line", "words"),
    [
        ("{type: openeth}", "esp32", 10, ["kind physical", "'openeth'", "wifi, rmii, w5500"]),
        ("{type: ethernet}", "esp32", 10, ["'ethernet'", "rmii"]),
        (RMII, "esp32c3", 10, ["esp32c3", "no Ethernet controller", "wifi, w5500"]),
        ("{type: wifi}", "esp32p4", 10, ["esp32p4 has no Wi-Fi", "rmii, w5500"]),
        (RMII, "esp32p4", 10, ["esp32p4 has no clock 'out' at GPIO 17", "23, 39"]),
        ("{type: wifi}", "esp32", 4, ["board 'a' has Wi-Fi", "network: {type: …}"]),
        (RMII.replace("phy: lan87xx, ", ""), "esp32", 10, ["'phy'"]),
        (RMII.replace("lan87xx", "lan8720"), "esp32", 10, ["'lan8720'", "lan87xx"]),
        (RMII.replace("17", "5"), "esp32", 10, ["clock 'out' at GPIO 5", "0, 16, 17"]),
        (RMII.replace("addr: 1", "addr: 32"), "esp32", 10, ["32", "31"]),
        (W5500.replace("cs: 15", "ss: 15"), "esp32", 10, ["'cs'"]),
        (W5500.replace("/24", ""), "esp32", 10, ["'10.0.0.2'", "192.168.77.11/24", "DHCP"]),
        (W5500.replace("gateway: 10.0.0.1", "gateway: 10.0.1.1"), "esp32", 10, ["10.0.1.1", "10.0.0.0/24"]),
        (W5500.replace("address: 10.0.0.2/24, ", ""), "esp32", 10, ["gateway", "static address"]),
        ("{type: wifi, address: 10.0.0.2/24}", "esp32", 10, ["unknown key 'address'"]),
        (RMII.replace("clock_gpio: 17", "mac: 2:0:0:0:0:1"), "esp32", 10, ["six hexadecimal pairs"]),
    ],
)
def test_a_wrong_network_names_file_line_and_the_way_out(
    tmp_path: Path, network: str, target: str, line: int, words: list[str]
) -> None:
    """What is wrong is said before any board is touched."""
    with pytest.raises(ConfigError) as caught:
        rack_of(tmp_path, network, target=target)
    sentence = str(caught.value)
    assert f"rack.yaml:{line}:" in sentence
    for word in words:
        assert word in sentence


def test_two_boards_do_not_share_an_address(tmp_path: Path) -> None:
    """The second one is told where the first is."""
    rack_of(tmp_path, W5500)
    path = tmp_path / "rack.yaml"
    text = path.read_text()
    entry = text[text.index("  - id: a") :].replace("id: a", "id: b").replace("USB0", "USB1")
    path.write_text(text + entry, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"rack.yaml:11: duplicate address '10.0.0.2'.*rack.yaml:6"):
        load_rack(path)


def test_a_virtual_board_has_no_network_of_its_own(tmp_path: Path) -> None:
    """It is on the virtual air."""
    text = RACK.replace("POINT", "virtual, profile: lab").replace("TARGET", "esp32")
    text = text.replace("physical", "virtual").replace("serial: /dev/ttyUSB0", "mac: 02:00:00:00:00:01")
    path = tmp_path / "rack.yaml"
    path.write_text(text.replace("NETWORK", "{type: wifi}"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"rack.yaml:10: a virtual board is on the virtual air"):
        load_rack(path)


RADIO_RACK = """\
schema: 1
name: r
host: {interface: eth0, address: 10.0.0.1}
access_point:
  POINT
  ssid: lab
  psk_env: PSK
boards:
  - {id: a, kind: physical, target: TARGET, serial: /dev/ttyUSB0}
"""
HOSTAPD = "{type: hostapd, interface: wlan0, country: CH, channel: 6"


def read(folder: Path, point: str, *, target: str = "esp32") -> AccessPoint:
    path = folder / "rack.yaml"
    lines = "\n  ".join(pair.strip() for pair in point.removeprefix("{").removesuffix("}").split(","))
    lines = lines.replace(";", ",")
    path.write_text(RADIO_RACK.replace("POINT", lines).replace("TARGET", target), encoding="utf-8")
    return load_rack(path).access_point


def test_each_type_is_read(tmp_path: Path) -> None:
    """What is left out has its default; a run holds what it drives, by radio or network."""
    point = read(
        tmp_path, HOSTAPD + ", width_mhz: 40, power_dbm: 8, dtim_period: 3, power_save: true, timeout: 5 s}"
    )
    assert point.radio == Radio("CH", 6, 40, "g", 8, 3, power_save=True)
    assert (point.interface, point.timeout_s, point.lease_name) == ("wlan0", 5.0, "hostapd-wlan0")
    point = read(tmp_path, "{type: external, up: ap on, station: iw dev w station dump}")
    assert point.commands == Commands("ap on", "", "iw dev w station dump")
    assert (point.is_driven, point.lease_name) == (True, "external-lab")
    assert not read(tmp_path, "{type: external}").is_driven
    point = read(
        tmp_path, "{type: external, dhcp: {first: 10.0.0.8; last: 10.0.0.9; bits: 28; lease_time: 540 s}}"
    )
    assert point.dhcp == Dhcp("10.0.0.8", "10.0.0.9", 28, 540.0)
    assert point.dhcp.netmask == "255.255.255.240"
    five = HOSTAPD.replace("channel: 6", "channel: 36") + ", width_mhz: 80}"
    assert read(tmp_path, five, target="esp32c5").radio == Radio("CH", 36, 80, "a")


@pytest.mark.parametrize(
    ("point", "sentence"),
    [
        (HOSTAPD.replace("CH", "'00'") + "}", r":7: country '00' is"),
        pytest.param(HOSTAPD.replace("CH", "UK") + "}", r":7: country 'UK' .* GB", id="field-uk"),
        pytest.param(HOSTAPD.replace("CH", "EU") + "}", r":7: country 'EU' .*each member", id="field-eu"),
        (HOSTAPD.replace("6", "14") + "}", r":8: hw_mode g .* 14; it has 1, 2, 3"),
        (HOSTAPD + ", hw_mode: a}", r":8: hw_mode a .* 6; it has 36, 40"),
        (HOSTAPD + ", width_mhz: 80}", r":9: channel 6 .* g .* 80 MHz: 20, 40"),
        (HOSTAPD + ", hw_mode: b, width_mhz: 40}", r" b .* 40 MHz: 20"),
        (HOSTAPD.replace("6", "36") + "}", r"channel 36 .* 5 GHz .*'a' \(esp32\)"),
        (HOSTAPD + ", dtim_period: 256}", r":9: .*dtim_period"),
        (HOSTAPD + ", chanel: 6}", r":9: unknown key 'chanel' .*'channel'"),
        (HOSTAPD.replace("wlan0", "../x") + "}", r":6: '../x' is not the name"),
        ("{type: external, up: ap 'on}", r":6: the command \"ap 'on\" "),
        ("{type: external, psk_file: /x}", r"exactly one of psk_env and psk_file"),
        ("{type: external, dhcp: {first: 10.0.0.100; last: 10.0.1.9}}", r":6: '10.0.1.9' is not .*/24"),
        ("{type: external, dhcp: {first: 10.0.0.0; last: 10.0.0.9}}", r"'10.0.0.0' is not"),
        ("{type: external, dhcp: {first: 10.0.0.1; last: 10.0.0.9}}", r"own address, 10.0.0.1"),
        ("{type: external, dhcp: {first: 10.0.0.9; last: 10.0.0.8}}", r"fewer addresses"),
        ("{type: external, shapes: [rate]}", r":4: 'shapes' needs an interface"),
        (HOSTAPD + ", shapes: [jitter]}", r":9: .*shapes.*rate, delay, loss"),
        ("{type: external, noise: {}}", r"noise is simulated"),
    ],
)
def test_a_wrong_one_is_told_where_and_what(tmp_path: Path, point: str, sentence: str) -> None:
    """File, line and value, and what would be right."""
    with pytest.raises(ConfigError, match=sentence):
        read(tmp_path, point)


def test_a_record_has_the_settings_and_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Type, name, and each setting of a radio that is ours, units in the names."""
    monkeypatch.setenv("PSK", "correct horse")
    point = external_access_point(read(tmp_path, HOSTAPD + ", power_dbm: 8}"))
    assert point.credentials()["psk"] == "correct horse"
    assert point.environment() == {
        "type": "hostapd",
        "ssid": "lab",
        "country": "CH",
        "channel": 6,
        "width_mhz": 20,
        "hw_mode": "g",
        "power_dbm": 8,
        "dtim_period": 2,
        "power_save": False,
    }
    plain = external_access_point(read(tmp_path, "{type: external}"))
    assert plain.environment() == {"type": "external", "ssid": "lab"}

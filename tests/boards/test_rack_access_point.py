# SPDX-License-Identifier: Apache-2.0
"""The section `access_point` of a real one: what a right one gives, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.rack import load_rack
from hil.boards.rack.access_point import AccessPoint, Commands, Dhcp, Radio
from hil.network.access_point import external_access_point

RACK = """\
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
    path.write_text(RACK.replace("POINT", lines).replace("TARGET", target), encoding="utf-8")
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

# SPDX-License-Identifier: Apache-2.0
"""Access points as people really describe them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.rack import load_rack
from hil.boards.rack.access_point import AccessPoint
from hil.network.access_point import check_access_point, external_access_point

RACK = """\
schema: 1
name: r
host: {interface: eth0, address: 10.0.0.1}
access_point: {POINT}
boards:
  - {id: a, kind: physical, target: esp32, serial: /dev/ttyUSB0}
"""


def read(folder: Path, point: str) -> AccessPoint:
    path = folder / "rack.yaml"
    path.write_text(RACK.replace("POINT", point), encoding="utf-8")
    return load_rack(path).access_point


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\n", "it is empty"),
        ("gr\u00f6\u00dfer als".encode("latin-1"), "no text"),
        (b"short", "5 characters"),
        (b"z" * 64, "64 characters"),
    ],
)
def test_a_password_file_that_no_run_can_use_is_found_by_the_check(
    tmp_path: Path, content: bytes, words: str
) -> None:
    """`hil rack check` reads the file as a run does; an empty one makes no open network."""
    (tmp_path / "psk").write_bytes(content)
    point = read(tmp_path, f"type: external, ssid: lab, psk_file: '{tmp_path / 'psk'}'")
    (found,) = check_access_point(point)
    assert not found.ok
    assert words in found.sentence
    assert str(tmp_path / "psk") in found.sentence + found.mend
    with pytest.raises(ConfigError):
        external_access_point(point)


def test_a_networks_name_may_stay_out_of_the_rack_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ssid_env`, as `psk_env`: the file is read without the variable, and a run and the check name both."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("DESK_SSID", "DESK_PSK"):
        monkeypatch.delenv(name, raising=False)
    words = "type: external, ssid_env: DESK_SSID, psk_env: DESK_PSK"
    with pytest.raises(ConfigError, match=r"DESK_SSID.* Next: export DESK_SSID=…, and DESK_PSK;"):
        external_access_point(read(tmp_path, words))
    assert not check_access_point(read(tmp_path, words))[0].ok
    monkeypatch.setenv("DESK_SSID", "lab")
    monkeypatch.setenv("DESK_PSK", "12345678")
    assert external_access_point(read(tmp_path, words)).credentials() == {"ssid": "lab", "psk": "12345678"}


def test_a_password_file_below_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check and the run follow the same ~."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "psk").write_text("a" * 64)
    point = read(tmp_path, "type: external, ssid: lab, psk_file: ~/psk")
    (found,) = check_access_point(point)
    assert found.ok, found
    assert external_access_point(point).credentials()["psk"] == "a" * 64


@pytest.mark.parametrize("key", ["psk_env", "password_env"])
def test_a_password_in_the_place_of_a_variables_name_is_not_shown(tmp_path: Path, key: str) -> None:
    """File and line are told, and the way out; what was written there may be the password itself."""
    word = "my secret-pass"
    point = f"type: external, ssid: lab, psk_env: {word if key == 'psk_env' else 'PSK'}"
    power = f"power: {{type: tasmota, url: 'http://plug', password_env: {word}}}"
    path = tmp_path / "rack.yaml"
    text = RACK.replace("POINT", point)
    path.write_text(text.replace("/dev/ttyUSB0", f"/dev/ttyUSB0, {power}") if key == "password_env" else text)
    with pytest.raises(ConfigError, match=rf"rack.yaml:\d: {key} ") as caught:
        load_rack(path)
    assert word not in str(caught.value)


def test_a_name_that_no_network_can_have_is_told_by_line(tmp_path: Path) -> None:
    """Of somebody's access point, too: 31 letters and an umlaut are 33 bytes."""
    with pytest.raises(ConfigError, match=r"rack.yaml:4: .* 33 bytes; .* 32"):
        read(tmp_path, f"type: external, ssid: '{'x' * 31}\u00e9', psk_env: PSK")

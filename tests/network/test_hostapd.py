# SPDX-License-Identifier: Apache-2.0
"""Access points as people describe them; hostapd takes what is written for it, or says why not."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, RigError
from hil.base.process import SYSTEM_FOLDERS
from hil.boards.rack import load_rack
from hil.boards.rack.access_point import BAND_2, BAND_5, AccessPoint, Radio
from hil.network import access_point, hostapd
from hil.network.access_point import (
    ExternalAccessPoint,
    check_access_point,
    driven_access_point,
    external_access_point,
    lease_part,
)
from hil.network.hostapd import Hostapd, check_hostapd, configuration, explain
from hil.network.process import LocalSpawner
from tests.lab import wait_for

POINT = AccessPoint("hostapd", ssid="hil lab", interface="wlan-hil", radio=Radio("CH", 6))
PSK = "correct horse"
there_is_hostapd = pytest.mark.skipif(
    not (shutil.which("hostapd") or shutil.which("hostapd", path=SYSTEM_FOLDERS)),
    reason="hostapd is not installed (sudo apt-get install hostapd)",
)


def point(**radio: object) -> AccessPoint:
    assert POINT.radio
    return replace(POINT, radio=replace(POINT.radio, **radio))  # type: ignore[arg-type]


def start(folder: Path, settings: AccessPoint, driver: str = "none") -> Hostapd:
    return Hostapd.start(LocalSpawner(), settings, PSK, folder, folder / "hostapd.log", driver=driver)


@there_is_hostapd
@pytest.mark.parametrize(
    "radio",
    [
        {"hw_mode": "b", "dtim_period": 10},
        {"channel": 13, "width_mhz": 40, "power_save": True},
        {"channel": 52, "width_mhz": 80, "hw_mode": "a"},
    ],
)
def test_the_real_hostapd_takes_each_configuration(radio: dict[str, object]) -> None:
    """`hil rack check` lets hostapd read its file; without a radio it names that alone."""
    found = {finding.subject: finding for finding in check_hostapd(point(**radio))}
    assert found["access point: configuration"].ok, found
    assert not found["access point: radio"].ok
    assert "no interface wlan-hil" in found["access point: radio"].sentence


@there_is_hostapd
@pytest.mark.slow
def test_a_network_is_seen_to_die(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started (by the driver `none`, without a radio), killed by another, and said so; its file is secret."""
    monkeypatch.setattr(hostapd, "START_TIMEOUT_S", 120.0)  # of a busy host
    running = start(tmp_path, POINT)
    pid = running._process.pid
    try:
        running.check()
        assert PSK not in (tmp_path / "hostapd.log").read_text()
        assert (tmp_path / "hostapd.conf").stat().st_mode & 0o077 == 0
        os.kill(pid, 9)
        wait_for(lambda: running._process.returncode is not None, "hostapd's end")
        with pytest.raises(RigError, match=rf"'hil lab' \(hostapd, pid {pid}\) .*killed by signal 9"):
            running.check()
    finally:
        running.stop()


@there_is_hostapd
def test_what_hostapd_refuses_in_its_file_is_the_configurations_fault(tmp_path: Path) -> None:
    """Its own words with the line, before any driver is touched: a password that is none, a DTIM of 0."""
    with pytest.raises(ConfigError, match=r"Line \d+: invalid dtim_period 0.*; Line"):
        Hostapd.start(
            LocalSpawner(), point(dtim_period=0), "short", tmp_path, tmp_path / "log", driver="none"
        )


@there_is_hostapd
def test_a_host_without_a_radio_is_one_sentence(tmp_path: Path) -> None:
    """The real hostapd with the real driver, on an interface that is none: named, with a way out."""
    with pytest.raises(RigError, match=r"channel 6: .*(no radio|no such interface)") as e:
        start(tmp_path, POINT, driver="nl80211")
    assert "iw dev" in e.value.next_step


# What hostapd 2.9 to 2.11 says of real drivers, as people have posted it.
MODE = "nl80211: Could not configure driver mode\nnl80211 driver initialization failed.\n"
NO_IR = (
    "wlan1: interface state UNINITIALIZED->COUNTRY_UPDATE\n"
    "Frequency 5180 (primary) not allowed for AP mode, flags: 0x853 NO-IR\nPrimary frequency not allowed\n"
    "wlan1: IEEE 802.11 Configured channel (36) or frequency (5180) (secondary_channel=1) not found from the "
    "channel list of the current mode (2) IEEE 802.11a\n"
    "wlan1: IEEE 802.11 Hardware does not support configured channel\n"
    "Could not select hw_mode and channel. (-3)\nwlan1: AP-DISABLED\n"
)
KERNEL = "Could not set channel for kernel driver\nInterface initialization failed\nwlan0: AP-DISABLED\n"
FREQUENCY = "Could not determine operating frequency\nwlan0: interface state COUNTRY_UPDATE->DISABLED\n"
RFKILL = "rfkill: WLAN soft blocked\nnl80211: Could not configure driver mode\n"
RIGHTS = "nl80211: Could not set interface UP: Operation not permitted\n"
BEACON = "Failed to set beacon parameters\nwlan0: Unable to setup interface.\n"


@pytest.mark.parametrize(
    ("said", "domain", "wrong", "way_out"),
    [
        (MODE, "CH", "access point", "managed no"),
        (NO_IR, "CH", "Frequency 5180", "iw phy"),
        (NO_IR, "00", "(country 00)", "iw reg set CH"),
        (KERNEL, "CH", "Could not set channel", "iw phy"),
        (FREQUENCY, "00", "regulatory domain", "wireless-regdb"),
        (RFKILL, "00", "switched off", "rfkill unblock"),
        (RIGHTS, "CH", "this user", "setcap cap_net_admin"),
        (BEACON, "CH", "beacons", "dmesg"),
        ("", "CH", "nothing", "read its log"),
    ],
)
def test_a_drivers_refusal_is_explained(said: str, domain: str, wrong: str, way_out: str) -> None:
    """One sentence says what is wrong and quotes hostapd; the next step mends that and nothing else."""
    error = explain(said, POINT, domain, log="")
    place, _, reason = error.sentence.partition(", channel 6: ")
    assert place.endswith(f"'{POINT.ssid}' on {POINT.interface}")
    assert wrong in reason
    assert way_out in error.next_step


def test_a_pair_of_channels_is_one_of_the_bands() -> None:
    """The second 20 MHz are a channel of the band, and two channels that pair name each other; 80 MHz are
    four neighbours with one middle."""
    for channel in BAND_2:
        assert Radio("CH", channel, 40).second_channel in BAND_2
    wide = [channel for channel in BAND_5 if channel != 165]
    for channel in wide:
        second = Radio("CH", channel, 40).second_channel
        assert second in BAND_5
        assert Radio("CH", second, 40).second_channel == channel
        middle = Radio("CH", channel, 80).centre_channel
        assert {middle - 6, middle - 2, middle + 2, middle + 6} <= set(BAND_5)
        assert abs(channel - middle) in (2, 6)


def test_an_ssid_writes_no_line_of_its_own() -> None:
    """A name with a line's end is refused: it would be a key of hostapd's."""
    with pytest.raises(ConfigError, match="cannot hold"):
        configuration(replace(POINT, ssid="a\nwpa=0"), PSK)


def test_two_runs_never_share_what_one_changes(tmp_path: Path) -> None:
    """The second run is told who has the radio; another radio is free, and so is this one afterwards."""
    name, other = POINT.lease_name, replace(POINT, interface="wlan1").lease_name
    with lease_part(name, "access point", run_id="first", folder=tmp_path):
        with (
            pytest.raises(RigError, match=r"access point \(hostapd-wlan-hil\) is held by .* run first"),
            lease_part(name, "access point", run_id="second", folder=tmp_path),
        ):
            pytest.fail("shared")
        with lease_part(other, "access point", run_id="second", folder=tmp_path):
            pass
    with lease_part(name, "access point", run_id="second", folder=tmp_path):
        pass


COMMANDED = """\
#!/bin/sh
echo "$1" >>"$0.log"
case $1 in
  station) printf 'Station 24:0a:c4:00:00:01 (on ap0)\\n\\tsignal:\\t-51 dBm\\n' ;;
  survey) sleep 600 & wait ;;
  up) exit "$(cat "$0.status")" ;;
esac
"""
"""
An access point that is driven by commands: up works or fails, survey hangs with a child of its own."""


@pytest.mark.slow
def test_commands_drive_what_hil_does_not_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """up before, down after, whatever happens; a command that hangs is ended with what it started."""
    monkeypatch.setattr(access_point, "LEASES", tmp_path / "leases")
    program = tmp_path / "ap"
    program.write_text(COMMANDED)
    program.chmod(0o755)
    words = {name: f"{program} {name}" for name in ("up", "down", "station")}
    commands = access_point.AccessPoint("external").commands
    settings = AccessPoint("external", ssid="lab", commands=replace(commands, **words), timeout_s=60.0)
    outside = ExternalAccessPoint("lab", PSK, settings)
    status, log = program.with_name("ap.status"), program.with_name("ap.log")
    status.write_text("0")
    with driven_access_point(outside, LocalSpawner(), tmp_path, tmp_path, run_id="r") as driven:
        assert driven
        assert driven.look().stations["24:0a:c4:00:00:01"] == {"rssi_dbm": -51}
    assert log.read_text().split() == ["up", "station", "down"]
    commands = replace(settings.commands, survey=f"{program} survey")
    outside = replace(outside, settings=replace(settings, timeout_s=5.0, commands=commands))
    with driven_access_point(outside, LocalSpawner(), tmp_path, tmp_path, run_id="r") as driven:
        assert driven
        assert re.search("'survey'.* 5 s", driven.look().error)
    status.write_text("3")
    with (
        pytest.raises(RigError, match=r"'up' .*'lab', .* status 3"),
        driven_access_point(outside, LocalSpawner(), tmp_path, tmp_path, run_id="r"),
    ):
        pytest.fail("started")
    assert log.read_text().split()[-2:] == ["up", "down"]


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

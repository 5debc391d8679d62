# SPDX-License-Identifier: Apache-2.0
"""An access point on a radio of this host: hostapd, its configuration and what its refusals mean."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.finding import Finding
from hil.base.process import how_ended
from hil.boards.rack.access_point import AccessPoint, Radio
from hil.network.process import LocalSpawner, Process, Spawner, end_process, run_to_end, system_program
from hil.network.radio import RadioLook, read_iw

START_TIMEOUT_S = 30.0
RADAR_TIMEOUT_S = 660.0  # on channels that weather radars use, ten minutes are listened first
STOP_TIMEOUT_S = 3.0
IW_TIMEOUT_S = 10.0
POLL_S = 0.02
ENABLED, DISABLED, STARTED = "AP-ENABLED", "AP-DISABLED", "interface state UNINITIALIZED->"


class Hostapd:
    """A running hostapd. ``stop`` ends it, and the network with it; so does the end of this process."""

    def __init__(self, process: Process, point: AccessPoint, spawner: Spawner, log_path: Path) -> None:
        self.interface = point.interface
        self._process = process
        self._point = point
        self._spawner = spawner
        self._log_path = log_path

    @classmethod
    def start(
        cls,
        spawner: Spawner,
        point: AccessPoint,
        psk: str,
        secrets_dir: Path,
        log_path: Path,
        *,
        driver: str = "nl80211",
    ) -> Hostapd:
        """Start the network; returns when it is up, and sends with the power asked for.

        Raises ConfigError: hostapd refuses what is configured. RigError: not installed, no radio, the driver
        or the country's rules refuse it. ``driver`` "none" is hostapd's own for a host without a radio.
        """
        assert point.radio
        program = system_program("hostapd", "hostapd", "Starting the access point")
        file = secrets_dir / "hostapd.conf"
        file.touch(mode=0o600)
        file.write_text(configuration(point, psk, driver=driver), encoding="utf-8")
        log_bytes = log_path.stat().st_size if log_path.exists() else 0
        process = spawner.spawn([program, str(file)], log_path=log_path)
        running = cls(process, point, spawner, log_path)
        try:
            said = _await(process, lambda: _tail(log_path, log_bytes), ENABLED)
            running._require_enabled(said)
            if driver != "none":
                running._set_power(point.radio)
        except BaseException:
            running.stop()
            raise
        return running

    def check(self) -> None:
        """Raise RigError where it has ended, or the driver has taken the network away."""
        said = self._log_path.read_text(encoding="utf-8", errors="replace")
        gone = said.rfind(DISABLED) > said.rfind(ENABLED)
        code = self._process.returncode
        if code is None and not gone:
            return
        what = how_ended(code) if code is not None else f"lost its network on {self.interface}"
        raise RigError(
            f"The access point {self._point.ssid!r} (hostapd, pid {self._process.pid}) {what}.",
            log=str(self._log_path),
            next_step="read its log, then start the run again.",
        )

    def look(self) -> RadioLook:
        """Return what the radio says now. Never raises: a figure less is no reason to lose a case."""
        try:
            said = "".join(self._iw("dev", self.interface, *words) for words in LOOKS)
        except HilError as error:
            return RadioLook(error=error.sentence)
        return read_iw(said)

    def stop(self) -> None:
        """End it; does nothing when it has ended. Never raises."""
        end_process(self._process, STOP_TIMEOUT_S)

    def _require_enabled(self, said: str) -> None:
        if ENABLED not in said or self._process.returncode is not None:
            assert self._point.radio
            domain = domain_of(self._spawner, self._point.radio.country)
            raise explain(said, self._point, domain, log=str(self._log_path))

    def _set_power(self, radio: Radio) -> None:
        """Set what is sent with, and look whether the driver does so. Raises RigError."""
        if radio.power_dbm is None:
            return
        self._iw("dev", self.interface, "set", "txpower", "fixed", str(100 * radio.power_dbm))
        sends_dbm = read_iw(self._iw("dev", self.interface, "info")).info.get("power_dbm")
        if sends_dbm != radio.power_dbm:
            raise RigError(
                f"{self.interface} was set to {radio.power_dbm} dBm but reports "
                f"{'nothing of it' if sends_dbm is None else f'{sends_dbm:g} dBm'}.",
                next_step="choose a power that the driver supports (iw phy lists it for each channel), "
                "or leave power_dbm out and attenuate.",
            )

    def _iw(self, *words: str) -> str:
        return run_iw(self._spawner, words, self._log_path.with_name("iw.log"))


LOOKS = (("info",), ("station", "dump"), ("survey", "dump"))


def run_iw(spawner: Spawner, words: Sequence[str], log_path: Path) -> str:
    """Run iw and return what it printed. Raises RigError."""
    program = system_program("iw", "iw", "Asking the radio")
    code, said = run_to_end(spawner, [program, *words], IW_TIMEOUT_S, log_path=log_path)
    if code == 0:
        return said
    words_said = said.strip().replace("\n", " | ") or how_ended(code)
    permit = f"give it the right: sudo setcap cap_net_admin=ep {program}."
    raise RigError(
        f"`iw {' '.join(words)}` failed: {words_said}.",
        next_step=permit if "not permitted" in said else "see which interfaces are radios: iw dev.",
    )


def configuration(point: AccessPoint, psk: str, *, driver: str = "nl80211") -> str:
    """Return hostapd's configuration file. The password is in it.

    Raises ConfigError: an SSID that the file cannot hold.
    """
    radio = point.radio
    assert radio
    if not point.ssid.isprintable() or point.ssid != point.ssid.strip():
        raise ConfigError(
            f"The SSID {point.ssid!r} has characters that hostapd's file cannot hold.",
            next_step="use printable characters, and no space at either end.",
        )
    facts: dict[str, str | int] = {
        "interface": point.interface,
        "driver": driver,
        "ssid": point.ssid,
        "country_code": radio.country,
        "ieee80211d": 1,
        "hw_mode": radio.hw_mode,
        "channel": radio.channel,
        "beacon_int": 100,
        "dtim_period": radio.dtim_period,
        "wmm_enabled": int(radio.hw_mode != "b"),
        "uapsd_advertisement_enabled": int(radio.power_save),
        "auth_algs": 1,
        "disassoc_low_ack": 0,  # a board that is hard to hear is measured, not sent away
        **_wide(radio),
        **_secured(psk),
    }
    return "".join(f"{key}={value}\n" for key, value in facts.items())


def _wide(radio: Radio) -> dict[str, str | int]:
    """Return the lines that 802.11n and ac take; hostapd refuses a pair of channels that is none."""
    if radio.hw_mode == "b":
        return {}
    lines: dict[str, str | int] = {"ieee80211n": 1}
    if radio.hw_mode == "a":
        lines["ieee80211h"] = 1  # radar detection, where the country asks for it
    if radio.second_channel:
        lines["ht_capab"] = "[HT40+]" if radio.second_channel > radio.channel else "[HT40-]"
    if radio.centre_channel:
        lines |= {
            "ieee80211ac": 1,
            "vht_oper_chwidth": 1,
            "vht_oper_centr_freq_seg0_idx": radio.centre_channel,
        }
    return lines


def _secured(psk: str) -> dict[str, str | int]:
    key = "wpa_psk" if len(psk) == 64 else "wpa_passphrase"
    return {"wpa": 2, "wpa_key_mgmt": "WPA-PSK", "rsn_pairwise": "CCMP", key: psk}


def _tail(path: Path, from_byte: int) -> str:
    return path.read_bytes()[from_byte:].decode(errors="replace") if path.exists() else ""


def _await(process: Process, said: Callable[[], str], word: str) -> str:
    """Return hostapd's words once ``word`` is among them, it has ended, or its time is over."""
    began = time.monotonic()
    while True:
        ended, words = process.returncode is not None, said()
        limit_s = RADAR_TIMEOUT_S if "DFS-CAC-START" in words else START_TIMEOUT_S
        if word in words or ended or time.monotonic() - began > limit_s:
            return words
        time.sleep(POLL_S)


# What hostapd or the kernel says, in the order of which explains more; then what is wrong, and the way out.
_NO_RADIO = "see whether the host has one: iw dev; a driver or its firmware may be missing (dmesg)."
_REFUSALS: tuple[tuple[str, str, str], ...] = (
    (r"rfkill: WLAN (?:soft|hard) blocked|rfkill", "the radio is switched off", "rfkill unblock wifi."),
    (
        r"Operation not permitted|Permission denied",
        "this user may not drive the radio",
        "run as root, by the rack's root helper, or: sudo setcap cap_net_admin,cap_net_raw=ep "
        "$(command -v hostapd).",
    ),
    (
        r"'nl80211' generic netlink not found",
        "this host has no radio: its kernel knows no nl80211",
        _NO_RADIO,
    ),
    (
        r"No such device|Could not read interface \S+ flags",
        "there is no such interface",
        "name an interface that `iw dev` lists.",
    ),
    (
        r"Could not configure driver mode",
        "the driver does not let the interface be an access point",
        "see whether `iw list` has 'AP' among its interface modes, and who else uses it: "
        "nmcli device set IFACE managed no; systemctl stop wpa_supplicant.",
    ),
    (
        r"not allowed for AP mode|not found from the channel list|does not support configured channel"
        r"|Could not select hw_mode and channel|Could not determine operating frequency"
        r"|is not allowed as primary|secondary channel \d+ not allowed|channel pair \(\d+, \d+\) not allowed"
        r"|Could not set channel for kernel driver",
        "the channel is refused",
        "choose one that `iw phy` lists without 'disabled', 'no IR' and 'radar detection'.",
    ),
    (
        r"Failed to set beacon parameters|Could not connect to kernel driver|Unable to setup interface",
        "the driver takes no beacons",
        "see what else runs on this radio (iw dev), and what the driver says (dmesg).",
    ),
)
_FAULTY = re.compile(r"^(Line \d+: .*|Cannot .*)$", re.M)


def explain(said: str, point: AccessPoint, domain: str, *, log: str) -> HilError:
    """Return the error that hostapd's last words mean, in one sentence with a way out.

    ``domain`` is the regulatory domain in force, "00" for none, "" where it is not known.
    """
    radio = point.radio
    assert radio
    what = f"Starting the access point {point.ssid!r} on {point.interface}, channel {radio.channel}"
    if "found in configuration file" in said:
        faults = "; ".join(_FAULTY.findall(said)) or "its configuration"
        return ConfigError(
            f"{what}: hostapd refuses {faults}.",
            next_step="correct 'access_point' in the rack file.",
            log=log,
        )
    for pattern, wrong, way_out in _REFUSALS:
        match = re.search(pattern, said)
        if match is None:
            continue
        line = next(line.strip() for line in said.splitlines() if re.search(pattern, line))
        if wrong == "the channel is refused" and domain == "00":
            wrong = f"no regulatory domain is in force (country 00), so {wrong}"
            way_out = (
                f"sudo apt-get install wireless-regdb, then sudo iw reg set {radio.country}; where it stays "
                "00, the driver keeps a domain of its own."
            )
        return RigError(
            f"{what}: {wrong}; hostapd says: {line}.",
            next_step=way_out.replace("IFACE", point.interface),
            log=log,
        )
    last = " | ".join([line.strip() for line in said.splitlines() if line.strip()][-2:])
    return RigError(f"{what}: hostapd says {last or 'nothing'}.", next_step="read its log.", log=log)


def domain_of(spawner: Spawner, wanted: str) -> str:
    """Return the regulatory domain in force: ``wanted`` where the kernel or a radio of its own rules has it,
    else the kernel's, "00" for the world's; "" where it cannot be asked."""
    with tempfile.TemporaryDirectory(prefix="hil-iw-") as folder:
        try:
            said = run_iw(spawner, ["reg", "get"], Path(folder, "iw.log"))
        except HilError:
            return ""
    found = re.findall(r"^country (\w\w):", said, re.M)
    return wanted if wanted in found else found[0] if found else ""


def check_hostapd(point: AccessPoint) -> list[Finding]:
    """Look whether the access point could be started, without starting it: the programs, the configuration as
    hostapd itself reads it, the radio and its regulatory domain."""
    assert point.radio
    spawner = LocalSpawner()
    findings = [
        _judge("access point: configuration", "hostapd takes it", lambda: _try_configuration(spawner, point)),
        _judge("access point: radio", f"{point.interface} is one", lambda: _try_radio(spawner, point)),
    ]
    domain = domain_of(spawner, point.radio.country)
    if domain:
        ok = domain == point.radio.country
        findings.append(
            Finding(
                "access point: regulatory domain",
                ok=ok,
                sentence=f"country {domain} is in force",
                mend="" if ok else f"sudo iw reg set {point.radio.country}",
                needed=domain == "00",
            )
        )
    return findings


def _judge(subject: str, good: str, attempt: Callable[[], None]) -> Finding:
    try:
        attempt()
    except HilError as error:
        return Finding(subject, ok=False, sentence=error.sentence, mend=error.next_step)
    return Finding(subject, ok=True, sentence=good)


def _try_configuration(spawner: Spawner, point: AccessPoint) -> None:
    """Let hostapd read its file, with the driver that drives nothing. Raises as ``Hostapd.start``."""
    program = system_program("hostapd", "hostapd", "Starting the access point")
    with tempfile.TemporaryDirectory(prefix="hil-hostapd-") as folder:
        file, log = Path(folder, "hostapd.conf"), Path(folder, "hostapd.log")
        file.write_text(configuration(point, "not-the-password", driver="none"), encoding="utf-8")
        process = spawner.spawn([program, str(file)], log_path=log)
        try:
            said = _await(process, lambda: _tail(log, 0), STARTED)
        finally:
            end_process(process, STOP_TIMEOUT_S)
    if STARTED not in said:
        raise explain(said, point, "", log="")


def _try_radio(spawner: Spawner, point: AccessPoint) -> None:
    if not Path("/sys/class/net", point.interface).exists():
        raise RigError(f"no interface {point.interface}.", next_step="name an interface that `iw dev` lists.")
    with tempfile.TemporaryDirectory(prefix="hil-iw-") as folder:
        run_iw(spawner, ["dev", point.interface, "info"], Path(folder, "iw.log"))

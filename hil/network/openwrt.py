# SPDX-License-Identifier: Apache-2.0
"""An access point with OpenWrt, set up over SSH; what it had before is put back.

Before anything is changed the router keeps a copy of its own configuration, in ``SAVED``. It goes when that
has been put back; one that a run left is what was there before, and the next run puts it back.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hil.base.errors import ConfigError, HilError, RigError
from hil.base.finding import Finding
from hil.boards.rack.access_point import AccessPoint
from hil.network.process import LocalSpawner, Spawner, how_ended, run_to_end
from hil.network.radio import Facts, Look, read_iw

SAVED = "/etc/hil-wireless.before"
CONNECT_TIMEOUT_S = 8
LOOK_TIMEOUT_S = 15.0
STEP_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 4.0  # what a signal leaves to clean up; what is not put back then, the next run puts back
POLL_S = 0.5

_RESTORE = f"""\
if test -s {SAVED}; then
uci import wireless <{SAVED}
uci commit wireless
wifi reload
rm -f {SAVED}
fi
"""


class OpenWrt:
    """A router that has the run's network. ``stop`` puts back what was there."""

    interface = ""  # the radio is elsewhere

    def __init__(self, settings: AccessPoint, spawner: Spawner, secrets_dir: Path) -> None:
        self._settings = settings
        self._spawner = spawner
        self._secrets_dir = secrets_dir
        self._there = ""  # its interface with the network

    @classmethod
    def start(cls, settings: AccessPoint, psk: str, spawner: Spawner, secrets_dir: Path) -> OpenWrt:
        """Set the router up and wait until its radio sends as it should.

        Raises ConfigError: it has no such radio. RigError: it cannot be reached, or does not do it.
        """
        router = cls(settings, spawner, secrets_dir)
        try:
            router._set_up(options_of(settings, psk))
            router._await_radio()
        except BaseException:
            router.stop()
            raise
        return router

    def check(self) -> None:
        """The look after each case tells whether the board is still there; asking now would take too long."""

    def look(self) -> Look:
        """Return what the radio says now. Never raises."""
        iw = f"iw dev {self._there}"
        try:
            return read_iw(self.run(f"{iw} info; {iw} station dump; {iw} survey dump\n", LOOK_TIMEOUT_S))
        except HilError as error:
            return Look(error=error.sentence)

    def stop(self) -> None:
        """Put back what was there before. Never raises: what is left, the next run puts back."""
        with suppress(HilError):
            self.run(_RESTORE, STOP_TIMEOUT_S)

    def run(self, script: str, timeout_s: float) -> str:
        """Run a shell's script on the router and return what it printed. Raises RigError.

        Script and words may hold the password, so they are kept where the run's secrets are.
        """
        file = self._secrets_dir / "openwrt.sh"
        file.touch(mode=0o600)
        file.write_text(f"set -e\n{script}", encoding="utf-8")
        log = self._secrets_dir / "openwrt.log"
        log.touch(mode=0o600)
        argv = ["sh", "-c", 'exec "$@" <"$0"', str(file), *self._ssh(), "sh -s"]
        code, said = run_to_end(self._spawner, argv, timeout_s, log_path=log)
        if code != 0:
            raise self._error(code, said, timeout_s)
        return said

    def _ssh(self) -> list[str]:
        router = self._settings.router
        assert router
        options = {
            "BatchMode": "yes",
            "ConnectTimeout": CONNECT_TIMEOUT_S,
            "LogLevel": "ERROR",
            "StrictHostKeyChecking": "accept-new",  # one that has changed is refused
            "Port": router.port,
            "User": router.user,
        }
        if router.identity_file:
            options |= {"IdentitiesOnly": "yes", "IdentityFile": router.identity_file}
        if router.known_hosts_file:
            options["UserKnownHostsFile"] = router.known_hosts_file
        return [
            "ssh",
            *(word for key, value in options.items() for word in ("-o", f"{key}={value}")),
            router.host,
        ]

    def _error(self, code: int, said: str, timeout_s: float) -> RigError:
        router = self._settings.router
        assert router
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        last = lines[-1] if lines else f"ssh {how_ended(code)}"
        if code < 0:
            last = f"nothing within {timeout_s:g} s"
        next_step = next((step for pattern, step in _WAYS_OUT if re.search(pattern, last)), "try it by hand")
        return RigError(
            f"The access point {self._settings.ssid!r}, {router.user}@{router.host} port {router.port}, "
            f"answers: {last}.",
            next_step=f"{next_step}: ssh -p {router.port} {router.user}@{router.host}.",
        )

    def _set_up(self, options: Mapping[str, Mapping[str, str]]) -> None:
        self.run(_RESTORE, STEP_TIMEOUT_S)  # what a dead run left
        there = read_uci(self.run("uci show wireless\n", STEP_TIMEOUT_S))
        check_sections(self._settings, there)
        wanted = {
            f"wireless.{section}.{name}": value
            for section, facts in options.items()
            for name, value in facts.items()
        }
        if all(there.get(key) == value for key, value in wanted.items()):
            return
        batch = "".join(f"set {key}={_quoted(value)}\n" for key, value in wanted.items())
        self.run(
            f"umask 077\nuci export wireless >{SAVED}.new\nmv {SAVED}.new {SAVED}\n"
            f"uci batch <<'END'\n{batch}END\nuci commit wireless\nwifi reload\n",
            STEP_TIMEOUT_S,
        )

    def _await_radio(self) -> None:
        """Wait until an interface with the network sends as asked for. Raises RigError: none does in time."""
        radio = self._settings.radio
        assert radio
        wanted = {"channel": radio.channel, "width_mhz": radio.width_mhz, "power_dbm": radio.power_dbm}
        deadline = time.monotonic() + self._settings.timeout_s
        while True:
            found = read_interfaces(self.run("iw dev\n", LOOK_TIMEOUT_S))
            ours = {name: look.info for name, (ssid, look) in found.items() if ssid == self._settings.ssid}
            for name, info in ours.items():
                if all(value is None or info.get(key) == value for key, value in wanted.items()):
                    self._there = name
                    return
            if time.monotonic() > deadline:
                raise self._not_sending(wanted, ours)
            time.sleep(POLL_S)

    def _not_sending(self, wanted: Mapping[str, int | None], ours: Mapping[str, Facts]) -> RigError:
        told = ", ".join(f"{key} {value}" for key, value in wanted.items() if value is not None)
        have = "; ".join(
            f"{name} has " + ", ".join(f"{key} {info.get(key, 'none')}" for key in wanted)
            for name, info in ours.items()
        )
        return RigError(
            f"The access point {self._settings.ssid!r} does not send as it was told, {told}, within "
            f"{self._settings.timeout_s:g} s: {have or 'no interface has the name'}.",
            next_step="see whether its country allows that there (iw phy), and what the router says: "
            "logread -e hostapd.",
        )


_WAYS_OUT = (
    ("Permission denied", "name a key that it takes (identity_file), then try it by hand"),
    (
        "Host key verification failed",
        "see whether it is the same router, then ssh-keygen -R its name; try it by hand",
    ),
    ("not found", "this is no OpenWrt, or a package is missing there (opkg install iw); try it by hand"),
    (
        "refused|timed out|No route|resolve",
        "see whether it is on, and host and port in the rack file; try it by hand",
    ),
)


def options_of(settings: AccessPoint, psk: str) -> Mapping[str, Mapping[str, str]]:
    """Return the options of the router's sections, the password among them.

    Raises ConfigError: what OpenWrt's configuration cannot hold.
    """
    radio, router = settings.radio, settings.router
    assert radio
    assert router
    if not settings.ssid.isprintable() or radio.hw_mode == "b":
        raise ConfigError(
            f"The access point {settings.ssid!r} cannot be made by OpenWrt: a name of printable characters, "
            "and hw_mode g or a, can.",
            next_step="correct 'access_point' in the rack file.",
        )
    device = {
        "disabled": "0",
        "country": radio.country,
        "channel": str(radio.channel),
        "htmode": f"{'HT' if radio.hw_mode == 'g' else 'VHT'}{radio.width_mhz}",
    }
    if radio.power_dbm is not None:
        device["txpower"] = str(radio.power_dbm)
    if radio.hw_mode == "g" and radio.width_mhz == 40:
        device["noscan"] = "1"  # a neighbour's network is no reason for another width than the record says
    network = {
        "disabled": "0",
        "mode": "ap",
        "ssid": settings.ssid,
        "encryption": "psk2" if psk else "none",
        "dtim_period": str(radio.dtim_period),
        "uapsd": str(int(radio.power_save)),
    }
    if psk:
        network["key"] = psk
    return {router.radio: device, router.network: network}


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"


def read_uci(text: str) -> Mapping[str, str]:
    """Read ``uci show``: keys such as ``wireless.radio0.channel`` and their values, quotation marks off."""
    found = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            found[key] = value[1:-1].replace("'\\''", "'") if value.startswith("'") else value
    return found


def check_sections(settings: AccessPoint, there: Mapping[str, str]) -> None:
    """Raise ConfigError where the router has no such sections, or the radio is of another band."""
    router, radio = settings.router, settings.radio
    assert router
    assert radio
    for section, kind in ((router.radio, "wifi-device"), (router.network, "wifi-iface")):
        if there.get(f"wireless.{section}") != kind:
            known = [key.partition(".")[2] for key, value in there.items() if value == kind]
            raise ConfigError(
                f"The router {router.host} has no {kind} {section!r}; it has {', '.join(known) or 'none'}.",
                next_step="name one in the rack file: radio is a wifi-device, network a wifi-iface.",
            )
    band = there.get(f"wireless.{router.radio}.band", "")
    if band and band != ("2g" if radio.channel <= 14 else "5g"):
        others = [
            key.split(".")[1] for key, value in there.items() if key.endswith(".band") and value != band
        ]
        raise ConfigError(
            f"The router's {router.radio} is of the band {band}, and channel {radio.channel} is not.",
            next_step=f"name another radio ({', '.join(others) or 'there is none'}), or another channel.",
        )


def read_interfaces(text: str) -> Mapping[str, tuple[str, Look]]:
    """Read ``iw dev``: of each interface its SSID, "" for none, and what it says of its radio."""
    found: dict[str, tuple[str, Look]] = {}
    for block in re.split(r"^\s+(?=Interface )", text, flags=re.M)[1:]:
        name = block.split()[1]
        ssid = re.search(r"^\s+ssid (.*)$", block, re.M)
        found[name] = (ssid[1] if ssid else "", read_iw(block))
    return found


def check_openwrt(settings: AccessPoint, secrets_dir: Path) -> Finding:
    """Look whether the router can be reached and has what the rack file names; changes nothing there."""
    router = OpenWrt(settings, LocalSpawner(), secrets_dir)
    subject = f"access point {settings.ssid}"
    try:
        script = f"iw dev >/dev/null\nuci show wireless\nls {SAVED} 2>/dev/null || true\n"
        said = router.run(script, LOOK_TIMEOUT_S)
        check_sections(settings, read_uci(said))
    except HilError as error:
        return Finding(subject, ok=False, sentence=error.sentence, mend=error.next_step)
    left = (
        "; a run left its own settings there, the next one puts back what was before"
        if f"\n{SAVED}\n" in said
        else ""
    )
    return Finding(subject, ok=True, sentence=f"its router answers, and has radio and network{left}")

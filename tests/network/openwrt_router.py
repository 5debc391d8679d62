# SPDX-License-Identifier: Apache-2.0
"""A router with OpenWrt that behaves, behind a real sshd: ``uci``, ``wifi`` and ``iw`` with their state in a
folder. What is set counts once it is committed, and is on the air once Wi-Fi was reloaded; a channel that the
country forbids leaves the radio off.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

CONFIG = """\
package wireless

config wifi-device 'radio0'
	option band '2g'
	option channel '1'
	option htmode 'HT20'
	option disabled '1'

config wifi-device 'radio1'
	option band '5g'
	option channel '36'

config wifi-iface 'default_radio0'
	option device 'radio0'
	option mode 'ap'
	option ssid 'the lab's own'
	option key 'their secret'
"""
FORBIDDEN = {("US", "13")}


def config(text: str) -> dict[str, str]:
    """Read uci's own format into what `uci show` prints."""
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if match := re.match(r"config (\S+) '(.*)'", line):
            section = f"wireless.{match[2]}"
            found[section] = match[1]
        elif match := re.match(r"\toption (\S+) '(.*)'", line):
            found[f"{section}.{match[1]}"] = match[2]
    return found


def export(state: dict[str, str]) -> str:
    lines = ["package wireless"]
    for section, kind in ((key, value) for key, value in state.items() if key.count(".") == 1):
        lines.append(f"\nconfig {kind} '{section.partition('.')[2]}'")
        options = {
            key.rpartition(".")[2]: value for key, value in state.items() if key.startswith(f"{section}.")
        }
        lines += [f"\toption {name} '{value}'" for name, value in options.items()]
    return "\n".join(lines) + "\n"


def uci(folder: Path, argv: list[str]) -> int:
    committed, changed = folder / "committed", folder / "changed"
    state = config((changed if changed.exists() else committed).read_text())
    if argv[0] == "show":
        for key, value in state.items():
            quoted = value if key.count(".") == 1 else "'" + value.replace("'", "'\\''") + "'"
            print(f"{key}={quoted}")
    elif argv[0] == "export":
        print(export(state), end="")
    elif argv[0] == "import":
        changed.write_text(sys.stdin.read())
    elif argv[0] == "batch":
        for line in sys.stdin:
            verb, pair = shlex.split(line)
            key, _, value = pair.partition("=")
            assert verb == "set"
            state[key] = value
        changed.write_text(export(state))
    elif argv[0] == "commit" and changed.exists():
        changed.rename(committed)
    return 0


def wifi(folder: Path) -> int:
    (folder / "on-air").write_text((folder / "committed").read_text())
    with (folder / "reloads").open("a") as reloads:
        reloads.write("wifi reload\n")
    return 0


def iw(folder: Path, argv: list[str]) -> int:
    state = config((folder / "on-air").read_text())
    radio = {
        key.rpartition(".")[2]: value for key, value in state.items() if key.startswith("wireless.radio0.")
    }
    ssid = state["wireless.default_radio0.ssid"]
    off = radio.get("disabled") == "1" or (radio.get("country"), radio["channel"]) in FORBIDDEN
    width = re.sub(r"\D", "", radio["htmode"])
    channel = f"\tchannel {radio['channel']} (2437 MHz), width: {width} MHz, center1: 2437 MHz\n"
    power = f"\ttxpower {float(radio.get('txpower', 20)):.2f} dBm\n"
    info = f"Interface phy0-ap0\n\tifindex 9\n\tssid {ssid}\n\ttype AP\n" + ("" if off else channel + power)
    if argv == ["dev"]:
        print("phy#0\n" + "".join(f"\t{line}\n" for line in info.splitlines()), end="")
    elif argv[1] != "phy0-ap0":
        print("command failed: No such device (-19)", file=sys.stderr)
        return 237
    elif argv[2:] == ["info"]:
        print(info, end="")
    elif argv[2:] == ["station", "dump"]:
        print("Station 24:0a:c4:00:00:01 (on phy0-ap0)\n\tsignal:  \t-48 [-50, -52] dBm")
    return 0


def main() -> int:
    folder = Path(os.environ["ROUTER"])
    name = Path(sys.argv[0]).name
    if name == "wifi":
        return wifi(folder)
    return (uci if name == "uci" else iw)(folder, sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())

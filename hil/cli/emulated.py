# SPDX-License-Identifier: Apache-2.0
"""A rack for one build: an emulated board of its chip, which nobody has to describe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hil.base.chips import CHIPS
from hil.base.errors import ConfigError
from hil.base.paths import TOOL_RACKS
from hil.boards.firmware.build_folder import flasher_args, option
from hil.boards.rack import load_rack
from hil.cli.options import write_text
from hil.run.options import DEFAULT_RACK, RunOptions
from hil.virtual.emulator.drivers import driver_of

_MAC = "02:00:00:77:03:01"
_RACK = """\
# The board that `hil run --emulator {emulator}` measures. Keep it as a rack file, and change what you like.
schema: 1
name: {emulator}-{network}
host: {{interface: {interface}, address: {address}}}
access_point: {{type: virtual, profile: lab, ssid: "{ssid}", password: "{password}", seed: 1}}
boards:
  - {{id: {chip}, kind: emulated, target: {chip}, emulator: {emulator}, network: {{type: {network}}},
      power: {{type: virtual}}, mac: "{mac}"}}
"""


def in_emulator(options: RunOptions, emulator: str) -> RunOptions:
    """Return the options of a run of one build on an emulated board; its rack file is beside the results.

    The network is part of the rack's name, so that each has a history of its own.

    Raises ConfigError: a rack is given, too, or no build is; or the emulator lacks its chip.
    """
    if options.rack != DEFAULT_RACK:
        raise ConfigError(
            f"--emulator with --rack {options.rack}: it makes a rack of its own.",
            next_step="leave one of them out; a rack file names its emulators by itself.",
        )
    if options.firmware is None:
        raise ConfigError(
            "--emulator without --firmware: the build decides which chip is emulated.",
            next_step="add --firmware DIR, a build; or name a rack file with emulated boards.",
        )
    chip = str(flasher_args(options.firmware).get("extra_esptool_args", {}).get("chip", ""))
    pattern = load_rack(TOOL_RACKS / "virtual.yaml")
    path = options.out / "emulated" / f"{emulator}-{chip}.yaml"
    text = _RACK.format(
        emulator=emulator,
        network=_network(options.firmware, emulator, chip),
        interface=pattern.host.interface,
        address=pattern.host.address,
        ssid=pattern.access_point.ssid,
        password=pattern.access_point.password,
        chip=chip,
        mac=_MAC,
    )
    write_text(path, text)
    return replace(options, rack=path)


def _network(build_dir: Path, emulator: str, chip: str) -> str:
    """Return what a build switches on: the controller that emulators have, else Wi-Fi."""
    able = driver_of(emulator).ABILITIES
    if chip not in able.chips:
        raise ConfigError(
            f"{build_dir} is for {chip or 'no chip'}, but {emulator} emulates {', '.join(able.chips)}.",
            next_step="use another emulator, or a board: docs/operate/emulated-boards.md.",
        )
    has_wifi = "wifi" in able.networks and CHIPS[chip].wifi
    return "wifi" if has_wifi and not option(build_dir, "ETH_USE_OPENETH") else "openeth"

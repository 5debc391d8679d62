# SPDX-License-Identifier: Apache-2.0
"""What an access point's radio says of itself, of a board and of the channel: iw's words, read.

``iw dev IFACE info``, ``station dump`` and ``survey dump`` may come one after the other in one text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hil.model import Scalar

Facts = Mapping[str, int | float]

# iw's label, the name in a record, and how iw's number becomes one in that unit
_STATION_COUNTERS = {
    "rx packets": "rx_packets_count",
    "rx bytes": "rx_bytes",
    "rx drop misc": "rx_dropped_count",
    "tx packets": "tx_packets_count",
    "tx bytes": "tx_bytes",
    "tx retries": "tx_retries_count",
    "tx failed": "tx_failed_count",
}
_STATION_LEVELS = {
    "signal": ("rssi_dbm", 1.0),
    "signal avg": ("rssi_average_dbm", 1.0),
    "tx bitrate": ("tx_rate_kbps", 1e3),
    "rx bitrate": ("rx_rate_kbps", 1e3),
    "connected time": ("connected_s", 1.0),
}
_SURVEY_COUNTERS = {
    "channel active time": "channel_active_ms",
    "channel busy time": "channel_busy_ms",
    "channel receive time": "channel_receive_ms",
    "channel transmit time": "channel_transmit_ms",
}
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_CHANNEL = re.compile(r"channel (\d+) \((\d+)[.\d]* MHz\), width: (\d+) MHz")


@dataclass(frozen=True)
class RadioLook:
    """One look at the radio: ``info`` of the interface, ``stations`` by MAC address, the channel in use."""

    info: Facts = field(default_factory=dict)
    stations: Mapping[str, Facts] = field(default_factory=dict)
    survey: Facts = field(default_factory=dict)
    error: str = ""


def read_iw(text: str) -> RadioLook:
    """Read what iw printed. What a driver does not say is not there."""
    info: dict[str, int | float] = {}
    stations: dict[str, Facts] = {}
    survey: dict[str, int | float] = {}
    for head, lines in _blocks(text):
        if head.startswith("Interface "):
            info |= _read_info(lines)
        elif head.startswith("Station "):
            stations[head.split()[1].lower()] = _read_station(lines)
        elif head.startswith("Survey data ") and any("[in use]" in line for line in lines):
            survey |= _read_survey(lines)
    return RadioLook(info, stations, survey)


def _blocks(text: str) -> list[tuple[str, list[str]]]:
    blocks: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line and not line[0].isspace():
            blocks.append((line, []))
        elif blocks:
            blocks[-1][1].append(line.strip())
    return blocks


def _read_info(lines: list[str]) -> dict[str, int | float]:
    facts: dict[str, int | float] = {}
    for line in lines:
        if match := _CHANNEL.match(line):
            names = ("channel", "frequency_mhz", "width_mhz")
            facts |= dict(zip(names, map(int, match.groups()), strict=True))
        elif line.startswith("txpower "):
            facts["power_dbm"] = float(line.split()[1])
    return facts


def _read_station(lines: list[str]) -> Facts:
    facts: dict[str, int | float] = {}
    for label, number in _labelled(lines):
        if label in _STATION_COUNTERS:
            facts[_STATION_COUNTERS[label]] = int(number)
        elif label in _STATION_LEVELS:
            name, scale = _STATION_LEVELS[label]
            facts[name] = round(number * scale)
    return facts


def _read_survey(lines: list[str]) -> Facts:
    facts: dict[str, int | float] = {}
    for label, number in _labelled(lines):
        if label in _SURVEY_COUNTERS:
            facts[_SURVEY_COUNTERS[label]] = int(number)
        elif label == "noise":
            facts["noise_dbm"] = round(number)
    return facts


def _labelled(lines: list[str]) -> list[tuple[str, float]]:
    """Return label and first number of each line such as ``signal:  -60 [-62, -64] dBm``."""
    found = []
    for line in lines:
        label, _, rest = line.partition(":")
        if match := _NUMBER.match(rest.strip()):
            found.append((label, float(match[0])))
    return found


def changes(before: RadioLook, after: RadioLook, mac: str) -> Mapping[str, Scalar]:
    """Return what a record says of the radio while something was measured: a board's own figures, and the
    channel's. ``tx`` is from the access point to the board.

    Counters are what was added between the looks. They begin anew with an association, which is said; a
    channel's that went backwards, as some drivers' do, are None.
    """
    if error := before.error or after.error:
        return {"error": error}
    facts: dict[str, Scalar] = dict(after.info)
    facts |= _station_changes(before.stations.get(mac), after.stations.get(mac), mac)
    for name in _SURVEY_COUNTERS.values():
        if name in after.survey and name in before.survey:
            grown = after.survey[name] - before.survey[name]
            facts[name] = grown if grown >= 0 else None
    if "noise_dbm" in after.survey:
        facts["noise_dbm"] = after.survey["noise_dbm"]
    return facts


def _station_changes(before: Facts | None, after: Facts | None, mac: str) -> Mapping[str, Scalar]:
    if not mac:
        return {"error": "the rack file names no mac of this board, so its figures are not told from others'"}
    if after is None:
        return {"associated": False}
    anew = before is None or after.get("connected_s", 0) < before.get("connected_s", 0)
    facts: dict[str, Scalar] = {"associated": True, "reassociated": anew}
    for name, value in after.items():
        counts = name in _STATION_COUNTERS.values()
        since = 0 if anew or before is None else before.get(name, 0)
        if name != "connected_s":
            facts[name] = value - since if counts else value
    return facts

# SPDX-License-Identifier: Apache-2.0
"""The golden firmware of a rack file, and the bounds of what the daily check measures with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hil.base.yamlfile import Node
from hil.base.yamlvalue import did_you_mean


@dataclass(frozen=True)
class Figure:
    """A figure of the golden check. ``side`` is where its bound lies, ``bound`` what holds unless a rack file
    says otherwise, ``mend`` what to look at where it is beyond."""

    name: str
    words: str
    unit: str
    side: Literal["at most", "at least"]
    bound: float
    mend: str

    def is_beyond(self, value: float, bound: float, uncertainty: float = 0.0) -> bool:
        """Say whether a value is beyond its bound for certain."""
        if self.side == "at most":
            return value - uncertainty > bound
        return value + uncertainty < bound


_RADIO = "see its antenna and where it stands, the access point's channel and what else is on it"
FIGURES: Mapping[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure("associate_s", "joined in", "s", "at most", 15.0, f"{_RADIO}; and the DHCP server."),
        Figure("rssi_dbm", "RSSI", "dBm", "at least", -75.0, f"{_RADIO}."),
        Figure("publish_p50_ms", "publish p50", "ms", "at most", 100.0, f"{_RADIO}."),
        Figure("echo_p50_ms", "echo p50", "ms", "at most", 200.0, f"{_RADIO}."),
        Figure("failed_ratio", "share of messages that timed out", "", "at most", 0.02, f"{_RADIO}."),
        Figure("throughput_mbps", "throughput", "Mbit/s", "at least", 1.0, f"{_RADIO}."),
        Figure(
            "clock_drift_ppm",
            "timer drift",
            "ppm",
            "at most",
            100.0,
            "replace the board: its crystal is off, and its latencies with it. Where all are off alike, "
            "it is the host's clock.",
        ),
        Figure(
            "flash_mib",
            "flash chip",
            "MiB",
            "at least",
            0.0,
            "it is another module than the rack file says, or its flash chip fails: replace it.",
        ),
    )
}


def read_golden(root: Node, rack_file: Path) -> Path | None:
    """Return where the golden firmware is, relative to the rack file; None where none is named."""
    named = root.text("golden", default="")
    return rack_file.parent / named if named else None


def read_bounds(root: Node) -> dict[str, float]:
    """Return the bound of each figure. Raises ConfigError: an unknown one."""
    bounds = {name: figure.bound for name, figure in FIGURES.items()}
    node = root.section("golden_bounds", default=None)
    for key in node.keys if node else ():
        if key not in FIGURES:
            assert node
            raise node.error(
                key,
                f"the golden check has no figure {key!r}{did_you_mean(key, FIGURES)}",
                next_step=f"name one of: {', '.join(FIGURES)}.",
            )
        assert node
        bounds[key] = float(node.number(key))
    return bounds

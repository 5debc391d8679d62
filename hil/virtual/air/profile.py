# SPDX-License-Identifier: Apache-2.0
"""Air profiles: what the air does to each direction, as data (profiles.yaml)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hil.base import yamlfile
from hil.base.errors import ConfigError
from hil.base.yamlvalue import did_you_mean

PROFILES = Path(__file__).parent / "profiles.yaml"
SCHEMA_VERSION = 1
MAX_DELAY_S = 60.0

Distribution = Literal["uniform", "normal"]
GapMode = Literal["hold", "drop"]


@dataclass(frozen=True)
class Impairment:
    """What happens to the frames of one direction, one way. Zero means off or unlimited.

    ``jitter_us`` is the half width of a uniform, the standard deviation of a normal distribution.
    ``burst_*`` are Gilbert-Elliott's probabilities a frame. ``*_ppm`` are millionths.
    """

    rate_kbit: int = 0
    overhead_bytes: int = 0
    delay_us: int = 0
    jitter_us: int = 0
    distribution: Distribution = "uniform"
    correlation_ppm: int = 0
    loss_ppm: int = 0
    burst_start_ppm: int = 0
    burst_end_ppm: int = 1_000_000
    burst_loss_ppm: int = 1_000_000
    burst_good_loss_ppm: int = 0
    duplicate_ppm: int = 0
    reorder_ppm: int = 0
    limit_bytes: int = 256 * 1024
    keep_order: int = 1

    def parameters(self) -> dict[str, int | str]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Gap:
    """Blackouts of the whole link: their mean pause (exponential; 0 = none), their length (uniform),
    and whether frames are held until the end or dropped."""

    interval_us: int = 0
    min_us: int = 0
    max_us: int = 0
    mode: GapMode = "hold"

    def parameters(self) -> dict[str, int | str]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class AirProfile:
    """A named air: both directions (uplink: board to access point) and its gaps."""

    name: str
    uplink: Impairment = Impairment()
    downlink: Impairment = Impairment()
    gap: Gap = Gap()
    description: str = ""


def load_profiles(path: Path = PROFILES) -> Mapping[str, AirProfile]:
    """Read every profile. Raises ConfigError with file, line and the nearest key."""
    root = yamlfile.load(path)
    root.integer("schema", minimum=SCHEMA_VERSION, maximum=SCHEMA_VERSION)
    nodes = root.named_sections("profiles")
    profiles = {name: _profile(name, node) for name, node in nodes.items()}
    root.finish()
    return profiles


def load_profile(name: str) -> AirProfile:
    """Return the profile called ``name``. Raises ConfigError naming the nearest and the known ones."""
    profiles = load_profiles()
    if name not in profiles:
        known = ", ".join(profiles)
        raise ConfigError(
            f"{PROFILES}: unknown air profile {name!r}{did_you_mean(name, profiles)} Profiles: {known}."
        )
    return profiles[name]


def _profile(name: str, node: yamlfile.Node) -> AirProfile:
    description = node.text("description", default="")
    both = node.section("both", default=None)
    uplink, downlink = node.section("uplink", default=None), node.section("downlink", default=None)
    gap = node.section("gap", default=None)
    if both and (uplink or downlink):
        raise node.error("both", "'both' excludes 'uplink' and 'downlink'.", next_step="keep either.")
    common = _impairment(both) if both else Impairment()
    return AirProfile(
        name=name,
        uplink=_impairment(uplink) if uplink else common,
        downlink=_impairment(downlink) if downlink else common,
        gap=_gap(gap) if gap else Gap(),
        description=description,
    )


def _impairment(node: yamlfile.Node) -> Impairment:
    default = Impairment()
    return Impairment(
        rate_kbit=round(node.quantity("rate", "kbps", default=0.0, minimum=1.0, maximum=1e7)),
        overhead_bytes=node.integer("overhead_bytes", default=0, minimum=0, maximum=65536),
        delay_us=_time_us(node, "delay"),
        jitter_us=_time_us(node, "jitter"),
        distribution="normal" if _distribution(node) == "normal" else "uniform",
        correlation_ppm=_ppm(node, "correlation", 0),
        loss_ppm=_ppm(node, "loss", 0),
        burst_start_ppm=_ppm(node, "burst_start", 0),
        burst_end_ppm=_ppm(node, "burst_end", default.burst_end_ppm),
        burst_loss_ppm=_ppm(node, "burst_loss", default.burst_loss_ppm),
        burst_good_loss_ppm=_ppm(node, "burst_good_loss", 0),
        duplicate_ppm=_ppm(node, "duplicate", 0),
        reorder_ppm=_ppm(node, "reorder", 0),
        limit_bytes=_limit_bytes(node, default.limit_bytes),
        keep_order=int(node.boolean("keep_order", default=True)),
    )


def _gap(node: yamlfile.Node) -> Gap:
    gap = Gap(
        interval_us=_time_us(node, "interval", maximum_s=3600.0),
        min_us=_time_us(node, "min"),
        max_us=_time_us(node, "max"),
        mode="drop" if node.choice("mode", ("hold", "drop"), default="hold") == "drop" else "hold",
    )
    if gap.interval_us and not 0 < max(gap.min_us, 1) <= gap.max_us:
        raise node.error("max", "the longest gap is shorter than the shortest gap.")
    return gap


def _distribution(node: yamlfile.Node) -> str:
    return node.choice("distribution", ("uniform", "normal"), default="uniform")


def _limit_bytes(node: yamlfile.Node, default_bytes: int) -> int:
    return round(node.quantity("limit", "bytes", default=float(default_bytes), minimum=2048.0))


def _time_us(node: yamlfile.Node, key: str, *, maximum_s: float = MAX_DELAY_S) -> int:
    return round(node.quantity(key, "us", default=0.0, minimum=0.0, maximum=maximum_s * 1e6))


def _ppm(node: yamlfile.Node, key: str, default_ppm: int) -> int:
    ratio = node.quantity(key, "ratio", default=default_ppm / 1e6, minimum=0.0, maximum=1.0)
    return round(ratio * 1e6)

# SPDX-License-Identifier: Apache-2.0
"""Firmware that differs from the tree's in one known way, for the gate to find or to pass."""

from __future__ import annotations

import json
from pathlib import Path

from hil.boards.firmware.build import PROJECT_NAME
from hil.boards.firmware.image import build_image_dir
from tests.host_builds import VARIANTS, build_variant

# Shares of the p50 of publish_latency on the air `lab`: 7.1 ms, see tools/bench/gate_rack.py.
FIFTEEN_PER_CENT_US = 840
TWENTY_PER_CENT_US = 1120


def late_publish(delay_us: int) -> Path:
    """Build the firmware with every publish late by ``delay_us``, one of the two above; return its folder."""
    return build_variant(f"late_publish_{delay_us}us")


def beyond_limit() -> Path:
    """Build the firmware with every publish 30 ms late, which is beyond every limit; return its folder."""
    return build_variant("late_publish_30000us")


def renamed(build_dir: Path, version: str, folder: Path = VARIANTS) -> Path:
    """Return a copy of a virtual build that behaves the same but has other bytes: its ``version``."""
    copy = folder / f"renamed-{version}" / build_dir.name
    description = json.loads((build_dir / "project_description.json").read_text(encoding="utf-8"))
    build_image_dir(build_dir / f"{PROJECT_NAME}.elf", copy, chip=str(description["target"]), version=version)
    return copy

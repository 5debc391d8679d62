"""Firmware that differs from the tree's in one known way, for the gate to find or to pass.

Each is built once and kept in out/test-variants; a build where nothing changed costs a second.
"""

from __future__ import annotations

import json
from pathlib import Path

from hil.build import PROJECT_NAME, build
from hil.virtual.image import build_image_dir
from tests.lab import ROOT

TARGET = "virtual-esp32"
FOLDER = ROOT / "out" / "test-variants"
SOURCE = ROOT / "tests" / "firmware" / "late_publish.c"

# Shares of the p50 of publish_latency on the air `lab`: 7.1 ms, see tests/bench/gate_rack.py.
TEN_PER_CENT_US = 560
TWENTY_PER_CENT_US = 1120


def late_publish(delay_us: int, folder: Path = FOLDER) -> Path:
    """Build the firmware with every publish late by ``delay_us``; return its build folder."""
    options = [
        f"-DHIL_EXTRA_SOURCES={SOURCE}",
        "-DHIL_LINK_OPTIONS=-Wl,--wrap=esp_mqtt_client_publish",
        f"-DCMAKE_C_FLAGS=-DPUBLISH_DELAY_US={delay_us}",
    ]
    root = folder / f"late-{delay_us}us"
    return build(TARGET, say=lambda _sentence: None, build_root=root, cmake_options=options)


def renamed(build_dir: Path, version: str, folder: Path = FOLDER) -> Path:
    """Return a copy of a virtual build that behaves the same but has other bytes: its ``version``."""
    copy = folder / f"renamed-{version}" / build_dir.name
    description = json.loads((build_dir / "project_description.json").read_text(encoding="utf-8"))
    build_image_dir(build_dir / f"{PROJECT_NAME}.elf", copy, chip=str(description["target"]), version=version)
    return copy

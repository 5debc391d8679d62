"""A rack that measures a bundle: nothing is compiled there, and what runs is what was built."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rack_tools import AIR_DIR

from hil.firmware.bundle import write_bundle
from hil.firmware.digests import read_digests
from hil.firmware.revision import SourceState
from hil.virtual.air import build_air
from tests.lab import Lab, of_type

NewLab = Callable[[int], Lab]
TARGET = "virtual-esp32"
COMPILERS = ("cmake", "cc", "gcc", "c++", "g++", "ld", "strip", "idf.py")


@pytest.fixture
def bundle_lab(new_lab: NewLab, virtual_firmware: Path) -> Iterator[Lab]:
    """A lab of one board with a bundle, where every tool of a build fails and leaves a mark."""
    build_air(AIR_DIR)  # the stand-in for the access point is no firmware
    lab = new_lab(1)
    lab.firmware = lab.folder / "bundle"
    write_bundle(virtual_firmware, TARGET, lab.firmware, SourceState("5" * 40, dirty=False))
    tools = lab.folder / "bin"
    tools.mkdir()
    for name in COMPILERS:
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{lab.folder}/compiled\nexit 1\n')
        (tools / name).chmod(0o755)
    lab.env["PATH"] = f"{tools}{os.pathsep}{lab.env['PATH']}"
    yield lab
    lab.await_nothing_left()


def test_a_rack_measures_a_bundle_and_compiles_nothing(bundle_lab: Lab) -> None:
    """No compiler is started; run.json names the bundle's commit; the board ran the bundle's image."""
    done = bundle_lab.run()
    assert done.returncode == 0, done.stdout
    assert not (bundle_lab.folder / "compiled").exists()
    assert bundle_lab.firmware
    digests = read_digests(bundle_lab.firmware / TARGET)
    (record,) = of_type(bundle_lab.entries(), "record")
    assert record["firmware_sha256"] == digests.image_sha256
    run_info = json.loads((bundle_lab.out / "latest" / "run.json").read_text())
    assert run_info["firmware"][TARGET] == {
        "build_dir": str(bundle_lab.firmware / TARGET),
        "sha256": digests.image_sha256,
        "commit": "5" * 40,
        "dirty": False,
        "idf_version": "host",
    }


def test_a_damaged_bundle_is_not_flashed(bundle_lab: Lab) -> None:
    """One byte of what only debuggers read: exit 2, the file's name, and no run was begun."""
    assert bundle_lab.firmware
    elf = bundle_lab.firmware / TARGET / "hil-firmware.elf"
    elf.write_bytes(elf.read_bytes() + b"\0")
    done = bundle_lab.run()
    assert done.returncode == 2, done.stdout
    assert "hil-firmware.elf differs from its digest" in done.stdout
    assert "hil build" not in done.stdout
    assert not (bundle_lab.out / "latest").exists()

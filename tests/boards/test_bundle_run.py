# SPDX-License-Identifier: Apache-2.0
"""A rack that measures a bundle: nothing is compiled there, and what runs is what was built."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hil.boards.firmware.build import build
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.bundle import read_digests, write_bundle
from hil.boards.firmware.revision import SourceState
from hil.virtual.air.build import build_air
from tests.boards.rack_tools import AIR_DIR
from tests.lab import Lab, make_lab, of_type

pytestmark = pytest.mark.slow

NewLab = Callable[[int], Lab]
TARGET = "virtual-esp32"
COMPILERS = ("cmake", "cc", "gcc", "c++", "g++", "ld", "strip", "idf.py")


@pytest.fixture
def bundle_lab(new_lab: NewLab, virtual_firmware: Path) -> Iterator[Lab]:
    """A lab of one board with a bundle, where every tool of a build fails and leaves a mark."""
    build_air(AIR_DIR)  # the stand-in for the access point is no firmware
    lab = new_lab(1)
    lab.firmware = lab.folder / "bundle"
    write_bundle(virtual_firmware, Image(TARGET), lab.firmware, SourceState("5" * 40, dirty=False))
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
    assert "hil-firmware.elf differs" in done.stdout
    assert "hil build" not in done.stdout
    assert not (bundle_lab.out / "latest").exists()


JITTER = """\
suites:
  quick:
    - {tick_hz: [1000, 100], count: 20, warmup: 2}
"""


@pytest.mark.heavy
def test_each_case_runs_on_the_image_with_its_tick(virtual_firmware: Path, tmp_path: Path) -> None:
    """Two images, two boots of each: digests, and the kernel's own word for its tick, are the case's.

    A bundle that lacks one of them is refused before anything is flashed, with the command that adds it.
    """
    state = SourceState("5" * 40, dirty=False)
    with tempfile.TemporaryDirectory(prefix="hil-lab-") as folder:
        lab = make_lab(Path(folder), 1, firmware=tmp_path / "bundle", suites={"jitter": JITTER})
        write_bundle(virtual_firmware, Image(TARGET), tmp_path / "bundle", state)
        done = lab.run()
        assert done.returncode == 2, done.stdout
        assert f"hil build --target {TARGET} --tick-hz 100 --bundle {tmp_path / 'bundle'}" in done.stdout
        slow = build(TARGET, tick_hz=100, say=lambda _sentence: None)
        write_bundle(slow, Image(TARGET, 100), tmp_path / "bundle", state)
        done = lab.run("--boots", "2")
        assert done.returncode in (0, 4), done.stdout  # so few samples say nothing of a limit
        images = json.loads((lab.out / "latest" / "run.json").read_text())["firmware"]
        assert list(images) == [TARGET, f"{TARGET}+tick100"]
        found = [
            (
                record["parameters"]["tick_hz"],
                record["environment"]["device"]["tick_hz"],
                record["firmware_sha256"],
                record["boot_index"],
            )
            for record in of_type(lab.entries(), "record")
        ]
        digests = {int(image.partition("+tick")[2] or 1000): images[image]["sha256"] for image in images}
        assert len(set(digests.values())) == 2
        assert found == [(str(hz), hz, digests[hz], boot) for hz in (1000, 100) for boot in (0, 1)]
        lab.await_nothing_left()

# SPDX-License-Identifier: Apache-2.0
"""Bytes of an image by section and by component, as GNU ld's map file gives them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.bundle import read_digests, write_bundle, write_digests
from hil.boards.firmware.revision import SourceState
from hil.cli.app import run_command
from tests.boards.test_bundle import TARGET

MAP = """\
Archive member included to satisfy reference by file (symbol)

Memory Configuration

Name             Origin             Length             Attributes
iram0_2_seg      0x42000020         0x007fffe0         xr
dram0_0_seg      0x3fc80000         0x0004e710         rw
*default*        0x00000000         0xffffffff

Linker script and memory map

                0x00000000                        IDF_TARGET_ESP32C3 = 0x0

.dram0.data     0x3fc80000       0x20
 .data.queue    0x3fc80000       0x20 esp-idf/freertos/libfreertos.a(queue.c.obj)

.dram0.bss      0x3fc80020       0x40
 .bss.link      0x3fc80020       0x40 managed/link/liblink.a(link.c.obj)

.flash.text     0x42000020      {total:#x}
 .text.xQueueSend
                0x42000020      0x100 esp-idf/freertos/libfreertos.a(queue.c.obj)
 .text.link_up  0x42000120      {link:#x} esp-idf/link/liblink.a(link.c.obj)

.comment        0x00000000        0x1
"""
TEXT_BYTES = 0x100


def bundle(firmware: Path, folder: Path, link_bytes: int | None) -> Path:
    """Return a bundle of an image whose link component has that many bytes of code; None: without a map."""
    shutil.copytree(firmware, folder / "build")
    # it would lead to an ELF file, which is a host's
    (folder / "build" / "project_description.json").unlink(missing_ok=True)
    if link_bytes is not None:
        text = MAP.format(total=TEXT_BYTES + link_bytes, link=link_bytes)
        (folder / "build" / "hil-firmware.map").write_text(text)
    write_bundle(folder / "build", Image(TARGET), folder / "bundle", SourceState("5" * 40, dirty=False))
    return folder / "bundle"


def rows(said: str) -> list[list[str]]:
    return [line.split() for line in said.splitlines()]


def test_each_byte_is_a_sections_and_a_components(
    virtual_firmware: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The largest first, archives of one name together; .bss, which is not in flash, is not in the total."""
    made = bundle(virtual_firmware, tmp_path / "head", 0x50)
    for path in (made, made / TARGET):
        assert run_command(["firmware", "size", str(path)]) == 0
        assert rows(capsys.readouterr().out) == [
            [TARGET, "368"],
            ["sections"],
            ["Flash", "Code", ".text", "336"],
            ["DRAM", ".bss", "64"],
            ["DRAM", ".data", "32"],
            ["components"],
            ["libfreertos.a", "288"],
            ["liblink.a", "144"],
        ]


def test_beside_a_base_the_difference_is_exact(
    virtual_firmware: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only what differs is printed, by how many bytes; an equal image says so."""
    head, base = (
        bundle(virtual_firmware, tmp_path / name, size) for name, size in (("h", 0x50), ("b", 0x46))
    )
    assert run_command(["firmware", "size", str(head), "--base", str(base)]) == 0
    assert rows(capsys.readouterr().out) == [
        [TARGET, "368", "358", "+10"],
        ["sections"],
        ["Flash", "Code", ".text", "336", "326", "+10"],
        ["components"],
        ["liblink.a", "144", "134", "+10"],
    ]
    assert run_command(["firmware", "size", str(head), "--base", str(head)]) == 0
    assert "components: no byte differs" in capsys.readouterr().out


def test_an_image_without_a_readable_map_is_refused(
    virtual_firmware: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A virtual board's has none; the sentence says what to build."""
    none = bundle(virtual_firmware, tmp_path / "none", None)
    assert run_command(["firmware", "size", str(none)]) == 2
    assert "no hil-firmware.map" in capsys.readouterr().err
    broken = bundle(virtual_firmware, tmp_path / "broken", 0x50) / TARGET / "hil-firmware.map"
    broken.write_text("nothing")
    assert run_command(["firmware", "size", str(broken.parent.parent)]) == 2
    assert "hil-firmware.map differs" in capsys.readouterr().err


def test_a_virtual_boards_image_beside_a_chips_is_passed_over(
    virtual_firmware: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bundle for both kinds of boards is one of which the chips' images are told."""
    made = bundle(virtual_firmware, tmp_path / "head", 0x50)
    write_digests(made / TARGET, replace(read_digests(made / TARGET), idf_version="v5.5.1"))
    write_bundle(virtual_firmware, Image(TARGET, 100), made, SourceState("5" * 40, dirty=False))
    assert run_command(["firmware", "size", str(made)]) == 0
    assert [row for row in rows(capsys.readouterr().out) if row[0].startswith(TARGET)] == [[TARGET, "368"]]

# SPDX-License-Identifier: Apache-2.0
"""A base of another product, or of another ESP-IDF, is refused before anything is flashed."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.build_folder import Image, app_image
from hil.boards.firmware.image import build_image_dir
from hil.boards.firmware.selection import Firmware, find_firmware
from hil.run.campaign import Against
from hil.run.comparing import find_other
from hil.run.same_product import check_same_idf, check_same_product, project_of
from tests.virtual.virtual_board_rig import PARTITIONS

IMAGE = Image("virtual-esp32")


def build(folder: Path, project: str, version: str) -> Firmware:
    """Return a build that says which project it is of."""
    folder.mkdir()
    csv = folder / "partitions.csv"
    csv.write_text(PARTITIONS)
    elf = folder / "app.elf"
    elf.write_bytes(Path("/bin/true").read_bytes())
    build_image_dir(elf, folder / "build", chip="esp32", project=project, version=version, partitions_csv=csv)
    return find_firmware(folder / "build", IMAGE)


def test_a_build_of_another_project_is_no_base(tmp_path: Path) -> None:
    """Both are named, with what each is of; two versions of one project are compared."""
    head, base = build(tmp_path / "head", "sensor-node", "2"), build(tmp_path / "base", "sensor-node", "1")
    other = build(tmp_path / "other", "gateway", "1")
    assert project_of(head.build_dir) == "sensor-node"
    check_same_product("base", head, base)
    with pytest.raises(
        ConfigError, match=r"--base: .*other/build is a build of 'gateway', .* of 'sensor-node'"
    ):
        check_same_product("base", head, other)
    with pytest.raises(ConfigError, match="hil does not compare two products"):
        find_other(Against("base", other.build_dir), {IMAGE: head})


def test_what_says_nothing_is_not_refused(tmp_path: Path) -> None:
    """An image without a description is of nobody knows which project."""
    head, other = build(tmp_path / "head", "sensor-node", "2"), build(tmp_path / "other", "gateway", "1")
    app_image(other.build_dir).write_bytes(b"no image" * 8)
    assert project_of(other.build_dir) == ""
    check_same_product("base", head, other)


def test_a_comparison_across_esp_idf_releases_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both releases are named, with the option that compares them; with it, the other is found."""
    head = build(tmp_path / "head", "sensor-node", "2")
    monkeypatch.setattr("hil.boards.firmware.image.IDF_VERSION", "v5.4.2")
    older = build(tmp_path / "older", "sensor-node", "1")
    check_same_idf("base", head, head)
    with pytest.raises(
        ConfigError, match=r"older/build was built with ESP-IDF v5\.4\.2, .* with v5\.5.*--across-idf"
    ):
        find_other(Against("base", older.build_dir), {IMAGE: head})
    other = find_other(Against("base", older.build_dir, across_idf=True), {IMAGE: head})
    assert list(other.firmware) == [IMAGE]

# SPDX-License-Identifier: Apache-2.0
"""Builds as other teams have them: files beside the build, no hash of the ELF, variants."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from hil.base.errors import ConfigError
from hil.base.project import read_project
from hil.boards.firmware.app_image import APP_DESCRIPTION, read_app_description
from hil.boards.firmware.build_folder import Image, flash_files
from hil.boards.firmware.bundle import verify, write_bundle
from hil.boards.firmware.revision import SourceState
from hil.boards.firmware.selection import find_firmware
from hil.boards.rack import Board, Power
from hil.cli.init import command as init
from hil.run import product_device
from hil.run.product_device import ProductDevice
from tests.probe.scripted import console_of, probe_of
from tests.virtual.virtual_board_rig import make_build

TARGET = "virtual-esp32"
STORAGE = "0x3f0000"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_build(tmp_path_factory.mktemp("made"))


@pytest.fixture
def build_dir(made: Path, tmp_path: Path) -> Path:
    """A build in a project that has an image of its own beside it."""
    build_dir = tmp_path / "project" / "build"
    build_dir.parent.mkdir()
    shutil.copytree(made, build_dir)
    (tmp_path / "project" / "hil.toml").touch()
    (tmp_path / "project" / "assets").mkdir()
    (tmp_path / "project" / "assets" / "storage.bin").write_bytes(b"storage")
    return build_dir


def flash_too(build_dir: Path, name: str) -> None:
    path = build_dir / "flasher_args.json"
    content = json.loads(path.read_text())
    content["flash_files"][STORAGE] = name
    content["storage"] = {"offset": STORAGE, "file": name, "encrypted": "false"}
    path.write_text(json.dumps(content))


def test_a_file_of_the_project_beside_the_build_is_flashed(build_dir: Path) -> None:
    """A build names it with ``../``; so does a build in a folder further down of the same project."""
    flash_too(build_dir, "../assets/storage.bin")
    assert (STORAGE, "../assets/storage.bin") in flash_files(build_dir)
    deeper = build_dir.parent / "out" / "firmware" / "it"
    shutil.copytree(build_dir, deeper)
    flash_too(deeper, "../../../assets/storage.bin")
    found = find_firmware(deeper, Image(TARGET)).build_dir
    assert (STORAGE, "../../../assets/storage.bin") in flash_files(found)


def test_a_bundle_takes_it_along(build_dir: Path, tmp_path: Path) -> None:
    """The bundle holds a copy and names that, so it is whole on another machine."""
    flash_too(build_dir, "../assets/storage.bin")
    state = SourceState("5" * 40, dirty=False)
    folder = write_bundle(build_dir, Image(TARGET), tmp_path / "bundle", state)
    shutil.rmtree(build_dir.parent)
    assert verify(folder)
    (name,) = [name for offset, name in flash_files(folder) if offset == STORAGE]
    assert (folder / name).read_bytes() == b"storage"
    assert json.loads((folder / "flasher_args.json").read_text())["storage"]["file"] == name


@pytest.mark.parametrize("name", ["../../secret", "../.git/config", "/etc/hostname", "../link/hostname"])
def test_a_file_outside_of_the_project_is_refused(build_dir: Path, name: str) -> None:
    """Nothing of the host is flashed; the way out is one that can be gone."""
    (build_dir.parent / ".git").mkdir()
    (build_dir.parent / ".git" / "config").touch()
    (build_dir.parent.parent / "secret").touch()
    (build_dir.parent / "link").symlink_to("/etc")
    flash_too(build_dir, name)
    with pytest.raises(ConfigError, match=re.escape(f"names {name}, which is not a path inside")) as caught:
        flash_files(build_dir)
    assert f"copy it into {build_dir}" in caught.value.next_step


def test_a_file_of_the_project_that_is_not_there_is_named(build_dir: Path) -> None:
    """Missing is another fault than outside."""
    flash_too(build_dir, "../assets/gone.bin")
    with pytest.raises(ConfigError, match=r"lacks \.\./assets/gone\.bin"):
        flash_files(build_dir)


def test_field_two_files_at_one_offset_are_both_named(build_dir: Path) -> None:
    """JSON would take the last, and the first would not be flashed, without a word."""
    path = build_dir / "flasher_args.json"
    twin = '"flash_files": {"0x110000": "a.bin", "0x110000": "b.bin",'
    path.write_text(re.sub(r'"flash_files":\s*\{', twin, path.read_text()))
    with pytest.raises(ConfigError, match=r"a\.bin and b\.bin .* 0x110000"):
        flash_files(build_dir)


def test_zeros_for_the_hash_of_the_elf_prove_nothing(
    build_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image without the hash prints zeros as any other such image does: no proof, and told."""
    described = read_app_description(build_dir / "testapp.bin")
    assert described
    zeros = type(described)(described.project, described.version, described.idf_version, bytes(32))
    monkeypatch.setattr(product_device, "description_of", lambda _: zeros)
    console = console_of(["ELF file SHA256:  000000000...", "up"], ready=False)
    console.await_ready(probe_of(tmp_path, "ready: {pattern: '^up$', within_s: 60}\nboot: {to: 'a'}\n"))
    device = ProductDevice.__new__(ProductDevice)
    device.board = Board("b1", "virtual", "esp32", "port", Power("none"), where="rack.yaml:7")
    device.console, device.build_dir, device.must_print = console, build_dir, False
    device._check_proven()
    device.must_print = True
    with pytest.raises(ConfigError, match="zeros as ELF hash") as caught:
        device._check_proven()
    assert "--elf-sha256-offset 0xb0" in caught.value.next_step
    assert APP_DESCRIPTION.size == 0x100  # of which the hash is at 0x90: 0xb0 in the file, behind its headers


@pytest.mark.parametrize(
    ("files", "targets", "left"),
    [
        ({"sdkconfig.defaults.esp32s3-devkit": "", "sdkconfig.defaults.ci": ""}, ("esp32s3",), ""),
        ({"sdkconfig.defaults.esp32c3.release": "", "sdkconfig.defaults.esp32c3": ""}, ("esp32c3",), ""),
        ({"sdkconfig.defaults.esp32.wroom": ""}, ("esp32",), ""),
        ({"sdkconfig.defaults.prod": 'CONFIG_IDF_TARGET="esp32c6"\n'}, ("esp32c6",), ""),
        ({"sdkconfig.old": 'CONFIG_IDF_TARGET="esp32c6"\n'}, ("esp32",), ""),
        ({"sdkconfig.ci.p4_wifi": 'CONFIG_IDF_TARGET="esp32p4"\n'}, ("esp32",), ""),
        ({"sdkconfig.defaults.esp32c61": ""}, ("esp32",), "sdkconfig.defaults.esp32c61: esp32c61 is no chip"),
        ({"sdkconfig": 'CONFIG_IDF_TARGET="linux"\n'}, ("esp32",), "sdkconfig: linux is no chip"),
    ],
)
def test_targets_are_chips_whatever_the_variants_are_called(
    files: dict[str, str], targets: tuple[str, ...], left: str, tmp_path: Path
) -> None:
    """A variant's name is no chip: hil.toml names chips alone, and a chip that hil lacks is said."""
    (tmp_path / "CMakeLists.txt").write_text("include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(it)")
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    done = CliRunner().invoke(init, [str(tmp_path), "--workflow", "o/r@v1"], catch_exceptions=False)
    assert done.exit_code == 0
    assert read_project(tmp_path).targets == targets
    assert left in done.output
    assert ("left " in done.output) == bool(left)


def test_a_target_of_hil_toml_that_is_no_chip_is_refused(tmp_path: Path) -> None:
    """The file, the word, and the nearest chip are named, before anything is built."""
    (tmp_path / "hil.toml").write_text('schema = 1\n[firmware]\nfolder = "."\ntargets = ["esp32s33"]\n')
    with pytest.raises(ConfigError, match=r"hil\.toml: firmware\.targets .*'esp32s33'.*mean 'esp32s3'"):
        read_project(tmp_path)

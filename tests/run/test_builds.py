# SPDX-License-Identifier: Apache-2.0
"""Which build is whose: found by its bytes, and refused in words before a board is written."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.build_folder import Image, app_image, image_sha256
from hil.boards.firmware.bundle import write_bundle
from hil.boards.firmware.image import build_image_dir
from hil.boards.firmware.revision import SourceState
from hil.boards.firmware.selection import Firmware, find_firmware
from hil.run.builds import find_builds, has_agent, holds, image_in
from hil.run.campaign import Against
from hil.run.comparing import find_other
from hil.run.same_product import check_same_idf, check_same_product, project_of
from tests.in_process import hil
from tests.lab import make_lab
from tests.virtual.virtual_board_rig import PARTITIONS

pytestmark = pytest.mark.slow

TARGET = "virtual-esp32"
OWN, PRODUCT = Image(TARGET), Image(TARGET, product=True)


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """A build of somebody's firmware, with ESP-IDF's tick: an image around a program that knows no agent."""
    folder = tmp_path / "build"
    build_image_dir(Path("/bin/true"), folder, project="pump", version="1", tick_hz=100)
    return folder


@pytest.fixture
def bundle(virtual_firmware: Path, product: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    write_bundle(virtual_firmware, OWN, folder, SourceState("5" * 40, dirty=False))
    write_bundle(product, PRODUCT, folder, SourceState("6" * 40, dirty=False, product="pump"))
    return folder


def no_word(_sentence: str) -> None:
    raise AssertionError("something is built")


def test_a_build_is_hils_by_its_bytes(virtual_firmware: Path, product: Path, tmp_path: Path) -> None:
    """The agent is in one image and not in the other, wherever the folder lies and whatever it is called."""
    moved = shutil.copytree(virtual_firmware, tmp_path / "build-of-somebody")
    assert has_agent(moved)
    assert not has_agent(product)
    assert [holds(moved, image) for image in (OWN, PRODUCT)] == [True, False]
    assert [holds(product, image) for image in (OWN, PRODUCT)] == [False, True]


def test_a_damaged_image_and_a_folder_without_a_build_are_said_to_be_that(
    virtual_firmware: Path, tmp_path: Path
) -> None:
    """Empty, it shows no agent; but what is wrong with it is that it is damaged. Of a folder without a build,
    neither hil's nor a product's, the sentence names what is missing."""
    copy = tmp_path / virtual_firmware.name
    shutil.copytree(virtual_firmware, copy)
    (copy / "hil-firmware.bin").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"hil-firmware\.bin"):
        find_builds(copy, [OWN], no_word)
    with pytest.raises(ConfigError, match=r"is not a firmware build: no flasher_args\.json"):
        find_builds(tmp_path, [OWN], no_word)


def test_each_image_of_a_bundle_is_found_by_its_name(bundle: Path) -> None:
    """hil's and the product's lie side by side; nothing is built; the record says which commit each is of. A
    bundle without the image says what it holds, and not that it has an agent."""
    found = find_builds(bundle, [OWN, PRODUCT], no_word)
    assert {image: built.build_dir.name for image, built in found.items()} == {
        OWN: TARGET,
        PRODUCT: f"{TARGET}+product",
    }
    assert found[PRODUCT].origin["commit"] == "6" * 40
    assert found[PRODUCT].sha256 == image_sha256(bundle / f"{TARGET}+product")
    shutil.rmtree(bundle / f"{TARGET}+product")
    with pytest.raises(ConfigError, match=rf"holds firmware for {TARGET}, but none for {TARGET}\+product"):
        find_builds(bundle, [PRODUCT], no_word)


def test_a_build_without_the_agent_measures_probes_alone(product: Path, virtual_firmware: Path) -> None:
    """Its benches are refused at once, and probes with a build that has the agent."""
    assert find_builds(product, [PRODUCT], no_word)[PRODUCT].build_dir == product
    with pytest.raises(ConfigError, match=r"build is a build without hil's agent.*Next: .*with a probe"):
        find_builds(product, [OWN], no_word)
    with pytest.raises(ConfigError, match=r"has hil's agent, but only probes are selected"):
        find_builds(virtual_firmware, [PRODUCT], no_word)


def test_a_chips_build_is_refused_on_a_virtual_board(
    product: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What idf.py built for a chip has no program that this host runs, and no chip executes a virtual
    board's: said before it is flashed, by `hil run` and `hil board flash`."""
    monkeypatch.setattr("hil.boards.firmware.app_image.pack_elf", lambda elf: bytes(len(elf) // 4 * 4))
    build_image_dir(Path("/bin/true"), tmp_path / "chip", version="1")
    with pytest.raises(ConfigError, match=rf"chip is a build for a chip \(esp32\), not for {TARGET}"):
        find_builds(tmp_path / "chip", [PRODUCT], no_word)
    with pytest.raises(ConfigError, match=r"is a build for a virtual board \(virtual-esp32\), not for esp32"):
        find_builds(product, [Image("esp32", product=True)], no_word)


def test_the_other_build_of_a_comparison_is_looked_at_as_well(product: Path, virtual_firmware: Path) -> None:
    """--base with a build that is of no image of the run: exit 2, and no board is written."""
    own = find_builds(virtual_firmware, [OWN], no_word)
    with pytest.raises(ConfigError, match=r"--base .*build is a build without hil's agent"):
        find_other(Against("base", product), own)
    theirs = find_builds(product, [PRODUCT], no_word)
    with pytest.raises(ConfigError, match=r"--reference .* has hil's agent"):
        find_other(Against("reference", virtual_firmware), theirs)


def test_of_two_images_a_build_is_the_other_of_one(bundle: Path, product: Path) -> None:
    """The image that the build is not of is named as not compared, as with a bundle that lacks it."""
    other = find_other(Against("base", product), find_builds(bundle, [OWN, PRODUCT], no_word))
    assert list(other.firmware) == [PRODUCT]
    assert list(other.missing) == [OWN]
    assert TARGET in other.missing[OWN]


def test_what_is_flashed_by_hand_may_be_a_product(
    bundle: Path, product: Path, virtual_firmware: Path
) -> None:
    """A build's kind decides, in a bundle hil's own where both are there; the tick is no obstacle."""
    assert image_in(product, TARGET) == PRODUCT
    assert image_in(virtual_firmware, TARGET) == OWN
    assert image_in(bundle, TARGET) == OWN
    shutil.rmtree(bundle / TARGET)
    assert image_in(bundle, TARGET) == PRODUCT


def test_a_product_is_flashed_by_hand(product: Path, tmp_path: Path) -> None:
    """`hil board flash --firmware build/` takes any ESP-IDF build of the board's chip."""
    lab = make_lab(tmp_path, 1)
    options = ["--rack", str(lab.rack), "--out", str(lab.out)]
    up = lab.keep_up()
    try:
        up.await_line(r"serial\.tools\.miniterm")
        done = hil("board", "flash", "b1", "--firmware", product, *options, env=lab.env)
        assert done.returncode == 0, done.stdout
        assert f"b1: flashed {product}" in done.stdout
        up.send(signal.SIGINT)
        assert up.wait() == 130
    finally:
        up.close()
    lab.await_nothing_left()


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

# SPDX-License-Identifier: Apache-2.0
"""Builds of other commits, and that the same sources give the same image wherever they lie."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.app_image import read_image, unpack_app_description
from hil.boards.firmware.build_folder import Image, flash_files
from hil.boards.firmware.bundle import Digests, read_digests, write_bundle
from hil.boards.firmware.failure import read_failure
from hil.boards.firmware.revision import SourceState, check_sources, find_revision, source_state, sources_at
from hil.boards.firmware.selection import compare_bundles
from hil.model import Ruler
from tests.boards.revision_rig import build_there, commit_all, copy_checkout, git
from tests.lab import ROOT

TARGET = "virtual-esp32"
MAIN = "firmware/main/app_main.c"
HOST, PARTITIONS = "host/CMakeLists.txt", "partitions.csv"


@dataclass(frozen=True)
class Builds:
    """Another checkout with two commits, and a bundle of each; ``here`` is this checkout's build."""

    checkout: Path
    here: Path
    head: Path
    base: Path
    commits: tuple[str, str]


@pytest.fixture(scope="module")
def builds(virtual_firmware: Path, tmp_path_factory: pytest.TempPathFactory) -> Builds:
    """Build the head (this checkout's firmware) and a base whose program differs, in a checkout elsewhere."""
    folder = tmp_path_factory.mktemp("builds")
    checkout = copy_checkout(folder / "deeper" / "elsewhere")
    head_main = (checkout / MAIN).read_text()
    (checkout / MAIN).write_text(
        f"{head_main}\nconst char *base_only(void);\nconst char *base_only(void) {{\n"
    )
    with (checkout / MAIN).open("a") as file:
        file.write('    return "of the base";\n}\n')
    base = commit_all(checkout)
    (checkout / MAIN).write_text(head_main)
    head = commit_all(checkout)
    write_bundle(virtual_firmware, Image(TARGET), folder / "here", source_state(ROOT))
    for revision, name in ((head, "head"), ("HEAD~1", "base")):
        done = build_there(checkout, "--at", revision, "--bundle", str(folder / name))
        assert done.returncode == 0, done.stdout
    return Builds(checkout, folder / "here", folder / "head", folder / "base", (head, base))


def digests(bundle: Path) -> Digests:
    return read_digests(bundle / TARGET)


@pytest.mark.slow
@pytest.mark.heavy  # test_build_ruler.py builds another commit, too
def test_the_same_sources_give_the_same_files_in_two_checkouts(builds: Builds) -> None:
    """Every file of the two builds has the same SHA-256, the ELF with its debug information included, so that
    the commits compare as identical; none names the folder it was built in. The image's version is
    firmware/version.txt; date and time of its description are empty."""
    assert digests(builds.here).files == digests(builds.head).files
    assert digests(builds.here).image_sha256 == digests(builds.head).image_sha256
    (same,) = compare_bundles(builds.here, builds.head)
    assert (same.outcome, same.differing) == ("identical", ())
    for bundle, place in ((builds.here, ROOT), (builds.head, builds.checkout)):
        for name in digests(bundle).files:
            assert str(place).encode() not in (bundle / TARGET / name).read_bytes(), name
    content = (builds.head / TARGET / "hil-firmware.bin").read_bytes()
    image = read_image(lambda offset, length: content[offset : offset + length], 0, len(content))
    description = unpack_app_description(image)
    assert description
    assert description.version == (ROOT / "firmware" / "version.txt").read_text().strip()
    assert image.segments[0].data[80:112] == bytes(32)  # esp_app_desc_t.time and .date


@pytest.mark.slow
@pytest.mark.heavy
def test_the_firmware_of_another_commit_is_built(builds: Builds) -> None:
    """--at REV: the image of that commit, noted as its own and as clean, compares as different. No sources
    are left below out/, no worktree in .git, no change in the working tree. What is flashed is named by paths
    inside of the bundle's folder, and only what is needed is there."""
    head, base = builds.commits
    assert [digests(builds.head).commit, digests(builds.base).commit] == [head, base]
    assert not digests(builds.base).dirty
    (other,) = compare_bundles(builds.head, builds.base)
    assert (other.outcome, other.differing) == ("different", ("hil-firmware.bin",))
    assert b"of the base" in (builds.base / TARGET / "hil-firmware.elf").read_bytes()
    assert b"of the base" not in (builds.head / TARGET / "hil-firmware.elf").read_bytes()
    assert not list(builds.checkout.glob("out/firmware/at/*-sources"))
    assert git(builds.checkout, "worktree", "list").count("\n") == 0
    assert git(builds.checkout, "status", "--porcelain") == ""
    folder = builds.head / TARGET
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    more = {"flasher_args.json", "hil-firmware.elf", "config/sdkconfig.json", "digests.json"}
    assert names == {name for _, name in flash_files(folder)} | more
    text = (folder / "flasher_args.json").read_text()
    assert not [word for word in json.dumps(json.loads(text)).split('"') if word.startswith("/")]


@pytest.mark.slow
@pytest.mark.heavy
def test_a_ruler_that_is_the_same_changes_no_byte(builds: Builds, tmp_path: Path) -> None:
    """--ruler-of REV whose benches are the base's own: every file as without it, and the bundle names REV."""
    done = build_there(
        builds.checkout, "--at", "HEAD~1", "--ruler-of", "HEAD", "--bundle", str(tmp_path / "base")
    )
    assert done.returncode == 0, done.stdout
    assert digests(tmp_path / "base").files == digests(builds.base).files
    assert digests(tmp_path / "base").ruler == Ruler(builds.commits[0], dirty=False)
    assert digests(builds.base).ruler is None


@pytest.mark.slow
@pytest.mark.heavy
def test_a_commit_that_cannot_be_built_is_named(builds: Builds) -> None:
    """Exit 2 naming the commit and what fails; its sources are removed after the error too."""
    git(builds.checkout, "checkout", "--quiet", "-b", "broken")
    shutil.rmtree(builds.checkout / "firmware" / "components" / "benches")
    broken = commit_all(builds.checkout)
    git(builds.checkout, "checkout", "--quiet", "-")
    why = builds.checkout / "out" / "failure.json"
    done = build_there(builds.checkout, "--at", "broken", "--failure", str(why))
    assert done.returncode == 2, done.stdout
    assert read_failure(why)[0] == "sources"
    assert f"broken ({broken[:12]})" in done.stdout
    assert "bench_table.cmake" in done.stdout
    assert not list(builds.checkout.glob("out/firmware/at/*-sources"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository without firmware."""
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "--quiet")
    (path / "README.md").write_text("nothing yet\n")
    commit_all(path)
    return path


def test_a_commit_without_firmware_is_refused(repository: Path, tmp_path: Path) -> None:
    """The sentence names the commit and the folder."""
    revision = find_revision(repository, "HEAD")
    with (
        pytest.raises(ConfigError, match=r"commit HEAD \([0-9a-f]{12}\) has no folder firmware/"),
        sources_at(repository, revision, tmp_path / "sources"),
    ):
        pass


@pytest.mark.parametrize(
    ("chip", "tick_hz", "virtual", "there", "missing"),
    [
        ("esp32", 1000, True, [HOST], "partitions.csv, .* esp32 needs"),
        ("esp32c3", 1000, True, [HOST, PARTITIONS], "host/idf/target/esp32c3, .* esp32c3 needs"),
        ("esp32c3", 1000, False, [PARTITIONS], "CMakeLists.txt, .* esp32c3 needs"),
        ("esp32", 100, True, [HOST, PARTITIONS], "sdkconfig.tick100, .* esp32 with a tick of 100 Hz needs"),
    ],
)
def test_what_an_old_commit_lacks_is_named(
    repository: Path, tmp_path: Path, chip: str, tick_hz: int, virtual: bool, there: list[str], missing: str
) -> None:
    """A firmware folder of an older layout: the sentence names the commit, the file and the target."""
    for name in there:
        (repository / "firmware" / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / "firmware" / name).touch()
    revision = find_revision(repository, commit_all(repository)[:10])
    with (
        sources_at(repository, revision, tmp_path / "sources") as sources,
        pytest.raises(ConfigError, match=f"commit {revision.commit[:10]} has no firmware/{missing}"),
    ):
        check_sources(sources, revision, Image(chip, tick_hz), virtual=virtual)


def test_an_unknown_revision_is_refused(repository: Path) -> None:
    """Its name, and what a shallow clone needs; a name that looks like an option is none."""
    for name in ("nowhere", "--all"):
        with pytest.raises(ConfigError, match=f"'{name}' is not a commit") as caught:
            find_revision(repository, name)
        assert "git fetch --unshallow" in caught.value.next_step


def test_what_a_killed_build_left_is_removed(repository: Path, tmp_path: Path) -> None:
    """Sources of a build that was killed take no part in the next, whose own are removed at its end."""
    (repository / "firmware").mkdir()
    (repository / "firmware" / "CMakeLists.txt").write_text("new\n")
    commit_all(repository)
    folder = tmp_path / "sources"
    (folder / "firmware" / "gone").mkdir(parents=True)
    with sources_at(repository, find_revision(repository, "HEAD"), folder) as sources:
        assert [path.name for path in sources.iterdir()] == ["CMakeLists.txt"]
    assert not folder.exists()


def test_only_changes_of_the_firmware_make_it_dirty(repository: Path, tmp_path: Path) -> None:
    """A note elsewhere does not make a build dirty, a new source does; no repository, no commit."""
    (repository / "notes.txt").touch()
    commit = git(repository, "rev-parse", "HEAD")
    assert source_state(repository) == SourceState(commit, dirty=False)
    (repository / "firmware").mkdir()
    (repository / "firmware" / "new.c").touch()
    assert source_state(repository) == SourceState(commit, dirty=True)
    assert source_state(tmp_path) == SourceState("", dirty=False)

# SPDX-License-Identifier: Apache-2.0
"""Firmware bundles: what is in one, that damage is noticed and named, and which build a run takes from it."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest

from hil.base.errors import ConfigError
from hil.boards.firmware.app_image import APP_DESCRIPTION, read_app_description
from hil.boards.firmware.build import build
from hil.boards.firmware.build_folder import Image, flash_files
from hil.boards.firmware.bundle import DIGESTS, file_sha256, read_digests, verify, write_bundle, write_digests
from hil.boards.firmware.image import build_image_dir
from hil.boards.firmware.revision import SourceState
from hil.boards.firmware.selection import compare_bundles, find_firmware, verify_bundle
from hil.boards.rack import Board, Power
from hil.cli.app import run_command
from hil.run import product_device
from hil.run.product_device import ProductDevice
from hil.virtual.air.build import build_air
from tests.boards.idf_stand_in import put_idf
from tests.boards.rack_tools import AIR_DIR
from tests.lab import ROOT, Lab, make_lab, of_type
from tests.probe.scripted import console_of, probe_of
from tests.virtual.virtual_board_rig import make_build

TARGET = "virtual-esp32"
IMAGE = "hil-firmware.bin"
STATE = SourceState("5" * 40, dirty=True)

# Builds as idf.py would, with what it was given noted beside it: an image around any program.
IDF_PY = """
version = os.environ["HIL_FIRMWARE_VERSION"]
make_image(folder, chip=defined["IDF_TARGET"], version=version)
defaults = [defined["SDKCONFIG_DEFAULTS"]] if "SDKCONFIG_DEFAULTS" in defined else []
(folder / "given.json").write_text(json.dumps([os.getcwd(), version, defined["SDKCONFIG"], *defaults]))
"""


@pytest.fixture(scope="module")
def build_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build folder as `hil build` leaves it, around any program."""
    folder = tmp_path_factory.mktemp("build") / TARGET
    build_image_dir(Path("/bin/true"), folder, version="1.2.3")
    return folder


@pytest.fixture
def bundle(build_dir: Path, tmp_path: Path) -> Path:
    """A bundle of one target, moved after it was made."""
    write_bundle(build_dir, Image(TARGET), tmp_path / "made", STATE)
    (tmp_path / "made").rename(tmp_path / "moved")
    return tmp_path / "moved"


def vouch_again(folder: Path) -> None:
    """Write digests of the files as they are now: somebody who can alter the files can do that too."""
    digests = read_digests(folder)
    files = {path.relative_to(folder).as_posix(): file_sha256(path) for path in folder.rglob("*.*")}
    object.__setattr__(digests, "files", {name: value for name, value in files.items() if name != DIGESTS})
    write_digests(folder, digests)


def test_a_moved_bundle_is_whole(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`hil firmware verify` of all and of one folder: exit 0, target, commit, and that it was dirty."""
    for path in (bundle, bundle / TARGET):
        assert run_command(["firmware", "verify", str(path)]) == 0
        said = capsys.readouterr().out
        assert said.startswith("virtual-esp32: 7 files ")
        assert "555555555555 with changes, " in said


def test_digests_match_their_schema(bundle: Path) -> None:
    """digests.json validates against docs/reference/schema; names that lead out of the folder do not."""
    schema = json.loads((ROOT / "docs" / "reference" / "schema" / "digests.schema.json").read_text())
    content = json.loads((bundle / TARGET / DIGESTS).read_text())
    jsonschema.validate(content, schema)
    for name in ("../x", "/x", "a/../b"):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**content, "files": {name: "0" * 64}}, schema)


def flip_a_bit(folder: Path) -> None:
    data = bytearray((folder / IMAGE).read_bytes())
    data[5000] ^= 1
    (folder / IMAGE).write_bytes(data)


def replace_by_link(folder: Path) -> None:
    (folder / "hil-firmware.elf").rename(folder.parent.parent / "elf")
    (folder / "hil-firmware.elf").symlink_to(folder.parent.parent / "elf")


def promise_another(folder: Path) -> None:
    content = json.loads((folder / DIGESTS).read_text())
    (folder / DIGESTS).write_text(json.dumps({**content, "image_sha256": "0" * 64}))


def nest_too_deep(folder: Path, name: str) -> None:
    """Make Python's parser give up, with another error than for wrong JSON."""
    (folder / name).write_text("[" * 100_000)
    if name != DIGESTS:
        vouch_again(folder)


Damage = Callable[[Path], object]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (flip_a_bit, "hil-firmware.bin differs"),
        (lambda folder: (folder / "config" / "sdkconfig.json").unlink(), "config/sdkconfig.json is missing"),
        (lambda folder: (folder / "config" / "more").touch(), "config/more is extra"),
        (replace_by_link, "hil-firmware.elf is a link"),
        (lambda folder: (folder / DIGESTS).unlink(), "is not a firmware bundle"),
        (lambda folder: (folder / DIGESTS).write_text("{"), f"{DIGESTS}: not JSON"),
        (lambda folder: (folder / DIGESTS).write_text('{"schema": 2}'), f"{DIGESTS}: its schema is 2"),
        (lambda folder: folder.rename(folder.parent / "esp32"), "for virtual-esp32, not for esp32"),
        (lambda folder: (folder.parent / "notes.txt").touch(), "not part of the bundle: notes.txt"),
        (lambda folder: (flip_a_bit(folder), (folder / "more").touch()), "more is extra; hil-firmware.bin"),
        (promise_another, "lists 000000000000"),
        (lambda folder: nest_too_deep(folder, DIGESTS), DIGESTS),
        (lambda folder: nest_too_deep(folder, "flasher_args.json"), "flasher_args.json"),
    ],
)
def test_damage_is_named(
    bundle: Path, damage: Damage, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 and one sentence with each file and what became of it; the digest that the board will report
    must be the one in digests.json."""
    damage(bundle / TARGET)
    assert run_command(["firmware", "verify", str(bundle)]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("app", [], "app is []; expected table"),
        ("app", {"file": "/etc/hostname"}, "/etc/hostname, which is not a path"),
        ("app", {"file": ["x"]}, "holds no app image (['x'])"),
        ("flash_files", {"0x1000": "../../secret"}, "../../secret, which is not a path"),
        ("flash_files", [], "flash_files is []; expected table"),
        ("flash_files", {"here": IMAGE}, "flash_files does not map"),
        ("flash_files", {"0x1000": "x" * 300}, "lacks xxx"),
        ("extra_esptool_args", "esp32", "extra_esptool_args is 'esp32'; expected table"),
        ("write_flash_args", None, "write_flash_args is None; expected list"),
    ],
)
def test_a_hostile_flasher_args_is_a_sentence(
    bundle: Path, key: str, value: object, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever stands in flasher_args.json, with right digests: exit 2 naming file and key, no crash."""
    (bundle.parent / "secret").touch()
    path = bundle / TARGET / "flasher_args.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    vouch_again(bundle / TARGET)
    assert run_command(["firmware", "verify", str(bundle)]) == 2
    assert words in capsys.readouterr().err
    shutil.copytree(bundle / TARGET, bundle.parent / "own", ignore=shutil.ignore_patterns(DIGESTS))
    with pytest.raises(ConfigError, match=re.escape(words)):  # in a build folder, which has no digests, too
        flash_files(find_firmware(bundle.parent / "own", Image(TARGET)).build_dir)


def test_a_bundle_is_written_anew_but_nothing_else_is_replaced(build_dir: Path, bundle: Path) -> None:
    """What an earlier bundle held is gone; a folder that is no part of a bundle stays as it is."""
    (bundle / TARGET / "old.elf").touch()
    write_bundle(build_dir, Image(TARGET), bundle, STATE)
    assert [path.name for path in bundle.iterdir()] == [TARGET]
    assert not (bundle / TARGET / "old.elf").exists()
    with pytest.raises(ConfigError, match="is not part of a bundle"):
        write_bundle(build_dir, Image(TARGET), build_dir.parent, STATE)
    assert (build_dir / IMAGE).is_file()


def test_one_build_writes_to_a_bundle_at_a_time(build_dir: Path, bundle: Path) -> None:
    """While another process writes to the bundle nothing in it is touched; then the build goes on."""
    said: list[str] = []
    waiting = threading.Event()

    def say(sentence: str) -> None:
        said.append(sentence)
        waiting.set()

    (bundle / TARGET / "old.elf").touch()
    writer = threading.Thread(
        target=write_bundle, args=(build_dir, Image(TARGET), bundle, STATE), kwargs={"say": say}
    )
    other = os.open(bundle, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        writer.start()
        assert waiting.wait(20)
        assert [str(bundle) in sentence for sentence in said] == [True]
        assert [path.name for path in bundle.iterdir()] == [TARGET]
        assert (bundle / TARGET / "old.elf").exists()
    finally:
        os.close(other)
    writer.join(timeout=60)
    assert verify_bundle(bundle)
    assert not (bundle / TARGET / "old.elf").exists()


def test_a_run_takes_the_build_of_its_target(bundle: Path, build_dir: Path) -> None:
    """From a bundle, from a folder of it, and from a build folder, which says nothing of its origin."""
    digests = read_digests(bundle / TARGET)
    origin = {"commit": STATE.commit, "dirty": True, "idf_version": "host", "ruler": None}
    for path in (bundle, bundle / TARGET):
        found = find_firmware(path, Image(TARGET))
        assert (found.build_dir, found.sha256) == (bundle / TARGET, digests.image_sha256)
        assert found.origin == origin
    own = find_firmware(build_dir, Image(TARGET))
    assert (own.build_dir, own.sha256, own.origin) == (build_dir, digests.image_sha256, {})


@pytest.mark.parametrize(
    ("path", "image", "words"),
    [
        (".", Image("esp32c3"), "virtual-esp32, but none for esp32c3"),
        (TARGET, Image("esp32"), "for virtual-esp32, not for esp32"),
        ("nowhere", Image(TARGET), "nowhere is not a firmware build"),
        (".", Image(TARGET, 100), rf"none for {TARGET}\+tick100.* --tick-hz 100 --bundle .*not tick_hz=100"),
    ],
)
def test_a_build_for_another_image_is_refused(bundle: Path, path: str, image: Image, words: str) -> None:
    """The sentence says what is there; of a tick, the command that adds it, and the cases to leave out."""
    with pytest.raises(ConfigError, match=words):
        find_firmware(bundle / path, image)


@pytest.fixture
def ticks(build_dir: Path, tmp_path: Path) -> Path:
    """A bundle of two images of one target; no board ever runs this second one."""
    write_bundle(build_dir, Image(TARGET), tmp_path / "ticks", STATE)
    slow = shutil.copytree(build_dir, tmp_path / "slow")
    path = slow / "config" / "sdkconfig.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "FREERTOS_HZ": 100}))
    write_bundle(slow, Image(TARGET, 100), tmp_path / "ticks", STATE)
    return tmp_path / "ticks"


def test_a_bundle_has_a_folder_for_each_image(ticks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folders are named after target and tick, each with its own digests; each is found by its name. A
    folder of a bundle, one that was renamed, and a build folder of one's own: none runs as the other."""
    assert sorted(path.name for path in ticks.iterdir()) == [TARGET, f"{TARGET}+tick100"]
    assert run_command(["firmware", "verify", str(ticks)]) == 0
    assert f"\n{TARGET}+tick100: 7 files as built" in capsys.readouterr().out
    for image in (Image(TARGET), Image(TARGET, 100)):
        assert find_firmware(ticks, image).build_dir == ticks / str(image)
    comparisons = compare_bundles(ticks, ticks)
    found = {item.target: item.outcome for item in comparisons}
    assert found == dict.fromkeys((TARGET, f"{TARGET}+tick100"), "identical")
    slow = Image(TARGET, 100)
    with pytest.raises(ConfigError, match=rf"is a build for {TARGET}, not for {TARGET}\+tick100"):
        find_firmware(ticks / TARGET, slow)
    with pytest.raises(ConfigError, match=r"is a build for esp32\+tick100, not for esp32\."):
        find_firmware(ticks.parent / "slow", Image(TARGET))
    (ticks / str(slow)).rename(ticks / f"{TARGET}+tick50")
    with pytest.raises(ConfigError, match=rf"a build for {TARGET}\+tick100, not for {TARGET}\+tick50"):
        verify_bundle(ticks)


def test_a_comparison_sees_targets_that_one_side_lacks(bundle: Path, tmp_path: Path) -> None:
    """only-in-head, only-in-base, identical; which is said of files that are there, not of copied digests."""
    for name in ("head", "base"):
        shutil.copytree(bundle, tmp_path / name)
        shutil.copytree(bundle / TARGET, tmp_path / name / f"{name}-chip")
        path = tmp_path / name / f"{name}-chip" / DIGESTS
        path.write_text(json.dumps({**json.loads(path.read_text()), "target": f"{name}-chip"}))
    expected = {"base-chip": "only-in-base", "head-chip": "only-in-head", TARGET: "identical"}
    found = compare_bundles(tmp_path / "head", tmp_path / "base")
    assert {one.target: one.outcome for one in found} == expected
    flip_a_bit(tmp_path / "base" / TARGET)
    with pytest.raises(ConfigError, match=f"{IMAGE} differs"):
        compare_bundles(tmp_path / "head", tmp_path / "base")


def change_arguments(folder: Path, old: str, new: str) -> None:
    path = folder / "flasher_args.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def leave_one_out(folder: Path) -> None:
    path = folder / "flasher_args.json"
    arguments = json.loads(path.read_text())
    files = arguments["flash_files"]
    arguments["flash_files"] = {at: name for at, name in files.items() if name != "bootloader/bootloader.bin"}
    path.write_text(json.dumps(arguments))


@pytest.mark.parametrize(
    ("change", "differing"),
    [
        (lambda folder: (folder / "hil-firmware.elf").write_bytes(b"\x7fELF"), ()),
        (lambda folder: (folder / "config" / "sdkconfig.json").write_text("{}"), ()),
        (
            lambda folder: (folder / "bootloader" / "bootloader.bin").write_bytes(b"x"),
            "bootloader/bootloader.bin",
        ),
        (leave_one_out, "bootloader/bootloader.bin"),
        (lambda folder: change_arguments(folder, "0x10000", "0x20000"), IMAGE),
        (lambda folder: change_arguments(folder, '"dio"', '"qio"'), "write_flash_args"),
    ],
)
def test_only_what_is_flashed_counts(bundle: Path, tmp_path: Path, change: Damage, differing: str) -> None:
    """ELF and configuration are not flashed; each image, its address and the flash settings are."""
    shutil.copytree(bundle, tmp_path / "base")
    change(tmp_path / "base" / TARGET)
    vouch_again(tmp_path / "base" / TARGET)
    (found,) = compare_bundles(bundle, tmp_path / "base")
    assert found.differing == ((differing,) if differing else ())
    assert found.outcome == ("different" if differing else "identical")


@pytest.fixture
def idf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an idf.py on PATH that makes a build folder."""
    put_idf(IDF_PY, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.usefixtures("idf")
def test_a_chips_bundle_says_which_esp_idf_built_it(tmp_path: Path) -> None:
    """The version is the image's own; the sources' version.txt decides what the image calls itself."""
    build_dir = build("esp32s3", say=lambda _sentence: None, build_root=tmp_path / "out")
    folder = write_bundle(build_dir, Image("esp32s3"), tmp_path / "bundle", STATE)
    assert read_digests(folder).idf_version == "v5.5.4-virtual"
    cwd, version, sdkconfig = json.loads((build_dir / "given.json").read_text())
    assert cwd == str(ROOT / "firmware")
    assert version == (ROOT / "firmware" / "version.txt").read_text().strip()
    assert Path(sdkconfig).parent == tmp_path / "out"


@pytest.mark.slow
@pytest.mark.usefixtures("idf")
def test_what_is_not_ordinary_is_an_overlay_over_the_defaults(tmp_path: Path) -> None:
    """A tick's values, and a planted slowdown with a version that says it, come last; neither build folder
    nor sdkconfig is the ordinary image's."""
    out = tmp_path / "out"

    def given(**options: int) -> tuple[Path, list[str]]:
        folder = build("esp32", say=lambda _sentence: None, build_root=out, **options)  # type: ignore[arg-type]
        return folder, json.loads((folder / "given.json").read_text())[2:]

    (ordinary, own), (slow, of_slow), (planted, of_planted) = given(), given(tick_hz=100), given(plant_us=700)
    assert (ordinary, slow) == (out / "esp32", out / "esp32+tick100")
    assert planted == out / "planted" / "esp32"
    assert len({*own, of_slow[0], of_planted[0]}) == 3
    assert of_slow[1:] == ["sdkconfig.defaults;sdkconfig.tick100"]
    first, last = of_planted[1].split(";")
    assert first == "sdkconfig.defaults"
    said = Path(last).read_text()
    assert "CONFIG_HIL_PLANT_PUBLISH_US=700\n" in said
    assert re.search(r'CONFIG_APP_PROJECT_VER="[0-9.]+\+planted-700us"', said)


@pytest.mark.slow
@pytest.mark.usefixtures("idf")
def test_other_defaults_get_another_sdkconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ESP-IDF leaves an sdkconfig as it is, so one of other defaults must not be used again."""
    sources = tmp_path / "firmware"
    sources.mkdir()
    monkeypatch.setattr("hil.boards.firmware.build.FIRMWARE_DIR", sources)
    found = []
    for text in ("CONFIG_A=y\n", "CONFIG_A=n\n", "CONFIG_A=y\n"):
        (sources / "sdkconfig.defaults").write_text(text)
        build_dir = build("esp32", say=lambda _sentence: None, build_root=tmp_path / "out")
        found.append(json.loads((build_dir / "given.json").read_text())[2])
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "linux", "--bundle", "nowhere"], "nothing to bundle"),
        (["--target", TARGET, "--at", ""], "--at is empty"),
        (["--plant-publish-us", "700", "--at", "HEAD"], "leave -C and --at out"),
        (["--plant-publish-us", "700", "-C", "."], "leave -C and --at out"),
    ],
)
def test_what_cannot_be_built_is_refused(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 before anything is built: a program for this machine is not flashed, `--at "$BASE"` with BASE
    unset is not another firmware in silence, a slowdown is planted in these sources alone."""
    assert run_command(["build", *options]) == 2
    assert words in capsys.readouterr().err


NewLab = Callable[[int], Lab]
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


STORAGE = "0x3f0000"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_build(tmp_path_factory.mktemp("made"))


@pytest.fixture
def own_build(made: Path, tmp_path: Path) -> Path:
    """A build in a project that has an image of its own beside it."""
    own_build = tmp_path / "project" / "build"
    own_build.parent.mkdir()
    shutil.copytree(made, own_build)
    (tmp_path / "project" / "hil.toml").touch()
    (tmp_path / "project" / "assets").mkdir()
    (tmp_path / "project" / "assets" / "storage.bin").write_bytes(b"storage")
    return own_build


def flash_too(own_build: Path, name: str) -> None:
    path = own_build / "flasher_args.json"
    content = json.loads(path.read_text())
    content["flash_files"][STORAGE] = name
    content["storage"] = {"offset": STORAGE, "file": name, "encrypted": "false"}
    path.write_text(json.dumps(content))


def test_a_file_of_the_project_beside_the_build_is_flashed(own_build: Path) -> None:
    """A build names it with ``../``; so does a build in a folder further down of the same project."""
    flash_too(own_build, "../assets/storage.bin")
    assert (STORAGE, "../assets/storage.bin") in flash_files(own_build)
    deeper = own_build.parent / "out" / "firmware" / "it"
    shutil.copytree(own_build, deeper)
    flash_too(deeper, "../../../assets/storage.bin")
    found = find_firmware(deeper, Image(TARGET)).build_dir
    assert (STORAGE, "../../../assets/storage.bin") in flash_files(found)


def test_a_bundle_takes_it_along(own_build: Path, tmp_path: Path) -> None:
    """The bundle holds a copy and names that, so it is whole on another machine."""
    flash_too(own_build, "../assets/storage.bin")
    state = SourceState("5" * 40, dirty=False)
    folder = write_bundle(own_build, Image(TARGET), tmp_path / "bundle", state)
    shutil.rmtree(own_build.parent)
    assert verify(folder)
    (name,) = [name for offset, name in flash_files(folder) if offset == STORAGE]
    assert (folder / name).read_bytes() == b"storage"
    assert json.loads((folder / "flasher_args.json").read_text())["storage"]["file"] == name


@pytest.mark.parametrize("name", ["../../secret", "../.git/config", "/etc/hostname", "../link/hostname"])
def test_a_file_outside_of_the_project_is_refused(own_build: Path, name: str) -> None:
    """Nothing of the host is flashed; the way out is one that can be gone."""
    (own_build.parent / ".git").mkdir()
    (own_build.parent / ".git" / "config").touch()
    (own_build.parent.parent / "secret").touch()
    (own_build.parent / "link").symlink_to("/etc")
    flash_too(own_build, name)
    with pytest.raises(ConfigError, match=re.escape(f"names {name}, which is not a path inside")) as caught:
        flash_files(own_build)
    assert f"copy it into {own_build}" in caught.value.next_step


def test_a_file_of_the_project_that_is_not_there_is_named(own_build: Path) -> None:
    """Missing is another fault than outside."""
    flash_too(own_build, "../assets/gone.bin")
    with pytest.raises(ConfigError, match=r"lacks \.\./assets/gone\.bin"):
        flash_files(own_build)


def test_field_two_files_at_one_offset_are_both_named(own_build: Path) -> None:
    """JSON would take the last, and the first would not be flashed, without a word."""
    path = own_build / "flasher_args.json"
    twin = '"flash_files": {"0x110000": "a.bin", "0x110000": "b.bin",'
    path.write_text(re.sub(r'"flash_files":\s*\{', twin, path.read_text()))
    with pytest.raises(ConfigError, match=r"a\.bin and b\.bin .* 0x110000"):
        flash_files(own_build)


def test_zeros_for_the_hash_of_the_elf_prove_nothing(
    own_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image without the hash prints zeros as any other such image does: no proof, and told."""
    described = read_app_description(own_build / "testapp.bin")
    assert described
    zeros = type(described)(described.project, described.version, described.idf_version, bytes(32))
    monkeypatch.setattr(product_device, "description_of", lambda _: zeros)
    console = console_of(["ELF file SHA256:  000000000...", "up"], ready=False)
    console.await_ready(probe_of(tmp_path, "ready: {pattern: '^up$', within_s: 60}\nboot: {to: 'a'}\n"))
    device = ProductDevice.__new__(ProductDevice)
    device.board = Board("b1", "virtual", "esp32", "port", Power("none"), where="rack.yaml:7")
    device.console, device.build_dir, device.must_print = console, own_build, False
    device._check_proven()
    device.must_print = True
    with pytest.raises(ConfigError, match="zeros as ELF hash") as caught:
        device._check_proven()
    assert "--elf-sha256-offset 0xb0" in caught.value.next_step
    assert APP_DESCRIPTION.size == 0x100  # of which the hash is at 0x90: 0xb0 in the file, behind its headers

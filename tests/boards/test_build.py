# SPDX-License-Identifier: Apache-2.0
"""Builds: one at a time, none left however it ends, and why one failed."""

from __future__ import annotations

import fcntl
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hil.base.chips import MODELLED
from hil.base.errors import ConfigError, RefusedSourcesError
from hil.boards.firmware.build import FIRMWARE_DIR, VIRTUAL_TARGETS, HostTree, build, build_all
from hil.boards.firmware.build_folder import Image
from hil.boards.firmware.failure import read_failure, refuses_sources, told
from tests.host_builds import PLAIN, build_programs
from tests.lab import ROOT, all_processes, wait_for

BUILD_NINJA = """\
rule slow
  command = sh -c 'touch started; sleep 600; : {folder}'
build never: slow
"""
RUN = """
import signal, sys
from pathlib import Path
from hil.boards.firmware.revision import run_step
def terminated(*_arguments):
    raise SystemExit(143)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts with &
if sys.argv[2] == "own":
    signal.signal(signal.SIGTERM, terminated)
folder = Path(sys.argv[1])
run_step(("ninja", "-C", str(folder)), log=folder / "log")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "handler"),
    [(signal.SIGKILL, "none"), (signal.SIGTERM, "none"), (signal.SIGTERM, "own"), (signal.SIGINT, "none")],
)
def test_no_compiler_outlives_its_build(tmp_path: Path, number: signal.Signals, handler: str) -> None:
    """After Ctrl-C, SIGTERM and kill -9 of the process that builds, ninja and its jobs end too."""
    (tmp_path / "build.ninja").write_text(BUILD_NINJA.format(folder=tmp_path))
    argv = [sys.executable, "-c", RUN, str(tmp_path), handler]
    process = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        wait_for((tmp_path / "started").exists, lambda: "the job did not start")
        assert left(tmp_path, process.pid)
    finally:
        process.send_signal(number)
        process.wait(timeout=20)
    wait_for(lambda: not left(tmp_path, process.pid), lambda: f"left: {left(tmp_path, process.pid)}", 20)


ON_A_SMALL_DISK = """
import sys
from pathlib import Path
from hil.base.errors import HilError
from hil.boards.firmware.revision import run_step
folder = Path("/mnt/build")
try:
    run_step(sys.argv[1:], log=folder / "log", cwd=Path("/mnt"))
except HilError as error:
    print(error.owner, error)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("disk", "command"),
    [
        ("256k", "head -c 1000000 /dev/zero >big"),  # the program says so, and the log may hold it
        ("256k", "head -c 1000000 /dev/zero >big 2>/dev/null"),  # it says nothing
        ("256k,nr_inodes=1", "true"),  # not even a log has room
    ],
)
def test_a_full_disk_is_the_rigs_and_no_word_of_the_compiler(disk: str, command: str) -> None:
    """Where there is no room to build, that is said, with the way out, instead of `cmake exited with 1`."""
    script = f'mount -t tmpfs -o size={disk} tmpfs /mnt; exec "$@"'
    argv = ["unshare", "--map-root-user", "--mount", "sh", "-ec", script, "sh"]  # whoever runs the tests
    argv += [sys.executable, "-c", ON_A_SMALL_DISK, "sh", "-c", command]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith("rig "), done
    assert "the disk of /mnt" in done.stdout
    assert "free some space" in done.stdout


def left(folder: Path, own: int) -> list[str]:
    return [one.name for one in all_processes() if str(folder) in one.name and one.pid != own]


@pytest.mark.slow
def test_a_second_build_waits_for_the_first(virtual_firmware: Path) -> None:
    """While another process builds any chip in the tree nothing is touched; then the build goes on."""
    said: list[str] = []
    waiting = threading.Event()

    def say(sentence: str) -> None:
        said.append(sentence)
        waiting.set()

    with (virtual_firmware.parent / "host.lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        second = threading.Thread(target=build, args=("virtual-esp32",), kwargs={"say": say})
        second.start()
        assert waiting.wait(20)
        assert [sentence.split()[0] for sentence in said] == ["Waiting"]
    second.join(timeout=120)
    assert any(sentence.startswith("Built ") for sentence in said)


@pytest.mark.slow
def test_building_the_same_again_touches_no_image(virtual_firmware: Path) -> None:
    """Files that did not change stay the very same files, as another run may be flashing from them."""

    def identities() -> dict[Path, tuple[int, int]]:
        paths = [path for path in virtual_firmware.rglob("*") if path.is_file()]
        return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}

    before = identities()
    assert before
    build("virtual-esp32", say=lambda _sentence: None)
    assert identities() == before


@pytest.fixture
def trees(monkeypatch: pytest.MonkeyPatch) -> list[tuple[HostTree, tuple[str, ...]]]:
    """Have trees leave any program where the compiler would; the list has each tree and what it built."""
    built: list[tuple[HostTree, tuple[str, ...]]] = []

    def leave_programs(tree: HostTree, *programs: str) -> None:
        built.append((tree, programs))
        tree.folder.mkdir(parents=True, exist_ok=True)
        for program in programs:
            shutil.copy("/bin/true", tree.folder / program)

    monkeypatch.setattr(HostTree, "build", leave_programs)
    return built


def test_images_of_one_tree_are_built_at_once(
    trees: list[tuple[HostTree, tuple[str, ...]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The images that a run needs are built by one call, which has all cores busy. Who asks for one chip does
    not wait for the others."""
    monkeypatch.setattr("hil.boards.firmware.build.BUILD_ROOT", tmp_path)
    said: list[str] = []
    folders = build_all(map(Image, VIRTUAL_TARGETS), say=said.append)
    assert [programs for _, programs in trees] == [tuple(f"hil-firmware-{chip}.elf" for chip in MODELLED)]
    names = {str(image): folder.name for image, folder in folders.items()}
    assert names == dict(zip(VIRTUAL_TARGETS, VIRTUAL_TARGETS, strict=True))
    assert [line.split()[0] for line in said] == ["Building"] * 3 + ["Built"] * 3
    build("virtual-esp32c3", say=lambda _sentence: None, build_root=tmp_path)
    assert trees[-1][1] == ("hil-firmware-esp32c3.elf",)


def test_a_planted_slowdown_has_a_tree_of_its_own(
    trees: list[tuple[HostTree, tuple[str, ...]]], tmp_path: Path
) -> None:
    """The tree is told what is planted, and the image's version says it; the ordinary ones are not."""
    folders = [
        build("virtual-esp32", plant_us=us, say=lambda _: None, build_root=tmp_path) for us in (0, 700)
    ]
    assert folders == [tmp_path / "virtual-esp32", tmp_path / "planted" / "virtual-esp32"]
    options = ["-DHIL_PLANT_PUBLISH_US=700" in tree.options for tree, _ in trees]
    versions = [b"+planted-700us\0" in (folder / "hil-firmware.bin").read_bytes() for folder in folders]
    assert (options, versions) == ([False, True], [False, True])
    assert [tree.folder.parent for tree, _ in trees] == [tmp_path, tmp_path / "planted"]


@pytest.mark.slow
@pytest.mark.heavy
def test_a_planted_slowdown_is_in_no_ordinary_image(virtual_firmware: Path) -> None:
    """The planted program wraps the publish; the ordinary image stays as it was and wraps nothing."""

    def ordinary() -> tuple[bytes, bytes]:
        return tuple((virtual_firmware / f"hil-firmware.{kind}").read_bytes() for kind in ("bin", "elf"))

    before = ordinary()
    planted = build("virtual-esp32", plant_us=700, say=lambda _sentence: None)
    assert b"__wrap_esp_mqtt_client_publish" in (planted / "hil-firmware.elf").read_bytes()
    assert ordinary() == before
    assert not any(b"planted" in part or b"__wrap_esp_mqtt_client_publish" in part for part in before)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("chip", MODELLED)
def test_nothing_that_differs_is_shared(tmp_path: Path, chip: str) -> None:
    """A chip built alone, where nothing is shared, has the same program, byte for byte."""
    name = f"hil-firmware-{chip}.elf"
    alone = HostTree(FIRMWARE_DIR, tmp_path / "alone", (f"-DIDF_TARGET={chip}",))
    alone.build("hil-firmware.elf")
    shared = build_programs(PLAIN, name) / name
    assert shared.read_bytes() == (alone.folder / "hil-firmware.elf").read_bytes()


@pytest.mark.slow
def test_a_tree_of_another_installation_is_made_anew(tmp_path: Path) -> None:
    """Sources that lie elsewhere now, as in another virtual environment, build in the same folder."""
    text = "cmake_minimum_required(VERSION 3.18)\nproject(p NONE)\n"
    text += "add_custom_target(t COMMAND touch {} VERBATIM)\n"
    folder = tmp_path / "tree"
    for name in ("old", "new", "new"):
        (tmp_path / name / "host").mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "host" / "CMakeLists.txt").write_text(text.format(tmp_path / f"built-{name}"))
        HostTree(tmp_path / name, folder).build("t")
        assert (tmp_path / f"built-{name}").is_file()
        (folder / name).touch()
    assert not (folder / "old").exists()
    assert (folder / "new").is_file()


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("{sources}/main/app.c:7:3: error: expected ';' before 'return'", True),
        ("CMake Error at CMakeLists.txt:12 (include):\n  include could not find requested file:", True),
        ("{sources}/main/app.c:7:3: error: x\ncc1: out of memory allocating 65536 bytes", False),
        ("{sources}/main/app.c:7:3: error: x\nerror: writing a.s: No space left on device", False),
        ("{sources}/main/app.c:1:10: fatal error: openssl/ssl.h: No such file or directory", False),
        ("/usr/include/stdio.h:7:3: error: unknown type name", False),
        ("cc: fatal error: Killed signal terminated program cc1", False),
        ("CMake Error at CMakeLists.txt:3 (project):\n  No CMAKE_C_COMPILER could be found.", False),
        ("ninja: fatal: pipe: Too many open files", False),
    ],
)
def test_only_a_compiler_that_refuses_the_sources_proves_that_they_do_not_build(
    tmp_path: Path, said: str, refused: bool
) -> None:
    """A disk that is full, a library or a tool that is missing, a process that was killed prove nothing."""
    log = tmp_path / "build.log"
    log.write_text(f"$ cmake --build x\n[1/9] cc\n{said.format(sources=tmp_path / 'firmware')}\n")
    assert refuses_sources(log, tmp_path / "firmware") is refused


@pytest.mark.parametrize(("kind", "cause"), [(RefusedSourcesError, "sources"), (ConfigError, "unknown")])
def test_a_failed_build_tells_its_cause_as_data(tmp_path: Path, kind: type[ConfigError], cause: str) -> None:
    """The error goes on; the file has cause and sentence for the run that has no base."""
    path = tmp_path / "bundle" / "failure.json"
    with pytest.raises(kind), told(path):
        raise kind("the build failed: x.c:1: error.")
    assert read_failure(path) == (cause, "the build failed: x.c:1: error")
    with told(path):
        pass
    assert not path.exists()  # the next build went well


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (None, "unknown"),
        (b"", "unknown"),
        (b"[]", "unknown"),
        (b'{"schema": 9, "cause": "sources", "sentence": "x"}', "unknown"),
        (b'{"schema": 1, "cause": "identical", "sentence": "x"}', "identical"),
    ],
)
def test_without_a_word_of_ours_the_cause_is_unknown(
    tmp_path: Path, content: bytes | None, cause: str
) -> None:
    """A killed build leaves no file, a lost artefact neither; what cannot be read proves nothing. A base that
    is the head itself has a cause of its own."""
    path = tmp_path / "failure.json"
    if content is not None:
        path.write_bytes(content)
    found, reason = read_failure(path)
    assert found == cause
    assert reason

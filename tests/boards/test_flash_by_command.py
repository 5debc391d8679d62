# SPDX-License-Identifier: Apache-2.0
"""A board that only its product may write: flashed by the product's command, which here calls esptool."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, HilError, NoAnswerError, RigError
from hil.base.flash_command import FlashCommand, read_flash_command
from hil.boards.firmware.app_image import read_app_description
from hil.boards.firmware.build_folder import SDKCONFIG, check_burns_nothing, image_sha256
from hil.boards.flash.by_command import CommandFlasher
from hil.boards.rack import Board, Power
from hil.run.product_device import ProductDevice
from tests.lab import ROOT, wait_for
from tests.probe.scripted import console_of, probe_of
from tests.virtual.virtual_board_rig import MAC, BoardProcess, is_alive, make_build

# What a product may have: a script that takes port and build, and has esptool write it; over our own
# client of RFC 2217, for pyserial's takes half a minute.
SCRIPT = f"""\
import json, os, pathlib, subprocess, sys
os.environ["PYTHONPATH"] = {str(ROOT)!r}
port, build, baud, target = sys.argv[1:]
pathlib.Path("ran").write_text(build)
print("with the key hunter22", flush=True)
files = json.loads(pathlib.Path(build, "flasher_args.json").read_text())["flash_files"]
words = [word for offset, name in files.items() for word in (offset, str(pathlib.Path(build, name)))]
esptool, port = "hil.boards.serial_url.esptool", port.replace("rfc2217:", "fastrfc2217:")
argv = [sys.executable, "-m", esptool, "--chip", target, "--port", port, "--baud", baud, "write-flash"]
sys.exit(subprocess.run([*argv, *words], check=False).returncode)
"""
SLEEPER = """\
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path("child.new").write_text(str(child.pid))
os.rename("child.new", "child")
time.sleep(600)
"""


@pytest.fixture(name="builds", scope="module")
def two_builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("builds")
    return {tag: make_build(folder / tag, tag=tag) for tag in ("candidate", "base")}


def flasher(
    process: BoardProcess,
    builds: dict[str, Path],
    folder: Path,
    words: list[str],
    *,
    timeout_s: float = 300.0,
) -> CommandFlasher:
    return CommandFlasher(
        Board("b1", "virtual", "esp32", process.url(), Power("virtual"), mac=MAC, where="rack.yaml:7"),
        builds,
        FlashCommand(tuple(words), timeout_s),
        where=folder,
        folder=folder,
        masked=lambda text: text.replace("hunter22", "***"),
        stop=threading.Event(),
    )


def script(folder: Path, text: str = SCRIPT) -> list[str]:
    (folder / "flash.py").write_text(text)
    return [sys.executable, str(folder / "flash.py"), "{port}", "{build}", "{baud}", "{target}"]


def app_of(build_dir: Path) -> bytes:
    return (build_dir / "testapp.bin").read_bytes()


@pytest.mark.slow
def test_the_command_writes_whose_turn_it_is(
    process: BoardProcess, builds: dict[str, Path], tmp_path: Path
) -> None:
    """Its words are in the log without secrets; a comparison's builds take turns."""
    one = flasher(process, builds, tmp_path, script(tmp_path))
    one.flash("candidate")
    assert one.selected == "candidate"
    assert app_of(builds["candidate"]) in process.flash.read_bytes()
    log = (tmp_path / "b1.log").read_text()
    assert "Hash of data verified" in log
    assert "with the key ***\n" in log
    assert f"$ {sys.executable} {tmp_path / 'flash.py'} rfc2217://" in log
    one.switch("base")
    assert app_of(builds["base"]) in process.flash.read_bytes()


@pytest.mark.slow
def test_another_board_is_not_handed_to_the_command(
    process: BoardProcess, builds: dict[str, Path], tmp_path: Path
) -> None:
    """The chip is asked first who it is: nothing runs for one of another MAC address."""
    one = flasher(process, builds, tmp_path, script(tmp_path))
    one.board = replace(one.board, mac="02:00:00:00:00:99")
    with pytest.raises(ConfigError, match="another board answers"):
        one.flash("candidate")
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("raise SystemExit(3)", RigError, "it ended with status 3"),
        ("raise SystemExit('fatal error occurred: Failed to connect')", NoAnswerError, "boot loader"),
        ("import time; time.sleep(600)", NoAnswerError, "did not end within 0.5 s"),
        ("", ConfigError, "is not an executable program"),
    ],
)
def test_a_command_that_fails_has_an_owner(
    process: BoardProcess,
    builds: dict[str, Path],
    tmp_path: Path,
    text: str,
    error: type[HilError],
    words: str,
) -> None:
    """Its words are esptool's where it calls it; what it is and where its log lies is in the sentence."""
    argv = script(tmp_path, text) if text else [str(tmp_path / "none"), "{port}", "{build}"]
    one = flasher(process, builds, tmp_path, argv, timeout_s=0.5 if "sleep" in text else 300.0)
    with pytest.raises(error, match=words) as caught:
        one.flash("candidate")
    assert type(caught.value) is error
    assert "flashing board b1 on" in caught.value.sentence
    assert str(tmp_path / "b1.log") in str(caught.value)
    assert not one.selected


@pytest.mark.slow
def test_a_stopped_run_ends_the_command_and_what_it_started(
    process: BoardProcess, builds: dict[str, Path], tmp_path: Path
) -> None:
    """No child of it is left, whatever it does."""
    one = flasher(process, builds, tmp_path, script(tmp_path, SLEEPER))

    def stop_once_it_runs() -> None:
        try:
            wait_for((tmp_path / "child").exists, lambda: "no child", 120.0)
        finally:
            one.stop.set()

    thread = threading.Thread(target=stop_once_it_runs)
    thread.start()
    with pytest.raises(RigError, match="the run was stopped"):
        one.flash("candidate")
    thread.join()
    child = int((tmp_path / "child").read_text())
    wait_for(lambda: not is_alive(child), lambda: f"{child} is left", 120.0)


def test_only_what_is_done_once_is_let_through(tmp_path: Path) -> None:
    """A chip with development keys runs an image that would burn them; what burns more stays refused."""

    def build(*options: str) -> Path:
        (tmp_path / SDKCONFIG).parent.mkdir(exist_ok=True)
        (tmp_path / SDKCONFIG).write_text(json.dumps(dict.fromkeys(options, True)))
        return tmp_path

    signed = ("SECURE_BOOT", "SECURE_FLASH_ENCRYPTION_MODE_DEVELOPMENT")
    check_burns_nothing(build(*signed), has_keys=True)
    with pytest.raises(ConfigError, match=r"label flash-by-command"):
        check_burns_nothing(build(*signed))
    more = (
        "SECURE_FLASH_ENCRYPTION_MODE_RELEASE",
        "SECURE_DISABLE_ROM_DL_MODE",
        "BOOTLOADER_APP_ANTI_ROLLBACK",
    )
    for option in more:
        with pytest.raises(ConfigError, match=f"CONFIG_{option}.*never flashes it"):
            check_burns_nothing(build(*signed, option), has_keys=True)


def test_a_signed_image_has_its_digest_before_its_signature(builds: dict[str, Path], tmp_path: Path) -> None:
    """What is appended to an image is no part of what its digest is of; a change of the image is."""
    image = builds["candidate"] / "testapp.bin"
    plain = image.read_bytes()
    digest = image_sha256(builds["candidate"])
    try:
        image.write_bytes(plain + b"\xff" * 100 + b"\xe7\x02signature".ljust(4096, b"\0"))
        assert image_sha256(builds["candidate"]) == digest
        image.write_bytes(plain[:1000] + b"?" + plain[1001:] + b"signature")
        with pytest.raises(ConfigError, match="is damaged"):
            image_sha256(builds["candidate"])
    finally:
        image.write_bytes(plain)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"command": "idf.py -p {port} flash"}, "lacks {build}"),
        ({"command": "idf.py -B {build} flash"}, "lacks {port}"),
        ({"command": "x {port} {build} {bord}"}, "{bord}, which no board has"),
        ({"command": 'x "{port} {build}'}, "No closing quotation"),
        ({"command": ["x"]}, "expected a command"),
        ({"comand": "x {port} {build}"}, "unknown key flash.comand; did you mean 'command'"),
        ({"command": "x {port} {build}", "timeout_s": 0}, "flash.timeout_s is 0"),
        ("x {port} {build}", "[flash] must be a table"),
    ],
)
def test_a_wrong_table_is_refused_with_a_sentence(table: object, words: str) -> None:
    """It names the file, the value, and how to write it."""
    with pytest.raises(ConfigError) as caught:
        read_flash_command(table, "hil.toml")
    assert "hil.toml: " in str(caught.value)
    assert words in str(caught.value)


def test_a_value_stays_in_its_word() -> None:
    """Whatever is in a folder's name, the command gets it as one word, and no shell reads it."""
    command = read_flash_command({"command": "x --port={port} '{build}/a b' {mac}"}, "hil.toml")
    assert command
    values = {"port": "/dev/x", "build": "/a b/$(c)", "mac": "", "baud": "1", "target": "esp32"}
    assert command.argv(values) == ["x", "--port=/dev/x", "/a b/$(c)/a b", ""]


@pytest.mark.parametrize(
    ("told", "error", "words"),
    [
        ("ELF file SHA256:  {own}...", None, ""),
        ("nothing", ConfigError, "the measured image is unproven"),
        ("ELF file SHA256:  0123456789abcdef...", RigError, "reports the program 0123456789abcdef"),
    ],
)
def test_what_the_command_wrote_is_proven_by_what_the_product_says(
    builds: dict[str, Path], tmp_path: Path, told: str, error: type[HilError] | None, words: str
) -> None:
    """Nobody else checked it: a product that tells nothing of its image is not believed, nor another one."""
    described = read_app_description(builds["candidate"] / "testapp.bin")
    assert described
    probe = probe_of(tmp_path, "ready: {pattern: '^up$', within_s: 60}\nboot: {to: 'a'}\n")
    console = console_of([told.format(own=described.elf_sha256.hex()[:9]), "up"], ready=False)
    console.await_ready(probe)
    device = ProductDevice.__new__(ProductDevice)
    device.board = Board("b1", "virtual", "esp32", "port", Power("none"), where="rack.yaml:7")
    device.console, device.build_dir, device.must_print = console, builds["candidate"], True
    if error is None:
        device._check_proven()
        return
    with pytest.raises(error, match=words):
        device._check_proven()

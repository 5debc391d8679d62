# SPDX-License-Identifier: Apache-2.0
"""What esptool refuses is the configuration's, in esptool's own sentence; silence is the rig's."""

from __future__ import annotations

import json
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hil.base.errors import ConfigError, NoAnswerError, RigError
from hil.boards.flash import flash
from hil.boards.flash.words import Write, fault_in, last_words
from hil.boards.rack import Board, Power
from tests.virtual.virtual_board_rig import MAC, BoardProcess, make_build

BOX = set("╭╮╰╯│─")
CHIP_ID, MIN_REVISION = 12, 15  # offsets in esp_image_header_t
SIZE = 8192


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_build(tmp_path_factory.mktemp("build"))


@pytest.fixture
def build_dir(original: Path, tmp_path: Path) -> Path:
    """A copy of a build, with one file more than it flashes."""
    shutil.copytree(original, tmp_path / "build")
    (tmp_path / "build" / "storage.bin").write_bytes(bytes(SIZE))
    return tmp_path / "build"


@pytest.fixture
def board(process: BoardProcess) -> Board:
    return Board("b1", "virtual", "esp32", process.url(), Power("virtual"), where="rack.yaml:7")


def change(build_dir: Path, **changes: Any) -> None:
    path = build_dir / "flasher_args.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def patch(image: Path, at: int, content: bytes) -> None:
    data = bytearray(image.read_bytes())
    data[at : at + len(content)] = content
    image.write_bytes(data)


def add_file(build_dir: Path, offset: str) -> None:
    files = json.loads((build_dir / "flasher_args.json").read_text())["flash_files"]
    change(build_dir, flash_files={**files, offset: "storage.bin"})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "value", "words"),
    [
        ("file", "0x3ff000", ["storage.bin: 8192 bytes at 0x3ff000", "will not fit", "ESPTOOLPY_FLASHSIZE"]),
        ("file", "0x11000", ["at address: 0x11000", "testapp.bin: ", "storage.bin: 8192 bytes at 0x11"]),
        ("write_flash_args", ["--flash_size", "3MB"], ["'-fs': '3MB' is not one of", "flasher_args.json"]),
        ("write_flash_args", ["--flash_freq", "33m"], ["'-ff': '33m' is not one of"]),
        ("write_flash_args", ["--flash_modus", "dio"], ["No such option '--flash-modus'"]),
        ("extra_esptool_args", {"before": "warp"}, ["'--before': 'warp' is not one of"]),
        ("loader", (MIN_REVISION, b"\x90\1\xff\xff"), ["requires chip revision v4.0 or higher"]),
        ("loader", (MIN_REVISION, b"\0\0\x64\0"), ["requires chip revision v1.0 or lower"]),
        ("loader", (CHIP_ID, b"\5\0"), ["is not an ESP32 image"]),
    ],
)
def test_what_esptool_refuses_is_named(
    board: Board, build_dir: Path, process: BoardProcess, what: str, value: Any, words: list[str]
) -> None:
    """File, offset and size of an image beyond the flash; both files that overlap, and no other, although
    esptool names one; a size, frequency, option or reset that esptool does not know, quoted whole; the
    image's file, what it requires and what the chip is. It is of the configuration, has a way out, and
    nothing was written, whether the board was asked for its address or not."""
    if what == "file":
        add_file(build_dir, value)
        board = replace(board, mac=MAC)
    elif what == "loader":
        patch(build_dir / "bootloader" / "bootloader.bin", *value)
        words = [f"'bootloader/bootloader.bin' {words[0]}", "bootloader.bin: 240 bytes at 0x1000"]
    else:
        change(build_dir, **{what: value})
    before = process.flash.read_bytes()
    log = build_dir.parent / "flash.log"
    with pytest.raises(ConfigError) as caught:
        flash(board, build_dir, log=log)
    assert process.flash.read_bytes() == before
    said = str(caught.value)
    assert BOX.isdisjoint(said)
    for word in ("board b1", str(log), *words):
        assert word in said
    assert "ota_data_initial.bin" not in said
    assert caught.value.next_step


@pytest.mark.slow
@pytest.mark.parametrize(
    ("image", "at", "content", "words"),
    [
        ("", 0, b"", "Set flash_size 32MB is larger than the available flash size of 16MB"),
        ("testapp.bin", MIN_REVISION, struct.pack("<HH", 400, 65535), "revision v4.0 or higher"),
    ],
    ids=["size", "revision"],
)
def test_what_esptool_warns_of_is_noted(
    board: Board, build_dir: Path, image: str, at: int, content: bytes, words: str
) -> None:
    """It writes all the same, and the program may not run: the record of the flashing says so."""
    change(build_dir, write_flash_args=["--flash_size", "4MB" if image else "32MB"])
    if image:
        patch(build_dir / image, at, content)
    result = flash(board, build_dir, log=build_dir.parent / "flash.log")
    assert result.attempts == 1
    assert result.note.startswith("esptool warned: ")
    assert words in result.note


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NoAnswerError, "Serial data stream stopped: Possible serial noise or corruption."),
        (NoAnswerError, "No serial data received."),
        (NoAnswerError, "No more data to read from the serial port."),
        (NoAnswerError, "The chip stopped responding."),
        (NoAnswerError, "Packet content transfer stopped (received 3 bytes)"),
        (NoAnswerError, "Could not open /dev/overlap, the port is busy or doesn't exist.\n(gone)"),
        (NoAnswerError, "Failed to connect to ESP32: Timed out waiting for packet header"),
        (RigError, "MD5 of file does not match data in flash!"),
        (ConfigError, "'b.bin' requires chip revision 3 or higher (this chip is revision 1). Use --force to"),
        (ConfigError, "Detected flash encryption and secure download mode enabled."),
        (ConfigError, "Active security features detected, erasing flash is disabled as a safety measure."),
        (ConfigError, "Flash size '3MB' is not supported by this chip type. Supported sizes: 1MB"),
        (
            ConfigError,
            "Can't access flash regions larger than detected flash size (set size 0x10 goes past 4MB",
        ),
        (ConfigError, "This chip is ESP32-C3, not ESP32. Wrong chip argument?"),
        (ConfigError, "Secure Boot detected, writing to flash regions < 0x8000 is disabled to protect the"),
        (
            RigError,
            "Could not open x, the port is busy or doesn't exist.\n"
            "([Errno 13] could not open port x: [Errno 13] Permission denied: 'x')",
        ),
    ],
)
def test_each_sentence_has_its_owner(error: type[Exception], words: str, tmp_path: Path) -> None:
    """What esptool 5 says of silence, damage and gone ports is the rig's, of what it refuses not."""
    said = f"Running stub flasher...\n\nERROR: A fatal error occurred: {words}\n"
    assert type(fault_in("flashing", said, tmp_path, Write(tmp_path, ()))) is error


ESPTOOL_4 = "usage: esptool.py write_flash [-h]\nesptool.py write_flash: error: {}\nninja: stopped\n"


@pytest.mark.parametrize(
    ("said", "error", "meaning"),
    [
        (ESPTOOL_4.format("argument --flash_size/-fs: invalid choice: '3MB'"), ConfigError, "a setting is"),
        (ESPTOOL_4.format("unrecognized arguments: --flash_modus"), ConfigError, "a setting is refused"),
        (ESPTOOL_4.format("argument <address>: Detected overlap at address: 0x1"), ConfigError, "two files"),
        (ESPTOOL_4.format("argument <address>: [Errno 2] No such file: 'y'"), ConfigError, "cannot be read"),
        ("A fatal error occurred: ESP32 ROM does not support encrypted writes.\n", ConfigError, "a setting"),
        ("+- Error --+\n| Invalid value for 'x': [Errno 2] No such |\n| file: 'y'. |\n", ConfigError, "read"),
        (
            "ERROR: Could not open x\n(could not open port x: [Errno 13] Permission denied)",
            RigError,
            "dialout",
        ),
    ],
)
def test_field_what_esptool_says_has_its_meaning(
    tmp_path: Path, said: str, error: type[Exception], meaning: str
) -> None:
    """ESP-IDF v5.5 has esptool 4, a product's own command may end with more lines, and both say why. An
    ESP32's own boot loader encrypts nothing, and no eFuse forbids it; a file that is not there says nothing
    of the board; neither cable nor serial number mends what a port's user may not open."""
    fault = fault_in("flashing", said, tmp_path, Write(tmp_path, ()))
    assert isinstance(fault, error)
    assert meaning in str(fault)


def test_words_in_a_box_are_a_sentence() -> None:
    """The lines of a box are put together; a box without its error leaves no border either."""
    box = "╭─ Error ─────╮\n│ Not known: │\n│ '3MB' is none. │\n╰─────────╯\n\n"
    assert last_words(f" Usage: esptool\n{box}") == "Not known: '3MB' is none"
    assert last_words("│ what is left │\n╰─────────╯") == "what is left"
    assert last_words("╰─────────╯\n") == "no message"

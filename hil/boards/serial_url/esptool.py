# SPDX-License-Identifier: Apache-2.0
"""esptool's command line, for one board and no other: ``python -m hil.boards.serial_url.esptool …``.

It knows this project's serial URLs. With ``--expect JSON`` first (``hil.boards.chip_state.Expected``) the
chip is asked who it is before anything is done, in the same connection: its MAC address, and where that is
wanted its flash chip and its eFuses, which are only read. Another board, or one that is not as it was left,
stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import esptool
import serial

from hil.boards.chip_state import ChipState, Expected, efuse_blocks, file_name, unpack
from hil.boards.serial_url import register

EXPECT = "--expect"
WRONG_BOARD = "Another board answers"  # of the sentences that end a refusal
CHANGED, TWICE = "This chip was changed", "Two boards are one"
STATE = "Chip state: "  # what is told of a chip that may be written to
_BLOCK0_OFFSET = 0x30  # where esptool's classes say that eFuses are read; of an ESP32 it is the base


def main() -> None:
    """Run esptool on ``sys.argv``; it exits the process itself."""
    register()
    if sys.argv[1:2] == [EXPECT]:
        expected = Expected(**json.loads(sys.argv[2]))
        sys.exit(_run_on(expected, sys.argv[3:]) or 0)
    esptool._main()


def _run_on(expected: Expected, argv: list[str]) -> str:
    """Run a command on this board; return the error it ended with, "" where it did not."""
    try:
        esptool.main(argv, esp=_connected(argv, expected))
    except (esptool.FatalError, serial.SerialException) as error:
        return f"\nA fatal error occurred: {error}"
    return ""


def _connected(argv: list[str], expected: Expected) -> esptool.ESPLoader:
    """Return the connected board. Raises FatalError; one that is another, or was changed, starts again."""
    esp = esptool.detect_chip(
        _value(argv, "--port"),
        connect_mode=_value(argv, "--before"),
        connect_attempts=int(_value(argv, "--connect-attempts")),
    )
    chip = esp.CHIP_NAME.lower().replace("-", "")
    if chip != _value(argv, "--chip"):
        raise _refusal(esp, f"This chip is {esp.CHIP_NAME}, not {_value(argv, '--chip')}")
    if not esp.secure_download_mode:  # in which a chip tells nothing of itself
        mac = ":".join(f"{byte:02x}" for byte in esp.read_mac())
        if expected.mac and mac != expected.mac:
            raise _refusal(esp, f"{WRONG_BOARD}: its MAC address is {mac}, not {expected.mac}")
        if expected.looks:
            _look(esp, chip, mac, expected)
    return esp


def _look(esp: esptool.ESPLoader, chip: str, mac: str, expected: Expected) -> None:
    """Compare a chip with what was kept of it, and say what it is now. Raises FatalError."""
    if other := (expected.taken or {}).get(mac):
        raise _refusal(esp, f"{TWICE}: board {other} of this run has the MAC address {mac}, too")
    now = ChipState(mac, _flash_chip(esp), _efuses(esp, chip))
    kept = _kept(expected, mac)
    if kept and (changes := kept.changes_to(now)):
        since = f"since {kept.since}, as board {kept.board}"
        raise _refusal(esp, f"{CHANGED} {since}: {changes}; its MAC address is {mac}")
    print(f"{STATE}{now.pack()}", flush=True)


def _kept(expected: Expected, mac: str) -> ChipState | None:
    try:
        return unpack((Path(expected.kept) / file_name(mac)).read_bytes()) if expected.kept else None
    except OSError:
        return None


def _flash_chip(esp: esptool.ESPLoader) -> str:
    """Return maker, device and size of the flash chip."""
    esptool.attach_flash(esp)
    number = esp.flash_id()
    device = (number >> 8 & 0xFF) << 8 | number >> 16 & 0xFF
    return f"{number & 0xFF:02x} {device:04x}, {esptool.detect_flash_size(esp) or 'size unknown'}"


def _efuses(esp: esptool.ESPLoader, chip: str) -> tuple[str, ...]:
    """Return a digest of each eFuse block."""
    base = esp.EFUSE_RD_REG_BASE - (0 if chip == "esp32" else _BLOCK0_OFFSET)
    return tuple(_digest(esp, base + offset, words) for offset, words in efuse_blocks(chip))


def _digest(esp: esptool.ESPLoader, address: int, words: int) -> str:
    content = b"".join(esp.read_reg(address + 4 * word).to_bytes(4, "little") for word in range(words))
    return hashlib.sha256(content).hexdigest()[:16]


def _refusal(esp: esptool.ESPLoader, sentence: str) -> esptool.FatalError:
    esptool.reset_chip(esp, "hard-reset")
    return esptool.FatalError(sentence)


def _value(argv: list[str], option: str) -> str:
    return argv[argv.index(option) + 1]


if __name__ == "__main__":
    sys.argv[0] = "esptool"
    main()

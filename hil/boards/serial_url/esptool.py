# SPDX-License-Identifier: Apache-2.0
"""esptool's command line, for one board and no other: ``python -m hil.boards.serial_url.esptool …``.

It knows this project's serial URLs. With ``--expect MAC`` first the chip is asked for its address before
anything is done, in the same connection. Another board stays as it is.
"""

from __future__ import annotations

import sys

import esptool
import serial

from hil.boards.serial_url import register

EXPECT = "--expect"
WRONG_BOARD = "Another board answers"  # of the sentence that ends a refusal


def main() -> None:
    """Run esptool on ``sys.argv``; it exits the process itself."""
    register()
    if sys.argv[1:2] == [EXPECT]:
        sys.exit(_run_on(sys.argv[2], sys.argv[3:]) or 0)
    esptool._main()


def _run_on(expected_mac: str, argv: list[str]) -> str:
    """Run a command on this board; return the error it ended with, "" where it did not."""
    try:
        esptool.main(argv, esp=_connected(argv, expected_mac))
    except (esptool.FatalError, serial.SerialException) as error:
        return f"\nA fatal error occurred: {error}"
    return ""


def _connected(argv: list[str], expected_mac: str) -> esptool.ESPLoader:
    """Return the connected board. Raises FatalError; another board starts again."""
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
        if mac != expected_mac:
            raise _refusal(esp, f"{WRONG_BOARD}: its MAC address is {mac}, not {expected_mac}")
    return esp


def _refusal(esp: esptool.ESPLoader, sentence: str) -> esptool.FatalError:
    esptool.reset_chip(esp, "hard-reset")
    return esptool.FatalError(sentence)


def _value(argv: list[str], option: str) -> str:
    return argv[argv.index(option) + 1]


if __name__ == "__main__":
    sys.argv[0] = "esptool"
    main()

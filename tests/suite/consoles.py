# SPDX-License-Identifier: Apache-2.0
"""Consoles for pytest-embedded's own serial classes: terminals on which a firmware says its lines."""

from __future__ import annotations

import os
import pty
import threading
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_PERIOD_S = 0.05


@contextmanager
def console(lines: Sequence[str]) -> Iterator[str]:
    """Say the lines again and again, as a firmware that restarts does; yield the port."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    ended = threading.Event()
    text = "".join(f"{line}\r\n" for line in lines).encode()

    def say() -> None:
        while not ended.wait(_PERIOD_S):
            with suppress(BlockingIOError):  # nobody reads: a UART drops it
                os.write(master, text)

    speaker = threading.Thread(target=say)
    speaker.start()
    try:
        yield os.ttyname(slave)
    finally:
        ended.set()
        speaker.join()
        os.close(master)
        os.close(slave)


def build_folder(folder: Path, image: bytes = b"the image") -> Path:
    """Make what pytest-embedded's app and hil look at of a build: description, flasher's arguments, image."""
    build = folder / "build"
    build.mkdir(parents=True)
    (build / "project_description.json").write_text('{"project_version": "v1.2"}')
    (build / "config").mkdir()
    (build / "config" / "sdkconfig.json").write_text('{"IDF_TARGET": "esp32c3"}')
    (build / "config.env").write_text('{"IDF_VERSION": "v5.5"}')
    (build / "flasher_args.json").write_text(
        '{"app": {"file": "app.bin"}, "flash_files": {"0x10000": "app.bin"}, "write_flash_args": [], '
        '"flash_settings": {"flash_mode": "dio", "flash_size": "2MB", "flash_freq": "40m"}, '
        '"extra_esptool_args": {"chip": "esp32c3"}}'
    )
    (build / "app.bin").write_bytes(image)
    return build

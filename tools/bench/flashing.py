# SPDX-License-Identifier: Apache-2.0
"""How long flashing and booting take, and by how much the URL handler beats pyserial's own."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from hil.base.paths import PROJECT_ROOT
from tools.bench.figure import Figure
from tools.bench.workbench import READY_TIMEOUT_S, Workbench

ONE_MEGABYTE, SHORT_BYTES = 1 << 20, 1 << 16
OFFSET = "0x210000"  # inside ota_1: the running image in ota_0 stays
AIM = 5.0
TIMEOUT_S = 300.0


def flash_and_boot(bench: Workbench, *, short: bool) -> Figure:
    """Write random, so incompressible, data with the real esptool, reset, wait for the agent."""
    image = bench.folder / "random.bin"
    image.write_bytes(random.Random(1).randbytes(SHORT_BYTES if short else ONE_MEGABYTE))
    size = "64 kB" if short else "1 MB"
    fast_s = _write(bench, "hil.boards.serial_url.esptool", bench.board.serial, image)
    bench.console.close()
    started = time.monotonic()
    bench.console.open()
    bench.console.reset()
    bench.session.wait_ready(READY_TIMEOUT_S)
    boot_s = time.monotonic() - started
    stock_s = _write(bench, "esptool", bench.board.stock_serial, image)
    ratio = stock_s / fast_s
    rows = [
        (f"{size}, fastrfc2217:// (the harness)", f"{fast_s:.2f}"),
        ("reset until the agent's hello", f"{boot_s:.2f}"),
        (f"{size}, pyserial's own rfc2217://", f"{stock_s:.2f}"),
        ("ratio", f"{ratio:.1f}"),
    ]
    missed = [] if ratio >= AIM else [f"pyserial's own client takes {ratio:.1f} times as long, aim {AIM:g}"]
    note = f"Aim: pyserial's own client takes at least {AIM:g} times as long."
    return Figure("Flashing and booting a virtual board", ("", "s"), rows, note, missed)


def _write(bench: Workbench, module: str, url: str, image: Path) -> float:
    argv = [sys.executable, "-m", module, "--chip", bench.board.chip, "--port", url, "--baud", "460800"]
    started = time.monotonic()
    subprocess.run(
        [*argv, "write-flash", OFFSET, str(image)],
        check=True, timeout=TIMEOUT_S, cwd=PROJECT_ROOT, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return time.monotonic() - started

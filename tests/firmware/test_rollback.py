# SPDX-License-Identifier: Apache-2.0
"""An image that came over the air is kept once the host has talked to it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hil.base.paths import PROJECT_ROOT
from hil.boards.firmware import otadata
from hil.boards.firmware.partition_table import TABLE_OFFSET, read_csv, to_binary
from hil.wire import format_command
from tests.firmware import kernel_rig
from tests.virtual.virtual_board_rig import write_flash_file

pytestmark = pytest.mark.slow

OTADATA = 0xD000
HELLO = format_command("hello", tag="a-1")


@pytest.mark.parametrize(
    ("before", "said", "after"),
    [
        (otadata.STATE_PENDING_VERIFY, HELLO, otadata.STATE_VALID),
        (otadata.STATE_PENDING_VERIFY, b"", otadata.STATE_PENDING_VERIFY),
        (otadata.STATE_PENDING_VERIFY, b"hello @a-1 *00000000\n", otadata.STATE_PENDING_VERIFY),
        (otadata.STATE_UNDEFINED, HELLO, otadata.STATE_UNDEFINED),
    ],
    ids=("a command", "nothing", "a damaged line", "flashed by the host"),
)
def test_a_command_confirms_the_image(tmp_path: Path, before: int, said: bytes, after: int) -> None:
    """The first command that arrives whole does, and writes only where the boot loader waits for it."""
    table = to_binary(read_csv(PROJECT_ROOT / "firmware" / "partitions.csv"))
    parts = {TABLE_OFFSET: table, OTADATA: otadata.pack(1, before)}
    path = write_flash_file(tmp_path / "flash.bin", parts, 4 << 20)
    with path.open("r+b") as file:
        variables = {"VBOARD_FLASH_FD": str(file.fileno()), "VBOARD_APP_OFFSET": "10000"}
        done = subprocess.run(
            [kernel_rig.firmware()], input=said, capture_output=True, timeout=60.0, check=True,
            pass_fds=[file.fileno()], env={**os.environ, **variables},
        )  # fmt: skip
    assert b"Sanitizer" not in done.stderr
    now = path.read_bytes()[OTADATA : OTADATA + 2 * otadata.SECTOR_BYTES]
    assert now == otadata.pack(1, after).ljust(2 * otadata.SECTOR_BYTES, b"\xff")

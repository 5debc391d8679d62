# SPDX-License-Identifier: Apache-2.0
"""The comparison with ESP-IDF's own readers finds what differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.boards.firmware.partition_table import read_csv, to_binary
from tools.examples_check.compare import compare_tables

GENERATOR = """\
import pathlib, sys
pathlib.Path(sys.argv[-1]).write_bytes(pathlib.Path({binary!r}).read_bytes())
"""


@pytest.mark.parametrize(
    ("line", "verdict"), [("b, data, fat,, 4K", "agrees"), ("b, data, fat,, 8K", "differs")]
)
def test_a_table_that_differs_is_told(tmp_path: Path, line: str, verdict: str) -> None:
    """The same binary agrees; one other byte does not."""
    theirs = tmp_path / "theirs.csv"
    theirs.write_text("b, data, fat,, 4K\n")
    binary = tmp_path / "theirs.bin"
    binary.write_bytes(to_binary(read_csv(theirs, table_offset=0xD000)))
    script = tmp_path / "components" / "partition_table" / "gen_esp32part.py"
    script.parent.mkdir(parents=True)
    script.write_text(GENERATOR.format(binary=str(binary)))
    ours = tmp_path / "ours.csv"
    ours.write_text(f"{line}\n")
    assert compare_tables(tmp_path, ours)[0] == verdict

# SPDX-License-Identifier: Apache-2.0
"""`make examples-check`: what an example has to print, and what differs from ESP-IDF's own readers."""

from __future__ import annotations

from pathlib import Path

import pytest

from hil.boards.firmware.partition_table import read_csv, to_binary
from tools.examples_check.__main__ import main
from tools.examples_check.compare import compare_tables
from tools.examples_check.expected import patterns, reached

SCRIPT = """\
GREETING = 'hello (world)'

def test_talks(dut):
    dut.expect_exact(GREETING)
    if dut.config == 'ci':
        dut.expect('only there')
    with server():
        for n in range(3):
            dut.expect(r'n=\\d+', timeout=3)
            dut.expect_exact(f'computed {n}')
    dut.expect(b'bye', timeout=5)

def test_other(dut):
    dut.expect('other')
"""


def test_unconditional_literal_texts_are_expected_in_order() -> None:
    """Exact texts are quoted, names are looked up; computed and conditional ones are left out."""
    assert patterns(SCRIPT, ["test_talks"]) == [r"hello\ \(world\)", r"n=\d+", "bye"]
    assert patterns(SCRIPT, [])[-1] == "other"


def test_output_counts_up_to_the_first_text_that_is_missing() -> None:
    """A text that came earlier does not count for one that is wanted later."""
    wanted = patterns(SCRIPT, ["test_talks"])
    assert reached(wanted, "hello (world)\nn=7\nbye\n") == 3
    assert reached(wanted, "bye\nhello (world)\nn=7\n") == 2
    assert reached(wanted, "n=1\nbye\n") == 0


def test_without_an_esp_idf_it_says_so_and_ends_with_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was checked, so nothing is claimed."""
    monkeypatch.delenv("IDF_PATH", raising=False)
    assert main() == 2
    assert "IDF_PATH names no ESP-IDF" in capsys.readouterr().err


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

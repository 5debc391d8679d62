# SPDX-License-Identifier: Apache-2.0
"""`hil import` of what pytest-embedded's --metric-path wrote: series of the history, with the file's time."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hil.cli.app import run_command
from hil.history import load

BOOT = 'boot_time_ms{target="esp32",mode="cold"}'
LINES = f"{BOOT} 412\nheap_bytes 1234\n{BOOT} 415\n"
WRITTEN_S = 1_770_000_000  # 2026-02-02T02:40:00Z


def file(folder: Path, text: str = LINES, written_s: int = WRITTEN_S) -> Path:
    path = folder / "metrics.txt"
    path.write_text(text, encoding="utf-8")
    os.utime(path, (written_s, written_s))
    return path


def test_earlier_values_are_a_series_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By board and name with its labels, at the time of the file; again, nothing; later, another session."""
    history = ["--history", str(tmp_path / "h")]
    assert run_command(["import", str(file(tmp_path)), *history]) == 0
    assert re.search("^2 new .* 0 were", capsys.readouterr().out, re.MULTILINE)
    assert run_command(["import", str(file(tmp_path)), *history]) == 0
    assert re.search("^0 new .* 2 were", capsys.readouterr().out, re.MULTILINE)
    assert run_command(["import", str(file(tmp_path, written_s=WRITTEN_S + 86_400)), *history]) == 0
    found = load(tmp_path / "h")
    values = {entry.series_id: list(entry.value) for entry in found.entries.values()}
    assert values == {
        "imported/esp32/pytest//mode_cold_boot_time_ms": [412.0, 415.0, 412.0, 415.0],
        "imported/suite/pytest//heap_bytes": [1234.0, 1234.0],
    }
    started = {session.started_utc for session in found.sessions}
    assert started == {f"2026-02-0{day}T02:40:00Z" for day in (2, 3)}


@pytest.mark.parametrize(
    ("text", "said"), [("time,commit,value\n1,2,3\n", "--as SERIES"), ("", "no value"), ("\xff{", "neither")]
)
def test_another_file_is_refused(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CSV file without its series, an empty file, no metrics: the error names the file and the way out."""
    assert run_command(["import", str(file(tmp_path, text)), "--history", str(tmp_path / "h")]) == 2
    found = capsys.readouterr().err
    assert "metrics.txt" in found
    assert said in found
    assert run_command(["import", str(tmp_path / "gone"), "--history", str(tmp_path / "h")]) == 2

# SPDX-License-Identifier: Apache-2.0
"""`make clean` removes what can be made again, and nothing that was learnt over months."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.lab import ROOT


def clean(folder: Path) -> None:
    argv = ["make", "--no-print-directory", "-f", str(ROOT / "Makefile"), "clean"]
    subprocess.run(argv, cwd=folder, check=True, timeout=60, capture_output=True)


def test_clean_keeps_the_history(tmp_path: Path) -> None:
    """Builds, runs and hidden files go; the history of a rack, which nothing brings back, stays.

    Without a folder of results it ends well, and makes none.
    """
    clean(tmp_path)
    assert not (tmp_path / "out").exists()
    for name in ("history/rack/run.json", "virtual/build/firmware.bin", "r 1/records.jsonl", ".cache/x"):
        path = tmp_path / "out" / name
        path.parent.mkdir(parents=True)
        path.write_text("kept?\n")
    (tmp_path / "out" / "latest").symlink_to("r 1")
    for _ in range(2):  # the second time there is next to nothing to remove
        clean(tmp_path)
        assert [path.name for path in (tmp_path / "out").iterdir()] == ["history"]
    assert (tmp_path / "out" / "history" / "rack" / "run.json").read_text() == "kept?\n"

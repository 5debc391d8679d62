# SPDX-License-Identifier: Apache-2.0
"""Where the history is: in out, or where hil.toml says; a folder of its own may be a repository's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hil.base.paths import PROJECT_ROOT

pytestmark = pytest.mark.slow

TOML = 'schema = 1\n[firmware]\nfolder = "."\ntargets = ["esp32"]\n'
ASK = (
    "from pathlib import Path; from hil.history import *; print(default_history(), history_of(Path('other')))"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text(
        "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(Sensor_Node)\n"
    )
    (folder / "old.csv").write_text("time,commit,value\n2026-03-01,,12.4\n")
    return folder


def run(project: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT_ROOT)}
    return subprocess.run(
        [sys.executable, *argv], cwd=project, env=environment, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip


def files(folder: Path) -> list[Path]:
    return [path.relative_to(folder) for path in sorted(folder.rglob("*.json"))]


def test_the_history_is_where_the_project_says(project: Path) -> None:
    """The folder that hil.toml names, from its own; --history asks for another; another out has its own. What
    is imported there is the project's product's."""
    (project / "hil.toml").write_text(f'{TOML}[keep]\nhistory = "../values"\n')
    command = ["-m", "hil", "import", "old.csv", "--as", "e1/publish/latency_ms"]
    first = run(project, *command)
    assert first.stdout.startswith("sensor-node:imported/e1/publish//latency_ms\n"), first.stderr
    (written,) = files(project.parent / "values")
    assert json.loads((project.parent / "values" / written).read_text())["product"] == "sensor-node"
    assert run(project, *command, "--history", "once").returncode == 0
    assert files(project / "once") == files(project.parent / "values")
    assert not (project / "out").exists()
    shown = run(project, "-m", "hil", "history", "show")
    assert "1 session of imported" in shown.stdout
    assert run(project, "-c", ASK).stdout.split() == [str(project.parent / "values"), "other/history"]


def test_without_a_word_it_is_in_out(project: Path) -> None:
    """As it was before hil.toml could name one; a hil.toml that is wrong is refused by its key and value."""
    (project / "hil.toml").write_text(TOML)
    assert run(project, "-c", ASK).stdout.split() == [str(project / "out" / "history"), "other/history"]
    for text, words in (
        (f"{TOML}[keep]\nhistory = 1\n", "keep.history is 1"),
        (f'product = "Node"\n{TOML}', "hil.toml: product: 'Node'"),
    ):
        (project / "hil.toml").write_text(text)
        wrong = run(project, "-m", "hil", "history", "show")
        assert (wrong.returncode, wrong.stderr[:5]) == (2, "hil: ")
        assert words in wrong.stderr

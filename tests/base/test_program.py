# SPDX-License-Identifier: Apache-2.0
"""What a program does before its work, in a process of its own."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import ROOT

CRASHES = "import os; os.abort()"
LEAVES_NONE = f"from hil.base.program import leave_no_core; leave_no_core(); {CRASHES}"


def crash(program: str, folder: Path) -> list[str]:
    """Run a program that crashes, where core files are allowed; return the files that it left."""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env={"PYTHONPATH": str(ROOT)}, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, [resource.RLIM_INFINITY] * 2),
    )  # fmt: skip
    assert done.returncode == -signal.SIGABRT
    return [path.name for path in folder.iterdir()]


def test_a_crash_leaves_no_core_file(tmp_path: Path) -> None:
    """Rule: no memory of a run, which holds keys, comes to disk, whatever its user's limit is."""
    if not crash(CRASHES, tmp_path):
        pytest.skip("this host puts core files elsewhere (kernel.core_pattern)")
    for path in tmp_path.iterdir():
        path.unlink()
    assert crash(LEAVES_NONE, tmp_path) == []


def test_what_the_command_starts_leaves_no_core_file(tmp_path: Path) -> None:
    """Rule: the limit is the command's from its first step on, and that of its broker and boards."""
    child = f"import os, subprocess, sys; subprocess.run([sys.executable, '-c', {CRASHES!r}]); os.abort()"
    program = f"import hil.cli, hil.cli.app; hil.cli.app.main = lambda: exec({child!r}); hil.cli.main()"
    assert crash(program, tmp_path) == []

# SPDX-License-Identifier: Apache-2.0
"""What a program does before its work, in a process of its own."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tests.lab import ROOT

ASKS = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE)[0])"
CHILD_ASKS = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ASKS!r}], check=True)"


def limit_after(program: str) -> int:
    """Return the size that a core file may have, in bytes, as a program says that may leave one at first."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if hard == 0:
        pytest.skip("this host allows no core files, and no limit can be lowered")
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(ROOT)}, check=True, text=True,
        stdout=subprocess.PIPE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)),
    )  # fmt: skip
    return int(done.stdout)


def test_a_crash_leaves_no_core_file() -> None:
    """Rule: no memory of a run, which holds keys, comes to disk, whatever its user's limit is."""
    leaves_none = f"from hil.base.program import leave_no_core; leave_no_core(); {ASKS}"
    assert limit_after(ASKS) != 0
    assert limit_after(leaves_none) == 0


def test_what_the_command_starts_leaves_no_core_file() -> None:
    """Rule: the limit is the command's from its first step on, and that of its broker and boards."""
    program = f"import hil.cli, hil.cli.app; hil.cli.app.main = lambda: exec({CHILD_ASKS!r}); hil.cli.main()"
    assert limit_after(program) == 0

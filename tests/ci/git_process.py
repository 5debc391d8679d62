# SPDX-License-Identifier: Apache-2.0
"""git for tests, with an identity of its own, and no process that tidies after each commit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_IDENTITY = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
_CONFIG = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "maintenance.auto", "GIT_CONFIG_VALUE_0": "false"}


def git(repository: Path, *arguments: str) -> str:
    """Return what git printed; fail with what it complained of."""
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **_IDENTITY, **_CONFIG},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()

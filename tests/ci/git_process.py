# SPDX-License-Identifier: Apache-2.0
"""git for tests, with an identity of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_IDENTITY = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(repository: Path, *arguments: str) -> str:
    """Return what git printed; fail with what it complained of."""
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **_IDENTITY},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()

# SPDX-License-Identifier: Apache-2.0
"""A team's own bench of three files, which is built into hil's firmware: the folder team."""

from __future__ import annotations

import shutil
from pathlib import Path

TEAM = Path(__file__).parent / "team"


def add_team_bench(project: Path) -> None:
    """Write the bench wake_up into the folder hil of a project that `hil init` made."""
    shutil.copy(TEAM / "wake_up.c", project / "hil" / "benches")
    shutil.copy(TEAM / "wake_up.py", project / "hil" / "benches" / "test_wake_up.py")
    shutil.copy(TEAM / "wake_up.yaml", project / "hil" / "thresholds")

# SPDX-License-Identifier: Apache-2.0
"""A rack's health: what each run says of its boards, and what follows from many runs."""

from hil.boards.health.from_run import health_of
from hil.boards.health.lines import HEALTH_FILE, read_lines, with_runs, write_lines
from hil.boards.health.summary import summarise
from hil.boards.health.types import BoardHealth, BoardRun, RackHealth, RunHealth

__all__ = [
    "HEALTH_FILE",
    "BoardHealth",
    "BoardRun",
    "RackHealth",
    "RunHealth",
    "health_of",
    "read_lines",
    "summarise",
    "with_runs",
    "write_lines",
]

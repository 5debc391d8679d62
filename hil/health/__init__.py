"""A rack's health: what each run says of its boards, and what follows from many runs."""

from hil.health.from_run import health_of
from hil.health.lines import HEALTH_FILE, read_lines, with_runs, write_lines
from hil.health.summary import summarise
from hil.health.types import BoardHealth, BoardRun, Quarantine, RackHealth, RunHealth

__all__ = [
    "HEALTH_FILE",
    "BoardHealth",
    "BoardRun",
    "Quarantine",
    "RackHealth",
    "RunHealth",
    "health_of",
    "read_lines",
    "summarise",
    "with_runs",
    "write_lines",
]

# SPDX-License-Identifier: Apache-2.0
"""What a run leaves on disk, and how it is read again."""

from hil.store.directory import RunDirectory, time_in
from hil.store.judged import (
    JudgedRun,
    StoredRun,
    add_verdict,
    read_judged_run,
    read_measured,
    read_run,
    require_verdict,
)
from hil.store.reported import Reported
from hil.store.run_info import TRIGGERS, RunInfo

__all__ = [
    "TRIGGERS",
    "JudgedRun",
    "Reported",
    "RunDirectory",
    "RunInfo",
    "StoredRun",
    "add_verdict",
    "read_judged_run",
    "read_measured",
    "read_run",
    "require_verdict",
    "time_in",
]

# SPDX-License-Identifier: Apache-2.0
"""What a run leaves on disk, and how it is read again."""

from hil.store.directory import RunDirectory, time_in
from hil.store.judged import JudgedRun, StoredRun, read_judged_run, read_run, require_verdict
from hil.store.run_info import TRIGGERS

__all__ = [
    "TRIGGERS",
    "JudgedRun",
    "RunDirectory",
    "StoredRun",
    "read_judged_run",
    "read_run",
    "require_verdict",
    "time_in",
]

# SPDX-License-Identifier: Apache-2.0
"""Judge a run as its folder has it."""

from __future__ import annotations

from collections.abc import Mapping

from hil.gate.judging import judge
from hil.store import JudgedRun, StoredRun, add_verdict
from hil.store.run_info import planned_boots
from hil.thresholds import Thresholds, own_limits


def judge_stored(run: StoredRun, limits: Mapping[str, Thresholds] | None = None) -> JudgedRun:
    """Return a run with its verdict, which is written, by its own limits unless others are given.

    Raises ConfigError as judge() does, RigError where the disk does not take the verdict.
    """
    limits = own_limits(run) if limits is None else limits
    return add_verdict(run, judge(run.journal.entries, limits, planned_boots(run.info)))

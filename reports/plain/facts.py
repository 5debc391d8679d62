# SPDX-License-Identifier: Apache-2.0
"""What every line and every test case of a run's plain files says of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hil.model import Verdict
from hil.reports.boards import noise_remark
from hil.reports.history import rack_of
from hil.store import time_in
from hil.store.run_info import measured_commit


@dataclass(frozen=True)
class RunFacts:
    """A run; ``started_utc`` is that of its id where run.json is lost. ``simulated`` says that noise was."""

    run_id: str
    started_utc: str
    commit: str
    dirty: bool
    rack: str
    trigger: str
    suite: str
    simulated: bool

    def kind(self, kind: str) -> str:
        """Return a board's kind, and whether its figures are simulated: "virtual, simulated noise"."""
        return f"{kind}, simulated noise" if kind and self.simulated else kind


def facts_of(run_id: str, info: Mapping[str, Any], verdict: Verdict) -> RunFacts:
    """Return what run.json says, and what the verdict tells where it says nothing."""
    return RunFacts(
        run_id=run_id,
        started_utc=str(info.get("started_utc") or time_in(run_id)),
        commit=measured_commit(info),
        dirty=bool(info.get("git", {}).get("dirty")),
        rack=str(info.get("rack") or rack_of(verdict) or "unknown"),
        trigger=str(info.get("trigger", "local")),
        suite=str(info.get("suite", "")),
        simulated=bool(noise_remark(info)),
    )

# SPDX-License-Identifier: Apache-2.0
"""What every line and every test case of a run's plain files says of the run."""

from __future__ import annotations

from dataclasses import dataclass

from hil.reports.boards import noise_remark
from hil.store import RunInfo
from hil.store.run_info import measured_commit


@dataclass(frozen=True)
class RunFacts:
    """A run; ``simulated`` says that noise was."""

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


def facts_of(run_id: str, info: RunInfo) -> RunFacts:
    """Return what run.json says."""
    return RunFacts(
        run_id=run_id,
        started_utc=info.started_utc,
        commit=measured_commit(info),
        dirty=info.git.dirty,
        rack=info.rack,
        trigger=info.trigger,
        suite=info.suite,
        simulated=bool(noise_remark(info)),
    )

"""Accepted baselines on the trend: the first run that an epoch was in force for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hil.reports.trend.runs import Run
from hil.thresholds.baselines import Baselines


def epochs_json(baselines: Baselines, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the epochs that began while the runs were measured, in order of time.

    An epoch is of a whole rack, which is its ``target``; ``run`` is the rack's first one on that day or
    later. An epoch that was in force before all of them has no place.
    """
    found = []
    for rack, epochs in sorted(baselines.epochs.items()):
        own = [(number, run) for number, run in enumerate(runs) if run.rack == rack and run.started_utc]
        for epoch in epochs:
            after = [number for number, run in own if run.moment.date() >= epoch.accepted]
            if after and len(after) < len(own):
                words = {"target": rack, "reason": epoch.reason, "who": epoch.by}
                found.append({"run": after[0], **words})
    return sorted(found, key=lambda epoch: (epoch["run"], epoch["target"]))

"""What nights measure beside the head, and what becomes of it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

from hil.base.errors import ConfigError
from hil.history.from_run import add_run
from hil.history.nightly.reference import load_references, tonight
from hil.store import RunDirectory
from hil.thresholds.baselines import FOLDER

LEG = "night-"  # what the names of legs begin with whose runs enter the history


def references_tonight(thresholds: Path) -> tuple[str, ...]:
    """Return the commits to measure beside the head. Raises ConfigError where the file of them is wrong."""
    night = tonight(datetime.datetime.now(tz=datetime.UTC))
    return tuple(reference.commit for reference in load_references(thresholds / FOLDER).of(night))


def add_runs(legs: Path, history: Path) -> Iterator[str]:
    """Append to a history what the legs of a night left below ``legs``; say what became of each.

    Raises RigError where the disk does not take it.
    """
    for leg in sorted(legs.glob(f"{LEG}*")):
        runs = RunDirectory.list(leg)
        if not runs:
            yield f"{leg.name}: no run"
        for run in runs:
            try:
                added = add_run(run.path, history)
                yield f"{leg.name}: {added.values} boot values in {added.path}"
            except ConfigError as error:
                yield f"{leg.name}: left out: {error}"

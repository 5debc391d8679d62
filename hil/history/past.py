"""What a run knew of earlier ones, as its folder keeps it: a replay reads this and nothing else."""

from __future__ import annotations

from pathlib import Path

from hil.gate.past import Past
from hil.history import load
from hil.thresholds.baselines import FOLDER, check, load_baselines

HISTORY_FOLDER = "history"
BASELINES_FOLDER = f"thresholds/{FOLDER}"


def read_past(run: Path) -> Past:
    """Return the history and the epochs that a run's folder holds, none where it compared nothing.

    Raises ConfigError where a file of them is damaged, or an epoch's session is not what was accepted.
    """
    past = Past(load(run / HISTORY_FOLDER), load_baselines(run / BASELINES_FOLDER))
    check(past.baselines, past.history)
    return past

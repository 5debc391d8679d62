"""What the trend is made of beside the runs: boot values of earlier runs, thresholds, baselines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.history import load
from hil.metrics.sessions import NO_HISTORY, History
from hil.reports.allure.story import THRESHOLDS, read_thresholds
from hil.reports.stored import by_name
from hil.reports.trend.runs import Reported
from hil.thresholds import Thresholds
from hil.thresholds.baselines import FOLDER, NO_BASELINES, Baselines, load_baselines

DATA = "hil-data"  # below OUT
_CHECKOUT = PROJECT_ROOT

_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Sources:
    """``notes`` say which of them could not be read, and the way out."""

    history: History = NO_HISTORY
    thresholds: Mapping[str, Thresholds] = field(default_factory=dict)
    baselines: Baselines = NO_BASELINES
    notes: tuple[str, ...] = ()


def read_sources(data: Path, runs: Sequence[Reported]) -> Sources:
    """Read the boot values in ``data``, and the thresholds of the newest run (the checkout's baselines).

    What is damaged costs its part of the trend, and a note that names the file and the way out; it does not
    cost the report.
    """
    notes: list[str] = []

    def attempt(read: Callable[[], _Read], without: _Read, loss: str) -> _Read:
        try:
            return read()
        except ConfigError as error:
            notes.append(f"{loss}: {_public(str(error), data)}")
            return without

    newest = max(runs, key=lambda run: (str(run.line["started_utc"]), run.run_id))
    return Sources(
        attempt(lambda: load(data), NO_HISTORY, "The boot values of earlier runs are left out"),
        attempt(
            lambda: read_thresholds(newest.path, newest.info), {}, "The thresholds of the run are left out"
        ),
        attempt(
            lambda: load_baselines(_CHECKOUT / THRESHOLDS / FOLDER),
            NO_BASELINES,
            "Accepted baselines are left out",
        ),
        tuple(notes),
    )


def _public(sentence: str, data: Path) -> str:
    return by_name(sentence, data).replace(f"{_CHECKOUT}/", "")

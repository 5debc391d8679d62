"""How long a case measured, by its own samples: without set-up, boots and turns of other boards."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.units import QuantityError, convert, find_unit, unit_of
from hil.model import RunRecord
from hil.thresholds import load
from hil.thresholds.loader import FOLDER

_DONE, _INTERVAL = "done_us", "interval_us"


class MeasuredTime:
    """Reads a run's own thresholds, bench by bench, where only they tell which columns are moments."""

    def __init__(self, run_path: Path) -> None:
        self._folder = run_path / FOLDER
        self._moments: dict[str, frozenset[str]] = {}

    def of(self, record: RunRecord) -> float:
        """Return the latest moment of a record in seconds, or the sum of its intervals; 0 where neither is.

        Moments are ``done_us``; where there is none, the columns that a metric subtracts from one another.
        """
        if _DONE not in record.columns and _INTERVAL in record.columns:
            return sum(record.columns[_INTERVAL]) / 1e6
        names = {_DONE} if _DONE in record.columns else self._subtracted(record.bench) & {*record.columns}
        return max((_latest_s(name, record.columns[name]) for name in names), default=0.0)

    def _subtracted(self, bench: str) -> frozenset[str]:
        if bench not in self._moments:
            found: set[str] = set()
            with suppress(
                ConfigError
            ):  # limits that have expired, or of another version: its time is unknown
                metrics = load(bench, self._folder).metrics.values()
                found = {term.column for metric in metrics if len(metric.terms) > 1 for term in metric.terms}
            self._moments[bench] = frozenset(found)
        return self._moments[bench]


def _latest_s(name: str, column: tuple[int, ...]) -> float:
    """Return the last moment of a column; 0 where it holds none."""
    try:
        return convert(max(column, default=0), unit_of(name), find_unit("s"))
    except QuantityError:
        return 0.0

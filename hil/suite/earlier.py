# SPDX-License-Identifier: Apache-2.0
"""What earlier sessions of a suite measured: the file that pytest-embedded's --metric-path wrote.

It has lines of OpenMetrics, ``boot_time_ms{target="esp32"} 412``, and no time: a file is a session of the
time at which it was last written.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from hil.base.errors import ConfigError
from hil.base.reading import SUMMARY_MOST_BYTES, read_at_most
from hil.history.importing import Line, series_name, since_1970
from hil.model import SeriesId
from hil.suite.naming import named

_BOARD = ("board", "target")  # labels that name one, the first that is there
_SAID_ELSEWHERE = (*_BOARD, "unit", "port", "test")  # the plugin's pytest_hil.values has the same
_NO_BOARD, _BENCH = "suite", "pytest"
_MS = 1000  # of the parser's: it takes a time for milliseconds, and OpenMetrics has seconds


def read_openmetrics(path: Path, now: datetime.datetime) -> dict[SeriesId, list[Line]]:
    """Return the values of a file by their series. Raises ConfigError where it is no OpenMetrics."""
    try:
        text = read_at_most(path, SUMMARY_MOST_BYTES).decode()
        written = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).replace(microsecond=0)
        samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
        found: dict[SeriesId, list[Line]] = {}
        for number, sample in enumerate(samples, start=1):
            at = since_1970(f"{float(sample.timestamp) * _MS:.0f}", now) if sample.timestamp else written
            found.setdefault(_series(sample, path), []).append(Line(number, at, "", sample.value))
    except OSError as error:
        raise ConfigError(f"{path}: could not be read: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(
            f"{path}: neither what pytest --hil nor what --metric-path writes: {error}.",
            next_step='its lines are as boot_time_ms{target="esp32"} 412; a CSV file needs --as SERIES.',
        ) from error
    if not found:
        raise ConfigError(f"{path}: it holds no value.")
    return found


def _series(sample: Sample, path: Path) -> SeriesId:
    labels: Mapping[str, str] = sample.labels
    own = [f"{name}_{labels[name]}" for name in sorted(labels) if name not in _SAID_ELSEWHERE]
    naming = named("_".join([*own, sample.name]).lower(), labels.get("unit", ""), str(path))
    board = next((labels[name] for name in _BOARD if labels.get(name)), _NO_BOARD)
    return series_name(f"{board}/{_BENCH}/{naming.name}")

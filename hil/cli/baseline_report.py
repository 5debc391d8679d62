"""What `hil baseline show` says: the series, what a pull request would see, and what is missing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from hil.base.units import format_difference, format_value
from hil.cli.table import aligned
from hil.gate.noise import SeriesNoise
from hil.gate.sequential import FEWEST_SESSIONS
from hil.history.baseline.gated import boards_of, gated_units, unmeasured
from hil.history.baseline.prospects import Prospect, prospects, rack_noise
from hil.metrics.sessions import History
from hil.thresholds.baselines import Epoch, missing_sessions
from hil.thresholds.types import Thresholds

_SERIES = ["series", "board", "sessions", "boots", "mean", "boot deviation", "session deviation"]
_UNITS = ["comparison", "boards", "kappa", "tolerated", "would see", ""]
_NONE = "–"
_LARGE_KAPPA = 1.5


def lines_of(
    history: History, rack: str, thresholds: Mapping[str, Thresholds], epoch: Epoch | None
) -> Iterator[str]:
    """Yield the lines for one rack. Raises ConfigError where rules collide."""
    virtual = any(board.kind == "virtual" for board, _ in boards_of(history, rack).values())
    yield f"Rack {rack}{' (virtual)' if virtual else ''}: {_epoch_words(epoch)}"
    units = gated_units(history, rack, thresholds)
    found = prospects(history, units, epoch)
    if found:
        yield from _table(_SERIES, [row for item in found for row in _series_rows(item)])
        yield from _table(_UNITS, [_unit_row(item) for item in found])
        yield from _class_words(found, virtual=virtual)
    yield ""
    lacking = list(_missing(history, rack, thresholds, epoch, found))
    yield from (lacking or ["Nothing is missing."])


def _epoch_words(epoch: Epoch | None) -> str:
    if epoch is None:
        return "no epoch was accepted."
    return (
        f"epoch of {epoch.accepted}, {len(epoch.sessions)} sessions of {epoch.commit[:12]}, accepted by "
        f"{epoch.by}: {epoch.reason}"
    )


def _table(heading: list[str], rows: Sequence[list[str]]) -> list[str]:
    return ["", *aligned([heading, *rows])]


def _series_rows(item: Prospect) -> list[list[str]]:
    rows = []
    for series, noise, level, boots in zip(item.unit.series, item.noise, item.means, item.boots, strict=True):
        unit = item.unit.metric.unit
        mean = _NONE if math.isnan(level) else format_value(item.unit.scale.value(level), unit)
        boot = _deviation(item, noise.boot_variance)
        session = _deviation(item, noise.session_variance)
        rows.append([item.unit.name, series.board, str(noise.sessions), str(boots), mean, boot, session])
    return rows


def _deviation(item: Prospect, variance: float) -> str:
    if math.isnan(variance):
        return _NONE
    return _size(item, math.sqrt(variance))


def _size(item: Prospect, size: float) -> str:
    """Write a change or deviation: relative on the scale log, else in the metric's unit."""
    return f"{size:.1%}" if item.unit.scale.relative else format_difference(size, item.unit.metric.unit)


def _unit_row(item: Prospect) -> list[str]:
    boards = ", ".join(series.board for series in item.unit.series)
    seen = _NONE if item.effect is None else _size(item, item.effect)
    note = item.note
    if item.effect is not None and not item.sees_tolerance:
        note = "; ".join(filter(None, [note, "less than that may stay inconclusive"]))
    tolerated = _size(item, item.unit.rule.tolerance)
    name = f"{item.unit.name} on {item.unit.target}"
    return [name, boards, f"{item.kappa:.2f}", tolerated, seen, note]


def _class_words(found: Sequence[Prospect], *, virtual: bool) -> Iterator[str]:
    noise = rack_noise(found)
    yield ""
    if noise is None:
        yield f"Noise: not known before {FEWEST_SESSIONS} sessions of two boots or more."
        return
    kind = "virtual rack" if virtual else "rack"
    yield (
        f"Noise: a {noise.name} {kind}; half of its series differ by more than {noise.boot:.1%} between "
        f"boots, half by more than {noise.session:.1%} between sessions."
    )
    known = [item for item in found if item.effect is not None]
    good = sum(item.sees_tolerance for item in known)
    yield f"{good} of {len(known)} comparisons see what their rule tolerates, with 80 % power."
    if any(item.kappa > _LARGE_KAPPA for item in found):
        yield (
            f"Some boundaries are widened by more than {_LARGE_KAPPA:g} times (kappa): the sessions, put "
            "together as comparisons, cross them more often than chance does. Look for what makes boots "
            "differ in step (docs/baselines.md), then collect again and accept a new epoch."
        )


def _missing(
    history: History,
    rack: str,
    thresholds: Mapping[str, Thresholds],
    epoch: Epoch | None,
    found: Sequence[Prospect],
) -> Iterator[str]:
    if not boards_of(history, rack):
        yield "Missing: sessions. Measure some: hil baseline collect --sessions 10"
        return
    for words in unmeasured(history, rack, thresholds):
        yield f"Missing: {words} was never measured there."
    short = [item for item in found if _fewest(item.noise) < FEWEST_SESSIONS]
    if short:
        fewest = min(_fewest(item.noise) for item in short)
        yield (
            f"Missing: sessions of two boots or more. {len(short)} comparisons have fewer than "
            f"{FEWEST_SESSIONS}, one of them {fewest}: hil baseline collect --sessions 10"
        )
    if epoch is None:
        yield "Missing: an accepted epoch, so history anchors no mean: hil baseline accept --reason …"
    elif gone := missing_sessions(epoch, history):
        yield (
            f"Missing: {len(gone)} of the epoch's {len(epoch.sessions)} sessions, such as {gone[0]}, are not "
            "in this history: hil ci history fetch --branch hil-data"
        )


def _fewest(noise: Sequence[SeriesNoise]) -> int:
    return min((one.sessions for one in noise), default=0)

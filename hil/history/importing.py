# SPDX-License-Identifier: Apache-2.0
"""Figures that nobody measured here: a CSV file of (time, commit, value) becomes a series of the history.

Each time and commit is a file like a run's, in a rack of its own (``imported``), so that no statistics of
measured boots ever sees one; several values at one time and commit are its boots.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hil.base.errors import ConfigError
from hil.base.reading import SUMMARY_MOST_BYTES, read_at_most
from hil.base.units import QuantityError, unit_of
from hil.history.building import BootPoint, build
from hil.history.files import keep, path_of, read_summary
from hil.history.summary import SCHEMA_VERSION, BootedImage, BootValues, MeasuredBoard, Summary
from hil.model import IMPORTED, SeriesId, format_case_id, format_series_id

COLUMNS = ("time", "commit", "value")
NO_IMAGE = "0" * 64
_NOON = datetime.time(12)  # a date alone is that day's night, which goes from noon to noon
_PROBLEMS_SHOWN = 5
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PARAMETER = re.compile(r"[a-z0-9_]+=[^,=/\s]*")
_COMMIT = re.compile(r"([0-9a-f]{7,40})?")
_SEPARATORS = ((";", "semicolons"), ("\t", "tabs"))
_DAY_S = 86400
_YEAR_MIN = 2000  # no ESP32 is older; what is before is another unit or another column
_EPOCH = re.compile(r"\d{9,}(\.\d*)?")  # a date without hyphens has eight digits
_EPOCH_TICKS = (1, 10**3, 10**6, 10**9)  # of a second: s, ms, µs, ns; at most one gives a possible time
_SERIES_HELP = (
    "it is board/bench/metric or board/bench/key=value,…/metric, as e1/publish/qos=1/latency_p95_us."
)


@dataclass(frozen=True)
class Imported:
    """``series_id`` is what the figures are called; of its values ``new`` were written, ``known`` were there.

    ``repeated`` lines of the file say what an earlier line says; each is a boot of its own.
    """

    series_id: str
    new: int
    known: int
    repeated: int


class Line(NamedTuple):
    """A value of a file, and in which of its lines it stands."""

    number: int
    time: datetime.datetime
    commit: str
    value: float


def import_csv(
    path: Path, series: str, folder: Path, *, now: datetime.datetime, product: str = ""
) -> Imported:
    """Add the figures of a CSV file to the history in ``folder`` as ``series`` of a product.

    ``series`` is ``board/bench/key=value,…/metric``; the metric's last word is the unit. Figures that are
    there are left as they are, so a file that grew may be imported again.

    Raises:
        ConfigError: no such file, another heading, lines that are wrong (the first of them, each with its
            number, what it says and the way out), a figure that the history holds otherwise. Nothing is
            written then.
        RigError: the disk does not take it.
    """
    name = series_name(series)._replace(product=product)
    return enter(name, _read(path, now), folder, path)


def enter(name: SeriesId, lines: Sequence[Line], folder: Path, path: Path) -> Imported:
    """Add the values that ``path`` holds to the history in ``folder``. Raises as import_csv() does."""
    groups = [(_run(name, group), len(group)) for group in _groups(lines)]
    count = sum(size for run, size in groups if _is_there(folder, run, path))
    for run, _ in groups:
        keep(folder, run)
    repeated = len(lines) - len({line[1:] for line in lines})
    return Imported(format_series_id(*name), len(lines) - count, count, repeated)


def series_name(text: str) -> SeriesId:
    """Return the name of an imported series. Raises ConfigError: it has not the parts of one, or no unit."""
    parts = text.split("/")
    if len(parts) not in (3, 4) or not all(_WORD.fullmatch(part) for part in (*parts[:2], parts[-1])):
        raise ConfigError(f"{text!r} names no series.", next_step=_SERIES_HELP)
    pairs = parts[2].split(",") if len(parts) == 4 else []
    if not all(_PARAMETER.fullmatch(pair) for pair in pairs):
        raise ConfigError(f"{parts[2]!r} in {text!r} are not parameters.", next_step=_SERIES_HELP)
    try:
        unit_of(parts[-1])
    except QuantityError as error:
        raise ConfigError(f"the metric of {text!r}: {error}.") from error
    parameters = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    return SeriesId(IMPORTED, parts[0], format_case_id(parts[1], parameters), parts[-1])


def _read(path: Path, now: datetime.datetime) -> list[Line]:
    """Return the lines of the file. Raises ConfigError with the first of what is wrong."""
    rows = _rows(path)
    heading = [cell.lower() for cell in next(rows, (1, []))[1]]
    if sorted(heading) != sorted(COLUMNS):
        raise _wrong_heading(path, ",".join(heading))
    lines, problems = [], []
    for number, cells in rows:
        if not any(cells):
            continue
        try:
            lines.append(_line(number, dict(zip(heading, cells, strict=False)), len(cells), now))
        except ValueError as error:
            problems.append(f"{path}, line {number}: {error}")
    if problems:
        raise _wrong(problems, len(lines) + len(problems))
    if not lines:
        raise ConfigError(f"{path}: it has a heading and no values.")
    return lines


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line in which each row begins, and its cells. Raises ConfigError: quotes do not match."""
    reader = csv.reader(io.StringIO(_text(path), newline=""), skipinitialspace=True, strict=True)
    begin = 1
    try:
        for row in reader:
            yield begin, [cell.strip() for cell in row]
            begin = reader.line_num + 1
    except csv.Error as error:
        raise ConfigError(
            f"{path}, line {begin}: {error}.", next_step="close each quotation mark, or remove them all."
        ) from error


def _wrong_heading(path: Path, found: str) -> ConfigError:
    hints = [f"; export it with commas instead of {name}" for sign, name in _SEPARATORS if sign in found]
    return ConfigError(
        f"{path}, line 1: the heading is {found[:80]!r}.",
        next_step="it must be time,commit,value, in any order, separated by commas" + "".join(hints) + ".",
    )


def _text(path: Path) -> str:
    try:
        content = read_at_most(path, SUMMARY_MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: could not be read: {error.strerror}.") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _no_text(path, f"byte {error.start + 1} is no UTF-8") from error
    if "\0" in text:
        raise _no_text(path, "it holds bytes that are no text")
    return text


def _no_text(path: Path, what: str) -> ConfigError:
    return ConfigError(f"{path}: {what}.", next_step="save the table as CSV in UTF-8.")


def _wrong(problems: Sequence[str], of: int) -> ConfigError:
    more = len(problems) - _PROBLEMS_SHOWN
    shown = [*problems[:_PROBLEMS_SHOWN], *([f"and {more} more."] if more > 0 else [])]
    return ConfigError(
        "\n  ".join([f"{len(problems)} of {of} lines are wrong, so nothing was imported:", *shown]),
        next_step="correct them, then import the file again.",
    )


def _line(number: int, cells: Mapping[str, str], count: int, now: datetime.datetime) -> Line:
    """Return what a line says. Raises ValueError: what is wrong, and how it is written."""
    if count != len(COLUMNS):
        raise ValueError(
            f"{count} fields, not {len(COLUMNS)}: they are separated by commas, and a value has none"
        )
    commit = cells["commit"].lower()
    if not _COMMIT.fullmatch(commit):
        raise ValueError(
            f"commit {cells['commit']!r} is not 7 to 40 hexadecimal digits; unknown: leave it empty"
        )
    return Line(number, _time(cells["time"], now), commit, _value(cells["value"]))


def _time(text: str, now: datetime.datetime) -> datetime.datetime:
    found = since_1970(text, now) if _EPOCH.fullmatch(text) else _iso(text)
    if found.year < _YEAR_MIN:
        raise ValueError(f"time {text!r} is before the year {_YEAR_MIN}")
    if found > now and found.date() > now.astimezone(datetime.UTC).date():
        raise ValueError(f"time {text!r} is yet to come")
    return found.astimezone(datetime.UTC)


def _iso(text: str) -> datetime.datetime:
    date, separator, time = text.replace("T", " ").partition(" ")
    try:
        day = datetime.date.fromisoformat(date)
        found = datetime.datetime.combine(day, datetime.time.fromisoformat(time) if separator else _NOON)
    except ValueError:
        raise ValueError(f"time {text!r} is not as 2026-11-24 or 2026-11-24T03:11:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


def since_1970(text: str, now: datetime.datetime) -> datetime.datetime:
    """Return the time that a count of s, ms, µs or ns means, whichever is possible. Raises ValueError."""
    first = datetime.datetime(_YEAR_MIN, 1, 1, tzinfo=datetime.UTC).timestamp()
    for ticks in _EPOCH_TICKS:
        seconds = float(text) / ticks
        if first <= seconds < now.timestamp() + _DAY_S:
            return datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    raise ValueError(
        f"time {text!r} is neither s nor ms, µs or ns since 1970 of a time since {_YEAR_MIN}; "
        "write it as 2026-11-24T03:11:00Z"
    )


def _value(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or "_" in text:
        raise ValueError(f"value {text!r} is not a number as 1234.5 (a point, no unit)")
    return found


def _groups(lines: Sequence[Line]) -> Iterator[list[Line]]:
    groups: dict[tuple[datetime.datetime, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line.time, line.commit), []).append(line)
    yield from groups.values()


def _run(name: SeriesId, lines: Sequence[Line]) -> Summary:
    """Return what the history keeps of one time and commit, whichever order its values came in."""
    time, commit = lines[0].time, lines[0].commit
    own = hashlib.sha256(f"{format_series_id(*name)} {time.isoformat()} {commit}".encode()).hexdigest()
    points = [
        BootPoint(
            name.board, "candidate", boot, NO_IMAGE, name.case_id, name.metric, value, samples=1, hits=0
        )
        for boot, value in enumerate(sorted(line.value for line in lines))
    ]
    board = MeasuredBoard(name.board, IMPORTED, IMPORTED, {})
    image = BootedImage("candidate", IMPORTED, NO_IMAGE, {name.bench: IMPORTED})
    return Summary(
        schema=SCHEMA_VERSION,
        run_id=f"{IMPORTED}-{time:%Y%m%dT%H%M%SZ}-{own[:12]}",
        started_utc=time.isoformat().replace("+00:00", "Z"),
        rack=IMPORTED,
        suite=f"{name.board}/{name.case_id}/{name.metric}",
        trigger=IMPORTED,
        commit=commit,
        dirty=False,
        product=name.product,
        boot_values=build([board], [image], points),
    )


def _is_there(folder: Path, run: Summary, source: Path) -> bool:
    """Return whether the history holds it. Raises ConfigError where it does with other values."""
    path = path_of(folder, run)
    if not path.exists():
        return False
    if (held := read_summary(path)) != run:
        raise ConfigError(
            f"{source}: at {run.started_utc} of commit {run.commit or '(none)'} it says "
            f"{_listed(run.boot_values)}, but {path} {_listed(held.boot_values)}. Nothing was imported.",
            next_step="correct the line; or, if the history is wrong, delete that file and import again.",
        )
    return True


def _listed(held: BootValues | None) -> str:
    return ", ".join(f"{value:.10g}" for value in held.values if value is not None) if held else "nothing"

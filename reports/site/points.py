# SPDX-License-Identifier: Apache-2.0
"""Allure's own history, ``out/history/allure.jsonl``: one point a report, from which tests know their past.

Allure appends a point each time it generates, under a random name and the time of day. So it works on a
copy: the points of earlier runs go in, and its new point comes back under the runs' names and start.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, RigError
from hil.reports.history import comparable, locked
from hil.store.codec import decode
from hil.store.files import disk_error, replace_file

_SHOWN_BYTES = 40  # of a damaged line
MOST_POINTS = 60  # each test's past in the report; the trend page's own history is not cut

_Point = Mapping[str, Any]
_KINDS: Mapping[str, type] = {"runs": list, "started_utc": str, "trigger": str}  # the keys of ours


def lend(history: Path, copy: Path, runs: Sequence[Mapping[str, Any]]) -> list[_Point]:
    """Write the points that ``runs`` are compared with into ``copy``, and return them, oldest first.

    Raises:
        ConfigError: a line of ``history`` is damaged; names file and line.
    """
    others = _without(_read(history), runs)
    alike = [point for point in comparable(others, runs) if _has_same_air(point, _air(runs))]
    earlier = [point for point in alike if point["started_utc"] < _start(runs)][-MOST_POINTS:]
    copy.write_text("".join(map(_dump, earlier)), encoding="utf-8")
    return earlier


def take_back(history: Path, copy: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """Put the point that Allure appended to ``copy`` into ``history``, in place of any of the same runs.

    Raises:
        ConfigError: a line of ``history`` is damaged; names file and line.
        RigError: Allure appended no point, or the disk does not take it; the file is as it was.
    """
    point = {**_appended(copy), **identity(runs)}
    try:
        history.parent.mkdir(parents=True, exist_ok=True)
        with locked(history.parent):
            points = [*_without(_read(history), runs), point]
            kept = sorted(points, key=lambda item: item["started_utc"])[-MOST_POINTS:]
            replace_file(history, "".join(map(_dump, kept)).encode())
    except OSError as error:
        raise disk_error(f"could not write {history}", error, "the points before this one") from error


def identity(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what names a point: Allure's name and time of it, and the keys that we find it by."""
    started = _start(runs)
    commit = runs[0]["commit"][:7]
    moment = (
        datetime.datetime.fromisoformat(started)
        if started
        else datetime.datetime.fromtimestamp(0, datetime.UTC)
    )
    return {
        "name": " ".join(filter(None, [commit, started[:16].replace("T", " ")])),
        "timestamp": round(moment.timestamp() * 1000),
        "runs": [line["run_id"] for line in runs],
        "started_utc": started,
        "trigger": runs[0]["trigger"],
        "air": _air(runs),
    }


def _air(runs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the air profile of each rack; "" where the air is real."""
    return {str(line["rack"]): str(line.get("profile", "")) for line in runs}


def _has_same_air(point: _Point, air: Mapping[str, str]) -> bool:
    """Return whether a point's racks had the profiles of ``air``; older points without profiles may have."""
    before = point.get("air")
    return not isinstance(before, dict) or all(before.get(rack, air[rack]) == air[rack] for rack in air)


def _start(runs: Sequence[Mapping[str, Any]]) -> str:
    return max(str(line["started_utc"]) for line in runs)


def _without(points: Sequence[_Point], runs: Sequence[Mapping[str, Any]]) -> list[_Point]:
    again = {line["run_id"] for line in runs}
    return [point for point in points if _is_ours(point) and again.isdisjoint(point["runs"])]


def _appended(copy: Path) -> _Point:
    """Return Allure's new point. Raises RigError where there is none: the copy is nobody's to mend."""
    try:
        point = json.loads(copy.read_bytes().rstrip(b"\n").split(b"\n")[-1])
    except (OSError, ValueError) as error:
        raise _no_point(f"{type(error).__name__}") from error
    if not isinstance(point, dict):
        raise _no_point("not a JSON object")
    return point


def _no_point(what: str) -> RigError:
    return RigError(
        f"the report's generator left no point of this run's in its history ({what}).",
        next_step="build the report again: hil report build RUN; if it stays so, run .ci/bootstrap run.",
    )


def _read(history: Path) -> list[_Point]:
    """Return the points; the file is read as bytes, for a noise byte in a text must not end a line."""
    try:
        lines = history.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    return [_parse(history, number, raw) for number, raw in enumerate(lines, start=1) if raw.strip()]


def _parse(path: Path, number: int, raw: bytes) -> _Point:
    """Return the point in a line. Raises ConfigError, which names file, line and the way out."""
    try:
        return _checked(decode(raw))
    except ValueError as error:
        start = raw[:_SHOWN_BYTES].decode(errors="replace")
        raise ConfigError(
            f"{path}:{number}: {error}; the line starts with {start!r}.",
            next_step=f"take it out (sed -i {number}d {path}); only the past that tests show is lost.",
        ) from error


def _checked(point: object) -> _Point:
    """Return the point. Raises ValueError, which says what is wrong with it."""
    if not isinstance(point, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - the file's content is wrong, not a call
    wrong = [key for key, kind in _KINDS.items() if not isinstance(point.get(key, kind()), kind)]
    if wrong:
        raise ValueError(f"{', '.join(wrong)} of the wrong type")
    return point


def _is_ours(point: _Point) -> bool:
    return _KINDS.keys() <= point.keys()


def _dump(point: _Point) -> str:
    # ASCII: Allure reads with Node's readline, which also ends a line at U+2028 and U+2029
    return json.dumps(point, separators=(",", ":")) + "\n"

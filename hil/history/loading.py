"""Reading the whole history at once: every segment of a folder, turned into one array a series."""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NoReturn

from hil.base.errors import ConfigError
from hil.base.paths import PROJECT_ROOT
from hil.history.assembling import assemble
from hil.history.segment import SCHEMA_VERSION, Segment, digest_of
from hil.history.segment_reader import SegmentError, from_json
from hil.metrics.sessions import NO_HISTORY, History

DEFAULT_HISTORY = PROJECT_ROOT / "out" / "hil-data"
SLICE = "slice.json"
_AGAIN = "delete the file, then fetch it from where it came from, or `hil history add` its run again"


def load(folder: Path, *, racks: Collection[str] | None = None) -> History:
    """Read the history of all racks, or of ``racks``: ``<rack>/<run-id>.json``, and what save() wrote.

    A folder that is not there holds no history yet.

    Raises:
        ConfigError: a file is damaged, of an unknown format, not where its run and rack say, or holds a run
            that another file holds too; names the file and the way out.
    """
    segments = [*_slice_of(folder, racks), *(read_segment(path) for path in segment_paths(folder, racks))]
    return assemble(in_order_of_time(segments)) if segments else NO_HISTORY


def segment_paths(folder: Path, racks: Collection[str] | None = None) -> list[Path]:
    """Return the files of a folder, by rack and run."""
    found = folder.glob("[!.]*/[!.]*.json")
    return sorted(path for path in found if racks is None or path.parent.name in racks)


def read_segment(path: Path) -> Segment:
    """Read one run's file. Raises ConfigError as load() does."""
    content = read_bytes(path)
    try:
        segment = from_json(_parse(content), digest_of(content))
        _check_time(segment)
    except (SegmentError, ValueError, RecursionError) as error:
        _refuse(path, error)
    if (segment.rack, segment.run_id) != (path.parent.name, path.stem):
        raise ConfigError(
            f"{path}: it is run {segment.run_id} of rack {segment.rack}, which belongs in "
            f"{segment.rack}/{segment.run_id}.json.",
            next_step="move it there, or delete it if it is there already.",
        )
    return segment


def in_order_of_time(segments: Iterable[Segment]) -> list[Segment]:
    """Return the segments by when their runs started. Raises ConfigError where two are one run."""
    ordered = sorted(segments, key=lambda one: (_moment(one), one.run_id, one.rack))
    racks: dict[str, str] = {}
    for one in ordered:
        if one.run_id in racks:
            first, second = (f"{rack}/{one.run_id}.json" for rack in (racks[one.run_id], one.rack))
            raise ConfigError(
                f"run {one.run_id} is in the history twice: {first} and {second}.",
                next_step="delete the one that does not belong there; a run is of one rack.",
            )
        racks[one.run_id] = one.rack
    return ordered


def read_bytes(path: Path) -> bytes:
    """Return a file's content. Raises ConfigError where the disk does not give it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: could not be read: {error.strerror}.", next_step=f"{_AGAIN}.") from error


def _slice_of(folder: Path, racks: Collection[str] | None) -> list[Segment]:
    """Return the segments of a slice, whose digests are those of the whole runs."""
    path = folder / SLICE
    if not path.exists():
        return []
    try:
        found = _parts_of(_parse(read_bytes(path)))
    except (SegmentError, ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        _refuse(path, error, "measure again; without the slice the run cannot be judged again as it was")
    return [one for one in found if racks is None or one.rack in racks]


def _parts_of(value: object) -> list[Segment]:
    if not isinstance(value, dict) or value.get("schema") != SCHEMA_VERSION:
        raise SegmentError(f"its schema is not {SCHEMA_VERSION}, which this program reads")
    found = [from_json(one, one.pop("digest")) for one in value["sessions"]]
    for one in found:
        _check_time(one)
    return found


def _refuse(path: Path, error: Exception, way_out: str = _AGAIN) -> NoReturn:
    what = error if isinstance(error, SegmentError) else f"it is damaged, {error}"
    if isinstance(error, SegmentError) and "its schema" in str(error):
        way_out = "update this checkout; a newer one wrote the file"
    raise ConfigError(f"{path}: no segment of the history: {what}.", next_step=f"{way_out}.") from error


def _parse(content: bytes) -> object:
    return json.loads(content, parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise SegmentError(f"it holds {name}, which is no value")


def _check_time(segment: Segment) -> None:
    try:
        _moment(segment)
    except ValueError:
        raise SegmentError(f"'started_utc' is {segment.started_utc!r}, no date") from None


def _moment(segment: Segment) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(segment.started_utc)
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)

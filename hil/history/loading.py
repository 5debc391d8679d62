# SPDX-License-Identifier: Apache-2.0
"""Reading the whole history at once: every segment of a folder, turned into one array a series.

All values are in one table, sorted once, cut where the series changes. What a run knew of earlier ones its
own folder keeps: a replay reads this and nothing else.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

from hil.base.errors import ConfigError
from hil.base.numeric import np
from hil.base.paths import PROJECT_ROOT
from hil.base.project import keep_here
from hil.base.reading import SEGMENT_MOST_BYTES, read_at_most
from hil.history.segment import ROLES, Segment
from hil.history.segment_reading import SegmentError, from_json
from hil.metrics.sessions import NO_HISTORY, History, SeriesHistory, Session, SessionBoard
from hil.model import bench_of, format_series_id

Key = TypeVar("Key", bound=Hashable)


class _Names(dict[Key, int]):
    """Numbers names in the order in which they are first asked for."""

    def __missing__(self, name: Key) -> int:
        self[name] = len(self)
        return self[name]

    def array(self) -> np.ndarray:
        """Return the names, by number."""
        found = np.empty(len(self), dtype=object)
        found[:] = list(self)
        return found


class _Table:
    """One row a boot value; columns are numbers of names."""

    def __init__(self) -> None:
        self.boards = _Names[tuple[str, str, str]]()  # product, rack, board
        self.cases, self.metrics = _Names[str](), _Names[str]()
        self.rulers, self.images = _Names[str](), _Names[str]()
        self._parts: dict[str, list[np.ndarray]] = {}

    def add(self, session: int, segment: Segment) -> None:
        """Append a segment's values."""
        rows = segment.series
        sets = [np.array(boots, dtype=np.intp) for boots in segment.boot_sets]
        sizes = np.array([len(boots) for boots in sets], dtype=np.intp)
        case, metric, chosen = rows.T
        times = sizes[chosen] if len(rows) else chosen
        boot = np.concatenate([sets[n] for n in chosen] or [chosen])
        image = _column([one.image for one in segment.boots])[boot]
        case = np.repeat(case, times)
        place = segment.product, segment.rack
        boards = _column([self.boards[*place, one.id] for one in segment.boards])
        roles = _column([ROLES.index(one.role) for one in segment.images])
        self._put(
            session=np.full(len(boot), session),
            board=boards[_column([one.board for one in segment.boots])][boot],
            role=roles[image],
            boot=_column([one.index for one in segment.boots])[boot],
            case=_column([self.cases[name] for name in segment.cases])[case],
            metric=_column([self.metrics[name] for name in segment.metrics])[np.repeat(metric, times)],
            image=_column([self.images[one.sha256] for one in segment.images])[image],
            ruler=self._rulers_of(segment)[image, case],
            value=segment.values,
            samples=segment.samples,
            hits=segment.hits,
        )
        if len(boot) and self._parts["ruler"][-1].min() < 0:
            raise ConfigError(
                f"{segment.rack}/{segment.run_id}.json: an image lacks the ruler of a bench.",
                next_step="delete the file, then `hil history add` its run again.",
            )

    def _put(self, **columns: np.ndarray) -> None:
        for name, column in columns.items():
            self._parts.setdefault(name, []).append(column)

    def _rulers_of(self, segment: Segment) -> np.ndarray:
        """Return the number of the ruler of each image and case; -1 where it is unknown."""
        benches = list(map(bench_of, segment.cases))
        table = [
            [self.rulers[image.rulers[bench]] if bench in image.rulers else -1 for bench in benches]
            for image in segment.images
        ]
        return np.array(table, dtype=np.intp).reshape(len(segment.images), len(benches))

    def series(self) -> dict[tuple[str, str], SeriesHistory]:
        """Return all series, by name and role, each in order of session, then boot."""
        columns = {name: np.concatenate(parts) for name, parts in self._parts.items()}
        if not columns or not len(columns["value"]):
            return {}
        code = (columns.pop("board") * len(self.cases) + columns.pop("case")) * len(self.metrics)
        code = (code + columns.pop("metric")) * len(ROLES) + columns.pop("role")
        order = np.argsort(code, kind="stable")  # rows come by session, and within one by boot
        code = code[order]
        columns = {name: column[order] for name, column in columns.items()}
        columns["ruler"] = self.rulers.array()[columns["ruler"]]
        columns["firmware"] = self.images.array()[columns.pop("image")]
        for column in columns.values():
            column.setflags(write=False)
        starts = np.flatnonzero(np.diff(code, prepend=-1))
        ends = np.append(starts[1:], len(code))
        found = {}
        for key, start, end in zip(self._keys(code[starts]), starts.tolist(), ends.tolist(), strict=True):
            cut = {name: column[start:end] for name, column in columns.items()}
            found[key] = SeriesHistory(series_id=key[0], role=key[1], **cut)
        return dict(sorted(found.items()))

    def _keys(self, codes: np.ndarray) -> list[tuple[str, str]]:
        """Return the series and roles that numbers stand for."""
        boards, cases, metrics = list(self.boards), list(self.cases), list(self.metrics)
        rest, roles = np.divmod(codes, len(ROLES))
        rest, measured = np.divmod(rest, len(metrics))
        numbers = zip(*np.divmod(rest, len(cases)), measured, roles, strict=True)
        names = ((*boards[b], cases[c], metrics[m], ROLES[r]) for b, c, m, r in numbers)
        return [
            (format_series_id(rack, board, case, name, product), role)
            for product, rack, board, case, name, role in names
        ]


def assemble(segments: Sequence[Segment]) -> History:
    """Return the history of segments in order of time. Raises ConfigError where one lacks a ruler."""
    table = _Table()
    for number, segment in enumerate(segments):
        table.add(number, segment)
    return History(tuple(map(_session, segments)), table.series())


def _column(numbers: Sequence[int]) -> np.ndarray:
    return np.array(numbers, dtype=np.intp)


def _session(segment: Segment) -> Session:
    return Session(
        run_id=segment.run_id,
        started_utc=segment.started_utc,
        rack=segment.rack,
        trigger=segment.trigger,
        commit=segment.commit,
        dirty=segment.dirty,
        firmware=_firmware(segment),
        conditions={
            f"{board.id}.{key}": fact for board in segment.boards for key, fact in board.conditions.items()
        },
        suite=segment.suite,
        boards={board.id: SessionBoard(board.target, board.kind) for board in segment.boards},
        product=segment.product,
    )


def _firmware(segment: Segment) -> Mapping[str, str]:
    """Return the SHA-256 of what booted, by role and name."""
    return {f"{image.role} {image.name}": image.sha256 for image in segment.images}


_DEFAULT_OUT = PROJECT_ROOT / "out"


def history_of(out: Path) -> Path:
    """Return where the history of the runs below ``out`` is: in it, or where hil.toml puts the project's own.

    Raises ConfigError where hil.toml is wrong.
    """
    named = keep_here().history
    return named if named and out.absolute() == _DEFAULT_OUT else out / "history"


def default_history() -> Path:
    """Return where the project's own history is. Raises ConfigError where hil.toml is wrong."""
    return history_of(_DEFAULT_OUT)


_AGAIN = "delete the file, then fetch it from where it came from, or `hil history add` its run again"


def load(folder: Path, *, racks: Collection[str] | None = None) -> History:
    """Read the history of all racks, or of ``racks``: ``<rack>/<run-id>.json``.

    A folder that is not there holds no history yet.

    Raises:
        ConfigError: a file is damaged, of an unknown format, not where its run and rack say, or holds a run
            that another file holds too; names the file and the way out.
    """
    segments = [read_segment(path) for path in segment_paths(folder, racks)]
    return assemble(in_order_of_time(segments)) if segments else NO_HISTORY


def segment_paths(folder: Path, racks: Collection[str] | None = None) -> list[Path]:
    """Return the files of a folder, by rack and run."""
    found = folder.glob("[!.]*/[!.]*.json")
    return sorted(path for path in found if racks is None or path.parent.name in racks)


def read_segment(path: Path) -> Segment:
    """Read one run's file. Raises ConfigError as load() does."""
    content = read_bytes(path)
    try:
        segment = from_json(_parse(content))
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
        return read_at_most(path, SEGMENT_MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: could not be read: {error.strerror}.", next_step=f"{_AGAIN}.") from error


def _refuse(path: Path, error: Exception) -> NoReturn:
    what = error if isinstance(error, SegmentError) else f"it is damaged, {error}"
    newer = isinstance(error, SegmentError) and "its schema" in str(error)
    way_out = "update this checkout; a newer one wrote the file" if newer else _AGAIN
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

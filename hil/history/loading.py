# SPDX-License-Identifier: Apache-2.0
"""The boot values of many runs in memory: one array a series.

All values are in one table, sorted once, cut where the series changes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from pathlib import Path
from typing import TypeVar

from hil.base.numeric import np
from hil.history.files import Past, read_past
from hil.history.summary import ROLES, BootValues, Summary
from hil.metrics.sessions import BootSession, History, SeriesHistory, SessionBoard
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

    def add(self, session: int, run: Summary, held: BootValues) -> None:
        """Append a run's values."""
        sets = [np.array(boots, dtype=np.intp) for boots in held.boot_sets]
        sizes = np.array([len(boots) for boots in sets], dtype=np.intp)
        chosen = _column(held.series.boots)
        times = sizes[chosen] if len(chosen) else chosen
        boot = np.concatenate([sets[n] for n in held.series.boots] or [chosen])
        image = _column(held.boots.image)[boot]
        case = np.repeat(_column(held.series.case), times)
        metric = np.repeat(_column(held.series.metric), times)
        boards = _column([self.boards[run.product, run.rack, one.id] for one in held.boards])
        roles = _column([ROLES.index(one.role) for one in held.images])
        self._put(
            session=np.full(len(boot), session),
            board=boards[_column(held.boots.board)][boot],
            role=roles[image],
            boot=_column(held.boots.index)[boot],
            case=_column([self.cases[name] for name in held.cases])[case],
            metric=_column([self.metrics[name] for name in held.metrics])[metric],
            image=_column([self.images[one.sha256] for one in held.images])[image],
            ruler=self._rulers_of(held)[image, case],
            value=_values(held.values),
            samples=_repeated(held.samples),
            hits=_repeated(held.hits),
        )

    def _put(self, **columns: np.ndarray) -> None:
        for name, column in columns.items():
            self._parts.setdefault(name, []).append(column)

    def _rulers_of(self, held: BootValues) -> np.ndarray:
        """Return the number of the ruler of each image and case; -1 where it measured none of the case."""
        benches = list(map(bench_of, held.cases))
        table = [
            [self.rulers[image.rulers[bench]] if bench in image.rulers else -1 for bench in benches]
            for image in held.images
        ]
        return np.array(table, dtype=np.intp).reshape(len(held.images), len(benches))

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


def load(folder: Path, *, racks: Collection[str] | None = None) -> History:
    """Read the boot values of all racks, or of ``racks``; what was left out is in the history.

    A folder that is not there holds no history yet.
    """
    return values_of(read_past(folder, racks=racks))


def values_of(past: Past) -> History:
    """Return the boot values of runs; a run without any is no session."""
    found = [(run, run.boot_values) for run in past.runs if run.boot_values]
    table = _Table()
    for number, (run, held) in enumerate(found):
        table.add(number, run, held)
    sessions = tuple(_session(run, held) for run, held in found)
    return History(sessions, table.series(), past.left_out)


def _values(stored: Sequence[float | None]) -> np.ndarray:
    values = np.array(stored, dtype=np.float64)
    values[np.isnan(values)] = math.inf
    return values


def _repeated(lengths: Sequence[int]) -> np.ndarray:
    return np.repeat(np.array(lengths[::2], dtype=np.int64), lengths[1::2])


def _column(numbers: Sequence[int]) -> np.ndarray:
    return np.array(numbers, dtype=np.intp)


def _session(run: Summary, held: BootValues) -> BootSession:
    return BootSession(
        run_id=run.run_id,
        started_utc=run.started_utc,
        rack=run.rack,
        trigger=run.trigger,
        commit=run.commit,
        dirty=run.dirty,
        firmware={f"{image.role} {image.name}": image.sha256 for image in held.images},
        conditions={
            f"{board.id}.{key}": fact for board in held.boards for key, fact in board.conditions.items()
        },
        suite=run.suite,
        boards={board.id: SessionBoard(board.target, board.kind) for board in held.boards},
        product=run.product,
    )

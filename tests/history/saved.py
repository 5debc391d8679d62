# SPDX-License-Identifier: Apache-2.0
"""A history that a test made in memory, written as the files that the product reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from hil.history import keep
from hil.history.building import BootPoint, build
from hil.history.summary import SCHEMA_VERSION, BootedImage, MeasuredBoard, Role, Summary
from hil.metrics.sessions import BootSession, History, SeriesHistory
from hil.model import bench_of

_HEAD = ("run_id", "started_utc", "rack", "suite", "trigger", "commit", "dirty", "product")


def save(history: History, folder: Path) -> None:
    """Write a file a session."""
    for run in _runs_of(history):
        keep(folder, run)


def _runs_of(history: History) -> Iterator[Summary]:
    points: dict[int, list[BootPoint]] = {}
    rulers: dict[int, dict[tuple[str, str], dict[str, str]]] = {}
    for entry in history.entries.values():
        for session, point, ruler in _points_of(entry):
            points.setdefault(session, []).append(point)
            known = rulers.setdefault(session, {}).setdefault((point.role, point.sha256), {})
            known[bench_of(point.case_id)] = ruler
    for number, its in enumerate(history.sessions):
        values = build(_boards(its), _images(its, rulers.get(number, {})), points.get(number, ()))
        head = {key: getattr(its, key) for key in _HEAD}
        yield Summary(schema=SCHEMA_VERSION, **head, boot_values=values)


def _points_of(entry: SeriesHistory) -> Iterator[tuple[int, BootPoint, str]]:
    """Yield session, value and ruler of each boot of a series."""
    _rack, board, case_id, metric, _product = entry.name
    for row in range(len(entry)):
        session = int(entry.session[row])
        point = BootPoint(
            board=board,
            role=entry.role,
            index=int(entry.boot[row]),
            sha256=str(entry.firmware[row]),
            case_id=case_id,
            metric=metric,
            value=float(entry.value[row]),
            samples=int(entry.samples[row]),
            hits=int(entry.hits[row]),
        )
        yield session, point, str(entry.ruler[row])


def _boards(session: BootSession) -> list[MeasuredBoard]:
    found = []
    for board_id, board in session.boards.items():
        own = {
            key.removeprefix(f"{board_id}."): fact
            for key, fact in session.conditions.items()
            if key.startswith(f"{board_id}.")
        }
        found.append(MeasuredBoard(board_id, board.target, board.kind, own))
    return found


def _images(session: BootSession, rulers: Mapping[tuple[str, str], Mapping[str, str]]) -> list[BootedImage]:
    found = []
    for key, sha256 in session.firmware.items():
        word, _, name = key.partition(" ")
        role: Role = "candidate" if word == "candidate" else "reference"
        found.append(BootedImage(role, name, sha256, rulers.get((role, sha256), {})))
    return found

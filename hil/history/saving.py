"""Writing the history: a run's file, once and for ever; and the slice of a history that a run used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from hil.base.errors import ConfigError
from hil.history.building import Point, build
from hil.history.loading import SLICE, read_bytes
from hil.history.segment import HEAD, SCHEMA_VERSION, Image, Segment, SegmentBoard, to_bytes, to_json
from hil.metrics.sessions import History, SeriesHistory, Session
from hil.store.files import disk_error, replace_file


def path_of(folder: Path, rack: str, run_id: str) -> Path:
    """Return where a run is kept."""
    return folder / rack / f"{run_id}.json"


def append(folder: Path, segment: Segment) -> bool:
    """Write a run's file; return False where it is there already, byte for byte.

    Raises:
        ConfigError: the run is there with other content.
        RigError: the disk does not take it.
    """
    return write_once(path_of(folder, segment.rack, segment.run_id), to_bytes(segment))


def write_once(path: Path, content: bytes) -> bool:
    """Write a file of the history, never over another; return False where it is there. Raises as append()."""
    if path.exists():
        if read_bytes(path) == content:
            return False
        raise ConfigError(
            f"{path}: the history holds this run with other content, and never changes what it holds.",
            next_step="if the run was measured anew, give it a name of its own; if the stored file is wrong, "
            "delete it by hand, and accept a new baseline where an epoch names the run.",
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
    except OSError as error:
        raise disk_error(f"could not write {path}", error, "every other run of the history") from error
    return True


def save(history: History, folder: Path) -> None:
    """Write a slice of a history (History.restricted) into a folder that load() reads as the same history.

    It is one file; the sessions keep the digests of their whole files. Raises RigError.
    """
    sessions = [_dump({**to_json(segment), "digest": segment.digest}) for segment in _segments_of(history)]
    text = f'{{"schema": {SCHEMA_VERSION},\n"sessions": [\n' + ",\n".join(sessions) + "\n]}\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / SLICE, text.encode())
    except OSError as error:
        raise disk_error(f"could not write {folder / SLICE}", error, "the history itself") from error


def _segments_of(history: History) -> Iterator[Segment]:
    points: dict[int, list[Point]] = {}
    rulers: dict[int, dict[tuple[str, str], dict[str, str]]] = {}
    for entry in history.entries.values():
        for session, point, ruler in _points_of(history, entry):
            points.setdefault(session, []).append(point)
            known = rulers.setdefault(session, {}).setdefault((point.role, point.sha256), {})
            known[point.case_id.partition("/")[0]] = ruler
    for number, its in enumerate(history.sessions):
        head = {key: getattr(its, key) for key in HEAD}
        segment = build(head, _boards(its), _images(its, rulers.get(number, {})), points.get(number, ()))
        yield replace(segment, digest=its.digest)


def _points_of(history: History, entry: SeriesHistory) -> Iterator[tuple[int, Point, str]]:
    """Yield session, value and ruler of each boot of a series."""
    for row in range(len(entry)):
        session = int(entry.session[row])
        board, case_id, metric = entry.parts(history.sessions[session].rack)
        point = Point(
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


def _boards(session: Session) -> list[SegmentBoard]:
    found = []
    for board_id, board in session.boards.items():
        own = {
            key.removeprefix(f"{board_id}."): fact
            for key, fact in session.conditions.items()
            if key.startswith(f"{board_id}.")
        }
        found.append(SegmentBoard(board_id, board.target, board.kind, own))
    return found


def _images(session: Session, rulers: Mapping[tuple[str, str], Mapping[str, str]]) -> list[Image]:
    found = []
    for key, sha256 in session.firmware.items():
        role, _, name = key.partition(" ")
        found.append(Image(role, name, sha256, rulers.get((role, sha256), {})))
    return found


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))

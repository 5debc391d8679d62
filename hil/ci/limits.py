# SPDX-License-Identifier: Apache-2.0
"""The definitions that a pull request is judged by: its own, and those of its merge base.

A change may bring limits along, and would otherwise set those that it is judged by. So both judge it, and
the worse verdict counts. What the change loosens is named (hil.ci.loosened).
"""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hil.base.errors import ConfigError
from hil.base.git import try_git
from hil.boards.rack import load_rack
from hil.ci.event import VIRTUAL_RACK
from hil.ci.loosened import ByBench, LimitChange, changes_between, is_judged_alike
from hil.metrics.values import can_be_read
from hil.model import RunRecord
from hil.thresholds import Thresholds, load_all, load_project
from hil.thresholds.loader import FOLDER

_MOST_FILES, _MOST_FILE_BYTES = 200, 1024 * 1024


@dataclass(frozen=True)
class LimitPlace:
    """The paths of a repository's limits and virtual rack file, from its top.

    A ``project`` of a team's has limits of its own beside the tool's; the tool has its own alone.
    """

    thresholds: str = FOLDER
    rack: str = VIRTUAL_RACK
    project: bool = False


def place_of(thresholds: Path) -> LimitPlace:
    """Return the place of limits in ``thresholds``: of a project …/hil/thresholds, a path from the top."""
    if thresholds.parent.name != "hil":
        return LimitPlace()
    return LimitPlace(thresholds.as_posix(), (thresholds.parent / "rack.yaml").as_posix(), project=True)


@dataclass(frozen=True)
class Counting:
    """``head`` are the limits by bench, None for those that each run keeps; ``base`` the merge base's.

    ``boards`` are those of the merge base's virtual rack, as id and target. ``unread`` says what of the merge
    base could not be read, so that it does not count.
    """

    head: ByBench | None = None
    base: ByBench = field(default_factory=dict)
    boards: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[LimitChange, ...]:
        """What the head has otherwise than the base; nothing where there is no base."""
        unread = (LimitChange(f"the head's alone count: {why}", loosens=True) for why in self.unread)
        known = changes_between(self.head, self.base) if self.head and self.base else ()
        return (*unread, *known)


def limits_that_count(thresholds: Path, repository: Path, base: str) -> Counting:
    """Return the limits of a folder, beside those that the repository had at ``base``, a commit or "".

    Raises ConfigError where the folder's cannot be read; the base's may be of another version.
    """
    place = place_of(thresholds)
    counting = Counting(load_project(thresholds) if place.project else load_all(thresholds))
    if not base:
        return counting
    try:
        counting = replace(counting, base=limits_at(repository, base, place))
    except ConfigError as error:
        counting = replace(counting, unread=(error.sentence,))
    try:
        return replace(counting, boards=_boards_at(repository, base, place.rack))
    except ConfigError as error:
        why = f"{place.rack} of {base[:12]} cannot be read by this version: {error.sentence}"
        return replace(counting, unread=(*counting.unread, why))


def limits_at(repository: Path, commit: str, place: LimitPlace) -> ByBench:
    """Return the limits that a repository had at a commit; of a project that has none yet the tool's.

    Raises:
        ConfigError: git does not have the commit or its folder, or this version cannot read what is in it.
    """
    done = try_git(repository, "archive", "--format=tar", f"{commit}:{place.thresholds}")
    known = try_git(repository, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0
    if done.returncode and not (place.project and known):
        said = done.stderr.decode(errors="replace").strip()
        raise ConfigError(f"the limits of {commit[:12]} cannot be fetched: {said}")
    with tempfile.TemporaryDirectory(prefix="hil-limits-") as root:
        folder = Path(root) / FOLDER
        folder.mkdir()
        try:
            if not done.returncode:
                _unpack(done.stdout, folder)
            return load_project(folder) if place.project else load_all(folder)
        except ConfigError as error:
            raise ConfigError(
                f"the limits of {commit[:12]} cannot be read by this version: {error.sentence}"
            ) from error


def _unpack(content: bytes, folder: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        wanted = [
            entry
            for entry in archive
            if entry.isfile() and Path(entry.name).parent == Path() and entry.name.endswith(".yaml")
        ]
        if len(wanted) > _MOST_FILES or any(entry.size > _MOST_FILE_BYTES for entry in wanted):
            raise ConfigError(f"more than {_MOST_FILES} files, or a file larger than {_MOST_FILE_BYTES:,} B.")
        for entry in wanted:
            if stream := archive.extractfile(entry):
                (folder / Path(entry.name).name).write_bytes(stream.read())


def _boards_at(repository: Path, commit: str, rack: str) -> tuple[tuple[str, str], ...]:
    """Return the virtual boards of a rack file at a commit; none where it has no such file."""
    done = try_git(repository, "show", f"{commit}:{rack}")
    if done.returncode:
        return ()
    with tempfile.TemporaryDirectory(prefix="hil-rack-") as folder:
        path = Path(folder) / "rack.yaml"
        path.write_bytes(done.stdout)
        return tuple((board.id, board.target) for board in load_rack(path).boards if board.kind == "virtual")


def by_base(head: ByBench, base: ByBench, records: Sequence[RunRecord]) -> dict[str, Thresholds] | None:
    """Return the head's limits with all that the base defines in their place; None where none differs.

    A metric of the base's that the records lack the columns for is left out. A bench that only the head has
    keeps its own.
    """
    if all(is_judged_alike(own, base[bench]) for bench, own in head.items() if bench in base):
        return None
    return {
        bench: _as_of(base[bench], own, [one for one in records if one.bench == bench])
        if bench in base
        else own
        for bench, own in head.items()
    }


def _as_of(base: Thresholds, head: Thresholds, records: Sequence[RunRecord]) -> Thresholds:
    """Return the base's definitions, for records whose cases are named by the head's parameters."""
    metrics = {
        name: metric
        for name, metric in base.metrics.items()
        if all(can_be_read(metric, one) for one in records if metric.applies_to(one.parameters))
    }
    return replace(base, parameters=head.parameters, suites=head.suites, metrics=metrics)

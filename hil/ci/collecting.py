# SPDX-License-Identifier: Apache-2.0
"""What a leg leaves goes where its artefact is made from: its run, or why there is none."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.ci.plan import LEG_NAME
from hil.store import RunDirectory, ended
from hil.store.ended import ENDED


def collect(out: Path, leg: str, to: Path) -> Path:
    """Copy the newest run below ``out`` to ``to/leg/<run id>``, or to ``to/leg`` why there is none.

    Return that folder. It takes the place of what was collected for this leg before: a leg has one verdict.
    Only files are copied: a link, or what is no file at all, is not the run's, and an artefact would hold
    what it points at.

    Where the last command ended early, no older run stands for it: one that was not judged goes along, for
    its logs. What an earlier job left a checkout has cleaned away.

    Raises:
        ConfigError: ``leg`` is no name of a leg.
        RigError: there is neither, or what there is is elsewhere.
    """
    if not re.fullmatch(LEG_NAME, leg):
        raise ConfigError(
            f"invalid leg name {leg!r}.", next_step="use a leg of the plan: virtual, rack-esp32, …"
        )
    folder = to / leg
    if not ended.read(out / ENDED):
        run = _newest(out, leg)
        shutil.rmtree(folder, ignore_errors=True)
        return _copy(run, folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copyfile(out / ENDED, folder / ENDED)
    for run in RunDirectory.list(out)[-1:]:
        if not run.verdicts_path.exists():
            _copy(run, folder)
    return folder


def _newest(out: Path, leg: str) -> RunDirectory:
    """Return the run that ``latest`` points at. Raises RigError."""
    try:
        run = RunDirectory.latest(out)
    except ConfigError as error:
        raise RigError(
            f"the leg {leg} left no run in {out}: {error.sentence}",
            next_step="read the last lines of `hil run`.",
        ) from error
    if run.path.parent != out.resolve():
        raise RigError(
            f"the leg {leg} left no run in {out}: the newest is {run.path}.",
            next_step=f"measure it again; {out}/latest points outside its folder.",
        )
    return run


def _copy(run: RunDirectory, to: Path) -> Path:
    return Path(shutil.copytree(run.path, to / run.run_id, ignore=_no_files))


def _no_files(folder: str, names: list[str]) -> list[str]:
    paths = [Path(folder) / name for name in names]
    return [path.name for path in paths if path.is_symlink() or not (path.is_file() or path.is_dir())]

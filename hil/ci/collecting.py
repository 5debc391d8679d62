# SPDX-License-Identifier: Apache-2.0
"""What a leg leaves goes where its artefact is made from: its run, or why there is none."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from hil.base.errors import ConfigError, RigError
from hil.store import RunDirectory, ended
from hil.store.ended import ENDED
from hil.store.run_info import ci_facts

_LEG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def collect(out: Path, leg: str, to: Path, environment: Mapping[str, str]) -> Path:
    """Copy the newest run below ``out`` to ``to/leg/<run id>``, or to ``to/leg`` why there is none.

    Return that folder. It takes the place of what was collected for this leg before: a leg has one verdict.
    Only files are copied: a link, or what is no file at all, is not the run's, and an artefact would hold
    what it points at.

    Where the last command ended early, no older run stands for it: one that was not judged goes along, for
    its logs. What another job left in ``out`` is none of this one's; ``environment`` tells which job it is.

    Raises:
        ConfigError: ``leg`` is no name of a leg.
        RigError: there is neither, or what there is is elsewhere, or of another job.
    """
    if not _LEG_NAME.fullmatch(leg):
        raise ConfigError(
            f"{leg!r} is no name of a leg.", next_step="name one of the plan's: virtual, rack-esp32, …"
        )
    if said := ended.read(out / ENDED):
        _refuse_of_another_job(leg, out / ENDED, said.job, ended.job_of(environment))
        folder = to / leg
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copyfile(out / ENDED, folder / ENDED)
        unjudged = [run for run in RunDirectory.list(out)[-1:] if not run.verdicts_path.exists()]
        for run in unjudged:
            _copy(run, folder)
        return folder
    run = _newest(out, leg)
    if here := ci_facts(environment).url:
        _refuse_of_another_job(leg, run.path, _workflow_run(run), here)
    shutil.rmtree(to / leg, ignore_errors=True)
    return _copy(run, to / leg)


def _refuse_of_another_job(leg: str, path: Path, found: object, here: object) -> None:
    """Raise RigError where a file or a run is of another job than this one; by hand there is none."""
    if here and found != here:
        raise RigError(
            f"the leg {leg} left nothing: {path} is of another job ({found or 'none'}), this one is {here}.",
            next_step="the log of the step that failed tells why.",
        )


def _newest(out: Path, leg: str) -> RunDirectory:
    """Return the run that ``latest`` points at. Raises RigError."""
    try:
        run = RunDirectory.latest(out)
    except ConfigError as error:
        raise RigError(
            f"the leg {leg} left no run in {out}: {error.sentence}",
            next_step="what `hil run` said just before tells why.",
        ) from error
    if run.path.parent != out.resolve():
        raise RigError(
            f"the leg {leg} left no run in {out}: the newest is {run.path}.",
            next_step=f"measure it again; {out}/latest points out of its folder.",
        )
    return run


def _workflow_run(run: RunDirectory) -> object:
    """Return the address of the workflow run that a run is of, None where it says nothing of it."""
    with suppress(ConfigError):  # the verdict says what is wrong with it
        return run.read_info().ci.url
    return None


def _copy(run: RunDirectory, to: Path) -> Path:
    return Path(shutil.copytree(run.path, to / run.run_id, ignore=_no_files))


def _no_files(folder: str, names: list[str]) -> list[str]:
    paths = [Path(folder) / name for name in names]
    return [path.name for path in paths if path.is_symlink() or not (path.is_file() or path.is_dir())]

# SPDX-License-Identifier: Apache-2.0
"""Which of the runs on disk can be reported, and how their folders are named in public."""

from __future__ import annotations

from pathlib import Path

from hil.base.errors import ConfigError
from hil.store import JudgedRun, RunDirectory, read_judged_run


def by_name(sentence: str, folder: Path) -> str:
    """Write a folder by its name alone: where it lies on that machine is nobody's concern."""
    for path in (folder, folder.resolve()):
        sentence = sentence.replace(f"{path}/", f"{folder.name}/")
    return sentence


def judged_runs(legs: Path) -> tuple[list[JudgedRun], list[str]]:
    """Return the runs in ``legs``/<leg>/<run id> that can be reported, and a sentence for each that cannot.

    Raises:
        ConfigError: none can.
    """
    found: list[JudgedRun] = []
    left_out: list[str] = []
    for leg in sorted(path for path in legs.glob("*") if path.is_dir()):
        for run in RunDirectory.list(leg):
            try:
                found.append(read_judged_run(run.path))
            except ConfigError as error:
                left_out.append(f"the leg {leg.name} is left out of the report: {error.sentence}")
    if not found:
        raise ConfigError(
            " ".join([f"{legs} holds no run that was judged, so there is nothing to report.", *left_out]),
            next_step="look at the logs of the jobs that measure; runs are looked for in LEG/RUN below it.",
        )
    return found, left_out

# SPDX-License-Identifier: Apache-2.0
"""The label ``hil:more``: a rack's leg whose job is run again goes on from what its earlier attempt measured.

Measured anew until it is decided, an undecided leg would spend alpha as often as it is tried; more boots of
the same run have theirs set aside. So where the label counts, no run that was measured to its end is
measured anew: `hil run --more` takes it further, or says that there is nothing more to measure.

The label asks, and a person runs the job again. A run of pr.yml for each label would skip the required job
for all others, and GitHub counts a skipped check as passed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hil.base.errors import ConfigError
from hil.ci.label import SetLabel
from hil.store import RunDirectory
from hil.store.verdicts import read_verdict

LABEL = "hil:more"


def bring_earlier(
    before: Path, leg: str, out: Path, find_label: Callable[[], SetLabel | None]
) -> tuple[RunDirectory | None, str]:
    """Copy into ``out`` the run that a leg goes on with; return it, and why it is that one or none.

    ``before`` holds the leg as its earlier attempt left it. ``find_label`` tells who asks for more boots.
    Raises ConfigError where ``out`` has a run of this name; RigError where the disk or GitHub fails.
    """
    runs = RunDirectory.list(before / leg)
    if len(runs) != 1:
        return None, "no earlier attempt left a run of it"
    if why := _why_anew(runs[0]):
        return None, why
    label = find_label()
    if label is None:
        return None, f"nobody who may write has set the label {LABEL} for this commit"
    return RunDirectory.bring(runs[0].path, out), f"{label.login} set the label {LABEL} at {label.at_utc}"


def _why_anew(run: RunDirectory) -> str:
    """Say why a run is measured anew whoever asks for more; "" where it was measured to its end."""
    try:
        verdict = read_verdict(run.verdicts_path)
    except ConfigError:
        return "its earlier run was not judged"
    if verdict.faults:
        return "something failed in its earlier run"
    missing = any(entry.expected for entry in verdict.not_run)
    return "its earlier run was not measured to its end" if missing else ""

# SPDX-License-Identifier: Apache-2.0
"""The plan of a job that ran a pull request's code, held against what others say of that pull request.

GitHub says which files it changes, where it left its base, and what its limits are. Which legs that asks for
is planned here again; what the job left out besides is no plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import Struct

from hil.base.errors import ConfigError
from hil.ci.event import CiEvent, Targets
from hil.ci.github import GitHub, GitHubRefusal
from hil.ci.github_run import PullRequest
from hil.ci.plan import RACK_JOBS, CiPlan, Leg, make_plan
from hil.thresholds.loader import FOLDER

MOST_FILES = 300  # that GitHub lists of a comparison, all with its first page
UNLISTED = (
    "(files beyond those that GitHub lists)"  # of no known kind, so whatever measures may be among them
)


@dataclass(frozen=True)
class Diff:
    """What a pull request changes since ``base``, its merge base, in how many ``commits``."""

    base: str
    files: tuple[str, ...]
    commits: int = 0


class _Commit(Struct, frozen=True):
    sha: str


class _File(Struct, frozen=True):
    filename: str
    previous_filename: str = ""


class _Comparison(Struct, frozen=True):
    merge_base_commit: _Commit
    files: tuple[_File, ...]
    total_commits: int


def read_diff(github: GitHub, pull_request: PullRequest) -> Diff:
    """Return the diff of a pull request, as GitHub has it. Raises RigError."""
    commits = f"{pull_request.base.sha}...{pull_request.head.sha}"
    found = github.get(f"compare/{commits}", _Comparison, per_page=1)
    names = [name for one in found.files for name in (one.filename, one.previous_filename) if name]
    unlisted = [UNLISTED] * (len(found.files) >= MOST_FILES)
    return Diff(found.merge_base_commit.sha, (*names, *unlisted), found.total_commits)


def hold_against(plan: CiPlan, diff: Diff, racks: Sequence[str]) -> CiPlan:
    """Return the plan of a pull request with the kinds and legs that its diff asks for.

    ``racks`` are the chips that have one at the merge base. That a rack is off is the job's word, and leaves
    its leg undecided. Raises ConfigError where the plan says otherwise than the diff.
    """
    if plan.base != diff.base:
        raise ConfigError(
            f"the plan compares with {plan.base[:12] or 'nothing'}, but the merge base is {diff.base[:12]}.",
            next_step="run pr.yml again, which makes a new plan.",
        )
    event = CiEvent("pull_request", "pr", plan.head, diff.base, plan.repository, plan.pull_request, plan.fork)
    own = make_plan(event, diff.base, diff.files, Targets(plan.build, tuple(racks)))
    if strangers := {leg.name for leg in plan.legs} - {leg.name for leg in own.legs}:
        raise ConfigError(
            f"the plan has a leg {min(strangers)}, which the default branch's code does not plan."
        )
    legs = tuple(_leg_of(leg, plan, own.changes) for leg in own.legs)
    return replace(plan, event=event.name, trigger=event.trigger, changes=own.changes, legs=legs)


def _leg_of(own: Leg, plan: CiPlan, changes: Sequence[str]) -> Leg:
    """Return a leg as it is to be judged. Raises ConfigError where the plan lacks it, or leaves it out."""
    found = next((leg for leg in plan.legs if leg.name == own.name), None)
    if found is None or (found.job, found.suite, found.target) != (own.job, own.suite, own.target):
        raise ConfigError(f"the plan has no leg {own.name} of the job {own.job} and the suite {own.suite!r}.")
    if found.undecided and own.job in RACK_JOBS:
        return replace(own, skip=found.skip, undecided=True)
    if found.skip and not own.skip:
        raise ConfigError(
            f"the plan leaves out {own.name} ({found.skip}), but the change touches {', '.join(changes)}."
        )
    return own if found.skip else replace(own, skip="")


class _Content(Struct, frozen=True):
    type: str
    name: str
    sha: str


def check_limits(github: GitHub, head: str, folder: Path) -> None:
    """Raise ConfigError where a folder's limits are not the commit's, byte for byte; RigError."""
    try:
        listed = github.get(f"contents/{FOLDER}", tuple[_Content, ...], ref=head)
    except GitHubRefusal as error:
        if error.status != 404:
            raise
        listed = ()
    known = {one.name: one.sha for one in listed if one.type == "file" and one.name.endswith(".yaml")}
    here = {path.name: _blob(path.read_bytes()) for path in folder.glob("*.yaml")}
    if other := sorted(name for name in known.keys() | here.keys() if known.get(name) != here.get(name)):
        raise ConfigError(
            f"the artefact's {FOLDER}/{other[0]} differs from the file in the commit {head[:12]}."
        )


def _blob(content: bytes) -> str:
    """Return git's name for a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()

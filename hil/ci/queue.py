# SPDX-License-Identifier: Apache-2.0
"""A merge group measures what its pull request has not, within the time that the merge queue waits.

What was measured of the pull request's head holds for a group that differs from it in documentation alone.
GitHub is asked for the run of pr.yml that did, and how its required job ended; a check or a status, which
others can post, is no proof. What was undecided stays so.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hil.base.errors import ConfigError, ExitCode, HilError, RigError
from hil.base.git import try_git
from hil.ci import artefact
from hil.ci.acceptance import find_acceptance
from hil.ci.comment import download
from hil.ci.conclusion import accept, conclude
from hil.ci.event import Event, changed_files, kinds_of
from hil.ci.github import GitHub
from hil.ci.github_run import COMMIT, WORKFLOW, WorkflowRun, attempts_by_run, read_jobs, read_run
from hil.ci.legs import LegResult
from hil.ci.plan import RACK_JOBS, CiPlan, Leg, read_strictly

MINUTES = 50  # of the 60 after which GitHub's merge queue gives a group up, where nobody says otherwise
RACK_MINUTES = 75  # what a rack may take: 20 to build, 15 in its queue, 30 to compare, 10 around it
_GROUP = re.compile(r"(?:refs/heads/)?gh-readonly-queue/.+/pr-(\d{1,9})-[0-9a-f]{40}")


class NotBefore(Exception):  # noqa: N818 (an answer)
    """Why a group is measured: what was measured before does not hold for it."""


@dataclass(frozen=True)
class Before:
    """What a run of pr.yml found of the head of a pull request, leg by leg."""

    pull_request: int
    url: str
    plan: CiPlan
    legs: Mapping[str, LegResult]


def in_queue(
    plan: CiPlan, event: Event, repository: Path, github: GitHub | None, *, minutes: int = MINUTES
) -> tuple[CiPlan, str]:
    """Return the plan of a merge group, and why it is measured, "" where it is not, or is no group's.

    Where GitHub does not answer, or ``github`` is None, it is measured.
    """
    if not event.group_ref or all(leg.skip for leg in plan.legs):
        return plan, ""
    if github is None:
        return _within(plan, minutes), "there is no token to ask GitHub with"
    try:
        return _handed_on(plan, measured_before(github, event, repository)), ""
    except NotBefore as why:
        return _within(plan, minutes), str(why)
    except HilError as error:
        return _within(plan, minutes), error.sentence


def measured_before(github: GitHub, event: Event, repository: Path) -> Before:
    """Return what was measured of the pull request that a group ends with, and holds for the group.

    Raises:
        NotBefore: nothing that holds.
        ConfigError: what the run left cannot be read.
        RigError: GitHub does not answer.
    """
    found = _GROUP.fullmatch(event.group_ref)
    if found is None:
        raise NotBefore("its branch names no pull request")
    number = int(found[1])
    head = _head_of(github, number)
    _check_same_content(repository, head, event.head, f"the head of pull request {number} and the group")
    run = _run_of(github, head, number)
    jobs = read_jobs(github, run)
    if jobs.verdict != "success":
        raise NotBefore(f"the required check of {run.url} did not succeed")
    with tempfile.TemporaryDirectory(prefix="hil-queue-") as folder:
        artefact.unpack(download(github, run), Path(folder))
        measured = read_strictly(Path(folder) / artefact.PLAN, head)
        _check_same_content(repository, measured.base, event.base_tip, "its merge base and the group's base")
        changes = kinds_of(changed_files(repository, measured.base, head))
        measured = replace(measured, changes=changes)  # which is no word of its own
        # that job has judged each leg again from its records, so its verdicts are taken
        verdict = conclude(measured, Path(folder) / artefact.LEGS, jobs.others)
    if verdict.acceptable and (accepted := find_acceptance(github, number, run.run_id, head)):
        verdict = accept(verdict, accepted)
    if verdict.exit_code != ExitCode.PASS:
        raise NotBefore(f"what {run.url} left comes to no pass, though its required check succeeded")
    return Before(number, run.url, measured, {leg.name: leg for leg in verdict.legs})


def _head_of(github: GitHub, number: int) -> str:
    try:
        head = str(github.get(f"pulls/{number}")["head"]["sha"])
    except (KeyError, TypeError) as error:
        raise RigError(f"GitHub's answer on the pull request {number} lacks {error!r}.") from error
    if not COMMIT.fullmatch(head):
        raise RigError(f"GitHub's answer on the pull request {number} names no commit.")
    return head


def _check_same_content(repository: Path, before: str, now: str, what: str) -> None:
    """Raise NotBefore where two commits differ in more than documentation, or one is not to be had."""
    for commit in (before, now):
        known = COMMIT.fullmatch(commit) and _has(repository, commit)
        if not known and not (COMMIT.fullmatch(commit) and _fetched(repository, commit)):
            raise NotBefore(f"{what} cannot be compared, as {commit[:12] or 'one'} is not to be had")
    kinds = set(kinds_of(changed_files(repository, before, now))) - {"documentation"}
    if kinds:
        raise NotBefore(f"{what} differ in {', '.join(sorted(kinds))}")


def _has(repository: Path, commit: str) -> bool:
    return try_git(repository, "cat-file", "-e", f"{commit}^{{commit}}").returncode == 0


def _fetched(repository: Path, commit: str) -> bool:
    """Fetch a commit that no branch here leads to: a queue that squashes leaves the pull request's out."""
    try_git(repository, "fetch", "--quiet", "--no-tags", "origin", commit)
    return _has(repository, commit)


def _run_of(github: GitHub, head: str, number: int) -> WorkflowRun:
    """Return the newest run of pr.yml for a commit of a pull request.

    Raises NotBefore, ConfigError where it has not ended, RigError.
    """
    ids = attempts_by_run(github, head)
    if not ids:
        raise NotBefore(f"no run of {WORKFLOW} has measured the head of pull request {number}")
    return read_run(github, max(ids))


def _handed_on(plan: CiPlan, before: Before) -> CiPlan:
    """Return the plan with each leg as it was measured before. Raises NotBefore where one was not."""
    legs = tuple(leg if leg.skip else _leg_before(leg, before) for leg in plan.legs)
    return replace(plan, legs=legs, build=())


def _leg_before(leg: Leg, before: Before) -> Leg:
    result = before.legs.get(leg.name)
    if result is None or before.plan.leg(leg.name).suite != leg.suite:
        raise NotBefore(f"pull request {before.pull_request} measured no leg {leg.name} of suite {leg.suite}")
    planned = before.plan.leg(leg.name)
    if planned.skip and not planned.undecided:
        raise NotBefore(f"pull request {before.pull_request} did not measure {leg.name}: {planned.skip}")
    is_open = result.is_open or (bool(result.reason) and result.exit_code != ExitCode.PASS)
    how = f", {'accepted' if result.accepted else result.outcome}" if is_open and not result.reason else ""
    reason = f"measured as the head of pull request {before.pull_request}{how}: {before.url}"
    if result.reason:
        reason = f"{result.reason} (as of pull request {before.pull_request}: {before.url})"
    return replace(leg, skip=reason, undecided=is_open)


def _within(plan: CiPlan, minutes: int) -> CiPlan:
    """Return the plan without what may take longer than the merge queue waits: it is undecided then."""
    if minutes >= RACK_MINUTES:
        return plan
    reason = (
        f"a rack may take {RACK_MINUTES} min, and a group of the merge queue has {minutes} "
        "(HIL_QUEUE_MINUTES); the night measures it"
    )
    return replace(
        plan,
        legs=tuple(
            replace(leg, skip=reason, undecided=True) if leg.job in RACK_JOBS and not leg.skip else leg
            for leg in plan.legs
        ),
    )


def minutes_of(text: str) -> int:
    """Return the minutes that a variable says, MINUTES where it is empty. Raises ConfigError."""
    if not text:
        return MINUTES
    if not re.fullmatch(r"[1-9]\d{0,3}", text):
        raise ConfigError(
            f"HIL_QUEUE_MINUTES {text[:40]!r} is no number of minutes.",
            next_step="write less than the merge queue's status check timeout, such as 50.",
        )
    return int(text)

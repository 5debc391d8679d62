# SPDX-License-Identifier: Apache-2.0
"""Judge a run of pr.yml with the default branch's code, for its comment and its check.

Whose pull request it is, which commit was measured and how the required check ended, GitHub says. The
artefact only adds figures; where it does not fit what GitHub says, there is no verdict.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, ExitCode, HilError
from hil.base.untrusted import code, markdown, terminal
from hil.ci import artefact, racks
from hil.ci.acceptance import find_acceptance
from hil.ci.comment_page import Source, facts_of, render, run_links, without_verdict
from hil.ci.conclusion import CiVerdict, accept, conclude_by
from hil.ci.event import read_targets
from hil.ci.github import GitHub, GitHubRefusal, TooLarge
from hil.ci.github_run import (
    SKIPPED,
    VERDICT_JOB,
    Jobs,
    PullRequest,
    WorkflowRun,
    find_artefact,
    find_pull_requests,
    newest_run,
    read_jobs,
    read_run,
)
from hil.ci.plan import CiPlan, read_plan_of
from hil.ci.publish import Marker, describe_attempt, post_check, write
from hil.ci.verified import check_limits, hold_against, read_diff
from hil.thresholds.loader import FOLDER

EVENT = "pull_request"
WAITS = "action_required"  # GitHub's word for a run that nobody has approved yet: no job has started
_MOST_CHARACTERS = 65_000  # GitHub refuses a comment beyond 65,536


def comment(github: GitHub, run_id: int, *, head: str = "") -> tuple[str, ...]:
    """Write the comment of a run, or show it; return a line for each thing that was done, or why none was.

    Raises:
        ConfigError: the run is of another workflow, or of another commit than ``head``, or has not ended.
        RigError: GitHub refuses or does not answer.
    """
    run = read_run(github, run_id)
    if head and head != run.head:
        raise ConfigError(f"the run {run_id} is of {run.head[:12]}, not of {terminal(head, 40)}.")
    if run.event != EVENT:
        return (f"The run {run_id} is of no pull request, so nothing is written.",)
    if run.conclusion == WAITS:
        return (f"The run {run_id} waits for somebody's approval, so nothing is written.",)
    newest = newest_run(github, run.head)
    if newest > run_id or (newest and run.conclusion == SKIPPED):
        return (
            f"Another run of {run.head[:12]} says it (a base or a title was edited): nothing is written.",
        )
    found = find_pull_requests(github, run)
    if not found:
        return (
            f"No open pull request has the head {run.head[:12]} any more (a newer push, or closed), "
            "so nothing is written.",
        )
    body, facts = page_of(github, run, found)
    first = not _is_quiet(facts)
    written = [write(github, _marker(run), pull_request, body, first=first) for pull_request in found]
    return (*written, post_check(github, run, facts))


def _is_quiet(facts: Mapping[str, Any]) -> bool:
    """Return whether nothing had to be measured, which the check says too: that is nobody's news."""
    measured = [leg for leg in facts["legs"] if not leg["reason"]]
    return facts["conclusion"] == "success" and not measured and not facts["loosened"]


def page_of(github: GitHub, run: WorkflowRun, pulls: Sequence[PullRequest]) -> tuple[str, Mapping[str, Any]]:
    """Return the comment's text, and what it is made of. Raises RigError where GitHub does not answer."""
    jobs = read_jobs(github, run)
    commits = f"{run.url.partition('/actions/')[0]}/commit/"
    source = Source(run_links(run.url), commits, run.title, run.author)
    with tempfile.TemporaryDirectory(prefix="hil-verdict-") as folder:
        try:
            facts = _judged(github, run, pulls, jobs, Path(folder), source)
        except ConfigError as error:  # a red job says itself that something is wrong; a green one does not
            green = jobs.verdict == "success" or run.conclusion == "success"
            facts = without_verdict(run.head, error.sentence, source, is_green=green)
        facts = {**facts, "attempts": describe_attempt(run.attempt)}
        try:
            page = render(facts, "comment")
        except HilError as error:
            page = _plain(run, error.sentence)
    return f"{_marker(run)}\n{page}"[:_MOST_CHARACTERS], facts


def _marker(run: WorkflowRun) -> Marker:
    return Marker(run.run_id, run.number, run.attempt, run.head)


def _plain(run: WorkflowRun, why: str) -> str:
    """Return a page where not even the page could be written."""
    return (
        f"### ? No verdict could be read\n\n{code(run.head[:12])}. Why: {markdown(why)}\n\n"
        f"[workflow run]({run.url})\n"
    )


def _judged(
    github: GitHub,
    run: WorkflowRun,
    pulls: Sequence[PullRequest],
    jobs: Jobs,
    folder: Path,
    source: Source,
) -> dict[str, Any]:
    """Fetch the artefact and conclude from it. Raises ConfigError where there is no verdict; RigError."""
    if jobs.verdict not in ("success", "failure"):
        how = f"ended with {jobs.verdict!r}" if jobs.verdict else "did not run"
        raise ConfigError(f"the job {VERDICT_JOB} {how}.")
    if jobs.others.get("plan") == "failure":
        raise ConfigError(
            "the job plan failed, so nothing was measured; the summary of hil-verdict says why."
        )
    content = download(github, run)
    try:
        artefact.unpack(content, folder)
        return _read(github, run, pulls, jobs, folder, source)
    except HilError:
        raise
    except Exception as error:  # others wrote it: a surprise must not keep an older comment in place
        raise ConfigError(f"the artefact cannot be read: {type(error).__name__}.") from error


def _read(
    github: GitHub,
    run: WorkflowRun,
    pulls: Sequence[PullRequest],
    jobs: Jobs,
    folder: Path,
    source: Source,
) -> dict[str, Any]:
    """Conclude from the artefact. Raises ConfigError where there is no verdict in it."""
    plan = read_plan_of(folder / artefact.PLAN, run.head)
    for pull_request in pulls:  # one check stands for all that have this head
        diff = read_diff(github, pull_request)
        plan = hold_against(plan, diff, read_targets(Path.cwd(), diff.base).racks)
    check_limits(github, run.head, folder / FOLDER)
    if not (folder / FOLDER).is_dir():
        raise ConfigError("the artefact holds no limits, so the run cannot be judged again.")
    legs = folder / artefact.LEGS
    verdict = conclude_by(folder / FOLDER, plan, legs, jobs.others, partial(_excuses, github, run, plan))
    if verdict.acceptable and jobs.verdict == "success":  # else the check would have to be run again first
        verdict = _accepted(github, run, verdict)
    _check_agreement(verdict, jobs)
    return facts_of(plan, verdict, legs, replace(source, count=diff.commits))


def _excuses(github: GitHub, run: WorkflowRun, plan: CiPlan, lost: Collection[str]) -> Mapping[str, str]:
    """Return why racks left nothing that took no job, by the jobs that GitHub lists. Raises RigError."""
    return racks.unanswered(plan, lost, lambda: racks.jobs_of(github, run.run_id, run.attempt))


def _accepted(github: GitHub, run: WorkflowRun, verdict: CiVerdict) -> CiVerdict:
    """Return the verdict with an owner's acceptance, as GitHub tells it. Raises RigError."""
    for pull_request in find_pull_requests(github, run):
        if found := find_acceptance(github, pull_request.number, run.run_id, run.head):
            return accept(verdict, found)
    return verdict


def download(github: GitHub, run: WorkflowRun) -> bytes:
    """Return the artefact "verdict" of a run. Raises ConfigError where there is none; RigError."""
    found = find_artefact(github, run)
    if found is None:
        raise ConfigError("the run left no artefact “verdict”, or it has expired.")
    if found.size_in_bytes > artefact.MOST_ZIP_BYTES:
        most = f"{artefact.MOST_ZIP_BYTES:,}"
        raise ConfigError(f"the artefact has {found.size_in_bytes} B, and at most {most} are read.")
    try:
        return github.download(f"actions/artifacts/{found.id}/zip", artefact.MOST_ZIP_BYTES)
    except TooLarge as error:
        raise ConfigError(error.sentence) from error
    except GitHubRefusal as error:
        if error.status not in (404, 410):
            raise
        raise ConfigError("the artefact no longer exists.") from error


def _check_agreement(verdict: CiVerdict, jobs: Jobs) -> None:
    """What the artefact comes to must be how the required check ended. Raises ConfigError."""
    if (verdict.exit_code == ExitCode.PASS) == (jobs.verdict == "success"):
        return
    raise ConfigError(
        f"the artefact comes to exit code {int(verdict.exit_code)}, but the job {VERDICT_JOB} ended "
        f"with {jobs.verdict!r}."
    )

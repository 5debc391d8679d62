# SPDX-License-Identifier: Apache-2.0
"""Read what GitHub itself says of a workflow run: its commit, its jobs, its artefact, its pull requests.

Names of branches and owners are a fork's to choose, so they are compared and never shown as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hil.base.errors import ConfigError, RigError
from hil.ci.github import GitHub

WORKFLOW = ".github/workflows/pr.yml"
VERDICT_JOB = "hil-verdict"
ARTEFACT = "verdict"
COMMIT = re.compile(r"[0-9a-f]{40}")
SKIPPED = "skipped"  # how a run ends of which each job was skipped
BOT = "github-actions[bot]"

# what GitHub calls the jobs of measure.yml, behind the name of the job that calls it → their names in
# `needs`; those of a matrix go on with its value
CALLER = "hil / "
JOB_NAMES: Mapping[str, str] = {
    "Plan": "plan",
    "Virtual rack": "virtual",
    "Build": "build",
    "Rack": "rack",
    "Wait for racks": "patience",
    "Give up": "give-up",
}
_VERSION = "check GITHUB_API_URL: it must be GitHub's API of 2022-11-28 or later."
_WORST = ("failure", "cancelled", "success", "skipped")  # of a matrix's jobs the first counts


@dataclass(frozen=True)
class WorkflowRun:
    """One attempt of a run of pr.yml, ended; ``head_repository`` is "" where the fork has been deleted."""

    run_id: int
    number: int
    attempt: int
    event: str
    head: str
    head_branch: str
    head_repository: str
    conclusion: str
    url: str
    started_utc: str  # of this attempt, as GitHub writes moments
    title: str = ""  # of the head's commit, and who wrote it: anybody's words
    author: str = ""


@dataclass(frozen=True)
class PullRequest:
    """``base`` is a commit of the branch that it is to be merged into."""

    number: int
    head: str
    base: str = ""


@dataclass(frozen=True)
class Jobs:
    """How jobs ended: that of the verdict ("" where there is none), the others by their names in pr.yml."""

    verdict: str
    others: Mapping[str, str]


def read_run(github: GitHub, run_id: int) -> WorkflowRun:
    """Return the run. Raises ConfigError where it is of another workflow or has not ended; RigError."""
    stored = github.get(f"actions/runs/{run_id}")
    try:
        path, status = str(stored["path"]).partition("@")[0], str(stored["status"])
        home = str(stored["repository"]["full_name"])
        head_repository = (stored.get("head_repository") or {}).get("full_name") or ""
        commit = stored.get("head_commit") or {}
        run = WorkflowRun(
            run_id=int(stored["id"]),
            number=int(stored["run_number"]),
            attempt=int(stored["run_attempt"]),
            event=str(stored["event"]),
            head=str(stored["head_sha"]),
            head_branch=str(stored.get("head_branch") or ""),
            head_repository=str(head_repository),
            conclusion=str(stored["conclusion"] or ""),
            url=str(stored["html_url"]),
            started_utc=str(stored["run_started_at"]),
            title=str(commit.get("message") or "").partition("\n")[0],
            author=str((commit.get("author") or {}).get("name") or ""),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RigError(f"GitHub's answer on the run {run_id} lacks {error!r}.", next_step=_VERSION) from error
    if path != WORKFLOW or home.lower() != github.repository.lower() or not COMMIT.fullmatch(run.head):
        raise ConfigError(
            f"the run {run_id} is of {path!r} in {home!r}, and not of {WORKFLOW} in {github.repository}.",
            next_step="name a run of that workflow.",
        )
    if status != "completed":
        raise ConfigError(f"the run {run_id} has not ended yet.", next_step="wait until it has.")
    return run


def attempts_by_run(github: GitHub, head: str) -> dict[int, int]:
    """Return the runs of pr.yml that measure a commit of a pull request, and how many attempts each has had.

    A run whose jobs were all skipped, as for an edited title, is left out. Raises RigError.
    """
    listed = github.pages("actions/runs", "workflow_runs", head_sha=head, event="pull_request")
    return {
        one["id"]: int(one.get("run_attempt") or 1)
        for one in listed
        if str(one.get("path")).partition("@")[0] == WORKFLOW
        and one.get("head_sha") == head
        and one.get("event") == "pull_request"
        and isinstance(one.get("id"), int)
        and one.get("conclusion") != SKIPPED
    }


def read_jobs(github: GitHub, run: WorkflowRun) -> Jobs:
    """Return how the jobs of the run's newest attempt ended. Raises RigError.

    Where nothing had to be measured the plan's job says the verdict, and its own job is skipped.
    """
    verdicts: list[str] = []
    others = dict.fromkeys(JOB_NAMES.values(), "skipped")
    for job in github.pages(f"actions/runs/{run.run_id}/attempts/{run.attempt}/jobs", "jobs"):
        name, conclusion = str(job.get("name")).removeprefix(CALLER), _known(str(job.get("conclusion") or ""))
        if name == VERDICT_JOB:
            verdicts.append(conclusion)
        for shown, needed in JOB_NAMES.items():
            if name == shown or name.startswith(f"{shown} "):
                others[needed] = min(others[needed], conclusion, key=_WORST.index)
    # a fork may call two jobs so; the worse of them counts, as it does for the required check
    verdict = min(verdicts, key=_WORST.index, default="")
    return Jobs(others["plan"] if verdict == "skipped" else verdict, others)


def _known(conclusion: str) -> str:
    """Return a conclusion as `needs` would have it: timed_out, stale and whatever comes are failures."""
    return conclusion if conclusion in _WORST else "failure"


def find_artefact(github: GitHub, run: WorkflowRun) -> Mapping[str, Any] | None:
    """Return the newest artefact "verdict" that this attempt of the run left and that is still there.

    Those of earlier attempts stay in the list; what they say is of another verdict. Raises RigError.
    """
    found = [
        one
        for one in github.pages(f"actions/runs/{run.run_id}/artifacts", "artifacts", name=ARTEFACT)
        if one.get("name") == ARTEFACT
        and not one.get("expired")
        and isinstance(one.get("id"), int)
        and str(one.get("created_at") or "") >= run.started_utc
    ]
    return max(found, key=lambda one: int(one["id"]), default=None)


def find_pull_requests(github: GitHub, run: WorkflowRun) -> tuple[PullRequest, ...]:
    """Return the open pull requests whose head is still the run's. Raises RigError.

    GitHub leaves the run's own list empty for forks, and the artefact says what the fork wants.
    """
    if not (run.head_repository and run.head_branch):
        return ()
    owner = run.head_repository.partition("/")[0]
    listed = github.pages("pulls", state="open", head=f"{owner}:{run.head_branch}")
    return tuple(
        PullRequest(int(one["number"]), run.head, str((one.get("base") or {}).get("sha") or ""))
        for one in listed
        if _has_head(one, run)
    )


def still_open_at(github: GitHub, pull_request: PullRequest) -> bool:
    """Return whether the pull request is open and has the head that was measured, now. Raises RigError."""
    stored = github.get(f"pulls/{pull_request.number}")
    head = stored.get("head") if isinstance(stored, dict) else None
    return isinstance(head, dict) and stored.get("state") == "open" and head.get("sha") == pull_request.head


def _has_head(stored: Mapping[str, Any], run: WorkflowRun) -> bool:
    head = stored.get("head")
    if not isinstance(head, dict) or not isinstance(stored.get("number"), int):
        return False
    origin = (head.get("repo") or {}).get("full_name") or ""
    same_place = origin.lower() == run.head_repository.lower() and head.get("ref") == run.head_branch
    return same_place and head.get("sha") == run.head

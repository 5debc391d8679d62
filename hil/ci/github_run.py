# SPDX-License-Identifier: Apache-2.0
"""Read what GitHub itself says of a workflow run: its commit, its jobs, its artefact, its pull requests.

Names of branches and owners are a fork's to choose, so they are compared and never shown as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from msgspec import Struct

from hil.base.errors import ConfigError
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
    "Emulator": "emulator",
    "Rack": "rack",
    "Wait for racks": "patience",
    "Give up": "give-up",
}
_WORST = ("failure", "cancelled", "success", "skipped")  # of a matrix's jobs the first counts


class Repository(Struct, frozen=True):
    full_name: str | None = None


class User(Struct, frozen=True):
    login: str = ""


class _Author(Struct, frozen=True):
    name: str | None = None


class _HeadCommit(Struct, frozen=True):
    message: str | None = None
    author: _Author | None = None


class Label(Struct, frozen=True):
    name: str


class Side(Struct, frozen=True):
    """A branch of a pull request; ``repo`` is None where the fork has been deleted."""

    sha: str
    ref: str = ""
    repo: Repository | None = None


class WorkflowRun(
    Struct,
    frozen=True,
    rename={
        "run_id": "id", "number": "run_number", "attempt": "run_attempt", "head": "head_sha",
        "url": "html_url", "created_utc": "created_at", "started_utc": "run_started_at",
    },
):  # fmt: skip
    """A run; ``started_utc`` is of its newest attempt, as GitHub writes moments."""

    run_id: int
    number: int
    attempt: int
    event: str
    status: str
    path: str
    head: str
    url: str
    repository: Repository
    created_utc: str
    started_utc: str
    head_branch: str | None = None
    head_repository: Repository | None = None
    conclusion: str | None = None
    head_commit: _HeadCommit | None = None

    @property
    def is_of_pull_request(self) -> bool:
        """Whether it is a run of pr.yml for a pull request."""
        return self.path.partition("@")[0] == WORKFLOW and self.event == "pull_request"

    @property
    def title(self) -> str:
        """The title of the head's commit: anybody's words, as its author's name is."""
        return ((self.head_commit and self.head_commit.message) or "").partition("\n")[0]

    @property
    def author(self) -> str:
        return (self.head_commit and self.head_commit.author and self.head_commit.author.name) or ""


class PullRequest(Struct, frozen=True):
    number: int
    state: str
    head: Side
    base: Side
    labels: tuple[Label, ...] = ()
    user: User | None = None
    body: str | None = None


class Comment(Struct, frozen=True):
    id: int
    user: User | None = None
    body: str | None = None

    def is_by(self, login: str) -> bool:
        return self.user is not None and self.user.login == login


class Artefact(Struct, frozen=True):
    id: int
    name: str
    size_in_bytes: int
    created_at: str
    expired: bool = False


class _Job(Struct, frozen=True):
    name: str
    conclusion: str | None = None


@dataclass(frozen=True)
class Jobs:
    """How jobs ended: that of the verdict ("" where there is none), the others by their names in pr.yml."""

    verdict: str
    others: Mapping[str, str]


def read_run(github: GitHub, run_id: int) -> WorkflowRun:
    """Return the run. Raises ConfigError where it is of another workflow or has not ended; RigError."""
    run = github.get(f"actions/runs/{run_id}", WorkflowRun)
    path, home = run.path.partition("@")[0], run.repository.full_name or ""
    if path != WORKFLOW or home.lower() != github.repository.lower() or not COMMIT.fullmatch(run.head):
        raise ConfigError(
            f"the run {run_id} is of {path!r} in {home!r}, not of {WORKFLOW} in {github.repository}.",
            next_step="name a run of that workflow.",
        )
    if run.status != "completed":
        raise ConfigError(f"the run {run_id} has not ended yet.", next_step="wait until it has ended.")
    return run


def newest_run(github: GitHub, head: str) -> int:
    """Return the newest run of pr.yml that measures a commit of a pull request, 0 where there is none.

    A run whose jobs were all skipped, as for an edited title, measures nothing. Raises RigError.
    """
    listed = github.pages("actions/runs", WorkflowRun, "workflow_runs", head_sha=head, event="pull_request")
    measured = (one for one in listed if one.is_of_pull_request and one.conclusion != SKIPPED)
    return max((one.run_id for one in measured if one.head == head), default=0)


def read_jobs(github: GitHub, run: WorkflowRun) -> Jobs:
    """Return how the jobs of the run's newest attempt ended. Raises RigError.

    Where nothing had to be measured the plan's job says the verdict, and its own job is skipped.
    """
    verdicts: list[str] = []
    others = dict.fromkeys(JOB_NAMES.values(), SKIPPED)
    for job in github.pages(f"actions/runs/{run.run_id}/attempts/{run.attempt}/jobs", _Job, "jobs"):
        name = job.name.removeprefix(CALLER)
        # as `needs` has it: timed_out, stale and whatever comes are failures
        conclusion = job.conclusion if job.conclusion in _WORST else "failure"
        if name == VERDICT_JOB:
            verdicts.append(conclusion)
        for shown, needed in JOB_NAMES.items():
            if name == shown or name.startswith(f"{shown} "):
                others[needed] = min(others[needed], conclusion, key=_WORST.index)
    # a fork may call two jobs so; the worse of them counts, as it does for the required check
    verdict = min(verdicts, key=_WORST.index, default="")
    return Jobs(others["plan"] if verdict == SKIPPED else verdict, others)


def find_artefact(github: GitHub, run: WorkflowRun) -> Artefact | None:
    """Return the newest artefact "verdict" that this attempt of the run left and that is still there.

    Those of earlier attempts stay in the list; what they say is of another verdict. Raises RigError.
    """
    listed = github.pages(f"actions/runs/{run.run_id}/artifacts", Artefact, "artifacts", name=ARTEFACT)
    found = [
        one
        for one in listed
        if one.name == ARTEFACT and not one.expired and one.created_at >= run.started_utc
    ]
    return max(found, key=lambda one: one.id, default=None)


def find_pull_requests(github: GitHub, run: WorkflowRun) -> tuple[PullRequest, ...]:
    """Return the open pull requests whose head is still the run's. Raises RigError.

    GitHub leaves the run's own list empty for forks, and the artefact says what the fork wants.
    """
    origin = (run.head_repository and run.head_repository.full_name) or ""
    if not (origin and run.head_branch):
        return ()
    listed = github.pages(
        "pulls", PullRequest, state="open", head=f"{origin.partition('/')[0]}:{run.head_branch}"
    )
    return tuple(
        one
        for one in listed
        if (one.head.ref, one.head.sha) == (run.head_branch, run.head)
        and ((one.head.repo and one.head.repo.full_name) or "").lower() == origin.lower()
    )


def still_open_at(github: GitHub, pull_request: PullRequest) -> bool:
    """Return whether the pull request is open and has the head that was measured, now. Raises RigError."""
    now = github.get(f"pulls/{pull_request.number}", PullRequest)
    return (now.state, now.head.sha) == ("open", pull_request.head.sha)

# SPDX-License-Identifier: Apache-2.0
"""GitHub's API, as far as a comment needs it: patient where GitHub is busy, plain where it refuses.

The token goes to the API and nowhere else: a redirect is followed by hand, without it, and no sentence
has it.

What GitHub itself says of a workflow run: its commit, its jobs, its artefact, its pull requests.

Names of branches and owners are a fork's to choose, so they are compared and never shown as they are.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests

from hil.base.errors import ConfigError, RigError
from hil.ci.github_http import is_rate_limit, kind, pause_s, said, send

DEFAULT_API = "https://api.github.com"
ATTEMPTS = 4
MOST_WAIT_S = 120.0  # altogether, for a rate limit or a server that is down
MOST_ANSWER_BYTES = 16 * 1024 * 1024
MOST_PAGES = 30
PAGE_SIZE = 100
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_REPOSITORY = re.compile(r"[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100}")


class Refused(RigError):  # noqa: N818 (an answer)
    """GitHub answered with ``status``, and will do so again."""

    def __init__(self, status: int, sentence: str, *, next_step: str) -> None:
        super().__init__(sentence, next_step=next_step)
        self.status = status


@dataclass
class GitHub:
    """A repository (``owner/name``) at an API. ``token`` may be empty for what is public."""

    repository: str
    token: str = field(default="", repr=False)
    api: str = DEFAULT_API
    wait: Callable[[float], None] = time.sleep
    _waited_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        """Check the address. Raises ConfigError."""
        if not _REPOSITORY.fullmatch(self.repository):
            raise ConfigError(
                f"{self.repository!r} is no repository.",
                next_step="name it as owner/name: --repository, or GITHUB_REPOSITORY.",
            )
        parts = urlsplit(self.api)
        safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
        if not safe or parts.username or parts.query:
            raise ConfigError(
                f"the API's address {parts.scheme}://{parts.hostname} is none that a token may be sent to.",
                next_step=f"set GITHUB_API_URL to an address with https, such as {DEFAULT_API}.",
            )

    def get(self, path: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Return what is at ``path`` of the repository, or of the API where it starts with "/".

        Raises:
            Refused: GitHub says no.
            RigError: GitHub does not answer, or with no JSON.
        """
        return self._json("GET", path, parameters=parameters)

    def pages(self, path: str, key: str = "", **parameters: Any) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list, page by page; ``key`` is where an answer has it. Raises as get()."""
        for page in range(1, MOST_PAGES + 1):
            answer = self.get(path, {**parameters, "per_page": PAGE_SIZE, "page": page})
            found = answer.get(key) if key and isinstance(answer, dict) else answer
            if not isinstance(found, list):
                raise RigError(f"GitHub's answer to {path} is no list.", next_step=_LATER)
            yield from (one for one in found if isinstance(one, dict))
            if len(found) < PAGE_SIZE:
                return
        raise RigError(
            f"GitHub's list {path} has more than {MOST_PAGES * PAGE_SIZE} entries, so it was not read.",
            next_step="that is more than this command looks through.",
        )

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create something; never twice: an answer that is lost is for the caller to look into."""
        return self._json("POST", path, body=body, attempts=1)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        """Change something; raises as get()."""
        return self._json("PATCH", path, body=body)

    def delete(self, path: str) -> None:
        """Delete something; raises as get()."""
        self._ask("DELETE", path, None, None, ATTEMPTS, ok=(204,))

    def download(self, path: str, most_bytes: int) -> bytes:
        """Return a file that GitHub redirects to, at most ``most_bytes`` of it. Raises as get()."""
        answer, _ = self._ask("GET", path, None, None, ATTEMPTS, ok=(302,))
        target = answer.headers.get("Location", "")
        parts = urlsplit(target)
        if not (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)):
            raise RigError(f"GitHub redirects {path} to no address with https.", next_step=_LATER)
        answer, content = self._retried("GET", target, f"the file of {path}", ATTEMPTS, most_bytes, token="")
        if answer.status_code != 200:
            raise self._refusal(answer, f"the file of {path}", content)
        return content

    def _json(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        attempts: int = ATTEMPTS,
    ) -> Any:
        _, content = self._ask(method, path, parameters, body, attempts, ok=(200, 201, 202))
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise RigError(f"GitHub's answer to {path} is no JSON.", next_step=_LATER) from error

    def _ask(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, Any] | None,
        body: Mapping[str, Any] | None,
        attempts: int,
        ok: tuple[int, ...],
    ) -> tuple[requests.Response, bytes]:
        own = path if path.startswith("/") else f"/repos/{self.repository}/{path}"
        url, what = self.api.rstrip("/") + own, f"{method} {own}"
        more = {"params": parameters, "json": body}
        answer, content = self._retried(method, url, what, attempts, MOST_ANSWER_BYTES, self.token, **more)
        if answer.status_code not in ok:
            raise self._refusal(answer, what, content)
        return answer, content

    def _retried(
        self, method: str, url: str, what: str, attempts: int, most_bytes: int, token: str, **more: Any
    ) -> tuple[requests.Response, bytes]:
        """Ask again where GitHub is down, slow or counting; return the last answer."""
        for attempt in range(1, attempts + 1):
            try:
                answer, content = send(method, url, what, most_bytes, token, **more)
            except requests.RequestException as error:
                if attempt == attempts or not self._may_wait(2.0 ** (attempt - 1)):
                    raise RigError(
                        f"GitHub did not answer to {what}, {attempt} times: {kind(error)}.", next_step=_LATER
                    ) from error
                continue
            pause = pause_s(answer, attempt)
            if pause is None or attempt == attempts or not self._may_wait(pause):
                break
        return answer, content

    def _may_wait(self, seconds: float) -> bool:
        """Wait, unless that is longer than a job should; return whether it did."""
        if self._waited_s + seconds > MOST_WAIT_S:
            return False
        self._waited_s += seconds
        self.wait(seconds)
        return True

    def _refusal(self, answer: requests.Response, what: str, content: bytes) -> Refused:
        status = answer.status_code
        if is_rate_limit(answer):
            wait = answer.headers.get("Retry-After") or "some"
            return Refused(
                status,
                f"GitHub's rate limit is used up: {what} got status {status}, and asks for {wait[:20]} s.",
                next_step="run the job again when that has passed.",
            )
        return Refused(
            status, f"GitHub refused {what}: status {status}{said(content)}.", next_step=_way_out(status)
        )


_LATER = "run the job again; https://www.githubstatus.com/ tells whether GitHub is well."


def _way_out(status: int) -> str:
    return {
        401: "give a token that is still valid in GITHUB_TOKEN.",
        403: "the job needs `actions: read` and `pull-requests: write`; by hand, the token does.",
        404: "check --repository and --run; a token without access gets this answer too.",
        410: "it has expired or was deleted; run the workflow again.",
    }.get(status, _LATER)


WORKFLOW = ".github/workflows/pr.yml"
VERDICT_JOB = "hil-verdict"
ARTEFACT = "verdict"
COMMIT = re.compile(r"[0-9a-f]{40}")
SKIPPED = "skipped"  # how a run ends of which each job was skipped
BOT = "github-actions[bot]"

# what GitHub calls the jobs of pr.yml → their names in `needs`; those of a matrix go on with its value
JOB_NAMES: Mapping[str, str] = {
    "Plan": "plan",
    "Virtual rack": "virtual",
    "Compare with the merge base": "compare",
    "Build ": "build",
    "Leave out unchanged firmware": "narrow",
    "Rack ": "rack",
    "Instruction cost (emulated) ": "emulated",
    "Wait for racks": "patience",
    "Give up ": "give-up",
}
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
    """Return how the jobs of the run's newest attempt ended. Raises RigError."""
    verdicts: list[str] = []
    others = dict.fromkeys(JOB_NAMES.values(), "skipped")
    for job in github.pages(f"actions/runs/{run.run_id}/attempts/{run.attempt}/jobs", "jobs"):
        name, conclusion = str(job.get("name")), _known(str(job.get("conclusion") or ""))
        if name == VERDICT_JOB:
            verdicts.append(conclusion)
        for shown, needed in JOB_NAMES.items():
            if name == shown or (shown.endswith(" ") and name.startswith(shown)):
                others[needed] = min(others[needed], conclusion, key=_WORST.index)
    # a fork may call two jobs so; the worse of them counts, as it does for the required check
    return Jobs(min(verdicts, key=_WORST.index, default=""), others)


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


_VERSION = "check GITHUB_API_URL: it must be GitHub's API of 2022-11-28 or later."

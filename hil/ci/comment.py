"""The comment under a pull request: what a run of pr.yml found, once, brought up to date in place.

Whose pull request it is, which commit was measured and how the required check ended, GitHub says. The
artefact only adds figures; where it does not fit what GitHub says, the comment tells no verdict.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, ExitCode, HilError
from hil.base.untrusted import code, markdown, terminal
from hil.ci import artefact
from hil.ci.artefact_plan import read_strictly
from hil.ci.comment_marker import Marker
from hil.ci.comment_page import Source, facts_of, render, run_links, without_verdict
from hil.ci.comment_write import write
from hil.ci.github import GitHub, Refused
from hil.ci.github_facts import (
    VERDICT_JOB,
    Jobs,
    WorkflowRun,
    find_artefact,
    find_pull_requests,
    read_jobs,
    read_run,
)
from hil.ci.github_http import TooLarge
from hil.ci.verdict import CiVerdict, conclude

EVENT = "pull_request"
_MOST_CHARACTERS = 65_000  # GitHub refuses a comment beyond 65,536


def comment(github: GitHub, run_id: int, *, head: str = "", dry_run: bool = False) -> tuple[str, ...]:
    """Write the comment of a run, or show it; return a line for each thing that was done, or why none was.

    Raises:
        ConfigError: the run is of another workflow, or of another commit than ``head``, or has not ended.
        RigError: GitHub refuses or does not answer.
    """
    run = read_run(github, run_id)
    if head and head != run.head:
        raise ConfigError(f"the run {run_id} is of {run.head[:12]}, and not of {terminal(head, 40)}.")
    if run.event != EVENT:
        return (f"The run {run_id} is of no pull request, so nothing is written.",)
    found = find_pull_requests(github, run)
    if not found:
        return (
            f"No open pull request has the head {run.head[:12]} any more (a newer push, or closed), "
            "so nothing is written.",
        )
    body = page_of(github, run)
    if dry_run:
        return (body,)
    return tuple(write(github, _marker(run), pull_request, body) for pull_request in found)


def page_of(github: GitHub, run: WorkflowRun) -> str:
    """Return the comment's text. Raises RigError where GitHub does not answer."""
    source = Source(run_links(run.url), f"{run.url.partition('/actions/')[0]}/commit/")
    with tempfile.TemporaryDirectory(prefix="hil-verdict-") as folder:
        try:
            facts = _judged(github, run, Path(folder), source)
        except ConfigError as error:
            facts = without_verdict(run.head, error.sentence, source)
        try:
            page = render(facts, "comment")
        except HilError as error:
            page = _plain(run, error.sentence)
    return f"{_marker(run)}\n{page}"[:_MOST_CHARACTERS]


def _marker(run: WorkflowRun) -> Marker:
    return Marker(run.run_id, run.number, run.attempt, run.head)


def _plain(run: WorkflowRun, why: str) -> str:
    """Return a page where not even the page could be written."""
    return (
        f"### ? No verdict could be read\n\n{code(run.head[:12])}. Why: {markdown(why)}\n\n"
        f"[workflow run]({run.url})\n"
    )


def _judged(github: GitHub, run: WorkflowRun, folder: Path, source: Source) -> dict[str, Any]:
    """Fetch the artefact and conclude from it. Raises ConfigError where there is no verdict; RigError."""
    jobs = read_jobs(github, run)
    if jobs.verdict not in ("success", "failure"):
        how = f"ended with {jobs.verdict!r}" if jobs.verdict else "did not run"
        raise ConfigError(f"the job {VERDICT_JOB} {how}.")
    content = _download(github, run)
    try:
        return _read(content, run, jobs, folder, source)
    except HilError:
        raise
    except Exception as error:  # others wrote it: a surprise must not keep an older comment in place
        raise ConfigError(f"the artefact cannot be read: {type(error).__name__}.") from error


def _read(content: bytes, run: WorkflowRun, jobs: Jobs, folder: Path, source: Source) -> dict[str, Any]:
    """Conclude from the artefact. Raises ConfigError where there is no verdict in it."""
    artefact.unpack(content, folder)
    plan = read_strictly(folder / artefact.PLAN, run.head)
    legs = folder / artefact.LEGS
    verdict = conclude(plan, legs, jobs.others)
    _check_agreement(verdict, jobs)
    return facts_of(plan, verdict, legs, source)


def _download(github: GitHub, run: WorkflowRun) -> bytes:
    found = find_artefact(github, run)
    if found is None:
        raise ConfigError("the run left no artefact “verdict”, or it has expired.")
    size = found.get("size_in_bytes")
    if not isinstance(size, int) or size > artefact.MOST_ZIP_BYTES:
        raise ConfigError(f"the artefact has {size} B, and at most {artefact.MOST_ZIP_BYTES:,} are read.")
    try:
        return github.download(f"actions/artifacts/{found['id']}/zip", artefact.MOST_ZIP_BYTES)
    except TooLarge as error:
        raise ConfigError(error.sentence) from error
    except Refused as error:
        if error.status not in (404, 410):
            raise
        raise ConfigError("the artefact is gone.") from error


def _check_agreement(verdict: CiVerdict, jobs: Jobs) -> None:
    """What the artefact comes to must be how the required check ended. Raises ConfigError."""
    if (verdict.exit_code == ExitCode.PASS) != (jobs.verdict == "success"):
        raise ConfigError(
            f"the artefact comes to exit code {int(verdict.exit_code)}, but the job {VERDICT_JOB} "
            f"ended with {jobs.verdict!r}."
        )

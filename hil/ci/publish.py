# SPDX-License-Identifier: Apache-2.0
"""Publish the result of a run: the comment under a pull request, and the check ``hil`` of its commit.

The comment is found again by a hidden line; the run in it keeps an older one from replacing it. The check is
green where all was decided, neutral where something was not: the required job knows success and failure
alone, and passes what is undecided. Source: GitHub's REST API, "Create a check run".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hil.ci.github import GitHub
from hil.ci.github_run import BOT, Comment, PullRequest, WorkflowRun, still_open_at

CHECK = "hil"
_MOST_TITLE = 250  # GitHub cuts titles beyond 255
_MOST_SUMMARY = 60_000
_MARKER = re.compile(
    r"<!-- hil-verdict run=(\d{1,18}) number=(\d{1,12}) attempt=(\d{1,6}) head=([0-9a-f]{40}) -->(?=\r?\n|\Z)"
)
_GAVE_WAY = "_The newest verdict is in another comment of this pull request._"


@dataclass(frozen=True)
class Marker:
    """A run of pr.yml; ``number`` grows from run to run, ``attempt`` where one is run again."""

    run_id: int
    number: int
    attempt: int
    head: str

    def __str__(self) -> str:
        return (
            f"<!-- hil-verdict run={self.run_id} number={self.number} attempt={self.attempt} "
            f"head={self.head} -->"
        )

    def is_older_than(self, other: Marker) -> bool:
        return (self.number, self.attempt) < (other.number, other.attempt)


def find_marker(body: str) -> Marker | None:
    """Return the marker that a comment begins with, None where it is not one of ours."""
    found = _MARKER.match(body)
    return Marker(int(found[1]), int(found[2]), int(found[3]), found[4]) if found else None


def write(github: GitHub, mine: Marker, pull_request: PullRequest, body: str, *, first: bool) -> str:
    """Write the comment of one pull request, in the place of our earlier one; return what was done.

    GitHub notifies people of a new comment, and of no edit. Unless ``first``, no new one is made.

    Raises:
        RigError: GitHub refuses, or does not answer.
    """
    where = f"issues/{pull_request.number}/comments"
    if not still_open_at(github, pull_request):
        return f"#{pull_request.number} has a newer head or is closed by now, so nothing is written."
    ours = _ours(github, where)
    if ours and mine.is_older_than(ours[0][0]):
        return f"#{pull_request.number} has a comment of a newer run, so nothing is written."
    if not (ours or first):
        return f"#{pull_request.number}: nothing was measured, and no comment is there to renew."
    if ours:
        github.patch(f"issues/comments/{ours[0][1].id}", {"body": body})
    else:
        github.post(where, {"body": body})
    for marker, one in _ours(github, where)[1:]:  # two jobs that write at once leave two
        text = f"{marker}\n{_GAVE_WAY}\n"
        if (one.body or "").split() != text.split():
            github.patch(f"issues/comments/{one.id}", {"body": text})
    return f"#{pull_request.number}: comment {'brought up to date' if ours else 'written'}."


def _ours(github: GitHub, where: str) -> list[tuple[Marker, Comment]]:
    """Return the comments that a job wrote, that of the newest run first."""
    found = [
        (marker, one)
        for one in github.pages(where, Comment)
        if one.is_by(BOT) and (marker := find_marker(one.body or ""))
    ]
    return sorted(found, key=lambda pair: (pair[0].number, pair[0].attempt), reverse=True)


def post_check(github: GitHub, run: WorkflowRun, facts: Mapping[str, Any]) -> str:
    """Post the check of what a run came to, as facts_of() and without_verdict() say it; return what was done.

    Raises RigError where GitHub refuses, or does not answer.
    """
    conclusion, title = str(facts["conclusion"]), str(facts["headline"])[:_MOST_TITLE]
    body = {
        "name": CHECK,
        "head_sha": run.head,
        "status": "completed",
        "conclusion": conclusion,
        "external_id": f"{run.run_id}/{run.attempt}",
        "details_url": run.url,
        "output": {"title": title, "summary": _summary(facts)},
    }
    github.post("check-runs", body)
    return f"{run.head[:12]}: check {CHECK!r} is {conclusion}, {title}."


def _summary(facts: Mapping[str, Any]) -> str:
    """Return a line a leg; what legs wrote is text there, and nothing else."""
    lines = [f"    {leg['name']}: {' '.join(str(leg['sentence']).split())}" for leg in facts["legs"]]
    first = [f"    {' '.join(str(facts[key]).split())}" for key in ("attempts", "problem") if facts[key]]
    return "\n".join([*first, *lines])[:_MOST_SUMMARY] or "    nothing had to be measured"


def describe_attempt(number: int) -> str:
    """Return what is to be known of a run that was run again, "" of the first attempt."""
    more = "Each attempt measures anew; the run lists what the earlier attempts came to."
    return f"Attempt {number} of this workflow run. {more}" if number > 1 else ""

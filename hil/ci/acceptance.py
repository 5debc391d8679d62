# SPDX-License-Identifier: Apache-2.0
"""The label ``hil:accept``: an owner takes a regression on purpose, and says why.

The reason is a line of the same person's: in a comment, or in the description of a pull request of their
own. So the author of a fork can forge neither label nor reason. GitHub is asked who set the label last, when,
and whether that person may write; one that is older than the run of today's head was set for another commit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from msgspec import Struct

from hil.base.untrusted import terminal
from hil.ci.github import GitHub, GitHubRefusal
from hil.ci.github_run import Comment, Label, PullRequest, User, WorkflowRun

LABEL = "hil:accept"
_LINE = re.compile(r"^[ \t]*hil:accept:[ \t]*(\S[^\r\n]*)", re.MULTILINE)
_MOST_REASON = 200  # characters
_MAY_WRITE = ("admin", "write")  # GitHub tells `maintain` as write, and `triage` as read
_LOGIN = re.compile(r"[A-Za-z0-9-]{1,39}")


@dataclass(frozen=True)
class Acceptance:
    """Who accepts that comparisons regressed, and why."""

    login: str
    reason: str
    at_utc: str


def find_acceptance(github: GitHub, number: int, run_id: int, head: str) -> Acceptance | None:
    """Return who accepted what the run ``run_id`` of the commit ``head`` shows; None where nobody may or did.

    Raises RigError where GitHub does not answer.
    """
    found = _find_label(github, number, run_id, head)
    if found is None:
        return None
    login, at_utc, pull = found
    comments = [one.body for one in github.pages(f"issues/{number}/comments", Comment) if one.is_by(login)]
    texts = [pull.body if pull.user and pull.user.login == login else None, *comments]
    said = [line for text in texts for line in _LINE.findall(text or "")]
    return Acceptance(login, terminal(said[-1], _MOST_REASON).strip(), at_utc) if said else None


def _find_label(github: GitHub, number: int, run_id: int, head: str) -> tuple[str, str, PullRequest] | None:
    """Return who set the label for the run of a commit, when, and what GitHub says of the pull request.

    None where it is not set, was set for another commit, or by somebody who may not write. Raises RigError.
    """
    pull = github.get(f"pulls/{number}", PullRequest)
    run = github.get(f"actions/runs/{run_id}", WorkflowRun)
    if Label(LABEL) not in pull.labels or not pull.head.sha == run.head == head:
        return None
    login, at_utc = _who_set_it(github, number)
    if not _LOGIN.fullmatch(login) or at_utc < run.created_utc or not _may_write(github, login):
        return None
    return login, at_utc, pull


class _Event(Struct, frozen=True):
    event: str
    created_at: str = ""
    actor: User | None = None
    label: Label | None = None


def _who_set_it(github: GitHub, number: int) -> tuple[str, str]:
    """Return who set the label last and when, "" where no event tells."""
    found = [
        (one.actor.login if one.actor else "", one.created_at)
        for one in github.pages(f"issues/{number}/events", _Event)
        if one.event == "labeled" and one.label == Label(LABEL)
    ]
    return max(found, key=lambda one: one[1], default=("", ""))


class _Permission(Struct, frozen=True):
    permission: str


def _may_write(github: GitHub, login: str) -> bool:
    try:
        return github.get(f"collaborators/{login}/permission", _Permission).permission in _MAY_WRITE
    except GitHubRefusal as error:
        if error.status == 404:  # GitHub knows no such user here
            return False
        raise

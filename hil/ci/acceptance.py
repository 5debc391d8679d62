# SPDX-License-Identifier: Apache-2.0
"""The label ``hil:accept``: an owner takes a regression on purpose, and says why.

The reason is a line of the same person's: in a comment, or in the description of a pull request of their
own. So the author of a fork can forge neither label nor reason. GitHub is asked who set the label last, when,
and whether that person may write; one that is older than the run of today's head was set for another commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hil.base.errors import RigError
from hil.base.untrusted import terminal
from hil.ci.github import GitHub, Refused

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
    description = str(pull.get("body") or "") if (pull.get("user") or {}).get("login") == login else ""
    said = [*_lines(description), *_lines_of_comments(github, number, login)]
    return Acceptance(login, terminal(said[-1], _MOST_REASON).strip(), at_utc) if said else None


def _lines_of_comments(github: GitHub, number: int, login: str) -> Iterator[str]:
    for comment in github.pages(f"issues/{number}/comments"):
        if (comment.get("user") or {}).get("login") == login:
            yield from _lines(str(comment.get("body") or ""))


def _lines(text: str) -> list[str]:
    return [found[1] for found in _LINE.finditer(text)]


def _find_label(github: GitHub, number: int, run_id: int, head: str) -> tuple[str, str, Any] | None:
    """Return who set the label for the run of a commit, when, and what GitHub says of the pull request.

    None where it is not set, was set for another commit, or by somebody who may not write. Raises RigError.
    """
    pull, run = github.get(f"pulls/{number}"), github.get(f"actions/runs/{run_id}")
    try:
        labels = [label["name"] for label in pull["labels"]]
        is_of_head = pull["head"]["sha"] == run["head_sha"] == head
        since = str(run["created_at"])
    except (KeyError, TypeError) as error:
        raise RigError(
            f"GitHub's answer on the pull request {number} lacks {error!r}.", next_step="run the job again."
        ) from error
    if LABEL not in labels or not is_of_head:
        return None
    login, at_utc = _who_set_it(github, number)
    if not _LOGIN.fullmatch(login) or at_utc < since or not _may_write(github, login):
        return None
    return login, at_utc, pull


def _who_set_it(github: GitHub, number: int) -> tuple[str, str]:
    """Return who set the label last and when, "" where no event tells."""
    found = [
        (str((event.get("actor") or {}).get("login") or ""), str(event.get("created_at") or ""))
        for event in github.pages(f"issues/{number}/events")
        if event.get("event") == "labeled" and (event.get("label") or {}).get("name") == LABEL
    ]
    return max(found, key=lambda one: one[1], default=("", ""))


def _may_write(github: GitHub, login: str) -> bool:
    try:
        told: Any = github.get(f"collaborators/{login}/permission")
    except Refused as error:
        if error.status == 404:  # GitHub knows no such user here
            return False
        raise
    return isinstance(told, dict) and told.get("permission") in _MAY_WRITE

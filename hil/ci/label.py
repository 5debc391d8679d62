# SPDX-License-Identifier: Apache-2.0
"""A label by which somebody who may write to the repository asks for something, for one commit.

GitHub is asked who set it last, when, and whether that person may write, so that a fork's author cannot. A
label that is older than the workflow run of today's head was set for another commit, and does not count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hil.base.errors import RigError
from hil.ci.github import GitHub, Refused

_MAY_WRITE = ("admin", "write")  # GitHub tells `maintain` as write, and `triage` as read
_LOGIN = re.compile(r"[A-Za-z0-9-]{1,39}")


@dataclass(frozen=True)
class SetLabel:
    """Who set a label, and when; ``pull`` is what GitHub says of the pull request."""

    login: str
    at_utc: str
    pull: Mapping[str, Any]


def find_label(github: GitHub, name: str, number: int, run_id: int, head: str) -> SetLabel | None:
    """Return who set the label of a pull request for the run ``run_id`` of the commit ``head``.

    None where it is not set, was set for another commit, or by somebody who may not write. Raises RigError
    where GitHub does not answer.
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
    if name not in labels or not is_of_head:
        return None
    login, at_utc = _who_set_it(github, name, number)
    if not _LOGIN.fullmatch(login) or at_utc < since or not _may_write(github, login):
        return None
    return SetLabel(login, at_utc, pull)


def _who_set_it(github: GitHub, name: str, number: int) -> tuple[str, str]:
    """Return who set the label last and when, "" where no event tells."""
    found = [
        (str((event.get("actor") or {}).get("login") or ""), str(event.get("created_at") or ""))
        for event in github.pages(f"issues/{number}/events")
        if event.get("event") == "labeled" and (event.get("label") or {}).get("name") == name
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

# SPDX-License-Identifier: Apache-2.0
"""Whether anybody waits for a verdict still: a push that a newer one has taken the place of needs no board.

GitHub's queue knows nothing of that. `concurrency` keeps one waiting job a group and cancels the others, so a
rack's job asks when it is its turn, before it takes a board.
"""

from __future__ import annotations

import re

from hil.base.errors import RigError
from hil.ci.event import Event
from hil.ci.github import GitHub, Refused

_SUPERSEDED = "superseded by the push {} of this pull request"
_CLOSED = "its pull request was closed"
_NO_GROUP = "its group of the merge queue is gone"
RETARGETED = "its pull request has another base now, and another run"
_REASON = re.compile(rf"{_SUPERSEDED.format('[0-9a-f]{12}')}|{_CLOSED}|{_NO_GROUP}|{RETARGETED}")


def is_reason(text: str) -> bool:
    """Say whether a recorded reason is one that ``why_unwanted`` gives."""
    return bool(_REASON.fullmatch(text))


def why_unwanted(github: GitHub, event: Event) -> str:
    """Return why nobody waits for the event's commit, "" where somebody may. Raises RigError: no answer."""
    if event.pull_request is not None:
        return _of_pull_request(github, event.pull_request, event)
    return _of_group(github, event) if event.group_ref else ""


def _of_pull_request(github: GitHub, number: int, event: Event) -> str:
    stored = github.get(f"pulls/{number}")
    try:
        state, now = str(stored["state"]), str(stored["head"]["sha"])
    except (KeyError, TypeError) as error:
        raise RigError(
            f"GitHub's answer on the pull request {number} lacks {error!r}.", next_step="run the job again."
        ) from error
    if now != event.head:
        return _SUPERSEDED.format(now[:12])
    base = (stored.get("base") or {}).get("ref")
    if event.base_ref and base and base != event.base_ref:
        return RETARGETED
    return "" if state == "open" else _CLOSED


def _of_group(github: GitHub, event: Event) -> str:
    """GitHub deletes the branch of a group that it makes anew, or that has been merged."""
    try:
        stored = github.get(f"git/ref/{event.group_ref.removeprefix('refs/')}")
    except Refused as error:
        if error.status == 404:
            return _NO_GROUP
        raise
    tip = stored.get("object") if isinstance(stored, dict) else None
    return "" if isinstance(tip, dict) and tip.get("sha") == event.head else _NO_GROUP

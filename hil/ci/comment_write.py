"""Puts a page under a pull request, where ours was before; one that a newer run wrote is never touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hil.base.errors import RigError
from hil.ci.comment_marker import Marker, find_marker
from hil.ci.github import GitHub, Refused
from hil.ci.github_facts import BOT, PullRequest, still_open_at

_WRITES = 3
_GAVE_WAY = "_The newest verdict is in another comment of this pull request._"
_Comment = Mapping[str, Any]


def write(github: GitHub, mine: Marker, pull_request: PullRequest, body: str) -> str:
    """Write the comment of one pull request, in the place of our earlier one; return what was done.

    Raises:
        RigError: GitHub refuses, or does not answer.
    """
    own, where = _own_login(github), f"issues/{pull_request.number}/comments"
    for attempt in range(1, _WRITES + 1):
        if not still_open_at(github, pull_request):
            return f"#{pull_request.number} has a newer head or is closed by now, so nothing is written."
        ours = _ours(github, where, own)
        if ours and mine.is_older_than(ours[0][0]):
            return f"#{pull_request.number} has a comment of a newer run, so nothing is written."
        try:
            if ours:
                _patch(github, ours[0][1], body)
                _give_way(github, ours[1:])
                return f"#{pull_request.number}: comment brought up to date."
            github.post(where, {"body": body})
            # another job may have written one between our look and our own
            _give_way(github, _ours(github, where, own)[1:])
        except RigError as error:  # it may have arrived all the same, or be deleted: look again
            final = isinstance(error, Refused) and error.status < 500 and error.status != 404
            if final or attempt == _WRITES:
                raise
        else:
            return f"#{pull_request.number}: comment written."
    raise AssertionError("unreachable")


def _ours(github: GitHub, where: str, own: str) -> list[tuple[Marker, _Comment]]:
    """Return the comments that we wrote, that of the newest run first."""
    found = [
        (marker, one)
        for one in github.pages(where)
        if _is_by(one, own) and (marker := find_marker(str(one.get("body") or "")))
    ]
    return sorted(found, key=lambda pair: (pair[0].number, pair[0].attempt), reverse=True)


def _give_way(github: GitHub, older: list[tuple[Marker, _Comment]]) -> None:
    """Take the verdict out of comments beside the newest: two jobs that wrote at once leave two."""
    for marker, one in older:
        body = f"{marker}\n{_GAVE_WAY}\n"
        if str(one["body"]).split() != body.split():
            _patch(github, one, body)


def _patch(github: GitHub, one: _Comment, body: str) -> None:
    github.patch(f"issues/comments/{int(one['id'])}", {"body": body})


def _own_login(github: GitHub) -> str:
    """Return as whom the token writes; the token of a job may not ask, and is the bot's."""
    try:
        return str(github.get("/user")["login"])
    except Refused as error:
        if error.status in (401, 403, 404):
            return BOT
        raise


def _is_by(one: _Comment, login: str) -> bool:
    user = one.get("user")
    return isinstance(user, dict) and user.get("login") == login

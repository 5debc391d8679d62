# SPDX-License-Identifier: Apache-2.0
"""The label ``hil:accept``: an owner takes a regression on purpose, and says why.

The reason is a line of the same person's: in a comment, or in the description of a pull request of their
own. So the author of a fork can forge neither label nor reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hil.base.untrusted import terminal
from hil.ci.github import GitHub
from hil.ci.label import find_label

LABEL = "hil:accept"
_LINE = re.compile(r"^[ \t]*hil:accept:[ \t]*(\S[^\r\n]*)", re.MULTILINE)
_MOST_REASON = 200  # characters


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
    found = find_label(github, LABEL, number, run_id, head)
    if found is None:
        return None
    author = (found.pull.get("user") or {}).get("login")
    description = str(found.pull.get("body") or "") if author == found.login else ""
    said = [*_lines(description), *_lines_of_comments(github, number, found.login)]
    return Acceptance(found.login, terminal(said[-1], _MOST_REASON).strip(), found.at_utc) if said else None


def _lines_of_comments(github: GitHub, number: int, login: str) -> Iterator[str]:
    for comment in github.pages(f"issues/{number}/comments"):
        if (comment.get("user") or {}).get("login") == login:
            yield from _lines(str(comment.get("body") or ""))


def _lines(text: str) -> list[str]:
    return [found[1] for found in _LINE.finditer(text)]

# SPDX-License-Identifier: Apache-2.0
"""An issue for each rack that does not answer: it tells the lab's owner, and every plan that reads it.

It is opened once, brought up to date, and closed when the rack answers again. Only those count that a
workflow of the repository opened; whoever closes one has the rack asked again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hil.boards.firmware.build import IMAGE_TARGETS
from hil.ci.github import BOT, GitHub
from hil.ci.racks import moment

LABEL = "hil:rack"
_MARKER = re.compile(r"<!-- hil-rack chip=([a-z0-9]+) since=([0-9T:+-]{25}) -->")


@dataclass(frozen=True)
class RackIssue:
    """An open issue on a rack that is silent ``since`` a moment."""

    number: int
    chip: str
    since: datetime
    opened: datetime
    body: str

    @property
    def reason(self) -> str:
        """Why a plan leaves the rack out."""
        since = f"{self.since:%Y-%m-%d %H:%M} UTC"
        return f"the rack {self.chip} does not answer since {since} (issue #{self.number})"


def open_issues(github: GitHub) -> dict[str, RackIssue]:
    """Return the open issue of each silent rack, the oldest where two are open. Raises RigError."""
    found: dict[str, RackIssue] = {}
    for stored in github.pages("issues", labels=LABEL, state="open"):
        issue = _issue(stored)
        if issue and (issue.chip not in found or issue.number < found[issue.chip].number):
            found[issue.chip] = issue
    return found


def _issue(stored: Mapping[str, Any]) -> RackIssue | None:
    body = str(stored.get("body") or "")
    marker, author = _MARKER.match(body), (stored.get("user") or {}).get("login")
    number = stored.get("number")
    if author != BOT or not marker or marker[1] not in IMAGE_TARGETS or not isinstance(number, int):
        return None
    try:
        return RackIssue(number, marker[1], moment(marker[2]), moment(stored.get("created_at")), body)
    except ValueError:
        return None


def tell(github: GitHub, chip: str, since: datetime, jobs: int, owner: str, known: RackIssue | None) -> str:
    """Open the issue of a rack that ``jobs`` wait for, or bring it up to date; return what was done.

    Raises RigError where GitHub refuses, or does not answer.
    """
    body = _body(chip, known.since if known else since, jobs)
    if known:
        if known.body.split() == body.split():
            return f"rack {chip}: issue #{known.number} says so"
        github.patch(f"issues/{known.number}", {"body": body})
        return f"rack {chip}: issue #{known.number} brought up to date"
    asked: dict[str, object] = {"title": f"Rack {chip} does not answer", "body": body, "labels": [LABEL]}
    if owner:
        asked["assignees"] = [owner]
    return f"rack {chip}: issue #{github.post('issues', asked)['number']} opened"


def close(github: GitHub, issue: RackIssue) -> str:
    """Close the issue of a rack that answers again; return what was done. Raises RigError."""
    github.patch(f"issues/{issue.number}", {"state": "closed", "state_reason": "completed"})
    return f"rack {issue.chip}: it answers again, issue #{issue.number} closed"


def _body(chip: str, since: datetime, jobs: int) -> str:
    return (
        f"<!-- hil-rack chip={chip} since={since.isoformat(timespec='seconds')} -->\n"
        f"No runner with the labels `self-hosted`, `hil`, `{chip}` has taken or ended a job since "
        f"{since:%Y-%m-%d %H:%M} UTC. Jobs that wait for it: {jobs}.\n\n"
        "- Pull requests and nights leave this rack out while the issue is open, and say *undecided*.\n"
        "- Look at the runner on the rack's host, and at what gives it registrations "
        "(docs/operate/runner.md).\n"
        "- A job waits for the rack to come back; the issue is closed some 15 minutes later. Closed by hand, "
        f"it has the rack asked again. For longer: the variable `HIL_RACKS_OFF` (`{chip}: why`).\n"
    )

# SPDX-License-Identifier: Apache-2.0
"""The check ``hil`` of a commit: green where all was decided, neutral where something was not.

The required job `hil-verdict` knows success and failure alone, and passes what is undecided. A third state,
neither green nor a red that people learn to ignore, is a check run's. Source: GitHub's REST API, "Create a
check run"; the token of a job may write one where the job has ``checks: write``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hil.ci.github import GitHub, Refused
from hil.ci.github_run import WorkflowRun

NAME = "hil"
_MOST_TITLE = 250  # GitHub cuts titles beyond 255
_NO_RIGHT = (403, 404)


def post(github: GitHub, run: WorkflowRun, facts: Mapping[str, Any]) -> str:
    """Post the check of what a run came to, as facts_of() and without_verdict() say it; return what was done.

    Raises RigError where GitHub does not answer, or refuses for another reason than a missing right.
    """
    conclusion, title = str(facts["conclusion"]), str(facts["headline"])[:_MOST_TITLE]
    body = {
        "name": NAME,
        "head_sha": run.head,
        "status": "completed",
        "conclusion": conclusion,
        "external_id": f"{run.run_id}/{run.attempt}",
        "details_url": run.url,
        "output": {"title": title, "summary": _summary(facts)},
    }
    try:
        github.post("check-runs", body)
    except Refused as error:
        if error.status not in _NO_RIGHT:
            raise
        return f"no check was posted: the job's token lacks the right 'checks: write' ({error.status})."
    return f"{run.head[:12]}: check {NAME!r} is {conclusion}, {title}."


def _summary(facts: Mapping[str, Any]) -> str:
    """Return a line a leg; what legs wrote is text there, and nothing else."""
    lines = [f"    {leg['name']}: {' '.join(str(leg['sentence']).split())}" for leg in facts["legs"]]
    first = [f"    {' '.join(str(facts[key]).split())}" for key in ("attempts", "problem") if facts[key]]
    return "\n".join([*first, *lines])[:60_000] or "    nothing had to be measured"

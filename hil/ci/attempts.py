# SPDX-License-Identifier: Apache-2.0
"""Earlier attempts on the same commit, named beside its verdict.

Each attempt has its own chance of a false alarm and of a false pass, so whoever repeats until it passes is
wrong more often than alpha and beta say. GitHub counts the attempts; how each ended, its check `hil` says.
Others may post such a check too, so the sentence decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hil.base.untrusted import terminal
from hil.ci.check import NAME
from hil.ci.github import GitHub

_UNKNOWN = "without a verdict"
_MOST_OF_A_TITLE = 60  # characters


def describe_attempts(github: GitHub, head: str, counts: Mapping[int, int], run_id: int, attempt: int) -> str:
    """Return "Attempt 2 on this commit; attempt 1 ended UNDECIDED.", "" for the first attempt.

    ``counts`` is what attempts_by_run() returns of ``head``.

    Raises RigError where GitHub does not answer.
    """
    before = sorted(number for number in counts if number < run_id)
    earlier = [(number, each) for number in before for each in range(1, counts[number] + 1)]
    earlier += [(run_id, each) for each in range(1, attempt)]
    if not earlier:
        return ""
    titles = _titles(github, head)
    return _sentence([titles.get(f"{number}/{each}", _UNKNOWN) for number, each in earlier])


def _titles(github: GitHub, head: str) -> dict[str, str]:
    """Return how each attempt ended, in the first words of its check's title, by the check's external id."""
    listed = github.pages(f"commits/{head}/check-runs", "check_runs", check_name=NAME, filter="all")
    return {
        str(one.get("external_id")): terminal(title.partition(":")[0], _MOST_OF_A_TITLE)
        for one in sorted(listed, key=lambda one: int(one["id"]))
        if (title := str((one.get("output") or {}).get("title") or ""))
    }


def _sentence(ended: Sequence[str]) -> str:
    numbers = [str(number) for number in range(1, len(ended) + 1)]
    *most, last = numbers
    named = f"attempts {', '.join(most)} and {last}" if most else f"attempt {last}"
    return f"Attempt {len(ended) + 1} on this commit; {named} ended {', '.join(ended)}."

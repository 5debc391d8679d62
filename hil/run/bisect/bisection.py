"""Which commit to measure next, and which is the first bad one, from what was measured so far.

Pure: a bisection that was interrupted goes on with the same choices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Answer = Literal["old", "new", "unknown"]


@dataclass(frozen=True)
class Trial:
    """What measuring one commit said: the ``old`` level, the ``new`` one, or nothing, and why.

    ``run`` is the folder of the run, "" where the commit did not build.
    """

    commit: str
    answer: Answer
    sentence: str
    run: str = ""


@dataclass(frozen=True)
class Progress:
    """``suspects`` are the commits of which one is the first bad one, oldest first; ``next`` is the one to
    measure, "" where nothing more can be told. ``contradiction`` is what was said of the end that ought to be
    bad, where it does not show the step, else "".
    """

    suspects: tuple[str, ...]
    next: str
    contradiction: str = ""

    @property
    def done(self) -> bool:
        return not self.next


def progress(commits: Sequence[str], trials: Mapping[str, Trial]) -> Progress:
    """Say where a bisection of ``commits`` stands: all after the good end, the bad end last.

    The bad end is measured first: a step that it does not show cannot be found. Then the middle of what is
    left; where it says nothing, the commit nearest to it that was not measured.
    """
    last = commits[-1]
    if last not in trials:
        return Progress(tuple(commits), last)
    if trials[last].answer != "new":
        return Progress(tuple(commits), "", trials[last].sentence)
    first_new = min(n for n, commit in enumerate(commits) if _answer(trials, commit) == "new")
    old = [n for n, commit in enumerate(commits[:first_new]) if _answer(trials, commit) == "old"]
    start = max(old) + 1 if old else 0
    suspects = tuple(commits[start : first_new + 1])
    untried = [n for n in range(start, first_new) if commits[n] not in trials]
    if not untried:
        return Progress(suspects, "")
    middle = start + (first_new - start - 1) / 2
    return Progress(suspects, commits[min(untried, key=lambda n: (abs(n - middle), n))])


def runs_at_most(commits: int) -> int:
    """Return how many runs a bisection takes where each says something, that of the bad end included."""
    return 1 + math.ceil(math.log2(commits)) if commits else 0


def _answer(trials: Mapping[str, Trial], commit: str) -> str:
    return trials[commit].answer if commit in trials else ""

# SPDX-License-Identifier: Apache-2.0
"""What a pull request costs of GitHub's minutes, calculated: its jobs' steps, each job rounded up.

    python -m tools.ci_cost

Caches are warm, there is no rack, one chip is built; the harness's own tests are left out. Nothing of it is
read off GitHub: installing, judging and the host's build were measured on two busy cores on 2026-11-25, the
suites are as planned, the rest is assumed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

SECONDS: Mapping[str, float] = {
    "machine": 8,  # assumed, as are the next four
    "checkout": 3,
    "artefact": 3,
    "apt": 30,
    "container": 60,
    "plan packages": 10,  # measured, without a cache
    "kept packages": 6,  # measured, from a cache
    "packages": 37,  # measured, without a cache: who may write takes nothing that was kept
    "plan": 2,  # measured
    "host build": 30,  # measured
    "suite quick": 420,  # planned, on all virtual boards
    "suite pr in turns": 870,  # planned: what unchanged firmware takes on average on two boards
    "chip build": 480,  # assumed: two commits
    "chip build, ccache": 120,  # assumed: a quarter of it
    "count": 120,  # assumed: two boots of head and of merge base in QEMU
    "judge": 13,
    "comment": 5,
}
_START = ("machine", "checkout")
_RUN = (*_START, "apt", "kept packages", "artefact", "artefact")
_CHIP = (*_START, "kept packages", "container", "artefact", "artefact")
_VIRTUAL = (*_RUN, "host build", "suite quick")
_COMPARE = (*_RUN, "host build", "host build", "suite pr in turns")
_SHORT_COMMENT = (*_START, "packages", "comment")
_COMMENT = (*_SHORT_COMMENT, "judge")
_JUDGED = (*_START, "kept packages", "artefact", "judge")
Jobs = Mapping[str, Sequence[str]]
BEFORE: Mapping[str, Jobs] = {
    "documentation": {
        "plan": (*_START, "plan packages", "plan", "artefact"),
        "hil-verdict": (*_START, "plan packages", "artefact"),
        "comment": _SHORT_COMMENT,
    },
    "firmware": {
        "plan": (*_START, "plan packages", "plan", "artefact"),
        "virtual": _VIRTUAL,
        "compare": _COMPARE,
        "build": (*_CHIP, "chip build"),
        "narrow": (*_START, "plan packages", "artefact", "artefact"),
        "emulated": (*_CHIP, "count"),
        "hil-verdict": _JUDGED,
        "comment": _COMMENT,
    },
}
AFTER: Mapping[str, Jobs] = {
    "documentation": {
        "plan": (*_START, "kept packages", "plan", "artefact", "artefact"),
        "comment": _SHORT_COMMENT,
    },
    "firmware": {
        "plan": (*_START, "kept packages", "plan", "artefact"),
        "virtual": _VIRTUAL,
        "compare": _COMPARE,
        "build": (*_CHIP, "artefact", "chip build, ccache", "count"),
        "hil-verdict": _JUDGED,
        "comment": _COMMENT,
    },
}


def billed(steps: Sequence[str]) -> int:
    """Return the minutes that GitHub bills for a job."""
    return math.ceil(sum(SECONDS[step] for step in steps) / 60)


def lines() -> list[str]:
    """Return a table: a row for each kind of change, before and after one pipeline measured it."""
    rows = ["it changes      jobs      billed minutes, calculated"]
    for kind, jobs in AFTER.items():
        before, after = ({name: billed(steps) for name, steps in one.items()} for one in (BEFORE[kind], jobs))
        each = ", ".join(f"{name} {minutes}" for name, minutes in after.items())
        sums = f"{sum(before.values())} → {sum(after.values())}"
        rows.append(f"{kind:<15} {f'{len(before)} → {len(after)}':<9} {sums}: {each}")
    return rows


if __name__ == "__main__":
    print("\n".join(lines()))

# SPDX-License-Identifier: Apache-2.0
"""Whether a run's outcome is open: neither a pass nor a failure."""

from __future__ import annotations

from hil.base.errors import ExitCode

_OPEN = {"undecided": ExitCode.UNDECIDED, "no-baseline": ExitCode.PASS}


def is_open(exit_code: int, outcome: str) -> bool:
    """Say whether a run broke nothing and missed nothing, and is no pass all the same.

    It is undecided, or had nothing to be compared with. It never gets a green mark, nor a red one.
    """
    return _OPEN.get(outcome) == exit_code

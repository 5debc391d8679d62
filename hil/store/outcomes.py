# SPDX-License-Identifier: Apache-2.0
"""What the outcome of a run comes to for who reads it, and earlier versions' outcomes as of today."""

from __future__ import annotations

from typing import Any

from hil.base.errors import ExitCode

_FORMER = {"inconclusive": "undecided"}
_DEPTH = 5  # of a line's cases[].metrics{}.outcome; what a stranger nests deeper is no outcome of ours
_OPEN = {"undecided": ExitCode.UNDECIDED, "no-baseline": ExitCode.PASS}


def is_open(exit_code: int, outcome: str) -> bool:
    """Say whether a run broke nothing and missed nothing, and is no pass all the same.

    It is undecided, or had nothing to be compared with. It never gets a green mark, nor a red one.
    """
    return _OPEN.get(outcome) == exit_code


def with_todays_outcomes(stored: Any) -> Any:
    """Return the JSON value of a verdict, or of a line of the history, with each outcome's name of today.

    The status that goes with it, too: a run that was undecided ended with 0 before.
    """
    told = _renamed(stored, _DEPTH)
    if isinstance(told, dict) and told.get("exit_code") == 0 and told.get("outcome") == "undecided":
        told["exit_code"] = int(ExitCode.UNDECIDED)
    return told


def _renamed(stored: Any, depth: int) -> Any:
    if isinstance(stored, list) and depth:
        return [_renamed(item, depth - 1) for item in stored]
    if not isinstance(stored, dict) or not depth:
        return stored
    return {
        key: _todays(value)
        if key == "outcome"
        else _renamed(value, depth - 1)
        if isinstance(value, (list, dict))  # few are, of a large verdict's millions
        else value
        for key, value in stored.items()
    }


def _todays(outcome: Any) -> Any:
    return _FORMER.get(outcome, outcome) if isinstance(outcome, str) else outcome

"""Whose fault it is that a bench ended without samples: the board says so on the end line."""

from __future__ import annotations

from collections.abc import Mapping

from hil.base.errors import ConfigError, FirmwareError, HilError, RigError
from hil.model import Case
from hil.wire.messages import End

# docs/reference/console-protocol.md, `owner` of an end line: the error, and what to do next.
_OWNERS: Mapping[str, tuple[type[HilError], str]] = {
    "firmware": (FirmwareError, "read the board's log lines before the end of the run."),
    "configuration": (ConfigError, "correct the case's parameters, or what the board is provisioned with."),
    "rig": (RigError, "check the broker and the network between it and the board (hil doctor)."),
}


def run_fault(end: End, *, case: Case, board: str, log: str) -> HilError:
    """Return the error of a run whose end line has a status other than ``ok`` and ``aborted``.

    An owner that is missing or unknown is the firmware.
    """
    kind, next_step = _OWNERS.get(end.owner, _OWNERS["firmware"])
    why = f": {end.error}" if end.error else ""
    sentence = f"{case.case_id} on board {board} ended with {end.status} instead of samples{why}."
    return kind(sentence, log=log, next_step=next_step)

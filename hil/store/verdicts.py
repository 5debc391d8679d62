# SPDX-License-Identifier: Apache-2.0
"""verdicts.json read back, checked: another program, or a person, may have written it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hil.base.errors import ConfigError, ExitCode, combine_exit_codes
from hil.base.reading import RUN_MOST_BYTES, read_at_most
from hil.base.schema import refuse_newer
from hil.base.units import UNITS
from hil.model import SCHEMA_VERSION, ComparedSeries, SeriesVerdict, Verdict
from hil.store.codec import build, decode
from hil.store.entries import without_expected
from hil.store.files import typed_path
from hil.store.run_info import RunInfo, is_unchanged

NEUTRAL_STATUS = "0, as --undecided-status asks: undecided is no failure, and no pass."

_UNITS = {unit.name for unit in UNITS}
_EXIT_CODES = set(ExitCode)
_OUTCOMES = {
    ExitCode.PASS: ("pass", "no-baseline"),
    ExitCode.FIRMWARE: ("regressed",),
    ExitCode.UNDECIDED: ("undecided", "incomplete"),
}


def read_verdict(path: Path) -> Verdict:
    """Return what Verdict.to_json() wrote. Raises ConfigError where ``path`` holds no verdict."""
    try:
        content = read_at_most(path, RUN_MOST_BYTES)
    except OSError as error:
        raise no_verdict(path, str(error.strerror)) from error
    return parse_verdict(path, content)


def parse_verdict(path: Path, content: bytes) -> Verdict:
    """Return the verdict that a file holds. Raises ConfigError, which names ``path`` and the key."""
    try:
        stored = decode(content)
        if isinstance(stored, dict):
            refuse_newer(stored.get("schema"), SCHEMA_VERSION, str(path))
        verdict = build(Verdict, _without_expected(stored))
        _check(verdict)
    except ValueError as error:
        raise no_verdict(path, str(error)) from error
    return verdict


def _without_expected(stored: Any) -> Any:
    """Return the JSON value of a verdict, each case not run without what follows from its cause."""
    if not isinstance(stored, dict) or not isinstance(stored.get("not_run"), list):
        return stored  # which build() refuses by name
    not_run = [without_expected(item) if isinstance(item, dict) else item for item in stored["not_run"]]
    return {**stored, "not_run": not_run}


def status_of(info: RunInfo, verdict: Verdict) -> ExitCode:
    """Return the status with which a run ends: its verdict's.

    A run of unchanged firmware blocks nothing. What the gate blocks there, or leaves undecided, is what the
    run finds out: its status tells whether it was judged, and what went wrong besides.
    """
    code = ExitCode(verdict.exit_code)
    if not is_unchanged(info) or code not in (ExitCode.FIRMWARE, ExitCode.UNDECIDED):
        return code
    codes = [ExitCode(fault.exit_code) for fault in verdict.faults]
    judged = any(item.candidate_boots for item in verdict.compared)
    if not judged or any(item.expected for item in verdict.not_run):
        codes.append(ExitCode.UNDECIDED)
    return combine_exit_codes(codes)


def no_verdict(path: Path, why: str) -> ConfigError:
    """Return the error of a run whose verdict cannot be read, with the way out."""
    return ConfigError(
        f"{path}: its verdict cannot be read ({why}).",
        next_step=f"judge the run again: hil gate {typed_path(path.parent)}",
    )


def _check(verdict: Verdict) -> None:
    """Raise ValueError where the parts of a verdict contradict one another."""
    judged: tuple[SeriesVerdict | ComparedSeries, ...] = (*verdict.series, *verdict.compared)
    for item in judged:
        if item.unit not in _UNITS:
            raise ValueError(f"the unit {item.unit!r} of {item.series_id} is unknown")
    if verdict.exit_code not in _EXIT_CODES:
        raise ValueError(f"exit_code {verdict.exit_code} is none of ours")
    possible = _OUTCOMES.get(ExitCode(verdict.exit_code), (verdict.outcome,))
    if verdict.outcome not in possible:
        raise ValueError(f"exit_code {verdict.exit_code} contradicts the outcome {verdict.outcome!r}")

"""Reads back what a judged run left on disk, checked: another program, or a person, may have written it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from hil.base.errors import ConfigError, ExitCode
from hil.base.units import UNITS
from hil.model import BoardEffect, ComparedSeries, Fault, NotRun, SeriesVerdict, Verdict
from hil.store import RunDirectory
from hil.store.files import check_of

_Item = TypeVar("_Item")
_UNITS = {unit.name for unit in UNITS}
_EXIT_CODES = set(ExitCode)
_HINTS = {
    kind.__name__: {field.name: get_type_hints(kind)[field.name] for field in dataclasses.fields(kind)}
    for kind in (SeriesVerdict, ComparedSeries, BoardEffect, Fault, NotRun, Verdict)
}
_OUTCOMES = {ExitCode.PASS: ("pass", "no-baseline", "inconclusive"), ExitCode.FIRMWARE: ("regressed",)}


def by_name(sentence: str, folder: Path) -> str:
    """Write a folder by its name alone: where it lies on that machine is nobody's concern."""
    for path in (folder, folder.resolve()):
        sentence = sentence.replace(f"{path}/", f"{folder.name}/")
    return sentence


def read_verdict(path: Path) -> Verdict:
    """Return what Verdict.to_json() wrote. Raises ConfigError where ``path`` holds no verdict."""
    try:
        return _verdict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(
            f"{path}: no verdict can be read from it ({what}).",
            next_step=f"judge the run again: hil gate {path.parent}",
        ) from error


def _verdict(stored: object) -> Verdict:
    """Return the verdict. Raises ValueError, which names the key that is wrong."""
    if not isinstance(stored, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - the file's content is wrong, not a call
    kinds: Mapping[str, type[SeriesVerdict | Fault | NotRun]] = {
        "series": SeriesVerdict,
        "faults": Fault,
        "not_run": NotRun,
    }
    parts = {
        key: tuple(_item(kind, one, f"{key}[{n}].") for n, one in enumerate(_list(stored, key)))
        for key, kind in kinds.items()
    }
    parts_of_all = {**parts, "compared": _compared(stored), "warnings": tuple(_list(stored, "warnings"))}
    verdict = _item(Verdict, {**stored, **parts_of_all}, "")
    judged: tuple[SeriesVerdict | ComparedSeries, ...] = (*verdict.series, *verdict.compared)
    for item in judged:
        if item.unit not in _UNITS:
            raise ValueError(f"the unit {item.unit!r} of {item.series_id} is unknown")
    if verdict.exit_code not in _EXIT_CODES:
        raise ValueError(f"exit_code {verdict.exit_code} is none of ours")
    possible = _OUTCOMES.get(ExitCode(verdict.exit_code), (verdict.outcome,))
    if verdict.outcome not in possible:
        raise ValueError(f"exit_code {verdict.exit_code} contradicts the outcome {verdict.outcome!r}")
    return verdict


def _compared(stored: Mapping[str, Any]) -> tuple[ComparedSeries, ...]:
    """Return the comparisons; none of a verdict from before there were any."""
    found = _list(stored, "compared") if "compared" in stored else []
    return tuple(_compared_series(one, f"compared[{n}].") for n, one in enumerate(found))


def _compared_series(stored: object, where: str) -> ComparedSeries:
    if not isinstance(stored, dict):
        raise ValueError(f"{where.rstrip('.')} is not a JSON object")  # noqa: TRY004
    texts = {key: tuple(_list(stored, key)) for key in ("boards", "checks", "odd_boards")}
    effects = tuple(
        _item(BoardEffect, one, f"{where}effects[{n}].") for n, one in enumerate(_list(stored, "effects"))
    )
    return _item(ComparedSeries, {**stored, **texts, "effects": effects}, where)


def _list(stored: Mapping[str, Any], key: str) -> list[Any]:
    if not isinstance(stored.get(key), list):
        raise ValueError(f"{key} is missing or no list")  # noqa: TRY004
    return list(stored[key])


def _item(kind: type[_Item], stored: object, where: str) -> _Item:
    """Return a dataclass of ours from its JSON object, each value of its field's type. Raises ValueError."""
    if not isinstance(stored, dict):
        raise ValueError(f"{where.rstrip('.')} is not a JSON object")  # noqa: TRY004
    hints = _HINTS[kind.__name__]
    for key, value in stored.items():
        if key not in hints:
            raise ValueError(f"{where}{key} is an unknown key")
        if not check_of(hints[key])(value):
            raise ValueError(f"{where}{key} is {str(value)[:40]!r}, which it cannot be")
    try:
        return kind(**stored)
    except TypeError as error:  # a key that has no default is missing
        raise ValueError(f"{where}{str(error).partition('missing ')[2] or error} missing") from error


def judged_runs(legs: Path) -> tuple[list[Path], list[str]]:
    """Return the runs in ``legs``/<leg>/<run id> that can be reported, and a sentence for each that cannot.

    Raises:
        ConfigError: none can.
    """
    found: list[Path] = []
    left_out: list[str] = []
    for leg in sorted(path for path in legs.glob("*") if path.is_dir()):
        for run in RunDirectory.list(leg):
            try:
                _check(run)
                found.append(run.path)
            except ConfigError as error:
                left_out.append(f"the leg {leg.name} is left out of the report: {error.sentence}")
    if not found:
        raise ConfigError(
            " ".join([f"{legs} holds no run that was judged, so there is nothing to report.", *left_out]),
            next_step="look at the logs of the jobs that measure; runs are looked for in LEG/RUN below it.",
        )
    return found, left_out


def _check(run: RunDirectory) -> None:
    """Read what a report is made of. Raises ConfigError."""
    run.read_info()
    run.read()
    read_verdict(run.verdicts_path)

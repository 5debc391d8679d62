"""verdicts.json read back, checked: another program, or a person, may have written it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from hil.base.errors import ConfigError, ExitCode
from hil.base.units import UNITS
from hil.model import BoardEffect, ComparedSeries, Fault, NotRun, SeriesVerdict, Verdict
from hil.store.files import check_of

_Item = TypeVar("_Item")
_UNITS = {unit.name for unit in UNITS}
_EXIT_CODES = set(ExitCode)
_HINTS = {
    kind.__name__: {field.name: get_type_hints(kind)[field.name] for field in dataclasses.fields(kind)}
    for kind in (SeriesVerdict, ComparedSeries, BoardEffect, Fault, NotRun, Verdict)
}
_OUTCOMES = {ExitCode.PASS: ("pass", "no-baseline", "inconclusive"), ExitCode.FIRMWARE: ("regressed",)}


def read_verdict(path: Path) -> Verdict:
    """Return what Verdict.to_json() wrote. Raises ConfigError where ``path`` holds no verdict."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise no_verdict(path, str(error.strerror)) from error
    return parse_verdict(path, content)


def parse_verdict(path: Path, content: bytes) -> Verdict:
    """Return the verdict that a file holds. Raises ConfigError, which names ``path`` and the key."""
    try:
        return _verdict(json.loads(content.decode()))
    except ValueError as error:
        raise no_verdict(path, str(error)) from error


def no_verdict(path: Path, why: str) -> ConfigError:
    """Return the error of a run whose verdict cannot be read, with the way out."""
    return ConfigError(
        f"{path}: no verdict can be read from it ({why}).",
        next_step=f"judge the run again: hil gate {path.parent}",
    )


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

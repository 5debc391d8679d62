"""Where a case stands in Allure's report: ``tests/index.html#<id>``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hil.model import Verdict
from hil.reports.allure.identity import full_name, history_id, parameters_of, stable_uuid
from hil.reports.allure.story import case_label, parse_case_id, read_thresholds


def ids_of(run_path: Path, info: Mapping[str, Any], verdict: Verdict) -> dict[tuple[str, str], str]:
    """Return Allure's id of each (board, case id) in a verdict that has a result.

    Raises:
        ConfigError: the run's thresholds cannot be read.
    """
    thresholds = read_thresholds(run_path, info)
    rack = str(info.get("rack") or next((item.series_id.partition("/")[0] for item in verdict.series), ""))
    found = {}
    for board, case_id in _cases(verdict):
        bench, _ = parse_case_id(case_id)
        identity = history_id(full_name(bench), parameters_of(rack, board, case_label(case_id, thresholds)))
        found[board, case_id] = stable_uuid(verdict.run_id or run_path.name, identity)
    return {key: _id(uuid) for key, uuid in found.items() if _has_result(run_path, uuid)}


def _cases(verdict: Verdict) -> set[tuple[str, str]]:
    """Return (board, case id) of whatever is of a single case."""
    named = {(item.board, item.case_id) for item in verdict.series}
    named |= {(fault.board, fault.case_id) for fault in verdict.faults}
    named |= {(item.board, item.case_id) for item in verdict.not_run}
    return {key for key in named if all(key)}


def _id(uuid: str) -> str:
    """Return what Allure 3 makes of a result's uuid; nothing is kept safe by it."""
    return hashlib.md5(uuid.encode(), usedforsecurity=False).hexdigest()


def _has_result(run_path: Path, uuid: str) -> bool:
    return (run_path / "allure-results" / f"{uuid}-result.json").is_file()

# SPDX-License-Identifier: Apache-2.0
"""What makes two results the same test: product, rack, board and case; never commit, run, port or path.

allure-pytest reckons the same from the items of hil/benches, which tests hold it to.

Where a case stands in Allure's report: ``tests/index.html#<id>``.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from pathlib import Path

from hil.model import Verdict, format_place
from hil.reports.allure.story import case_label, limits_of, parse_case_id
from hil.store import JudgedRun

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "hil/reports/allure")


def full_name(bench: str) -> str:
    """Return allure-pytest's name of a bench's test function."""
    return f"hil.benches.test_{bench}#test_{bench}"


def parameters_of(place: str, board: str, label: str) -> dict[str, str]:
    """Return what distinguishes the results of a bench; ``place`` is the rack, and whose figures these are.

    A case goes by the parameters that differ from their defaults, so its history goes on when the bench gets
    another parameter with a default.
    """
    return {"rack": place, "board": board, "case": label}


def history_id(name: str, parameters: Mapping[str, str]) -> str:
    """Return Allure's id of a test with these parameters; ``name`` is its full name."""
    return _digest(name, *(parameters[key] for key in sorted(parameters)))


def case_id_of(name: str) -> str:
    return _digest(name)


def _digest(*words: str) -> str:
    """Return what names things in Allure's formats; nothing is kept safe by it."""
    return hashlib.md5("".join(words).encode(), usedforsecurity=False).hexdigest()


def stable_uuid(*words: str) -> str:
    """Return the same UUID for the same words, so that a second completion overwrites the first."""
    return str(uuid.uuid5(_NAMESPACE, "\n".join(words)))


def ids_of(run: JudgedRun) -> dict[tuple[str, str], str]:
    """Return Allure's id of each (board, case id) in a run's verdict that has a result.

    Raises:
        ConfigError: the run's thresholds cannot be read.
    """
    thresholds, verdict = limits_of(run), run.verdict
    place = format_place(run.info.product, run.info.rack)
    found = {}
    for board, case_id in _cases(verdict):
        bench, _ = parse_case_id(case_id)
        identity = history_id(full_name(bench), parameters_of(place, board, case_label(case_id, thresholds)))
        found[board, case_id] = stable_uuid(verdict.run_id or run.run_id, identity)
    return {key: id_of(uuid) for key, uuid in found.items() if _has_result(run.path, uuid)}


def _cases(verdict: Verdict) -> set[tuple[str, str]]:
    """Return (board, case id) of whatever is of a single case."""
    named = {(item.board, item.case_id) for item in verdict.series}
    named |= {(fault.board, fault.case_id) for fault in verdict.faults}
    named |= {(item.board, item.case_id) for item in verdict.not_run}
    return {key for key in named if all(key)}


def id_of(uuid: str) -> str:
    """Return what Allure 3 makes of a result's uuid; nothing is kept safe by it."""
    return hashlib.md5(uuid.encode(), usedforsecurity=False).hexdigest()


def _has_result(run_path: Path, uuid: str) -> bool:
    return (run_path / "allure-results" / f"{uuid}-result.json").is_file()

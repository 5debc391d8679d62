# SPDX-License-Identifier: Apache-2.0
"""allure-pytest within real pytest sessions that measure boards in memory."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hil.model import Fault
from hil.reports.allure import complete_results
from hil.store import RunDirectory, read_judged_run
from tests.lab import ROOT, run
from tests.reports.allure_runs import results_of

pytestmark = pytest.mark.slow

RACK = """\
schema: 1
name: lab
host: {interface: hil0, address: 10.77.0.1}
access_point: {type: virtual, profile: lab, seed: 1}
boards:
"""
BOARD = """\
  - {id: %(id)s, kind: virtual, target: esp32, power: {type: virtual},
     serial: 'fastrfc2217://127.0.0.1:471%(number)d', mac: '02:00:00:77:01:%(number)d'}
"""
DEADLINE_S = 90.0


def measure(
    folder: Path, *arguments: str, boards: Sequence[str] = ("b1", "b2"), panic: str = "", lie: str = ""
) -> Path:
    """Run a session as `hil run` starts it and return the run's folder."""
    folder.mkdir(exist_ok=True)
    rack = folder / "rack.yaml"
    listed = [BOARD % {"id": board, "number": 10 + number} for number, board in enumerate(boards)]
    rack.write_text(RACK + "".join(listed))
    argv = [sys.executable, "-m", "tests.reports.allure_session", str(ROOT / "hil" / "benches")]
    argv += ["-c", str(ROOT / "pytest.ini"), "-p", "no:cacheprovider", f"--rack={rack}", "--hil-no-report"]
    argv += [f"--hil-out={folder / 'out'}", "--hil-suite=quick and publish", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HIL_TEST_PANIC": panic, "HIL_TEST_LIE": lie}
    done = run(argv, env=env, timeout_s=DEADLINE_S)
    left = (folder / "out" / "latest").resolve()
    assert (left / "verdicts.json").exists(), done.stdout
    return left


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session of one bench's seven cases on two boards, one of which panics in its second case."""
    return measure(tmp_path_factory.mktemp("quick") / "lab", panic="b2")


def ids(run: Path) -> dict[tuple[str, str], str]:
    return {place: result["historyId"] for place, result in results_of(run).items()}


def test_each_item_has_its_result_in_the_run(quick: Path) -> None:
    """Two boards, seven cases: fourteen results, none of benches without a case or of fixtures, no litter.
    The run keeps the limits of its day: charts and labels need the bench's metrics, on another machine too.
    """
    kept, own = (folder / "thresholds" / "publish.yaml" for folder in (quick, ROOT))
    assert kept.read_bytes() == own.read_bytes()
    raw = [json.loads(path.read_text()) for path in (quick / "allure-pytest").iterdir()]
    assert len(raw) == 14
    outside = [path for path in quick.parent.rglob("*allure*") if quick not in path.parents]
    assert not [path for path in outside if "report" not in path.parts and "history" not in path.parts]
    assert not list((ROOT / "out").glob("allure-pytest*"))
    statuses = {place: result["status"] for place, result in results_of(quick).items()}
    assert len(statuses) == 14
    on_b1 = {status for (board, _), status in statuses.items() if board == "b1"}
    on_b2 = sorted(status for (board, _), status in statuses.items() if board == "b2")
    assert on_b1 <= {"passed"}
    assert on_b2 == ["failed", "passed", *["skipped"] * 5]


def test_pytest_and_the_journal_agree_on_who_is_who(quick: Path, tmp_path: Path) -> None:
    """Name and ids are the same as allure-pytest's own, so a result is the same whoever wrote it."""
    own = {result["historyId"]: result for result in results_of(quick).values()}
    for path in (quick / "allure-pytest").iterdir():
        raw = json.loads(path.read_text())
        completed = own[raw["historyId"]]
        assert (completed["fullName"], completed["testCaseId"]) == (raw["fullName"], raw["testCaseId"])
        plain = {item["name"]: item["value"] for item in completed["parameters"] if not item.get("excluded")}
        assert {item["name"]: item["value"].strip("'") for item in raw["parameters"]} == plain
    killed = shutil.copytree(quick, tmp_path / quick.name)
    shutil.rmtree(killed / "allure-pytest")
    shutil.rmtree(killed / "allure-results")
    complete_results(read_judged_run(killed))
    assert ids(killed) == ids(quick)


def test_samples_that_cannot_be_are_the_firmwares_fault(tmp_path: Path) -> None:
    """A board that lies is measured to the end; each of its cases is a fault of the firmware, on disk."""
    run = measure(tmp_path / "lab", lie="b2")
    journal = RunDirectory.open(run).read()
    faults = [entry for entry in journal.entries if isinstance(entry, Fault)]
    assert len(journal.records) == 14
    assert {(fault.owner, fault.exit_code, fault.board) for fault in faults} == {("firmware", 1, "b2")}
    assert len({fault.case_id for fault in faults}) == 7
    lying = next(record for record in journal.records if record.case_id == faults[0].case_id)
    planned = lying.columns["planned_us"][-1]
    for word in ("publish/", "board b2", f"= boot[0].row[{lying.rows - 1}].sent_us", str(planned)):
        assert word in faults[0].sentence
    asserted = r"'assert row\.planned_us - early_us <= row\.sent_us': .* = boot\[0\]\.row"
    assert re.search(asserted, faults[0].sentence)
    assert re.search(r"publish\.c, .*/plausible\.py:\d+", faults[0].sentence)
    assert json.loads((run / "verdicts.json").read_text())["exit_code"] == 1
    statuses = {(board, result["status"]) for (board, _), result in results_of(run).items()}
    assert statuses == {("b1", "passed"), ("b2", "failed")}


def test_sessions_share_a_history(quick: Path, tmp_path: Path) -> None:
    """Another session of a bench that has learnt a parameter: the same case on the same board is the same."""
    shutil.copytree(ROOT / "thresholds", tmp_path / "thresholds")
    file = tmp_path / "thresholds" / "publish.yaml"
    more = "parameters:\n  window: {default: 4, min: 1, max: 9}\n"
    file.write_text(file.read_text().replace("parameters:\n", more, 1))
    again = ids(measure(tmp_path / "lab", f"--hil-thresholds={file.parent}", boards=("b3", "b1")))
    before = ids(quick)
    assert len({*again.values(), *before.values()}) == 21
    for (board, case), identity in again.items():
        assert (before.get((board, case)) == identity) == (board == "b1")


def test_the_harness_own_tests_are_left_alone(request: pytest.FixtureRequest) -> None:
    """Without a rack there is no listener, and no result is written anywhere."""
    assert not request.config.pluginmanager.has_plugin("hil-allure-listener")
    assert request.config.option.allure_report_dir is None

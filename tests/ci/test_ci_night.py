# SPDX-License-Identifier: Apache-2.0
"""The virtual rack's night: a leg for each bench, and what its verdict demands of them."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from hil.base.errors import ExitCode
from hil.boards.rack import load_rack
from hil.ci.conclusion import conclude
from hil.ci.event import VIRTUAL_RACK, read_event
from hil.ci.limits import Counting
from hil.ci.night import VirtualNight, virtual_night
from hil.ci.plan import CiPlan, Leg, plan_event, read_plan, write_plan
from hil.run.plan import make_plan
from hil.thresholds import load_project
from tests.ci.ci_rig import Repository, a_plan, leave_run, targets_file
from tests.lab import ROOT
from tests.make_records import change_info

WELL = {"plan": "success", "virtual": "success"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """main with the real virtual rack and the real limits."""
    made = Repository(tmp_path_factory.mktemp("night"))
    (made.path / VIRTUAL_RACK).parent.mkdir(parents=True)
    shutil.copy(ROOT / VIRTUAL_RACK, made.path / VIRTUAL_RACK)
    shutil.copytree(ROOT / "thresholds", made.path / "thresholds")
    made.commit(targets_file())
    return made


def night_of(repository: Repository, suite: str = "") -> CiPlan:
    head = repository.git("rev-parse", "HEAD")
    event = read_event({"GITHUB_EVENT_NAME": "schedule", "GITHUB_SHA": head}, repository.path)
    return plan_event(repository.path, event, suite=suite)


def test_a_night_has_a_leg_for_each_bench(repository: Repository) -> None:
    """Together they measure each case of the suite that the boards can measure, and none twice."""
    plan = night_of(repository)
    assert plan.virtual_boards == ("v1", "v4")
    rack, limits = load_rack(repository.path / VIRTUAL_RACK), load_project(repository.path / "thresholds")

    def cases(suite: str) -> list[tuple[str, str]]:
        boards = make_plan(rack, limits, selection=suite, board_ids=("v1", "v4")).boards
        return sorted((one.board.id, case.case_id) for one in boards for case in one.cases)

    legs = [leg for leg in json.loads(plan.outputs()["virtual"]) if leg["leg"].startswith("virtual-")]
    assert len(legs) > 1
    assert {"virtual-publish", "virtual-http_gateway"} <= {leg["leg"] for leg in legs}
    assert sorted(pair for leg in legs for pair in cases(leg["suite"])) == cases("nightly")
    assert plan.legs_of_alpha >= len(legs)  # they share alpha
    write_plan(plan, repository.path / "plan.json")
    assert read_plan(repository.path / "plan.json") == plan


def test_what_is_asked_for_by_hand_is_shared_out_too(repository: Repository) -> None:
    """An expression keeps its meaning in each leg; what is wrong with it, one run of the whole tells."""
    suites = {leg.name: leg.suite for leg in night_of(repository, "publish or echo and qos=1").legs}
    assert suites["virtual-publish"] == "(publish or echo and qos=1) and publish"
    assert virtual_night(repository.path, "fastest") == VirtualNight()
    assert [leg.name for leg in night_of(repository, "fastest").legs if leg.job == "virtual"] == ["virtual"]


def test_a_pull_request_has_one_leg(repository: Repository) -> None:
    """Its suite is one run."""
    plan = plan_event(repository.path, read_event({}, repository.path))
    assert [leg.name for leg in plan.legs if leg.job == "virtual"] == ["virtual"]


def a_night() -> CiPlan:
    legs = tuple(Leg(f"virtual-{bench}", "virtual", f"quick and {bench}") for bench in ("publish", "echo"))
    return dataclasses.replace(a_plan(), legs=legs)


def leave(folder: Path, bench: str, *, suite: str = "") -> None:
    run = leave_run(folder / f"virtual-{bench}")
    change_info(run, suite=suite or f"quick and {bench}")


def test_the_legs_of_a_night_have_one_verdict(tmp_path: Path) -> None:
    """It passes where each of them does. Where a bench's job left nothing, the night has no verdict either.

    A run stands for the bench that the plan says, and for no other. Failed jobs: test_ci_verdict.py.
    """
    leave(tmp_path, "publish")
    verdict = conclude(a_night(), tmp_path, {**WELL, "virtual": "failure"})
    assert (verdict.exit_code, verdict.headline) == (ExitCode.RIG, "NO VERDICT: virtual-echo")
    leave(tmp_path, "echo", suite="quick and publish")
    verdict = conclude(a_night(), tmp_path, WELL, Counting())
    assert verdict.exit_code == ExitCode.RIG
    assert "'quick and echo'" in verdict.legs[1].sentence
    shutil.rmtree(tmp_path / "virtual-echo")
    leave(tmp_path, "echo")
    verdict = conclude(a_night(), tmp_path, WELL)
    assert (verdict.exit_code, verdict.headline) == (ExitCode.PASS, "PASS: virtual-publish, virtual-echo")

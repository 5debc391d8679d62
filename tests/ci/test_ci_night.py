# SPDX-License-Identifier: Apache-2.0
"""The virtual rack's night in shards: how many the plan makes, and what its verdict demands of them."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from hil.base.errors import ConfigError, ExitCode, RigError
from hil.ci.event import VIRTUAL_RACK, read_event
from hil.ci.limits import Counting
from hil.ci.night import VirtualNight, virtual_night
from hil.ci.plan import CiPlan, plan_event, read_plan, shards_of, write_plan
from hil.ci.summary import CiVerdict, conclude
from hil.cli.app import run_command
from hil.cli.merge import raise_what_ended
from hil.model import NotRun
from hil.store.ended import ENDED
from tests.ci.ci_rig import HEAD, Repository, a_plan, leave_run, targets_file
from tests.lab import ROOT
from tests.make_records import RUN_ID, publish_record

WELL = {"plan": "success", "shard": "success", "virtual": "success", "rack": "success"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """main with the real virtual rack and the real limits."""
    made = Repository(tmp_path_factory.mktemp("night"))
    (made.path / VIRTUAL_RACK).parent.mkdir(parents=True)
    shutil.copy(ROOT / VIRTUAL_RACK, made.path / VIRTUAL_RACK)
    shutil.copytree(ROOT / "thresholds", made.path / "thresholds")
    made.commit(targets_file())
    return made


def test_a_night_is_planned_in_shards(repository: Repository) -> None:
    """The suite takes more than an hour, so machines with a board of each number of cores share it."""
    head = repository.git("rev-parse", "HEAD")
    event = read_event({"GITHUB_EVENT_NAME": "schedule", "GITHUB_SHA": head}, repository.path)
    plan = plan_event(repository.path, event)
    leg, outputs = plan.leg("virtual"), plan.outputs()
    assert leg.shards > 1
    assert outputs["virtual-boards"] == "v1 v4"
    assert json.loads(outputs["shards"]) == [
        {"leg": f"virtual-{n}-of-{leg.shards}", "shard": f"{n}/{leg.shards}"}
        for n in range(1, leg.shards + 1)
    ]
    write_plan(plan, repository.path / "plan.json")
    assert read_plan(repository.path / "plan.json") == plan


def test_a_short_suite_is_one_shard(repository: Repository) -> None:
    """Nights by hand measure what is asked for; what is wrong with it, the run itself tells."""
    assert virtual_night(repository.path, "first") == VirtualNight(("v1", "v4"), 1)
    assert virtual_night(repository.path, "fastest") == VirtualNight()


def test_a_pull_request_has_no_shards(repository: Repository) -> None:
    """Its suite is one run, and no job waits for a merge."""
    plan = plan_event(repository.path, read_event({}, repository.path))
    assert (plan.leg("virtual").shards, plan.leg("virtual").jobs) == (0, ("virtual",))
    assert plan.outputs()["shards"] == "[]"


def sharded(of: int) -> CiPlan:
    """Return a night's plan whose leg virtual is made of so many shards."""
    plan = a_plan()
    legs = [dataclasses.replace(leg, shards=of if leg.name == "virtual" else 0) for leg in plan.legs]
    return dataclasses.replace(plan, legs=tuple(legs))


def say(folder: Path, of: int, shards: Sequence[int], jobs: dict[str, str] | None = None) -> CiVerdict:
    """Leave a run that was made of ``shards`` and conclude, by the limits that it keeps."""
    run = leave_run(folder / "virtual")
    info = run.read_info()
    told = [{"number": number, "of": max(shards), "run_id": RUN_ID, "host": "h"} for number in shards]
    run.write_info({**info, **({"shards": told} if told else {})})
    return conclude(sharded(of), folder, {**WELL, **(jobs or {})}, Counting())


def test_shards_that_the_plan_asked_for_have_a_verdict(tmp_path: Path) -> None:
    """Merged of as many as planned, the run counts as any other does."""
    verdict = say(tmp_path, 2, [1, 2])
    assert (verdict.exit_code, verdict.headline) == (ExitCode.PASS, "PASS: virtual")


@pytest.mark.parametrize(
    ("of", "shards", "words"),
    [
        (3, [1, 2], "it was made of 2 shards, and the plan has 3"),
        (3, [], "it was made of no shards, and the plan has 3"),
        (0, [1, 2], "it was made of 2 shards, and the plan has 0"),
    ],
)
def test_other_shards_than_planned_are_no_verdict(
    tmp_path: Path, of: int, shards: Sequence[int], words: str
) -> None:
    """A run of another sharing out, or of none, does not stand for the night."""
    verdict = say(tmp_path, of, shards)
    assert (verdict.exit_code, verdict.headline) == (ExitCode.RIG, "NO VERDICT: virtual")
    assert words in verdict.legs[0].sentence


def test_a_missing_shard_is_no_green_night(tmp_path: Path) -> None:
    """Its cases are missing in the merged run, which is incomplete; the job that failed is accounted for."""
    missing = NotRun(RUN_ID, "virtual-1", "publish/qos=0", "shard 2/2 left no run", "ended")
    leave_run(tmp_path / "virtual", [publish_record(), missing])
    info = json.loads((tmp_path / "virtual" / RUN_ID / "run.json").read_text())
    info["shards"] = [{"number": 1, "of": 2, "run_id": RUN_ID, "host": "h"}]
    (tmp_path / "virtual" / RUN_ID / "run.json").write_text(json.dumps(info))
    verdict = conclude(sharded(2), tmp_path, {**WELL, "shard": "failure"}, Counting())
    assert (verdict.exit_code, verdict.headline) == (ExitCode.UNDECIDED, "INCOMPLETE: virtual")
    assert not verdict.findings
    assert verdict.conclusion == "failure"


def test_a_shard_that_failed_unseen_fails_the_night(tmp_path: Path) -> None:
    """A job that is red while the merged run passes is nobody's word, so it is not green."""
    verdict = say(tmp_path, 2, [1, 2], {"shard": "failure"})
    assert verdict.exit_code == ExitCode.RIG
    assert "the job shard ended with 'failure', which no leg accounts for" in verdict.findings[0]


def test_the_names_of_shards_are_those_of_legs() -> None:
    """`hil ci collect` takes them, and none is a leg of the plan."""
    names = [one["leg"] for one in shards_of(sharded(2).leg("virtual"))]
    assert names == ["virtual-1-of-2", "virtual-2-of-2"]


def leave_end(folder: Path, owner: str, code: int) -> None:
    folder.mkdir(parents=True)
    told = {"owner": owner, "exit_code": code, "sentence": "jitter.yaml:3: wrong", "next_step": "mend it"}
    (folder / ENDED).write_text(json.dumps({"schema": 1, **told, "commit": HEAD, "job": ""}))


def test_why_no_shard_left_a_run_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A configuration error in each shard is one of the night, with its sentence, and no rig that failed."""
    for number in (1, 2):
        leave_end(tmp_path / "shards" / f"virtual-{number}-of-2", "configuration", 2)
    asked = ["ci", "merge", str(tmp_path / "shards"), "--out", str(tmp_path / "out")]
    assert run_command(asked) == 2
    told = "no shard left a run; virtual-1-of-2: jitter.yaml:3: wrong"
    assert told in capfd.readouterr().err
    assert not (tmp_path / "out").exists()  # by hand nothing is left for a leg
    with pytest.raises(ConfigError, match="mend it") as caught:
        raise_what_ended([tmp_path])
    assert caught.value.next_step == "mend it"
    leave_end(tmp_path / "other" / "virtual-1-of-1", "rig", 3)
    with pytest.raises(RigError):
        raise_what_ended([tmp_path / "other"])
    assert raise_what_ended([tmp_path / "none"]) == []

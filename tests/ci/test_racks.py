# SPDX-License-Identifier: Apache-2.0
"""Racks that take no job: given up after an hour, or switched off elsewhere; their legs are undecided."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hil.base.errors import ConfigError, ExitCode, RigError
from hil.base.untrusted import markdown
from hil.ci import summary
from hil.ci.comment import comment
from hil.ci.conclusion import conclude
from hil.ci.event import CiEvent, Targets, read_event
from hil.ci.github import GitHub
from hil.ci.plan import CiPlan, make_plan, plan_event, read_plan, write_plan
from hil.ci.racks import VARIABLE, Job, await_racks, jobs_of, racks_off, unanswered
from hil.cli.app import app
from tests.ci.ci_rig import HEAD, Repository, a_plan, leave_run, limits_text, page_of, targets_file
from tests.ci.comment_rig import kept, leave_comparison, leave_virtual, zipped
from tests.ci.github_server import HOME, RUN, TOKEN, State, serve

NOW = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)
RACK = ("self-hosted", "hil", "esp32")
FIRMWARE = ["firmware/main/app_main.c"]


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def queued(minutes: float, chip: str = "esp32", status: str = "queued") -> Job:
    return Job(status, ago(minutes), ("self-hosted", "hil", chip))


def measuring(minutes: float, chip: str = "esp32") -> Job:
    return Job("in_progress", ago(minutes), ("self-hosted", "hil", chip), runner_id=3)


def over(waited: float, chip: str = "esp32", *, has_runner: bool = False) -> Job:
    labels = ("self-hosted", "hil", chip)
    return Job("completed", ago(waited), labels, runner_id=3 if has_runner else None, ended=NOW)


def waited(*looks: list[Job]) -> tuple[tuple[str, ...], float]:
    """Return which racks are given up, and after how many minutes; the last look stays as it is."""
    clock, left = [NOW], list(looks)
    late = await_racks(
        lambda: left.pop(0) if left[1:] else left[0],
        now=lambda: clock[0],
        wait=lambda seconds: clock.append(clock.pop() + timedelta(seconds=seconds)),
    )
    return late, (clock[0] - NOW).total_seconds() / 60


@pytest.mark.parametrize(
    ("looks", "late", "minutes"),
    [
        ([[queued(0)]], ("esp32",), 60),
        ([[queued(45), measuring(50, "esp32s3")]], ("esp32",), 15),
        ([[queued(90), queued(50, "esp32s3")]], ("esp32", "esp32s3"), 10),
        ([[queued(30, status="pending")]], ("esp32",), 30),  # in a group whose older job is being cancelled
        ([[]], (), 0),
        ([[measuring(100)]], (), 0),
        ([[over(5)]], (), 0),  # a newer push cancelled it
        ([[queued(90, status="waiting")]], (), 0),  # for a person's approval
        ([[queued(90), measuring(90)]], (), 0),  # at night a rack has several, one after the other
        ([[queued(5), queued(5, "")], [measuring(6)]], (), 1),
    ],
)
def test_a_rack_is_given_up_after_an_hour(
    looks: list[list[Job]], late: tuple[str, ...], minutes: int
) -> None:
    """From when its first job waits; each rack has its hour.

    Nobody waits once the racks have their jobs: the job ends then, as it costs a machine of GitHub's.
    """
    assert waited(*looks) == (late, minutes)


def test_a_leg_is_excused_where_no_runner_came() -> None:
    """The reason has the minutes; a leg that left something needs no excuse."""
    jobs = [over(64.9), over(70, "esp32s3"), over(1, "")]
    excused = unanswered(a_plan(["esp32", "esp32s3"]), ["rack-esp32"], lambda: jobs)
    assert excused.keys() == {"rack-esp32"}
    assert "64 minutes" in excused["rack-esp32"]


@pytest.mark.parametrize(
    "jobs",
    [
        [over(59)],  # by hand
        [over(90, has_runner=True)],  # while it measured
        [over(90, "esp32s3")],  # another rack
        [queued(90)],
        [],
    ],
)
def test_a_job_that_had_a_runner_or_ended_sooner_excuses_nothing(jobs: list[Job]) -> None:
    """Then nobody knows that no rack took it, and there is no verdict."""
    assert unanswered(a_plan(["esp32"]), ["rack-esp32"], lambda: jobs) == {}


def test_a_rack_that_took_a_job_excuses_none_of_its_legs() -> None:
    """At night a chip has several: where one job had a runner and left nothing, that is another matter."""
    plan = make_plan(CiEvent("schedule", "nightly", HEAD), "", (), Targets((), ("esp32",)))
    legs = ["rack-esp32", "night-esp32", "unchanged-esp32"]
    lost = [over(90), over(80)]
    assert unanswered(plan, legs, lambda: [*lost, over(90, has_runner=True)]) == {}
    assert set(unanswered(plan, legs, lambda: [*lost, over(70)])) == set(legs)


def test_a_chip_that_does_not_build_is_not_excused(tmp_path: Path) -> None:
    """That its rack took no job makes the firmware no better."""
    leave_run(tmp_path / "virtual")
    results = {"virtual": "success", "build": "failure", "rack": "cancelled"}
    excuses = {"rack-esp32": "the rack is off"}
    verdict = conclude(a_plan(["esp32"]), tmp_path, results, excuses=lambda _: excuses)
    assert verdict.exit_code == ExitCode.RIG
    assert any("job build" in line for line in verdict.findings)


def test_jobs_are_read_as_github_lists_them() -> None:
    """A chip is told by the labels of a rack's runner; no runner is null or 0, as both are to be met."""
    state, common = State(HEAD), {"created_at": "2026-11-20T01:00:00Z", "status": "queued"}
    rack = ["self-hosted", "hil", "esp32c3"]
    state.jobs = [
        {**common, "labels": rack, "runner_id": None},
        {**common, "labels": rack, "runner_id": 0},
        {**common, "labels": rack, "runner_id": 12},
        {**common, "labels": ["ubuntu-24.04"], "runner_id": None},
        {**common, "labels": ["esp32c3"], "runner_id": None},
    ]
    with serve(state) as api:
        jobs = jobs_of(GitHub(HOME, TOKEN, api), RUN, 1)
        del state.jobs[0]["created_at"]
        with pytest.raises(RigError, match="created_at"):
            jobs_of(GitHub(HOME, TOKEN, api), RUN, 1)
    assert [job.chip for job in jobs] == ["esp32c3"] * 3 + ["", ""]
    assert [bool(job.runner_id) for job in jobs] == [False, False, True, False, False]
    assert jobs[0].created == datetime(2026, 11, 20, 1, 0, tzinfo=UTC)


def a_rack_job(minutes: float, *, runner: int = 0) -> dict[str, Any]:
    """Return a job of a rack as GitHub lists it, that was cancelled after so many minutes."""
    created = f"{ago(minutes):%Y-%m-%dT%H:%M:%SZ}"
    ended = {"conclusion": "cancelled", "completed_at": f"{NOW:%Y-%m-%dT%H:%M:%SZ}"}
    return {"status": "completed", "labels": list(RACK), "runner_id": runner or None,
            "created_at": created, **ended}  # fmt: skip


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[State]:
    """GitHub, for a job of a run whose plan has a rack."""
    made = State(HEAD)
    write_plan(a_plan(["esp32"]), tmp_path / "plan.json")
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_EVENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    with serve(made) as api:
        for name, value in {
            "GITHUB_REPOSITORY": HOME, "GITHUB_RUN_ID": str(RUN), "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": api, "GITHUB_OUTPUT": str(tmp_path / "output"),
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        yield made


def hil(*words: str, **variables: str) -> Result:
    return CliRunner().invoke(app, ["ci", *words], standalone_mode=False, env={"HIL_CI": ".", **variables})


def judge() -> Result:
    leave_run(Path("legs/virtual"))
    needs = json.dumps({"virtual": {"result": "success"}, "rack": {"result": "cancelled"}})
    return hil("verdict", HIL_JOBS=needs)


@pytest.mark.parametrize(
    ("runner", "legs"), [(0, '["rack-esp32"]'), (9, "[]")], ids=["takes-none", "takes-it"]
)
def test_the_legs_to_give_up_are_an_output(state: State, runner: int, legs: str) -> None:
    """By today's clock the hour of this job is long past."""
    waits = {"status": "queued", "conclusion": None, "completed_at": None}
    state.jobs = [{**a_rack_job(64, runner=runner), **waits}]
    done = hil("await-racks")
    assert done.exception is None
    assert Path("output").read_text() == f"unanswered={legs}\n"


@pytest.mark.usefixtures("state")
def test_by_hand_there_is_no_run_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says what a job of GitHub has; a verdict by hand goes without."""
    monkeypatch.delenv("GITHUB_TOKEN")
    assert isinstance(hil("await-racks").exception, ConfigError)
    done = judge()
    assert "warning: nobody knows" in done.output
    assert done.return_value == ExitCode.RIG


def test_the_verdict_of_what_waited_in_vain_is_undecided(state: State) -> None:
    """Asked after its job was cancelled, GitHub says that no runner came: nothing failed, nothing passed."""
    state.jobs = [a_rack_job(64.5)]
    done = judge()
    assert done.return_value == 0, done.output
    assert "# UNDECIDED: rack-esp32\n" in done.output
    assert "within 64 minutes" in done.output


@pytest.mark.parametrize("happens", ["sooner", "while-it-measured", "no-answer"])
def test_what_somebody_cancelled_has_no_verdict(state: State, happens: str) -> None:
    """It is no word on the rack; nor is a GitHub that does not answer."""
    if happens == "no-answer":
        state.trouble[f"runs/{RUN}/attempts"] = [(403, {}, b"{}")]
    else:
        state.jobs = [a_rack_job(40) if happens == "sooner" else a_rack_job(90, runner=9)]
    done = judge()
    assert done.return_value == ExitCode.RIG
    assert ("warning: nobody knows" in done.output) == (happens == "no-answer")


@pytest.mark.parametrize(
    ("minutes", "said", "conclusion"),
    [(64, f"? {markdown('UNDECIDED: rack-esp32')}", "neutral"), (30, "? No verdict", "failure")],
    ids=["unanswered", "cancelled-sooner"],
)
def test_the_comment_asks_github_itself(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: int, said: str, conclusion: str
) -> None:
    """From the default branch, by the same jobs; where these tell otherwise, there is no verdict."""
    own = Repository(tmp_path / "own")
    monkeypatch.chdir(own.path)
    base = own.commit({"thresholds/publish.yaml": limits_text(), **targets_file((), ["esp32"])})
    monkeypatch.setattr("hil.ci.plan.COUNTING", ())  # the rack's leg alone needs a chip
    plan = dataclasses.replace(a_plan(["esp32"], files=FIRMWARE, compare=True), base=base)
    state.base, state.files = base, FIRMWARE
    state.limits = {"publish.yaml": limits_text().encode()}
    write_plan(plan, tmp_path / "plan.json")
    leave_virtual(tmp_path / "legs")
    leave_comparison(tmp_path / "legs")
    state.add_run(RUN)
    state.add_pull()
    gave_up = {"hil / Rack rack-esp32 / Measure": "cancelled", "hil / Give up rack-esp32": "success"}
    state.set_jobs("success", **gave_up)
    (rack,) = [one for one in state.jobs if one["name"].startswith("hil / Rack ")]
    rack |= a_rack_job(minutes)
    state.add_artefact(zipped(kept(tmp_path)))
    with serve(state) as api:
        comment(GitHub(HOME, TOKEN, api), RUN)
    (body,) = [one["body"] for one in state.comments[7]]
    assert body.splitlines()[1].startswith(f"### {said}")
    (check,) = state.checks
    assert check["conclusion"] == conclusion


WHY = "the rack esp32 is switched off by HIL_RACKS_OFF: power is off until Monday"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """main with racks for two chips; the branch ``change`` off it has other firmware."""
    made = Repository(tmp_path / "repository")
    made.commit({**targets_file((), ["esp32", "esp32s3"]), "firmware/a.c": "1"})
    made.git("checkout", "--quiet", "-b", "change")
    made.commit({"firmware/a.c": "2"})
    return made


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", {}),
        ("esp32: power is off until Monday", {"esp32": WHY}),
        (" esp32 :power is off until Monday. ;", {"esp32": WHY}),
        ("esp32s3", {"esp32s3": "the rack esp32s3 is switched off by HIL_RACKS_OFF"}),
    ],
)
def test_the_variable_names_racks_and_reasons(text: str, told: dict[str, str]) -> None:
    """A chip each, with a reason or none; blanks, a full stop and a last semicolon are no matter."""
    assert racks_off(text) == told


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("esp23: x", "'esp23'; did you mean 'esp32'?"), ("esp32, esp32s3", "unknown rack 'esp32, esp32s3'")],
)
def test_what_is_malformed_is_a_configuration_error(text: str, wrong: str) -> None:
    """It names the variable, the entry, and how to write it: no switch fails unseen."""
    with pytest.raises(ConfigError, match=VARIABLE) as caught:
        racks_off(text)
    assert wrong in caught.value.sentence
    assert "reason" in str(caught.value.next_step)


def hil_ci_plan(repository: Repository, off: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    for name in [name for name in os.environ if name.startswith("GITHUB_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(repository.path)
    monkeypatch.setenv(VARIABLE, off)
    monkeypatch.setenv("HIL_CI", ".")
    return CliRunner().invoke(app, ["ci", "plan"], standalone_mode=False)


def plan_without(repository: Repository, off: str, monkeypatch: pytest.MonkeyPatch) -> CiPlan:
    assert hil_ci_plan(repository, off, monkeypatch).exception is None
    return read_plan(repository.path / "plan.json")


def test_no_job_waits_for_a_rack_that_is_off(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leg is left out with the reason, the other rack measures, and alpha is shared by those that do."""
    before = plan_without(repository, "", monkeypatch)
    plan = plan_without(repository, "esp32: power is off until Monday", monkeypatch)
    assert (before.targets_of("rack"), plan.targets_of("rack")) == (("esp32", "esp32s3"), ("esp32s3",))
    assert (plan.leg("rack-esp32").skip, plan.leg("rack-esp32").undecided) == (WHY, True)
    assert plan.legs_of_alpha == before.legs_of_alpha - 1
    assert plan.leg("emulated-esp32c3") == before.leg("emulated-esp32c3")


def test_a_malformed_variable_plans_nothing(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job that plans fails, and says what is wrong."""
    done = hil_ci_plan(repository, "esp23", monkeypatch)
    assert isinstance(done.exception, ConfigError)
    assert not (repository.path / "plan.json").exists()


def test_at_night_all_legs_of_a_rack_are_off(repository: Repository) -> None:
    """The full matrix, the night beside the reference, and the head beside itself."""
    head = repository.git("rev-parse", "HEAD")
    plan = plan_event(repository.path, CiEvent("schedule", "nightly", head), off=racks_off("esp32"))
    off = {leg.name for leg in plan.legs if leg.undecided}
    assert off == {leg.name for leg in plan.legs if leg.target == "esp32"}
    assert off >= {"rack-esp32", "unchanged-esp32"}
    assert {leg["target"] for leg in plan.matrix_of("rack")} == {"esp32s3"}


def test_documentation_alone_is_skipped_as_ever(repository: Repository) -> None:
    """Nobody would have measured it: it stays a pass."""
    head = repository.commit({"firmware/a.c": "1", "docs/a.md": "2"})
    event = dataclasses.replace(read_event({}, repository.path), head=head)
    plan = plan_event(repository.path, event, off=racks_off("esp32; esp32s3"))
    assert not any(leg.undecided for leg in plan.legs)


def test_it_is_undecided_and_blocks_nothing(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither green nor red: the headline names the leg, the check is neutral, the required job passes.

    The other legs pass. The comment says so too, with the reason and without a green mark; the plan comes
    back as it was written, as other jobs read it.
    """
    plan = plan_without(repository, "esp32: power is off until Monday; esp32s3", monkeypatch)
    wanted = ("virtual", "rack-esp32")
    plan = dataclasses.replace(plan, legs=tuple(leg for leg in plan.legs if leg.name in wanted))
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan
    leave_run(tmp_path / "legs" / "virtual", commit=plan.head)
    verdict = conclude(plan, tmp_path / "legs", {"virtual": "success", "rack": "skipped"})
    assert (verdict.headline, verdict.conclusion) == ("UNDECIDED: rack-esp32", "neutral")
    assert verdict.exit_code == ExitCode.PASS
    text = summary.render(plan, verdict, {})
    assert re.search(rf"\| rack-esp32 \| \? undecided \| – \| .*{WHY}", text)
    assert f"- rack-esp32: {WHY}" in text
    page = page_of(plan, verdict, tmp_path / "legs")
    assert page.startswith(f"### ? {markdown('UNDECIDED: rack-esp32')}\n")
    assert "off until Monday" in page
    assert "– skipped" not in page

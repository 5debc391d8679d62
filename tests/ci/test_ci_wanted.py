# SPDX-License-Identifier: Apache-2.0
"""A push that a newer one has taken the place of: no board is taken for it, and it is undecided, no fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hil.base.errors import ExitCode
from hil.ci.excuses import Excuses
from hil.ci.legs import read_leg, unchanged_image, write_skip
from hil.ci.plan import write_plan
from hil.ci.summary import conclude
from hil.ci.wanted import RETARGETED
from hil.cli.app import app
from tests.ci.ci_rig import BASE, HEAD, a_plan, leave_rack_run, leave_run
from tests.ci.github_server import HOME, RUN, TOKEN, State, serve

LEG = "rack-esp32"
NEWER = "d" * 40
SUPERSEDED = f"superseded by the push {NEWER[:12]} of this pull request"
GROUP = "refs/heads/gh-readonly-queue/main/pr-7-ba5e"
GROUP_PATH = "git/ref/heads/gh-readonly-queue/main/pr-7-ba5e"
REFUSED = (403, {}, b'{"message": "Resource not accessible by integration"}')


class Job:
    """A job of the run, and GitHub."""

    def __init__(self, folder: Path, state: State, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state, self.folder = state, folder
        self.plan, self.legs, self.output = folder / "plan.json", folder / "legs", folder / "output"
        self._monkeypatch = monkeypatch
        repository = {"full_name": HOME}
        head, base = (
            {"sha": HEAD, "repo": repository},
            {"sha": BASE, "ref": "feature", "repo": repository},
        )
        self.happens("pull_request", {"number": 7, "head": head, "base": base})
        for name, value in {
            "GITHUB_REPOSITORY": HOME, "GITHUB_RUN_ID": str(RUN), "GITHUB_TOKEN": TOKEN,
            "GITHUB_API_URL": api, "GITHUB_OUTPUT": str(self.output),
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
        monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    def happens(self, name: str, payload: dict[str, object]) -> None:
        (self.folder / "event.json").write_text(json.dumps({name: payload}))
        self._monkeypatch.setenv("GITHUB_EVENT_NAME", name)
        self._monkeypatch.setenv("GITHUB_EVENT_PATH", str(self.folder / "event.json"))

    def ask(self) -> Result:
        return self.hil("wanted", LEG)

    def judge(self, **results: str) -> Result:
        plan = a_plan(["esp32"])
        write_plan(plan, self.plan)
        jobs = {"virtual": "success", "rack": "success", **results}
        needs = json.dumps({job: {"result": how} for job, how in jobs.items()})
        return self.hil("verdict", "--plan", str(self.plan), "--jobs", needs)

    def hil(self, *words: str) -> Result:
        command = ["ci", *words, "--legs", str(self.legs)]
        return CliRunner().invoke(app, command, standalone_mode=False)


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    """The rack's job of an open pull request, whose head is that of the run."""
    state = State(HEAD)
    state.add_run()
    state.add_pull()
    with serve(state) as api:
        yield Job(tmp_path, state, api, monkeypatch)


def _newer_push(job: Job) -> None:
    job.state.pulls[7]["head"]["sha"] = NEWER


def _closed(job: Job) -> None:
    job.state.pulls[7]["state"] = "closed"


def _retargeted(job: Job) -> None:
    job.state.pulls[7]["base"] = {"ref": "main"}


def _group_gone(job: Job) -> None:
    job.happens("merge_group", {"head_sha": HEAD, "base_sha": BASE, "head_ref": GROUP})


def _group_made_anew(job: Job) -> None:
    _group_gone(job)
    job.state.settings[GROUP_PATH] = {"object": {"sha": NEWER}}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_newer_push, SUPERSEDED),
        (_closed, "its pull request was closed"),
        (_retargeted, RETARGETED),
        (_group_gone, "its group of the merge queue is gone"),
        (_group_made_anew, "its group of the merge queue is gone"),
    ],
)
def test_no_board_is_taken_for_what_nobody_waits_for(
    job: Job, change: Callable[[Job], None], reason: str
) -> None:
    """The rest of the job is left out, and the reason recorded where the leg's artefact is made from."""
    change(job)
    assert f"{LEG}: not measured, {reason}" in job.ask().output
    assert job.output.read_text() == "wanted=false\n"
    assert json.loads((job.legs / LEG / "skipped.json").read_text())["reason"] == reason


def _nothing(_job: Job) -> None:
    """Leave the pull request as it is."""


def _group_there(job: Job) -> None:
    _group_gone(job)
    job.state.settings[GROUP_PATH] = {"object": {"sha": HEAD}}


def _no_answer(job: Job) -> None:
    job.state.trouble["GET /repos"] = [REFUSED]


def _half_an_answer(job: Job) -> None:
    job.state.pulls[7]["head"] = None


@pytest.mark.parametrize("change", [_nothing, _group_there, _no_answer, _half_an_answer])
def test_what_somebody_may_wait_for_is_measured(job: Job, change: Callable[[Job], None]) -> None:
    """The head is the run's still, or GitHub does not say: then it is measured."""
    change(job)
    done = job.ask()
    assert done.exception is None
    assert job.output.read_text() == "wanted=true\n"
    assert not job.legs.exists()
    assert ("warning: nobody knows" in done.output) == (change in (_no_answer, _half_an_answer))


def test_without_a_token_it_is_measured(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand there is no run that a push could take the place of."""
    monkeypatch.delenv("GITHUB_TOKEN")
    _newer_push(job)
    job.ask()
    assert job.output.read_text() == "wanted=true\n"
    assert job.state.asked == []


def test_a_verdict_against_another_base_is_not_green(job: Job) -> None:
    """It is of the commit that the next run judges too, and could take the place of that one's."""
    leave_run(job.legs / "virtual")
    _retargeted(job)
    job.ask()
    assert job.judge().return_value == ExitCode.UNDECIDED
    job.plan.unlink()
    assert job.hil("verdict", "--plan", str(job.plan)).return_value == ExitCode.UNDECIDED


def test_a_superseded_push_is_undecided(job: Job) -> None:
    """Neither green nor a rig that failed, with the push that took its place; GitHub says so itself."""
    leave_run(job.legs / "virtual")
    _newer_push(job)
    job.ask()
    done = job.judge()
    assert done.return_value == 0
    assert f"# UNDECIDED: {LEG}\n" in done.output
    assert f"| ? undecided | – | Not measured: {SUPERSEDED}. |" in done.output
    verdict = conclude(a_plan(["esp32"]), job.legs, {}, excuses=Excuses(SUPERSEDED))
    assert (verdict.conclusion, verdict.exit_code) == ("neutral", ExitCode.PASS)


def test_what_a_newer_push_cancelled_is_undecided_too(job: Job) -> None:
    """Builds end cancelled, and their legs leave nothing at all; a job that failed otherwise is a finding."""
    leave_run(job.legs / "virtual")
    _newer_push(job)
    assert job.judge(build="cancelled", rack="skipped").return_value == 0
    done = job.judge(build="failure", rack="skipped")
    assert done.return_value == ExitCode.RIG
    assert "the job build ended with 'failure'" in done.output


@pytest.mark.parametrize("change", [_nothing, _no_answer])
def test_a_leg_that_calls_itself_superseded_blocks(job: Job, change: Callable[[Job], None]) -> None:
    """Where GitHub says otherwise or nothing, it decides nothing by its own word, and does not pass."""
    leave_run(job.legs / "virtual")
    write_skip(job.legs, LEG, SUPERSEDED)
    change(job)
    done = job.judge()
    assert done.return_value == ExitCode.UNDECIDED
    assert f"# UNDECIDED, WHICH ITS POLICY FAILS: {LEG}\n" in done.output


def test_what_was_measured_counts_in_spite_of_a_newer_push(job: Job) -> None:
    """A leg that had begun is judged as ever, and one with the narrowing's reason keeps that."""
    plan = a_plan(["esp32", "esp32c3"])
    leave_run(job.legs / "virtual")
    leave_rack_run(job.legs / LEG)
    write_skip(job.legs, "rack-esp32c3", unchanged_image(plan, plan.leg("rack-esp32c3")))
    assert conclude(plan, job.legs, {}, excuses=Excuses(SUPERSEDED)) == conclude(plan, job.legs, {})


def test_a_chip_that_does_not_build_is_not_excused(job: Job) -> None:
    """That its rack was silent as well makes the firmware no better."""
    leave_run(job.legs / "virtual")
    results = {"virtual": "success", "build": "failure", "rack": "cancelled"}
    verdict = conclude(
        a_plan(["esp32"]), job.legs, results, excuses=Excuses(legs={LEG: "the rack is silent"})
    )
    assert verdict.exit_code == ExitCode.RIG
    assert any("the job build ended with 'failure'" in line for line in verdict.findings)


@pytest.mark.parametrize("leg", ["virtual", "compare"])
def test_only_a_rack_is_superseded_by_its_own_record(tmp_path: Path, leg: str) -> None:
    """GitHub's own machines ask nobody: a record of theirs is none of ours."""
    plan = a_plan(["esp32"], compare=True)
    write_skip(tmp_path, leg, SUPERSEDED)
    assert read_leg(tmp_path / leg, plan.leg(leg), plan).exit_code == ExitCode.RIG


def test_without_a_plan_a_newer_push_is_told(job: Job) -> None:
    """Its plan was cancelled: nothing failed."""
    _newer_push(job)
    done = job.hil("verdict", "--plan", str(job.plan))
    assert done.return_value == 0
    assert f"# UNDECIDED, AND NOT WAITED FOR: {SUPERSEDED}" in done.output
    job.state.pulls[7]["head"]["sha"] = HEAD
    assert job.hil("verdict", "--plan", str(job.plan)).return_value == ExitCode.RIG

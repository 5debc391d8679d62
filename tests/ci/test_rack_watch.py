# SPDX-License-Identifier: Apache-2.0
"""A rack that does not answer: an issue for the lab, an end to waiting, an undecided verdict."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hil.base.errors import ConfigError, ExitCode
from hil.base.untrusted import markdown
from hil.ci.comment import comment
from hil.ci.github import BOT, GitHub
from hil.ci.legs import unchanged_image, write_skip
from hil.ci.plan import read_plan, write_plan
from hil.ci.rack_issues import LABEL, open_issues
from hil.ci.rack_watch import Seen, watch
from hil.cli.app import app
from tests.ci.ci_rig import BASE, HEAD, Repository, a_plan, leave_run, limits_text, targets_file
from tests.ci.comment_rig import FILES, kept, leave_comparison, leave_virtual, own_repository
from tests.ci.github_server import FORK, HOME, RUN, TOKEN, State, serve
from tests.ci.test_ci_comment import zipped
from tests.ci.test_plan_imports import ONLY_LOCKED
from tests.lab import ROOT

NOW = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
RACK = ("self-hosted", "hil", "esp32")
PR, OTHER_RUN, PROBE = RUN, RUN + 1, RUN + 2


def at(minutes_ago: float) -> str:
    return f"{NOW - timedelta(minutes=minutes_ago):%Y-%m-%dT%H:%M:%SZ}"


def a_job(
    status: str, minutes: float, *labels: str, ended: float | None = None, runner: int = 0
) -> dict[str, Any]:
    how = (
        "cancelled" if status == "completed" and not runner else "success" if status == "completed" else None
    )
    over = {"completed_at": at(ended)} if ended is not None else {}
    return {"status": status, "conclusion": how, "labels": list(labels), "runner_id": runner or None,
            "created_at": at(minutes), **over}  # fmt: skip


PLANNED = a_job("completed", 95, "ubuntu-24.04", ended=94, runner=5)


class Lab:
    """A repository with runs of pr.yml and others, and what a look at it does."""

    def __init__(self, state: State, api: str) -> None:
        self.state, self.api = state, api

    def add_run(self, run_id: int, *jobs: dict[str, Any], path: str = "pr.yml", **changes: Any) -> None:
        facts = {
            "status": "in_progress",
            "conclusion": None,
            "created_at": at(100),
            "updated_at": at(0),
            "path": f".github/workflows/{path}",
            "head_repository": {"full_name": HOME},
            "actor": {"login": "somebody"},
            "triggering_actor": {"login": "somebody"},
        }
        self.state.add_run(run_id, **{**facts, **changes})
        self.state.jobs_by_run[run_id] = list(jobs)

    def look(self, *off: str, patience: timedelta = HOUR, owner: str = "") -> Seen:
        github = GitHub(HOME, TOKEN, self.api, wait=lambda _seconds: None)
        return watch(github, NOW, patience, off, owner)

    @property
    def open_numbers(self) -> list[int]:
        return [one["number"] for one in self.state.issues if one["state"] == "open"]


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A run of pr.yml whose last job has waited 90 minutes for the esp32."""
    state = State(HEAD)
    with serve(state) as api:
        made = Lab(state, api)
        made.add_run(PR, PLANNED, a_job("queued", 90, *RACK))
        yield made


def test_a_silent_rack_is_told_once_and_nobody_waits(lab: Lab) -> None:
    """An issue with the label, assigned to the lab's owner, and the run that waits for nothing else ends."""
    seen = lab.look(owner="keeper")
    assert (list(seen.silent), seen.unprobed) == (["esp32"], ("esp32",))
    assert lab.state.cancelled == [PR]
    (issue,) = lab.state.issues
    assert (issue["title"], issue["assignees"]) == ("Rack esp32 does not answer", ["keeper"])
    assert issue["labels"] == [{"name": LABEL}]
    assert "since 2026-11-20 00:30 UTC. Jobs that wait for it: 1." in issue["body"]
    lab.look(owner="keeper")
    assert len(lab.state.issues) == 1


def test_its_issue_is_brought_up_to_date(lab: Lab) -> None:
    """More jobs wait: the text says so, with the moment since when the rack is silent."""
    lab.look()
    lab.add_run(PR, PLANNED, a_job("completed", 90, *RACK, ended=0), status="completed")
    lab.add_run(OTHER_RUN, a_job("queued", 70, *RACK), a_job("queued", 5, *RACK))
    assert any("brought up to date" in line for line in lab.look().done)
    assert "since 2026-11-20 00:30 UTC. Jobs that wait for it: 2." in lab.state.issues[0]["body"]


def test_without_an_owner_nobody_is_assigned(lab: Lab) -> None:
    """GitHub refuses an issue that is assigned to nobody's name."""
    lab.look()
    assert "assignees" not in lab.state.issues[0]


@pytest.mark.parametrize(
    "other",
    [
        (a_job("in_progress", 80, *RACK, runner=9), "baseline.yml", "in_progress"),
        (a_job("completed", 95, *RACK, ended=20, runner=9), "pr.yml", "completed"),
        (a_job("completed", 300, *RACK, ended=59, runner=9), "rack-health.yml", "completed"),
    ],
    ids=["measures", "ended-one", "of-another-workflow"],
)
def test_a_busy_rack_is_left_alone(lab: Lab, other: tuple[dict[str, Any], str, str]) -> None:
    """A session of baselines takes a night; whoever waits behind it waits for a rack that lives."""
    job, path, status = other
    lab.add_run(OTHER_RUN, job, path=path, status=status)
    seen = lab.look()
    assert (seen.silent, lab.state.cancelled, lab.state.issues) == ({}, [], [])


def test_nothing_is_cancelled_that_has_more_to_do(lab: Lab) -> None:
    """Another rack measures, a job waits for an approval, or has not waited long enough: it goes on."""
    for number, job in enumerate(
        (
            a_job("in_progress", 90, "self-hosted", "hil", "esp32s3", runner=3),
            a_job("in_progress", 90, "ubuntu-24.04", runner=4),
            a_job("waiting", 90, *RACK),
            a_job("queued", 20, *RACK),
        )
    ):
        lab.add_run(OTHER_RUN + number, a_job("queued", 90, *RACK), job)
    assert list(lab.look().silent) == ["esp32"]
    assert lab.state.cancelled == [PR]


def test_only_pull_requests_and_nights_are_cancelled(lab: Lab) -> None:
    """Who starts a baseline by hand may end it by hand."""
    lab.add_run(OTHER_RUN, a_job("queued", 90, *RACK), path="baseline.yml")
    lab.add_run(PROBE, a_job("queued", 90, *RACK), path="nightly.yml@refs/heads/main")
    lab.look()
    assert lab.state.cancelled == [PR, PROBE]


@pytest.mark.parametrize(
    "facts",
    [
        {"head_repository": {"full_name": FORK}},
        {"head_repository": None},
        {"actor": {"login": "dependabot[bot]"}},
    ],
    ids=["fork", "deleted", "dependabot"],
)
def test_a_job_that_waited_for_approval_is_no_evidence(lab: Lab, facts: dict[str, Any]) -> None:
    """Its age has the approval in it. Where the rack is silent by others' jobs, it is ended with them."""
    lab.add_run(PR, a_job("queued", 600, *RACK), **facts)
    assert lab.look().silent == {}
    lab.add_run(OTHER_RUN, a_job("queued", 61, *RACK))
    lab.look()
    assert lab.state.cancelled == [PR, OTHER_RUN]


def test_a_forks_run_waits_for_the_default_at_least(lab: Lab) -> None:
    """Its verdict gets no variables: ended after 20 minutes, it would be no verdict."""
    lab.add_run(PR, a_job("queued", 50, *RACK), head_repository={"full_name": FORK})
    lab.add_run(OTHER_RUN, a_job("queued", 25, *RACK))
    lab.look(patience=timedelta(minutes=20))
    assert lab.state.cancelled == [OTHER_RUN]


def test_a_rack_that_is_switched_off_is_not_waited_for(lab: Lab) -> None:
    """A run planned before goes on without it; no issue is written on what somebody did on purpose."""
    seen = lab.look("esp32")
    assert (lab.state.cancelled, lab.state.issues, seen.silent) == ([PR], [], {})


def test_the_issue_is_closed_when_the_rack_answers(lab: Lab) -> None:
    """The probe waits on it; when that has run, the next look closes the issue, and probes no more."""
    lab.state.now_utc = at(30)
    lab.look()
    lab.add_run(PR, PLANNED, status="completed")
    lab.add_run(PROBE, a_job("queued", 29, *RACK), path="rack-watch.yml")
    seen = lab.look()
    assert (list(seen.silent), seen.unprobed) == (["esp32"], ())
    assert lab.open_numbers == [300]
    lab.add_run(
        PROBE, a_job("completed", 29, *RACK, ended=1, runner=9), path="rack-watch.yml", status="completed"
    )
    seen = lab.look()
    assert (seen.silent, lab.open_numbers) == ({}, [])
    assert seen.done == ("rack esp32: it answers again, issue #300 closed",)


def test_a_sign_of_life_before_the_issue_closes_nothing(lab: Lab) -> None:
    """The rack ended a job, then fell silent."""
    lab.state.now_utc = at(30)
    lab.add_run(
        OTHER_RUN, a_job("completed", 200, *RACK, ended=95, runner=9), status="completed", updated_at=at(1)
    )
    lab.look()
    lab.add_run(PR, PLANNED, status="completed")
    assert list(lab.look().silent) == ["esp32"]
    assert lab.open_numbers == [300]


def test_a_run_that_ends_by_itself_is_no_error(lab: Lab) -> None:
    """Between the look and the cancelling."""
    lab.state.trouble[f"POST /repos/{HOME}/actions/runs/{PR}/cancel"] = [
        (409, {}, b'{"message": "completed"}')
    ]
    assert f"run {PR}: it ended by itself" in lab.look().done


def test_a_quiet_look_asks_little(lab: Lab) -> None:
    """Nobody has waited long: the jobs of runs that have ended are not read."""
    lab.add_run(PR, a_job("queued", 10, *RACK))
    lab.add_run(OTHER_RUN, PLANNED, status="completed")
    lab.look()
    assert not any(f"runs/{OTHER_RUN}/" in path for _, path in lab.state.asked)


@pytest.mark.parametrize("author", [BOT, "somebody"])
def test_only_an_issue_of_a_workflow_counts(lab: Lab, author: str) -> None:
    """Whoever may set the label could otherwise take a rack away by an issue of their own."""
    lab.look()
    lab.state.issues[0]["user"]["login"] = author
    found = open_issues(GitHub(HOME, TOKEN, lab.api))
    assert set(found) == ({"esp32"} if author == BOT else set())


@pytest.fixture
def job(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A job of the run PR on GitHub; the issue is open."""
    monkeypatch.chdir(tmp_path)
    lab.state.add_pull()
    lab.look()
    repository = {"full_name": HOME}
    head, base = {"sha": HEAD, "repo": repository}, {"sha": BASE, "repo": repository}
    Path("event.json").write_text(json.dumps({"pull_request": {"number": 7, "head": head, "base": base}}))
    for name, value in {
        "GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": "event.json", "GITHUB_REPOSITORY": HOME,
        "GITHUB_RUN_ID": str(PR), "GITHUB_RUN_ATTEMPT": "1", "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": lab.api,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "HIL_RACK_PATIENCE_MINUTES"):
        monkeypatch.delenv(name, raising=False)
    return lab


def judge() -> Result:
    leave_run(Path("legs/virtual"))
    write_plan(a_plan(["esp32"]), Path("plan.json"))
    needs = json.dumps({"virtual": {"result": "success"}, "rack": {"result": "cancelled"}})
    command = ["ci", "verdict", "--plan", "plan.json", "--legs", "legs", "--jobs", needs]
    return CliRunner().invoke(app, command, standalone_mode=False)


@pytest.mark.slow
def test_the_verdict_of_what_waited_in_vain_is_undecided(job: Lab) -> None:
    """Asked after the run was cancelled, GitHub says that no runner came: nothing failed, nothing passed."""
    job.state.jobs_by_run[PR] = [PLANNED, a_job("completed", 64.5, *RACK, ended=0)]
    done = judge()
    assert done.return_value == 0, done.output
    assert "# UNDECIDED: rack-esp32\n" in done.output
    assert "Not measured: the rack esp32 has not answered for 64 minutes." in done.output


@pytest.mark.parametrize(
    "last",
    [
        a_job("completed", 40, *RACK, ended=0),
        {**a_job("completed", 90, *RACK, ended=0, runner=9), "conclusion": "cancelled"},
    ],
    ids=["sooner", "while-it-measured"],
)
def test_what_somebody_cancelled_has_no_verdict(job: Lab, last: dict[str, Any]) -> None:
    """It is no word on the rack."""
    job.state.jobs_by_run[PR] = [PLANNED, last]
    assert judge().return_value == ExitCode.RIG


def test_a_github_that_does_not_answer_excuses_nothing(job: Lab) -> None:
    """No verdict, rather than a leg that nobody accounts for."""
    job.state.trouble[f"runs/{PR}/attempts"] = [(403, {}, b"{}")]
    done = judge()
    assert done.return_value == ExitCode.RIG
    assert "warning: nobody knows why a leg left nothing" in done.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("waited", "said", "conclusion"),
    [
        (64, f"? {markdown('UNDECIDED: rack-esp32')}", "neutral"),
        (30, "? No verdict could be read", "failure"),
    ],
    ids=["silent", "cancelled-sooner"],
)
def test_the_comment_asks_github_itself(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waited: int, said: str, conclusion: str
) -> None:
    """From the default branch, by the same jobs; where these tell otherwise, there is no verdict."""
    own = own_repository()
    monkeypatch.chdir(own.path)
    base = own.commit(targets_file((), ["esp32"]))
    plan = dataclasses.replace(a_plan(["esp32"], files=FILES, compare=True, emulated=True), base=base)
    lab.state.base, lab.state.files = base, list(FILES)
    lab.state.limits = {"publish.yaml": limits_text().encode()}
    write_plan(plan, tmp_path / "plan.json")
    emulated = plan.leg("emulated-esp32c3")
    write_skip(tmp_path / "legs", emulated.name, unchanged_image(plan, emulated))
    leave_virtual(tmp_path / "legs")
    leave_comparison(tmp_path / "legs")
    lab.state.add_run(RUN, conclusion="cancelled")
    lab.state.add_pull()
    lab.state.set_jobs("success", **{"Rack esp32": "cancelled"})
    del lab.state.jobs_by_run[RUN]
    (rack,) = [one for one in lab.state.jobs if one["name"] == "Rack esp32"]
    rack |= a_job("completed", waited, *RACK, ended=0)
    lab.state.add_artefact(zipped(kept(tmp_path)))
    comment(GitHub(HOME, TOKEN, lab.api), RUN)
    (body,) = [one["body"] for one in lab.state.comments[7]]
    assert body.splitlines()[1] == f"### {said}"
    (check,) = lab.state.checks
    assert check["conclusion"] == conclusion


def plan_here(job: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    repository = Repository(tmp_path / "repository")
    base = repository.commit({**targets_file((), ["esp32", "esp32s3"]), "firmware/a.c": "1"})
    repository.git("checkout", "--quiet", "-b", "change")
    head = repository.commit({"firmware/a.c": "2"})
    event = json.loads(Path("event.json").read_text())
    event["pull_request"]["head"]["sha"], event["pull_request"]["base"]["sha"] = head, base
    (tmp_path / "event.json").write_text(json.dumps(event))
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(tmp_path / "event.json"))
    monkeypatch.chdir(repository.path)
    return CliRunner().invoke(app, ["ci", "plan", "--plan", "plan.json"], standalone_mode=False)


@pytest.mark.slow
def test_no_later_plan_waits_for_it(job: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The open issue is the reason; other racks measure."""
    assert plan_here(job, tmp_path, monkeypatch).exception is None
    plan = read_plan(Path("plan.json"))
    assert plan.racks == ("esp32s3",)
    assert (
        plan.leg("rack-esp32").skip
        == "the rack esp32 does not answer since 2026-11-20 00:30 UTC (issue #300)"
    )
    assert plan.leg("rack-esp32").rack_off


def test_a_plan_without_an_answer_waits_for_all(
    job: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job whose token may not read issues, say: measured as ever, with a warning."""
    job.state.trouble["GET /repos/example/hil/issues"] = [(403, {}, b"{}")]
    done = plan_here(job, tmp_path, monkeypatch)
    assert "warning: nobody knows which racks answer" in done.output
    assert read_plan(Path("plan.json")).racks == ("esp32", "esp32s3")


def test_the_command_says_what_it_did(job: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output is the matrix of probes. By today's clock the runs of this test are long past."""
    monkeypatch.setenv("GITHUB_OUTPUT", "output")
    done = CliRunner().invoke(app, ["ci", "racks"], standalone_mode=False)
    assert done.exception is None, done.output
    assert Path("output").read_text() == 'unprobed=["esp32"]\n'  # by the issue, which is open
    monkeypatch.delenv("GITHUB_TOKEN")
    done = CliRunner().invoke(app, ["ci", "racks"], standalone_mode=False)
    assert isinstance(done.exception, ConfigError)


@pytest.mark.slow
def test_a_watch_installs_what_a_plan_does() -> None:
    """It runs a hundred times a day, so `purpose: plan` has to do: the packages of requirements-plan.lock."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "HIL_"))}
    argv = [sys.executable, "-c", ONLY_LOCKED, str(ROOT / "requirements-plan.lock"), "hil", "ci", "racks"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, env=kept, check=False, timeout=60)
    assert done.returncode == ExitCode.CONFIG
    assert "GITHUB_TOKEN is not set" in done.stdout + done.stderr

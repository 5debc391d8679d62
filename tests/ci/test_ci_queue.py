# SPDX-License-Identifier: Apache-2.0
"""A merge group: what was measured of its pull request is handed on, the rest measured in time."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hil.base.errors import ConfigError, ExitCode
from hil.ci.artefact import keep
from hil.ci.conclusion import conclude
from hil.ci.event import Event
from hil.ci.github import GitHub
from hil.ci.plan import CiPlan, write_plan
from hil.ci.queue import MINUTES, RACK_MINUTES, in_queue, minutes_of
from hil.cli.app import app
from tests.ci.ci_rig import Repository, a_plan, leave_run, write_limits
from tests.ci.comment_rig import leave_comparison, zipped
from tests.ci.github_server import HOME, RUN, TOKEN, Answer, State, serve

URL = f"https://github.com/{HOME}/actions/runs/{RUN}"
BEFORE = f"measured as the head of pull request 7: {URL}"
NO_ANSWER: Answer = (500, {}, b"")


class Queue:
    """main, a pull request of one firmware change that pr.yml has measured, and GitHub."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.repository = folder, Repository(folder / "repository")
        self.base = self.repository.commit({"firmware/a.c": "1", "docs/a.md": "1"})
        self.repository.git("checkout", "--quiet", "-b", "change")
        self.head = self.repository.commit({"firmware/a.c": "2"})
        self.repository.git("checkout", "--quiet", "main")
        self.state = State(self.head)
        self.legs = folder / "legs"
        leave_run(self.legs / "virtual", commit=self.head)
        leave_run(self.legs / "compare", commit=self.head)
        self.api = ""

    def measured(self, verdict: str = "success", skip: str = "", **others: str) -> None:
        """Let the run of pr.yml have ended so, with what lies in ``legs``; its plan skips all by ``skip``."""
        plan = self.plan(self.head, self.base)
        if skip:
            legs = tuple(dataclasses.replace(leg, skip=skip) for leg in plan.legs)
            plan = dataclasses.replace(plan, legs=legs, changes=("documentation",))
        write_plan(plan, self.folder / "plan.json")
        kept = self.folder / "verdict"
        assert keep(self.folder / "plan.json", self.legs, kept, write_limits(self.folder)) == ()
        self.state.add_run()
        self.state.set_jobs(verdict, **others)
        self.state.add_artefact(zipped(kept))
        self.state.add_pull()

    def plan(self, head: str, base: str, racks: tuple[str, ...] = ()) -> CiPlan:
        return dataclasses.replace(a_plan(racks, compare=True), head=head, base=base)

    def group(self, files: dict[str, str] | None = None, *, squashed: bool = False) -> Event:
        """Merge the pull request onto main, which ``files`` have come to since."""
        base = self.repository.commit(files) if files else self.base
        how = ("--squash",) if squashed else ("--no-ff", "--no-edit")
        self.repository.git("checkout", "--quiet", "--detach")
        self.repository.git("merge", "--quiet", *how, "change")
        if squashed:
            self.repository.git("commit", "--quiet", "--message", "Squashed")
        head = self.repository.git("rev-parse", "HEAD")
        assert head != self.head
        ref = f"refs/heads/gh-readonly-queue/main/pr-7-{base}"
        return Event("merge_group", "pr", head, base, HOME, group_ref=ref)

    def queued(
        self, event: Event, *, racks: tuple[str, ...] = (), minutes: int = MINUTES
    ) -> tuple[CiPlan, str]:
        plan = self.plan(event.head, event.base_tip, racks)
        github = GitHub(HOME, TOKEN, self.api, wait=lambda _seconds: None)
        return in_queue(plan, event, self.repository.path, github, minutes=minutes)

    def skips(self, event: Event) -> dict[str, str]:
        plan, _why = self.queued(event)
        return {leg.name: leg.skip for leg in plan.legs if leg.name in ("virtual", "compare")}


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    made = Queue(tmp_path)
    with serve(made.state) as api:
        made.api = api
        yield made


HANDED_ON = {"virtual": BEFORE, "compare": BEFORE}


def test_a_group_of_what_was_measured_is_not_measured_again(queue: Queue, tmp_path: Path) -> None:
    """Its content is the pull request's: nothing is built, and the verdict says where it was measured."""
    queue.measured()
    event = queue.group()
    plan, why = queue.queued(event)
    assert (why, plan.build) == ("", ())
    assert queue.skips(event) == HANDED_ON
    assert (plan.outputs()["virtual"], plan.outputs()["build"]) == ("[]", "[]")
    verdict = conclude(plan, tmp_path / "none", {})
    assert (verdict.exit_code, verdict.conclusion) == (ExitCode.PASS, "success")
    assert f"Not measured: {BEFORE}." in [leg.sentence for leg in verdict.legs]


def test_a_plan_that_left_all_out_is_no_proof(queue: Queue) -> None:
    """It says that only documentation is edited, and firmware is: the group is measured."""
    shutil.rmtree(queue.legs)
    queue.legs.mkdir()
    queue.measured(skip="only documentation changed (docs/a.md)")
    event = queue.group()
    assert set(queue.skips(event).values()) == {""}
    assert "did not measure virtual: only documentation changed" in queue.queued(event)[1]


def test_documentation_that_came_to_main_changes_nothing(queue: Queue) -> None:
    """What differs from the measured head is documentation alone, however the queue merges."""
    queue.measured()
    assert queue.skips(queue.group({"docs/a.md": "2"})) == HANDED_ON


def test_a_squashed_group_is_the_same(queue: Queue) -> None:
    """Its commit does not lead to the pull request's head, which is compared by content."""
    queue.measured()
    assert queue.skips(queue.group(squashed=True)) == HANDED_ON


def test_a_head_that_is_not_here_is_fetched(queue: Queue, tmp_path: Path) -> None:
    """A checkout of a squashed group has no pull request in it; one that is not to be had is measured."""
    queue.measured()
    event = queue.group(squashed=True)
    queue.repository.git("branch", "group", event.head)
    clone = Repository(tmp_path / "clone")
    clone.git("remote", "add", "origin", str(queue.repository.path))
    clone.git("fetch", "--quiet", "origin", "group")
    queue.repository = clone
    assert queue.skips(event) == HANDED_ON
    alone = Repository(tmp_path / "alone")
    alone.git("fetch", "--quiet", str(clone.path), event.head)
    queue.repository = alone
    _plan, why = queue.queued(event)
    assert "cannot be compared" in why


@pytest.mark.parametrize("path", ["firmware/b.c", "thresholds/publish.yaml", "hil/a.py"])
def test_a_main_that_moved_is_measured_with_it(queue: Queue, path: str) -> None:
    """Firmware, limits or harness that came to main were not measured with this change."""
    queue.measured()
    event = queue.group({path: "2"})
    _plan, why = queue.queued(event)
    assert "the head of pull request 7 and the group differ in" in why
    assert queue.skips(event) == {"virtual": "", "compare": ""}


def test_what_was_undecided_stays_undecided(queue: Queue, tmp_path: Path) -> None:
    """A neutral leg is handed on as one: the required check passes it and is no green."""
    path = next(queue.legs.glob("compare/*/verdicts.json"))
    told = {"outcome": "undecided", "exit_code": 4, "on_undecided": "neutral"}
    path.write_text(json.dumps({**json.loads(path.read_text()), **told}))
    queue.measured()
    plan, _why = queue.queued(queue.group())
    assert plan.leg("compare").skip == f"measured as the head of pull request 7, undecided: {URL}"
    verdict = conclude(plan, tmp_path / "none", {})
    assert (verdict.exit_code, verdict.conclusion) == (ExitCode.PASS, "neutral")
    assert verdict.headline == "UNDECIDED: compare"


def test_an_accepted_regression_stays_accepted(queue: Queue, tmp_path: Path) -> None:
    """The owner's label is asked for again; the group is neutral, and without it measured."""
    shutil.rmtree(queue.legs / "compare")
    leave_comparison(queue.legs, effect=0.18)
    (path,) = queue.legs.glob("compare/*/run.json")
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "git": {"commit": queue.head, "dirty": False}}))
    queue.measured(**{"hil / Virtual rack compare": "failure"})
    event = queue.group()
    _plan, why = queue.queued(event)
    assert "comes to no pass, though its required check succeeded" in why
    queue.state.permissions["olga"] = "write"
    queue.state.set_label("hil:accept", "olga", "2026-11-20T02:00:00Z")
    queue.state.add_comment("hil:accept: we want it", "olga")
    plan, _why = queue.queued(event)
    assert plan.leg("compare").skip == f"measured as the head of pull request 7, accepted: {URL}"
    assert conclude(plan, tmp_path / "none", {}).conclusion == "neutral"


def test_only_the_required_job_of_pr_yml_is_a_proof(queue: Queue) -> None:
    """Another workflow, event or commit and a job that failed hand nothing on; no check is read."""
    queue.measured("failure")
    event = queue.group()
    assert "the required check of" in queue.queued(event)[1]
    queue.state.set_jobs("success")
    assert queue.queued(event)[1] == ""
    wrongs: tuple[dict[str, Any], ...] = (
        {"path": ".github/workflows/mine.yml"}, {"event": "push"}, {"head_sha": "d" * 40},
    )  # fmt: skip
    for wrong in wrongs:
        queue.state.add_run(**wrong)
        assert "no run of .github/workflows/pr.yml has measured" in queue.queued(event)[1]
    queue.state.add_run(status="in_progress")
    assert "has not ended yet" in queue.queued(event)[1]
    assert not [path for _method, path in queue.state.asked if "check" in path or "status" in path]


def test_a_newer_push_is_not_what_was_measured(queue: Queue) -> None:
    """The group is of an older head than the pull request has now: it is measured."""
    queue.measured()
    event = queue.group()
    queue.repository.git("checkout", "--quiet", "change")
    queue.state.pulls[7]["head"]["sha"] = queue.repository.commit({"firmware/a.c": "3"})
    assert "differ in firmware" in queue.queued(event)[1]


def test_a_leg_that_was_not_measured_is(queue: Queue) -> None:
    """A rack that was registered since has no verdict of the pull request: all legs are measured."""
    queue.measured()
    plan, why = queue.queued(queue.group(), racks=("esp32",), minutes=RACK_MINUTES)
    assert "pull request 7 measured no leg rack-esp32" in why
    assert not any(leg.skip for leg in plan.legs)


def test_another_suite_was_not_measured(queue: Queue) -> None:
    """A leg of the same name, but of other cases: the group is measured."""
    queue.measured()
    event = queue.group()
    plan = queue.plan(event.head, event.base_tip)
    legs = tuple(dataclasses.replace(leg, suite="nightly") for leg in plan.legs)
    github = GitHub(HOME, TOKEN, queue.api, wait=lambda _seconds: None)
    found, why = in_queue(dataclasses.replace(plan, legs=legs), event, queue.repository.path, github)
    assert "measured no leg virtual of suite nightly" in why
    assert (found.leg("virtual").skip, found.leg("compare").skip) == ("", "")


def test_racks_are_measured_where_they_fit_the_timeout(queue: Queue, tmp_path: Path) -> None:
    """With less time the group has its virtual legs, and the rack is undecided, not green."""
    event = queue.group({"firmware/b.c": "2"})
    plan, _why = queue.queued(event, racks=("esp32",))
    assert (plan.leg("virtual").skip, plan.leg("compare").skip) == ("", "")
    assert plan.leg("rack-esp32").skip.startswith(f"a rack may take {RACK_MINUTES} min")
    leave_run(tmp_path / "of-group" / "virtual", commit=event.head)
    leave_run(tmp_path / "of-group" / "compare", commit=event.head)
    verdict = conclude(plan, tmp_path / "of-group", {})
    assert (verdict.conclusion, verdict.headline) == ("neutral", "UNDECIDED: rack-esp32")
    plan, _why = queue.queued(event, racks=("esp32",), minutes=RACK_MINUTES)
    assert plan.leg("rack-esp32").skip == ""


def test_without_an_answer_the_group_is_measured(queue: Queue) -> None:
    """GitHub that is down, or a branch that names no pull request, never makes a pass."""
    queue.measured()
    event = queue.group()
    queue.state.trouble["pulls/7"] = [NO_ANSWER] * 10
    plan, why = queue.queued(event)
    assert why
    assert not plan.leg("virtual").skip
    _plan, why = queue.queued(dataclasses.replace(event, group_ref="refs/heads/main"))
    assert why == "its branch names no pull request"


def test_minutes_of_the_queue() -> None:
    """A variable that is no number is named with the way out; without one the default holds."""
    assert (minutes_of(""), minutes_of("90")) == (MINUTES, 90)
    with pytest.raises(ConfigError, match="HIL_QUEUE_MINUTES 'an hour' is no number"):
        minutes_of("an hour")


def test_the_plan_of_a_group_by_the_command(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """`hil ci plan` says why a group is measured; other events are planned as ever."""
    event = queue.group({"firmware/b.c": "2"})
    queue.measured()
    payload = {"head_sha": event.head, "base_sha": event.base_tip, "head_ref": event.group_ref}
    (queue.folder / "event.json").write_text(json.dumps({"merge_group": payload}))
    for name, value in {
        "GITHUB_EVENT_NAME": "merge_group", "GITHUB_EVENT_PATH": str(queue.folder / "event.json"),
        "GITHUB_REPOSITORY": HOME, "GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": queue.api,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(queue.repository.path)
    done = plan_by_hand(queue)
    assert "the group is measured: the head of pull request 7 and the group differ in firmware" in done.output
    monkeypatch.setenv("HIL_QUEUE_MINUTES", "soon")
    with pytest.raises(ConfigError, match="'soon'"):
        plan_by_hand(queue)


def plan_by_hand(queue: Queue) -> Result:
    words = ["ci", "plan", "--plan", str(queue.folder / "of-group.json")]
    return CliRunner().invoke(app, words, standalone_mode=False, catch_exceptions=False)

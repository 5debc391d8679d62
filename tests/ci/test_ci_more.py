# SPDX-License-Identifier: Apache-2.0
"""The label hil:more: a rack's leg that is run again goes on from what its earlier attempt measured."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hil.base.errors import ConfigError, RigError
from hil.ci.legs import read_leg
from hil.ci.more import LABEL
from hil.cli.app import app
from hil.gate import judge
from hil.model import Fault
from hil.store import RunDirectory
from tests.ci.ci_rig import BASE, BUNDLE, COMPARED, HEAD, a_plan, leave_run
from tests.ci.comment_rig import compared
from tests.ci.github_server import HOME, RUN, TOKEN, State, serve
from tests.gate import compare_records
from tests.make_records import RUN_ID

LEG = "rack-esp32"
LATER, EARLIER = "2026-11-20T01:20:00Z", "2026-11-20T00:59:59Z"  # the run began at 01:00
MORE = {"boots": 6, "boards": ["physical-1"], "minutes": 9}


def leave_undecided(folder: Path, target: str = "esp32") -> RunDirectory:
    """Leave a run whose boots differ too much to decide, and say in it what more boots would mean."""
    entries, verdict = compared(0.07, 0.0, 0.25)
    assert verdict.outcome == "undecided"
    directory = leave_run(folder, entries, target=target, origin=BUNDLE, verdict=verdict)
    directory.write_info({**directory.read_info(), "more": MORE})
    return directory


class Job:
    """The job of a rack in its second attempt: what it fetched, and GitHub."""

    def __init__(self, folder: Path, state: State, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state, self.out, self.before = state, folder / "out", folder / "before"
        self.earlier = leave_undecided(self.before / LEG)
        self.output = folder / "output"
        repository = {"full_name": HOME}
        head, base = {"sha": HEAD, "repo": {"full_name": "somebody/hil"}}, {"sha": BASE, "repo": repository}
        event = {"pull_request": {"number": 7, "head": head, "base": base}}
        (folder / "event.json").write_text(json.dumps(event))
        for name, value in {
            "GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_REPOSITORY": HOME, "GITHUB_RUN_ID": str(RUN), "GITHUB_TOKEN": TOKEN,
            "GITHUB_API_URL": api, "GITHUB_OUTPUT": str(self.output),
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)

    def ask(self) -> Result:
        command = ["ci", "more", LEG, "--before", str(self.before), "--out", str(self.out)]
        return CliRunner().invoke(app, command, standalone_mode=False)

    @property
    def is_anew(self) -> bool:
        """Whether the job was told to measure anew, and given nothing."""
        return self.output.read_text() == "run=\n" and not self.out.exists()


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Job]:
    """A leg that ended undecided, and an owner who has set the label since."""
    state = State(HEAD)
    state.add_run()
    state.add_pull()
    state.permissions |= {"owner": "write", "somebody": "read"}
    state.set_label(LABEL, "owner", LATER)
    with serve(state) as api:
        yield Job(tmp_path, state, api, monkeypatch)


def test_a_leg_goes_on_where_an_owner_asks_for_it(job: Job) -> None:
    """Its run lies where `hil run --more` goes on, and is what will be collected; the next step is told."""
    done = job.ask()
    assert f"{LEG}: go on with {RUN_ID}, as owner set the label hil:more at {LATER}" in done.output
    assert job.output.read_text() == f"run={job.out / RUN_ID}\n"
    assert RunDirectory.latest(job.out).read_info() == job.earlier.read_info()
    assert RunDirectory.latest(job.out).read().entries == job.earlier.read().entries


def _no_label(job: Job) -> None:
    job.state.pulls[7]["labels"].clear()


def _another_label(job: Job) -> None:
    _no_label(job)
    job.state.set_label("bug", "owner", LATER)


def _by_the_author(job: Job) -> None:
    job.state.events[7][0]["actor"]["login"] = "somebody"


def _before_the_push(job: Job) -> None:
    job.state.events[7][0]["created_at"] = EARLIER


def _newer_head(job: Job) -> None:
    job.state.pulls[7]["head"]["sha"] = "d" * 40


@pytest.mark.parametrize("change", [_no_label, _another_label, _by_the_author, _before_the_push, _newer_head])
def test_without_it_a_job_that_is_run_again_measures_anew(job: Job, change: Callable[[Job], None]) -> None:
    """No label, the fork's author's, or one for another commit."""
    change(job)
    assert "measure anew, as nobody who may write has set the label" in job.ask().output
    assert job.is_anew


def _not_judged(job: Job) -> None:
    job.earlier.verdicts_path.unlink()


def _nothing_left(job: Job) -> None:
    job.earlier.journal_path.unlink()


def _failed(job: Job) -> None:
    entries = [*job.earlier.read().entries, Fault(RUN_ID, "rig", 3, "the cable fell out.", "b1")]
    job.earlier.write_verdict(judge(entries, {"publish": compare_records.thresholds(COMPARED)}))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_not_judged, "was not judged"),
        (_nothing_left, "no earlier attempt left a run"),
        (_failed, "something failed"),
    ],
)
def test_what_has_holes_is_measured_anew(job: Job, change: Callable[[Job], None], why: str) -> None:
    """More boots do not fill them, whoever sets the label; GitHub is not even asked."""
    change(job)
    assert why in job.ask().output
    assert job.is_anew
    assert job.state.asked == []


def test_outside_of_a_pull_request_nothing_is_taken_further(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person at a terminal has `hil run --more`."""
    monkeypatch.delenv("GITHUB_EVENT_NAME")
    assert "it is of no pull request" in job.ask().output
    assert job.is_anew


def test_a_github_that_does_not_answer_is_no_reason_to_measure_anew(job: Job) -> None:
    """Whether somebody asked for more boots is not known, and anew would spend alpha twice."""
    job.state.trouble["GET /repos"] = [(404, {}, b"{}")]
    assert isinstance(job.ask().exception, RigError)
    assert not job.output.exists()


def test_a_run_is_not_brought_over_another(job: Job) -> None:
    """What has been measured here stays."""
    job.ask()
    with pytest.raises(ConfigError, match="a run of this name already"):
        RunDirectory.bring(job.earlier.path, job.out)


def test_an_undecided_leg_says_what_a_person_can_do(tmp_path: Path) -> None:
    """On a rack the label, how many boots and how long; on GitHub's own machines that it does not work."""
    leave_undecided(tmp_path / LEG)
    leave_undecided(tmp_path / "compare", target="virtual-esp32")
    plan = a_plan(["esp32"], compare=True)
    said = read_leg(tmp_path / LEG, plan.leg(LEG), plan).sentence
    assert said.endswith(
        " 6 more boots of each image a board, about 9 min: "
        "set the label hil:more, then re-run the job “Rack esp32”."
    )
    on_github = read_leg(tmp_path / "compare", plan.leg("compare"), plan).sentence
    assert "whose machine is gone" in on_github
    assert LABEL not in on_github


def test_nothing_is_promised_where_the_label_does_not_work(tmp_path: Path) -> None:
    """Not of a run that has no further look, and not where there is no pull request to set it on."""
    run, plan = leave_undecided(tmp_path / LEG), a_plan(["esp32"])
    queue = dataclasses.replace(plan, event="merge_group", pull_request=None)
    assert LABEL not in read_leg(tmp_path / LEG, plan.leg(LEG), queue).sentence
    info = run.read_info()
    del info["more"]
    run.write_info(info)
    assert LABEL not in read_leg(tmp_path / LEG, plan.leg(LEG), plan).sentence

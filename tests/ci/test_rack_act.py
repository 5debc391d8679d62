# SPDX-License-Identifier: Apache-2.0
"""rack.yml as pr.yml calls it, by act: up to where it would take a board, and why it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hil.ci.pinning import CALLED, CALLER
from tests.ci.act import DEADLINE_S, Project, WorkflowRun, local_repositories, run_act
from tests.ci.github_server import HOME, TOKEN, State, serve

pytestmark = [pytest.mark.slow, pytest.mark.heavy, pytest.mark.timeout(DEADLINE_S + 60)]

NEWER = "d" * 40
TARGETS = ".github/hil-targets.json"


class Rack:
    """A repository with a rack, a pull request, and GitHub; of pr.yml the jobs `plan` and `rack` are left."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        yaml = YAML()
        workflow = yaml.load((self.project.path / CALLER).read_text())
        jobs = workflow["jobs"]
        workflow["jobs"] = {"plan": jobs["plan"], "rack": jobs["rack"]}
        text = json.dumps(jobs["rack"]).replace("needs.narrow.outputs.racks", "needs.plan.outputs.racks")
        rack = json.loads(text.replace("needs.narrow.outputs.compared", "needs.plan.outputs.racks"))
        workflow["jobs"]["rack"] = {**rack, "needs": ["plan"], "if": "needs.plan.outputs.racks != '[]'"}
        rack["strategy"]["matrix"]["target"] = "${{ fromJSON(needs.plan.outputs.racks) }}"
        with (self.project.path / CALLER).open("w") as stream:
            yaml.dump(workflow, stream)
        (self.project.path / TARGETS).write_text('{"build": [], "racks": ["esp32"]}')
        self.base = self.project.commit("a rack")

    def pull_request(self, state: State, api: str, files: dict[str, str]) -> WorkflowRun:
        """Run it for a pull request that also changes ``files``; GitHub is at ``api``."""
        called = (self.project.path / CALLED).read_text()
        step = "        id: wanted\n        env:\n"
        assert called.count(step) == 1
        at_hand = called.replace(
            step, f"{step}          GITHUB_API_URL: {api}\n"
        )  # act has its own otherwise
        head = self.project.branch("change", {"firmware/NOTE.md": "x\n", CALLED: at_hand, **files}, self.base)
        state.head = head
        state.add_pull(head=NEWER)
        repository = {"full_name": HOME}
        sides = {
            side: {"sha": commit, "repo": repository}
            for side, commit in (("head", head), ("base", self.base))
        }
        run = self.project.folder / f"run-{head}"
        (run / "artefacts").mkdir(parents=True)
        (run / "event.json").write_text(json.dumps({"pull_request": {"number": 7, **sides}}))
        words = [
            "pull_request",
            "--job",
            "rack",
            "--workflows",
            CALLER,
            *local_repositories(self.project.path),
        ]
        words += ["--platform", "self-hosted=-self-hosted", "--secret", f"GITHUB_TOKEN={TOKEN}"]
        words += ["--env", f"HIL_ACT_INSTALLED={self.project.installed}"]
        return run_act(self.project.path, words, run)


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Rack:
    return Rack(tmp_path_factory.mktemp("rack"))


@pytest.fixture
def state() -> Iterator[tuple[State, str]]:
    made = State("")
    with serve(made) as api:
        yield made, api


def test_a_superseded_push_takes_no_board(rack: Rack, state: tuple[State, str]) -> None:
    """The job ends well without a measurement, and what it keeps says which push took its place."""
    done = rack.pull_request(*state, {})
    assert done.status == 0, done.log
    assert "rack-esp32: not measured, superseded by the push dddddddddddd" in done.log
    skipped = json.loads((done.artefacts / "leg-rack-esp32/rack-esp32/skipped.json").read_text())
    assert skipped["reason"].startswith("superseded by the push dddddddddddd")
    assert "Verify its digests" not in done.log


def test_a_rack_that_is_asked_for_more_than_is_planned_refuses(rack: Rack, state: tuple[State, str]) -> None:
    """A pull request's pr.yml asks for another suite than its plan: nothing of the head is run."""
    text = (rack.project.path / CALLER).read_text()
    suite = "${{ needs.plan.outputs.rack-suite }}"
    assert text.count(suite) == 1
    done = rack.pull_request(*state, {CALLER: text.replace(suite, "nightly")})
    assert done.status == 1, done.log
    assert "refused: the plan asks for ['pr'] on esp32, and not for 'nightly'." in done.log
    assert state[0].asked == []
    assert not (done.artefacts / "leg-rack-esp32").exists()

# SPDX-License-Identifier: Apache-2.0
"""rack.yml as measure.yml calls it, by act: up to where it refuses what is not planned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.ci.act import DEADLINE_S, Project, WorkflowRun, jobs_alone, local_repositories, run_act
from tests.ci.ci_rig import CALLER

pytestmark = [pytest.mark.slow, pytest.mark.heavy, pytest.mark.timeout(DEADLINE_S + 60)]

MEASURE, TARGETS = ".github/workflows/measure.yml", ".github/hil-targets.json"


class Rack:
    """A repository with a rack, and a pull request; of measure.yml the jobs `plan` and `rack` are left."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder)
        measure = self.project.path / MEASURE
        rack = {"needs": ["plan"], "if": "needs.plan.outputs.racks != '[]'"}
        measure.write_text(jobs_alone(measure.read_text(), plan={}, rack=rack))
        (self.project.path / TARGETS).write_text('{"build": [], "racks": ["esp32"]}')
        self.base = self.project.commit("a rack")

    def pull_request(self, files: dict[str, str]) -> WorkflowRun:
        """Run it for a pull request that also changes ``files``."""
        head = self.project.branch("change", {"firmware/NOTE.md": "x\n", **files}, self.base)
        repository = {"full_name": "example/hil"}
        commits = {"head": head, "base": self.base}
        sides = {side: {"sha": commit, "repo": repository} for side, commit in commits.items()}
        run = self.project.folder / f"run-{head}"
        (run / "artefacts").mkdir(parents=True)
        (run / "event.json").write_text(json.dumps({"pull_request": {"number": 7, **sides}}))
        words = ["pull_request", "--job", "hil", "--workflows", CALLER]
        words += [*local_repositories(self.project.path), "--platform", "self-hosted=-self-hosted"]
        words += ["--env", f"HIL_ACT_INSTALLED={self.project.installed}"]
        return run_act(self.project.path, words, run)


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Rack:
    return Rack(tmp_path_factory.mktemp("rack"))


def test_a_rack_that_is_asked_for_more_than_is_planned_refuses(rack: Rack) -> None:
    """A pull request's measure.yml asks for another suite than its plan: nothing of the head is run."""
    text = (rack.project.path / MEASURE).read_text()
    suite = "${{ matrix.suite }}"
    assert text.count(suite) == 1
    done = rack.pull_request({MEASURE: text.replace(suite, "nightly")})
    assert done.status == 1, done.log
    assert "['pr'] on esp32, and not for 'nightly'" in done.log
    assert not (done.artefacts / "leg-rack-esp32").exists()

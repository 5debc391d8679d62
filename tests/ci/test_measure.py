# SPDX-License-Identifier: Apache-2.0
"""measure.yml, called from a repository that is not this one: a team's project, made by `hil init`."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.ci.act import (
    DEADLINE_S,
    SEALED,
    WorkflowRun,
    copy_checkout,
    for_act,
    local_repositories,
    run_act,
    without_containers,
)
from tests.ci.elsewhere import commit_all, seed_environment
from tests.ci.git_process import git
from tests.lab import ROOT, make_lab, own_environment, write_suites
from tests.team_bench import add_team_bench
from tests.whole.installed import generator_folder

MEASURE = ROOT / ".github" / "workflows" / "measure.yml"
CMAKE = "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(sensor)\n"


def by_act(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that waits for act."""
    for mark in (pytest.mark.slow, pytest.mark.heavy, pytest.mark.timeout(DEADLINE_S + 60)):
        test = mark(test)
    return test


def load(path: Path) -> dict:  # type: ignore[type-arg]
    return YAML(typ="safe").load(path)


class Team:
    """A team's repository, beside the tool's, which is a copy of this checkout without containers."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tool, self.path = folder, folder / "tool", folder / "product"
        copy_checkout(self.tool)
        without_containers(self.tool)
        for_act(self.tool)
        self.tool_commit = commit_all(self.tool)
        seed_environment(folder / "venv", self.tool)
        (self.path / "app" / "main").mkdir(parents=True)
        (self.path / "app" / "CMakeLists.txt").write_text(CMAKE)
        (self.path / ".gitignore").write_text("out/\n")
        argv = [str(Path(sys.executable).parent / "hil"), "init", "--workflow", "example/hil@v1"]
        subprocess.run(
            argv, cwd=self.path, env=own_environment(), check=True, stdout=subprocess.DEVNULL, timeout=60
        )
        add_team_bench(self.path)
        (folder / "lab").mkdir()
        shutil.copy(make_lab(folder / "lab", 1).rack, self.path / "hil" / "rack.yaml")  # one board
        write_suites(self.path / "hil" / "thresholds", {**SEALED, "sections": "suites: {sealed: []}\n"})
        git(self.path, "init", "--quiet", "--initial-branch=main")
        git(self.path, "remote", "add", "origin", "https://github.com/team/product.git")
        self.base = self.commit = commit_all(self.path)
        self.given = load(self.path / ".github" / "workflows" / "hil.yml")["jobs"]["hil"]["with"]

    def call(self, given: Mapping[str, str] | None = None, *, job: str = "hil") -> WorkflowRun:
        """Run the project's own workflow for a pull request, with other inputs where ``given``."""
        workflow = self.path / ".github" / "workflows" / "hil.yml"
        written = load(workflow)
        written["jobs"]["hil"]["with"] = {**self.given, **(given or {})}
        YAML().dump(written, workflow)
        self.commit = commit_all(self.path)
        run = self.folder / f"run-{len(list(self.folder.glob('run-*')))}"
        (run / "artefacts").mkdir(parents=True)
        (run / "cache" / "hil").mkdir(parents=True)  # the report's generator is here, and need not be fetched
        (run / "cache" / "hil" / generator_folder()).symlink_to(ROOT / "reports" / "site")
        repository = {"full_name": "team/product"}
        sides = {"head": self.commit, "base": self.base}
        event = {side: {"sha": commit, "repo": repository} for side, commit in sides.items()}
        (run / "event.json").write_text(json.dumps({"pull_request": {"number": 3, **event}}))
        words = ["pull_request", "--job", job, "--workflows", ".github/workflows/hil.yml"]
        words += ["--env", f"HIL_VENV={self.folder / 'venv'}", "--env", f"HIL_ACT_TOOL=file://{self.tool}"]
        words += ["--local-repository", f"example/hil@v1={self.tool}", *local_repositories(self.tool)]
        return run_act(self.path, words, run)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(tmp_path_factory.mktemp("team"))


@by_act
def test_a_project_of_others_is_measured(team: Team) -> None:
    """As `hil init` wrote it, and a bench: the wheel is built and installed, the virtual rack measures.

    The one verdict passes; what was measured is the project's commit, by the tool's.
    """
    done = team.call({"suite": "quick and wake_up"})
    assert done.status == 0, done.log
    assert done.ended_well("Virtual rack virtual"), done.log
    assert done.ended_well("hil-verdict")
    assert not done.ran("Build")
    assert re.search(r"# (PASS|UNDECIDED): virtual\b", done.log), done.log
    (run,) = (done.artefacts / "leg-virtual" / "virtual").iterdir()
    info = json.loads((run / "run.json").read_text())
    assert (info["git"]["commit"], info["git"]["dirty"]) == (team.commit, False)
    assert (info["tool"]["commit"], info["tool"]["dirty"]) == (team.tool_commit, False)
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    assert {one["bench"] for one in records if one["type"] == "record"} == {"wake_up"}
    assert (done.artefacts / "report-virtual" / "index.html").is_file()
    assert (info["trigger"], [board["id"] for board in info["boards"]]) == ("pr", ["b1"])


@by_act
def test_a_wrong_input_is_named_and_nothing_is_measured(team: Team) -> None:
    """Each has its sentence, with value and what is allowed, as text; the one verdict fails."""
    hostile = "quick; echo ::add-mask::product >pwned $(touch pwned)"
    done = team.call({"mode": "virtuel", "firmware-path": "../product", "suite": hostile})
    assert done.status == 1
    assert "mode: 'virtuel'" in done.log
    assert "firmware-path: '../product'" in done.log
    assert "# NOT MEASURED: CONFIGURATION – there is no plan" in done.log
    assert not done.ended_well("hil-verdict")
    assert not done.ran("Virtual rack")
    assert not list(team.folder.rglob("pwned"))


@by_act
def test_a_chip_with_the_bases_image_is_not_booted(team: Team) -> None:
    """In ESP-IDF's place: head and base are built, and have the same image, as what differs is no firmware.

    What is the base's, byte for byte, needs no count; that it is, only the job says that built both.
    """
    done = team.call({"mode": "emulated", "targets": "esp32c3", "base": "merge-base"})
    assert done.status == 0, done.log
    assert done.ended_well("Build esp32c3")
    assert not done.ran("Virtual rack")
    assert "# UNDECIDED: instruction cost (emulated) esp32c3" in done.log
    (run,) = (done.artefacts / "leg-build-esp32c3" / "emulated-esp32c3").iterdir()
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    assert [one["identical"] for one in records if one["type"] == "comparison"] == [True]
    plan = json.loads((done.artefacts / "plan" / "plan.json").read_text())
    assert (plan["head"], plan["base"]) == (team.commit, team.base)


@by_act
def test_a_chip_is_counted_where_there_is_no_base(team: Team) -> None:
    """In QEMU's place: the leg is judged by its limits alone."""
    done = team.call({"mode": "emulated", "targets": "esp32c3", "base": "none"})
    assert done.status == 0, done.log
    (run,) = (done.artefacts / "leg-build-esp32c3" / "emulated-esp32c3").iterdir()
    info = json.loads((run / "run.json").read_text())
    assert info["firmware"]["esp32c3"]["commit"] == info["git"]["commit"] == team.commit
    assert "compared" not in info


def test_the_tool_is_of_the_commit_that_was_called() -> None:
    """Each job that needs it checks it out so, without credentials; of this repository it is the head."""
    for name, job in load(MEASURE)["jobs"].items():
        given = [step["with"] for step in job.get("steps", ()) if "actions/checkout@" in step.get("uses", "")]
        tools = [(one["repository"], one["ref"], one["path"]) for one in given]
        whose = "${{ inputs.mode == 'own' && github.repository || job.workflow_repository }}"
        commit = "${{ inputs.mode == 'own' && env.HIL_HEAD_SHA || job.workflow_sha }}"
        assert tools == [(whose, commit, "tool")] * (name not in ("rack", "give-up"))
        assert all(one["persist-credentials"] is False for one in given)

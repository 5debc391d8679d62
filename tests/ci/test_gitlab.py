# SPDX-License-Identifier: Apache-2.0
"""examples/gitlab: its jobs in order as plain shell, each in a clone of its own, as GitLab's runner does it.

What GitLab itself makes of the file is not tested: there is none here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.ci.act import SEALED
from tests.ci.elsewhere import commit_all
from tests.ci.git_process import git
from tests.in_process import hil
from tests.lab import ROOT, make_lab, own_environment, write_suites
from tests.team_bench import add_team_bench

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "examples" / "gitlab" / ".gitlab-ci.yml"
HIL = Path(sys.executable).parent / "hil"
CMAKE = "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(sensor)\n"
DEADLINE_S = 240.0


class Runner:
    """A project that `hil init` made with one board, and what GitLab keeps of its pipeline."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.project = folder, folder / "project"
        (self.project / "app" / "main").mkdir(parents=True)
        (self.project / "app" / "CMakeLists.txt").write_text(CMAKE)
        (self.project / ".gitignore").write_text("out/\n")
        done = hil("init", cwd=self.project)
        assert done.returncode == 0, done.stdout
        add_team_bench(self.project)
        (folder / "lab").mkdir()
        shutil.copy(make_lab(folder / "lab", 1).rack, self.project / "hil" / "rack.yaml")
        write_suites(self.project / "hil" / "thresholds", {**SEALED, "sections": "suites: {sealed: []}\n"})
        shutil.copy(EXAMPLE, self.project)
        self.kept = folder / "artifacts"
        self.log = ""

    def pipeline(self, suite: str) -> dict[str, int]:
        """Run the pipeline; return the status of each job that ran. A job that may fail stops nothing."""
        commit_all(self.project)
        content: dict[str, Any] = YAML(typ="safe").load(self.project / ".gitlab-ci.yml")
        variables = {**content["variables"], "SUITE": suite}
        jobs = {name: job for name, job in content.items() if isinstance(job, dict) and "script" in job}
        statuses: dict[str, int] = {}
        for stage in content["stages"]:
            for name, job in jobs.items():
                failed = any(code and not jobs[one].get("allow_failure") for one, code in statuses.items())
                if job["stage"] == stage and (not failed or job.get("when") == "always"):
                    statuses[name] = self._job(name, job, variables)
        return statuses

    def _job(self, name: str, job: dict[str, Any], variables: dict[str, str]) -> int:
        clone = self.folder / f"job-{name}"
        git(self.folder, "clone", "--quiet", str(self.project), str(clone))
        if self.kept.exists():
            shutil.copytree(self.kept, clone, dirs_exist_ok=True)
        path = f"{HIL.parent}{os.pathsep}{os.environ['PATH']}"
        env = {**own_environment(), "PATH": path, "CI": "true", **variables}
        status = self._shell(job["script"], clone, env)
        self._shell(job.get("after_script", []), clone, env)
        kept_anyway = job["artifacts"].get("when") == "always"
        for kept in job["artifacts"]["paths"] if not status or kept_anyway else ():
            if (clone / kept).is_dir():
                shutil.copytree(clone / kept, self.kept / kept, dirs_exist_ok=True)
            elif (clone / kept).is_file():
                (self.kept / kept).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(clone / kept, self.kept / kept)
        return status

    def _shell(self, lines: list[str], folder: Path, env: dict[str, str]) -> int:
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", "\n".join(lines)], cwd=folder, env=env, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=DEADLINE_S,
        )  # fmt: skip
        self.log += done.stdout
        return done.returncode


def test_a_configuration_error_fails_the_merge_request(tmp_path: Path) -> None:
    """Plan, leg and verdict know no variable of GitHub's; the verdict ends with 2, and says what is wrong."""
    runner = Runner(tmp_path)
    rack = runner.project / "hil" / "rack.yaml"
    rack.write_text(f"{rack.read_text()}colour: red\n")
    assert runner.pipeline("quick and wake_up") == {"plan": 0, "virtual": 2, "hil-verdict": 2}, runner.log
    assert "# NOT MEASURED: CONFIGURATION – virtual\n" in runner.log
    assert "| CONFIGURATION: " in runner.log
    assert "unknown key 'colour'" in (runner.kept / "out" / "ci" / "comment.md").read_text()


def test_a_plan_that_is_none_fails_it_too(tmp_path: Path) -> None:
    """Nothing is measured where the plan ends, and the verdict still runs, and is no pass."""
    runner = Runner(tmp_path)
    assert runner.pipeline("quik") == {"plan": 2, "hil-verdict": 2}, runner.log
    assert "# NOT MEASURED: CONFIGURATION – there is no plan\n" in runner.log
    assert "suite: 'quik'" in runner.log


@pytest.mark.heavy
def test_a_merge_request_passes(tmp_path: Path) -> None:
    """One bench on one virtual board: measured, collected, judged again from the records, and passed."""
    runner = Runner(tmp_path)
    assert runner.pipeline("quick and wake_up") == {"plan": 0, "virtual": 0, "hil-verdict": 0}, runner.log
    verdict = runner.log.rpartition("\n# ")[2]
    assert verdict.startswith(("PASS: virtual", "UNDECIDED: virtual")), runner.log
    (junit,) = runner.kept.glob("out/ci/legs/virtual/*/junit.xml")
    assert "wake_up" in junit.read_text()

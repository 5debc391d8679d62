# SPDX-License-Identifier: Apache-2.0
"""A rack takes a pull request's job from a fixed ref, and refuses what the plan does not ask for."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hil.ci.plan import write_plan
from tests.ci.ci_rig import CALLER, a_plan
from tests.ci.elsewhere import commit_all
from tests.ci.git_process import git
from tests.ci.job import Job, StepError, steps_of
from tests.lab import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with this repository's workflows and list of racks."""
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    return tmp_path


@pytest.mark.slow
def test_the_fixed_ref_is_written_in(checkout: Path) -> None:
    """The page's `sed` line changes one line of pr.yml; actionlint and zizmor find nothing in it."""
    page = (ROOT / "docs" / "operate" / "repository.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^sed -i .*$", page, flags=re.MULTILINE)
    subprocess.run(["git", "init", "--quiet", str(checkout)], check=True, timeout=60)
    before = (checkout / CALLER).read_text().splitlines()
    subprocess.run(["sh", "-c", line.replace("OWNER/NAME", "example/hil")], cwd=checkout, check=True)
    after = (checkout / CALLER).read_text()
    assert sum(old != new for old, new in zip(before, after.splitlines(), strict=True)) == 1
    uses = YAML(typ="safe").load(after)["jobs"]["hil"]["uses"]
    assert uses == "example/hil/.github/workflows/measure.yml@main"
    linters = (("actionlint",), ("zizmor", "--offline", "--persona=auditor", "--no-progress", "."))
    for words in linters:
        argv = [str(ROOT / ".venv" / "bin" / words[0]), *words[1:]]
        done = subprocess.run(argv, capture_output=True, text=True, cwd=checkout, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


def ask(checkout: Path, target: str, suite: str) -> subprocess.CompletedProcess[str]:
    argv = [str(checkout / ".ci/admit"), target, suite, "plan.json"]
    return subprocess.run(argv, capture_output=True, text=True, cwd=checkout, check=False, timeout=60)


@pytest.mark.parametrize(
    ("target", "suite", "status", "said"),
    [
        ("esp32s3", "pr", 2, "hil-targets.json has no rack for 'esp32s3'"),  # the pull request's list has
        ("linux", "pr", 2, "has no rack for 'linux'"),
        ("esp32", "nightly", 2, "and not for 'nightly'"),
        ("esp32", "pr", 0, "esp32: pr\n"),
    ],
)
def test_a_rack_is_asked_for_what_is_planned(
    checkout: Path, target: str, suite: str, status: int, said: str
) -> None:
    """A chip of the list beside the script, with the suite that the plan has for it.

    Neither a chip that only the pull request lists nor another suite; the job ends there.
    """
    write_plan(a_plan(["esp32", "esp32s3"]), checkout / "plan.json")
    (checkout / ".github/hil-targets.json").write_text('{"build": [], "racks": ["esp32"]}')
    done = ask(checkout, target, suite)
    assert done.returncode == status
    assert said in done.stdout
    assert status or done.stdout == said
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["", "[]", '{"legs": [{}]}'], ids=["nothing", "a-list", "half-a-leg"])
def test_a_plan_that_cannot_be_read_admits_nothing(checkout: Path, text: str) -> None:
    """It is another job's word."""
    (checkout / ".github/hil-targets.json").write_text('{"build": [], "racks": ["esp32"]}')
    (checkout / "plan.json").write_text(text)
    done = ask(checkout, "esp32", "pr")
    assert done.returncode == 2
    assert "cannot be read" in done.stdout


# links of a head by which what is fetched or checked out would be led into what is trusted
LINKS = {
    "out/ci": "own/.ci",
    "out/own": "../evil",
    "out": "evil",
    "plan": ".ci",
    ".ci": "evil/.ci",
    ".github": "evil/.github",
}
SAYS_YES = "#!/bin/sh\necho owned\n"


class Hostile:
    """A repository whose branch asks for a rack that the default branch lacks, with a plan to match."""

    def __init__(self, folder: Path, checkout: Path, link: str) -> None:
        (checkout / ".github/hil-targets.json").write_text('{"build": [], "racks": ["esp32"]}')
        own = commit_all(checkout)
        (checkout / ".github/hil-targets.json").write_text('{"build": [], "racks": ["esp32", "esp32s3"]}')
        for name in ("evil/.ci/admit", "evil/own/.ci/admit", "out/own/.ci/admit"):
            if not f"{name}/".startswith(f"{link}/"):
                (checkout / name).parent.mkdir(parents=True, exist_ok=True)
                (checkout / name).write_text(SAYS_YES)
                (checkout / name).chmod(0o755)
        shutil.copytree(checkout / ".github", checkout / "evil" / ".github")
        shutil.rmtree(checkout / link, ignore_errors=True)
        (checkout / link).parent.mkdir(exist_ok=True)
        (checkout / link).symlink_to(LINKS[link])
        self.head = commit_all(checkout)
        values = {"job.workflow_repository": "example/hil", "job.workflow_sha": own}
        values |= {"env.HIL_HEAD_SHA": self.head, "inputs.target": "esp32s3", "inputs.suite": "pr"}
        values |= {"inputs.leg": "rack-esp32s3", "inputs.mode": "own"}
        self.job = Job(folder, values, origin=f"file://{checkout}")
        (self.job.artefacts / "plan").mkdir()
        write_plan(a_plan(["esp32s3"]), self.job.artefacts / "plan" / "plan.json")
        for name in ("admit", ".ci/admit"):
            (self.job.artefacts / "plan" / name).parent.mkdir(exist_ok=True)
            (self.job.artefacts / "plan" / name).write_text(SAYS_YES)


@pytest.mark.parametrize("link", LINKS)
def test_no_link_of_the_head_leads_into_what_admits(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, link: str
) -> None:
    """The steps of rack.yml, on real checkouts: its own commit's script refuses, with that commit's list."""
    hostile = Hostile(tmp_path_factory.mktemp("job"), checkout, link)
    steps = steps_of("rack.yml", "measure")
    looks = [step["name"] for step in steps].index("Look whether it may be asked for")
    (head,) = [one for one in steps if "HIL_HEAD_SHA" in str(one.get("with"))]
    list(hostile.job.play([head]))  # the job before left it in the workspace
    with pytest.raises(StepError) as refused:
        list(hostile.job.play(steps[: looks + 1]))
    name, said = refused.value.args
    assert name == steps[looks]["name"]
    assert "no rack for 'esp32s3' at " in said


def test_a_racks_job_begins_without_what_the_job_before_left(tmp_path: Path) -> None:
    """A host's workspace stays: a base or a leg of another run in it would be this one's."""
    job = Job(tmp_path, {})
    (job.workspace / "ci" / "bundle" / "base").mkdir(parents=True)
    first, fetched, *_ = steps_of("rack.yml", "measure")
    assert fetched["name"] == "Fetch the plan"
    list(job.play([first]))
    assert not (job.workspace / "ci").exists()


def test_what_is_admitted_goes_on_with_the_head(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """After it the workspace is the head's alone."""
    hostile = Hostile(tmp_path_factory.mktemp("job"), checkout, "out/ci")
    hostile.job.values["inputs.target"] = "esp32"
    write_plan(a_plan(["esp32"]), hostile.job.artefacts / "plan" / "plan.json")
    steps = steps_of("rack.yml", "measure")
    until = [step["name"] for step in steps].index("Set up")
    assert list(hostile.job.play(steps[:until])) == ["", "esp32: pr\n"]
    workspace = hostile.job.workspace / "tool"
    assert git(workspace, "rev-parse", "HEAD") == hostile.head
    assert not git(workspace, "status", "--porcelain", "--ignored")

# SPDX-License-Identifier: Apache-2.0
"""The action's script: which commands a leg runs, whatever becomes of its base. `hil` is a recorder here."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from hil.boards.firmware.failure import read_failure
from tests.ci.elsewhere import commit_all
from tests.ci.git_process import git
from tests.lab import ROOT, own_environment

pytestmark = pytest.mark.slow

STEP = ROOT / ".github" / "actions" / "measure" / "step"
# writes down what it is called with; builds what SOURCE holds in the folder that it is called in
RECORDER = """\
#!/usr/bin/env python3
import json, os, pathlib, sys
words = sys.argv[1:]
with open(os.environ["CALLS"], "a") as stream:
    stream.write(json.dumps([os.getcwd(), *words]) + "\\n")
if words[0] == "build":
    source = pathlib.Path("SOURCE").read_text()
    if source == "broken":
        if pathlib.Path("../BLAME").exists() or pathlib.Path("BLAME").exists():
            pathlib.Path(words[words.index("--failure") + 1]).write_text("{}")
        sys.exit(2)
    bundle = pathlib.Path(words[words.index("--bundle") + 1])
    source += str(words[1:2] == ["-C"])
    bundle.mkdir(parents=True, exist_ok=True)
    (bundle / "image").write_text(source)
if words[:2] == ["firmware", "compare"]:
    head, base = (pathlib.Path(word, "image").read_text() for word in words[2:4])
    print(json.dumps({"targets": [{"outcome": "identical" if head == base else "different"}]}, indent=2))
"""


class Job:
    """A job's machine: a workspace with the project's checkout, and the environment with the tool."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.project = folder, folder / "project"
        (folder / "venv" / "bin").mkdir(parents=True)
        hil = folder / "venv" / "bin" / "hil"
        hil.write_text(RECORDER)
        hil.chmod(0o755)
        (self.project / "node").mkdir(parents=True)

    def commit(self, source: str) -> str:
        (self.project / "node" / "SOURCE").write_text(source)
        return commit_all(self.project)

    def run(self, step: str, given: Mapping[str, str]) -> list[list[str]]:
        """Run a step; return the calls of `hil`: the folder, then the words."""
        calls = self.folder / "calls"
        calls.write_text("")
        env = {
            **own_environment(),
            "GITHUB_WORKSPACE": str(self.folder),
            "RUNNER_TEMP": str(self.folder / "temp"),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "HIL_VENV": str(self.folder / "venv"),
            "CALLS": str(calls),
            "PROJECT": "project",
            "FIRMWARE_PATH": "node",
            "TICKS_HZ": "1000 100",
            "MINUTES": "5",
            "MODE": "virtual",
            "SUITE": "quick and qos=1",
            "TARGET": "",
            "BUNDLE": "bundle",
            "BASE": "",
        }
        done = subprocess.run(
            [str(STEP), step], cwd=self.folder, env={**env, **given}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return [json.loads(line) for line in calls.read_text().splitlines()]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_without_a_base_the_suite_is_measured(job: Job) -> None:
    """In the project's folder, the suite as one word, and nothing is built before."""
    job.commit("head")
    (call,) = job.run("measure", {})
    assert call == [str(job.project / "node"), "run", "--suite", "quick and qos=1", "--wait", "60"]


def test_a_base_is_built_in_a_tree_of_its_own(job: Job) -> None:
    """Head and base with each tick, compared in one run; the checkout stays at the head."""
    base, head = job.commit("base"), job.commit("head")
    calls = job.run("measure", {"BASE": base})
    bundle, tree = job.folder / "bundle", job.folder / "temp" / "hil-base" / "node"
    built = [(call[0], call[call.index("--tick-hz") + 1]) for call in calls if call[1] == "build"]
    assert built == [
        (str(folder), tick) for folder in (job.project / "node", tree) for tick in ("1000", "100")
    ]
    words = ["--target", "virtual-esp32", "--firmware", str(bundle / "head"), "--base", str(bundle / "base")]
    assert calls[-1][1:] == ["run", "--suite", "quick and qos=1", *words, "--wait", "60"]
    assert git(job.project, "rev-parse", "HEAD") == head
    assert not git(job.project, "status", "--porcelain")


def test_a_product_is_built_beside_hils_firmware(job: Job) -> None:
    """For a chip, of the head and of the base, each from its own tree; without the agent's benches alone."""
    base, _ = job.commit("base"), job.commit("head")
    (job.folder / "export.sh").write_text("")
    chip = {"TARGET": "esp32", "IDF_PATH": str(job.folder), "BASE": base, "PRODUCT": "node"}
    calls = job.run("build", {**chip, "TICKS_HZ": "1000"})
    bundle, trees = job.folder / "bundle", (job.project, job.folder / "temp" / "hil-base")
    expected = []
    for tree, role, failure in (
        (trees[0], "head", []),
        (trees[1], "base", ["--failure", str(bundle / "base-failure.json")]),
    ):
        ends = ["--bundle", str(bundle / role), *failure]
        expected.append([str(tree / "node"), "build", "--target", "esp32", "--tick-hz", "1000", *ends])
        expected.append([str(tree / "node"), "build", "-C", str(tree / "node"), "--target", "esp32", *ends])
    assert [call for call in calls if call[1] == "build"] == expected
    calls = job.run("build", {**chip, "TICKS_HZ": ""})
    assert [call[2] for call in calls if call[1] == "build"] == ["-C", "-C"]


@pytest.mark.parametrize(
    ("base", "blamed", "cause"),
    [
        ("head", False, "identical"),
        ("broken", True, None),  # what hil build writes, which is a stand-in here
        ("broken", False, "unknown"),  # the file is not there: nothing proves that it was its sources
        ("", False, "sources"),  # it has no such folder
    ],
)
def test_a_base_that_cannot_be_compared_with(job: Job, base: str, blamed: bool, cause: str | None) -> None:
    """The run is told why there is none, without which its verdict does not count."""
    commit = job.commit(base)
    if not base:
        git(job.project, "rm", "--quiet", "-r", "--cached", "node")
        git(job.project, "commit", "--quiet", "--allow-empty", "--message", "none")
        commit = git(job.project, "rev-parse", "HEAD")
    if blamed:
        (job.project / "BLAME").write_text("")
        commit = commit_all(job.project)
    job.commit("head")
    words = job.run("measure", {"BASE": commit})[-1][1:]
    assert "--base" not in words
    failure = Path(words[words.index("--no-base-because") + 1])
    assert failure.exists() is (cause != "unknown")
    if cause:
        assert read_failure(failure)[0] == cause


def test_a_rack_measures_the_bundle_that_was_built(job: Job) -> None:
    """Verified first, on the chip's boards, by the host's rack file; a base that is there is compared."""
    job.commit("head")
    (job.folder / "bundle" / "base").mkdir(parents=True)
    verify, run = job.run("measure", {"MODE": "rack", "TARGET": "esp32", "HIL_RACK_FILE": "/rack.yaml"})
    bundle = job.folder / "bundle"
    assert verify[1:] == ["firmware", "verify", str(bundle / "head")]
    words = ["--rack", "/rack.yaml", "--target", "esp32", "--suite", "quick and qos=1"]
    words += ["--firmware", str(bundle / "head"), "--base", str(bundle / "base"), "--wait", "900"]
    assert run[1:] == ["run", *words]


@pytest.mark.parametrize(
    ("mode", "leg"), [("virtual", "virtual"), ("rack", "rack-esp32"), ("unbuilt", "unbuilt-esp32")]
)
def test_what_is_kept_is_named_by_its_leg(job: Job, mode: str, leg: str) -> None:
    """The run, and the report of the project that the folder belongs to."""
    (job.project / "hil.toml").write_text("")
    job.commit("head")
    (call,) = job.run("collect", {"MODE": mode, "TARGET": "esp32"})
    legs = job.folder / "temp" / "hil-legs"
    assert call[1:] == ["ci", "collect", leg, "--legs", str(legs)]
    written = (job.folder / "output").read_text().splitlines()
    assert written == [f"leg={leg}", f"run={legs}", f"report={job.project / 'out' / 'report'}"]

# SPDX-License-Identifier: Apache-2.0
"""What a job needs that only plans: requirements-plan.lock, and no more of requirements.lock."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.ci.ci_rig import Repository, targets_file
from tests.lab import ROOT

pytestmark = pytest.mark.slow

# hil, as it finds itself where nothing else is installed: what no package of the lock brings is not to be had
ONLY_LOCKED = """
import importlib.metadata, re, runpy, sys
from pathlib import Path

def name(package):
    return re.sub("[-_.]+", "-", package).lower()

locked = {name(found) for found in re.findall(r"^([\\w.-]+)==", Path(sys.argv[1]).read_text(), re.MULTILINE)}
brought = importlib.metadata.packages_distributions()
missing = {top for top, packages in brought.items() if not locked & {name(one) for one in packages}}

class Missing:
    def find_spec(self, module, path=None, target=None):
        if module.partition(".")[0] in missing - {"hil"}:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)

sys.meta_path.insert(0, Missing())
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__")
"""
HISTORY = "allure.jsonl"


class Planner:
    """A pull request's checkout, and `hil` with the packages of requirements-plan.lock alone."""

    def __init__(self, folder: Path) -> None:
        self.origin = Repository(folder / "origin")
        files = {"firmware/a.c": "1", "docs/a.md": "1"}
        self.base = self.origin.commit({**targets_file(["esp32"], ["esp32"]), **files})
        self.origin.git("clone", "--quiet", str(self.origin.path), str(folder / "checkout"))
        self.checkout = Repository(folder / "checkout")
        self.output = folder / "output"

    def hil(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.module("hil", *words)

    def module(
        self, *words: str, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "HIL_"))}
        own = {"GITHUB_OUTPUT": str(self.output), "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-c", ONLY_LOCKED, str(ROOT / "requirements-plan.lock"), *words], text=True,
            cwd=self.checkout.path, env={**kept, **own, **(environment or {})}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=90, check=False,
        )  # fmt: skip

    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())


@pytest.fixture
def planner(tmp_path: Path) -> Planner:
    return Planner(tmp_path)


def test_planning_needs_the_packages_of_its_lock_alone(planner: Planner) -> None:
    """Neither NumPy nor SciPy, Node.js or esptool: to plan a firmware change."""
    planner.checkout.commit({"firmware/a.c": "2"})
    done = planner.hil("ci", "plan", "--base", planner.base)
    assert done.returncode == 0, done.stdout
    assert '"leg": "rack-esp32"' in planner.outputs()["racks"]


def test_a_change_of_documentation_is_decided_with_them(planner: Planner) -> None:
    """The verdict on it has nothing to judge, and `checks.yml` tests the pages alone."""
    planner.checkout.commit({"docs/a.md": "2"})
    assert planner.module("tools.docs_tests").returncode == 0
    assert planner.outputs()["only-pages"] == "true"
    assert planner.hil("ci", "plan", "--base", planner.base).returncode == 0
    assert planner.outputs()["nothing"] == "true"
    done = planner.hil("ci", "verdict")
    assert done.returncode == 0, done.stdout
    assert "# PASS: " in done.stdout


def test_a_night_is_planned_with_them(planner: Planner, tmp_path: Path) -> None:
    """With its references; and the job that writes issues finds its module."""
    (tmp_path / "event.json").write_text("{}")
    event = {"GITHUB_EVENT_NAME": "schedule", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")}
    done = planner.module("hil", "ci", "plan", environment={**event, "GITHUB_SHA": planner.base})
    assert done.returncode == 0, done.stdout
    assert "night-virtual: " in done.stdout
    assert planner.module("hil.cli.ci_verdict").returncode == 0


def test_a_history_is_pushed_with_them(planner: Planner) -> None:
    """What has a token that writes installs the fewest packages."""
    folder = planner.checkout.path / "out" / "history"
    folder.mkdir(parents=True)
    (folder / HISTORY).write_text("{}\n")
    words = ("--history", str(folder), "--message", "Append a line")
    done = planner.hil("history", "push", *words)
    assert done.returncode == 0, done.stdout
    assert planner.origin.git("show", f"hil-history:{HISTORY}") == "{}"


def test_what_needs_more_does_not_find_it(planner: Planner) -> None:
    """Control: a command that flashes or builds has no esptool here."""
    done = planner.hil("build", "--help")
    assert done.returncode != 0
    assert "No module named 'esptool'" in done.stdout

# SPDX-License-Identifier: Apache-2.0
"""What firmware, compilers and forks print in a workflow is text: GitHub's runner obeys none of it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.lab import ROOT

SHELL = "bash .ci/unheard {0}"
# workflows for other repositories, beside whose checkout this one lies in tool/
IN_TOOL = ("measure", "rack")
# steps with a shell of their own: there is no checkout for a guard to be in, and they print nothing
SILENT = ("true", "rm -rf ci")
# a step of an action begins so, wherever the runner has put the action; or it prints nothing
GUARDED = re.compile(
    r'cd "\$GITHUB_ACTION_PATH/../../.." && exec bash .ci/unheard .*'
    r'|sudo sysctl --quiet .*|.* >>"\$GITHUB_OUTPUT"'
)


def load(path: Path) -> dict[str, Any]:
    return dict(YAML(typ="safe").load(path))


def run_step(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a step's script as the runner does: written to a file, in the guarding shell."""
    path = folder / "step.sh"
    path.write_text(script)
    argv = [str(path) if word == "{0}" else word for word in SHELL.split()]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda p: p.stem)
def test_every_step_of_a_workflow_is_unheard(path: Path) -> None:
    """No step has a shell of its own, and each stands behind the checkout that brings the guard."""
    workflow = load(path)
    folder = "tool" if path.stem in IN_TOOL else None
    shell = SHELL.replace(".ci", f"{folder}/.ci") if folder else SHELL
    assert workflow.get("defaults", {}).get("run", {}).get("shell", shell) == shell
    for name, job in workflow["jobs"].items():
        steps = [step for step in job.get("steps", ()) if step.get("run") not in SILENT]
        first = next((n for n, step in enumerate(steps) if "run" in step), len(steps))
        brought = [
            n
            for n, step in enumerate(steps)
            if step.get("uses", "").startswith("actions/checkout@") and step["with"].get("path") == folder
        ]
        assert first == len(steps) or min(brought) < first, name
        assert not any("shell" in step or "working-directory" in step for step in steps), name
        assert not steps or "shell" not in job.get("defaults", {}).get("run", {}), name


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "actions").glob("*/action.yml")), ids=lambda p: p.parent.name
)
def test_every_step_of_an_action_is_unheard(path: Path) -> None:
    """A composite action finds the guard beside itself: its shell does nothing but hand over to it."""
    steps = [step for step in load(path)["runs"]["steps"] if "run" in step]
    assert {step["shell"] for step in steps} == {"bash"}
    assert [step["run"] for step in steps if not GUARDED.fullmatch(step["run"].strip())] == []


def test_a_command_in_a_steps_output_comes_after_the_runner_was_told_to_stop(tmp_path: Path) -> None:
    """The word that would let the runner obey again is new each time, and is never printed again."""
    said = [run_step(tmp_path, "echo ::add-mask::v1\n").stdout.splitlines() for _ in range(2)]
    stops = [re.fullmatch(r"::stop-commands::([0-9a-f]{32})", lines[0]) for lines in said]
    assert all(stops)
    assert said[0][1:] == ["::add-mask::v1"]
    assert stops[0][1] != stops[1][1]  # type: ignore[index]


def test_the_guard_hands_words_on(tmp_path: Path) -> None:
    """A script outside of a workflow gets its arguments, and its output is unheard as a step's."""
    script = tmp_path / "step"
    script.write_text('echo "$# $1"\n')
    argv = ["bash", str(ROOT / ".ci" / "unheard"), str(script), "a b", "c"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.splitlines()[1:] == ["2 a b"]


@pytest.mark.parametrize(("script", "status"), [("exit 3", 3), ("false | true\n", 1), ("false\ntrue\n", 1)])
def test_the_guard_is_bash_as_github_calls_it(tmp_path: Path, script: str, status: int) -> None:
    """The status of the step is its script's; a failing command ends it, in a pipe too."""
    assert run_step(tmp_path, script).returncode == status


def test_the_guard_stands_in_no_signals_way(tmp_path: Path) -> None:
    """The script has the guard's own process, so that a cancelled job's signal reaches `hil`."""
    done = run_step(tmp_path, 'kill -TERM "$$"\nsleep 60\n')
    assert done.returncode == -15

# SPDX-License-Identifier: Apache-2.0
"""Racks take a pull request's job from a fixed ref: it is written in, and what it asks for is looked at."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from hil.base.errors import ConfigError
from hil.ci.pinning import CALLED, CALLER, called_at, pin
from hil.ci.plan import write_plan
from hil.cli.app import app
from tests.ci.ci_rig import a_plan
from tests.lab import ROOT

AT_MAIN = f"example/hil/{CALLED}@main"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with this repository's workflows and list of racks."""
    shutil.copytree(ROOT / ".github", tmp_path / ".github")
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    return tmp_path


def test_the_fixed_ref_is_written_in(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line of pr.yml is another, and it still is a workflow; a second time moves the ref."""
    before = (checkout / CALLER).read_text()
    monkeypatch.chdir(checkout)
    done = CliRunner().invoke(app, ["ci", "pin-racks", "--repository", "example/hil"], standalone_mode=False)
    assert done.output == f"{CALLER} calls {AT_MAIN}\n"
    after = (checkout / CALLER).read_text()
    changed = [one for one in zip(before.splitlines(), after.splitlines(), strict=True) if one[0] != one[1]]
    assert len(changed) == 1
    assert YAML(typ="safe").load(after)["jobs"]["rack"]["uses"] == AT_MAIN
    pin(checkout, "example/other", "v1.2")
    assert called_at((checkout / CALLER).read_text()) == f"example/other/{CALLED}@v1.2"


@pytest.mark.slow
def test_the_linters_find_nothing_in_it(checkout: Path) -> None:
    """actionlint reads the call, and zizmor the reason why it is no commit."""
    subprocess.run(["git", "init", "--quiet", str(checkout)], check=True, timeout=60)
    pin(checkout, "example/hil", "main")
    linters = (("actionlint",), ("zizmor", "--offline", "--persona=auditor", "--no-progress", "."))
    for words in linters:
        argv = [str(ROOT / ".venv" / "bin" / words[0]), *words[1:]]
        done = subprocess.run(argv, capture_output=True, text=True, cwd=checkout, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("repository", "ref", "wrong"),
    [
        ("hil", "main", "'hil' is no repository"),
        ("example/hil", "", "is no branch"),
        ("example/hil", "main # x", "is no branch"),
        ("example/hil@x", "main", "is no repository"),
    ],
)
def test_what_is_no_name_is_refused(checkout: Path, repository: str, ref: str, wrong: str) -> None:
    """It would be written into a workflow."""
    before = (checkout / CALLER).read_text()
    with pytest.raises(ConfigError, match=re.escape(wrong)):
        pin(checkout, repository, ref)
    assert (checkout / CALLER).read_text() == before


@pytest.mark.parametrize("text", ["", "    uses: ./.github/workflows/rack.yml\n" * 2])
def test_a_workflow_of_another_shape_is_left_alone(tmp_path: Path, text: str) -> None:
    """None or two calls: a person looks at it."""
    (tmp_path / CALLER).parent.mkdir(parents=True)
    (tmp_path / CALLER).write_text(text)
    with pytest.raises(ConfigError, match="exactly once"):
        pin(tmp_path, "example/hil", "main")
    assert called_at(text) == ""


def test_without_a_checkout_it_is_said(tmp_path: Path) -> None:
    """The way out is to go there."""
    with pytest.raises(ConfigError, match="cannot be read"):
        pin(tmp_path, "example/hil", "main")


def admit(checkout: Path, target: str, suite: str) -> subprocess.CompletedProcess[str]:
    plan = a_plan(["esp32", "esp32s3"])
    write_plan(plan, checkout / "plan.json")
    targets = {"build": [], "racks": ["esp32"]}
    (checkout / ".github/hil-targets.json").write_text(json.dumps(targets))
    argv = [str(checkout / ".ci/admit"), target, suite, "plan.json"]
    return subprocess.run(argv, capture_output=True, text=True, cwd=checkout, check=False, timeout=60)


def test_a_rack_is_asked_for_what_is_planned(checkout: Path) -> None:
    """A chip of the list beside the script, with the suite that the plan has for it."""
    done = admit(checkout, "esp32", "pr")
    assert (done.returncode, done.stdout) == (0, "esp32: pr\n"), done.stderr


@pytest.mark.parametrize(
    ("target", "suite", "wrong"),
    [
        ("esp32s3", "pr", "hil-targets.json has no rack for 'esp32s3'"),  # the pull request's list has
        ("linux", "pr", "has no rack for 'linux'"),
        ("esp32", "nightly", "and not for 'nightly'"),
    ],
)
def test_a_rack_is_not_asked_for_more(checkout: Path, target: str, suite: str, wrong: str) -> None:
    """Neither a chip that only the pull request lists nor another suite; the job ends there."""
    done = admit(checkout, target, suite)
    assert done.returncode == 2
    assert wrong in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("text", ["", "[]", '{"legs": [{}]}'], ids=["nothing", "a-list", "half-a-leg"])
def test_a_plan_that_cannot_be_read_admits_nothing(checkout: Path, text: str) -> None:
    """It is another job's word."""
    (checkout / ".github/hil-targets.json").write_text('{"build": [], "racks": ["esp32"]}')
    (checkout / "plan.json").write_text(text)
    argv = [str(checkout / ".ci/admit"), "esp32", "pr", "plan.json"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=checkout, check=False, timeout=60)
    assert done.returncode == 2
    assert "cannot be read" in done.stdout

# SPDX-License-Identifier: Apache-2.0
"""What a change of pages alone is tested by, and that nothing else passes for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.ci.ci_rig import Repository
from tests.lab import ROOT
from tools import docs_tests


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    """A folder of tests, of which one follows a page."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_guide.py").write_text('GUIDE = ROOT / "docs" / "start" / "guide.md"\n')
    (tmp_path / "tests" / "test_plan.py").write_text('files = ["docs/explain/gate.md"]\n')
    return tmp_path / "tests"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (["docs/explain/gate.md", "README.md", "docs/img/report.png"], ""),
        (["docs/explain/gate.md", "hil/gate/judge.py"], "hil/gate/judge.py is no page"),
        (["docs/reference/schema/run.schema.json"], "docs/reference/schema/run.schema.json is no page"),
        (["firmware/README.md"], "firmware/README.md is no page"),
        (["docs/start/guide.md"], "docs/start/guide.md is read by test_guide.py"),
        ([], "what changed is not known"),
    ],
)
def test_only_pages_that_no_test_reads_need_fewer_tests(files: list[str], reason: str, tests: Path) -> None:
    """What programs read, or a test follows, is tested as code; so is what nobody knows."""
    assert docs_tests.why_all(files, tests) == reason


def test_pages_that_tests_follow_are_found() -> None:
    """Control, in this checkout: the guides that are followed step by step."""
    for page in ("docs/start/write-a-benchmark.md", "docs/start/rack-in-a-day.md"):
        assert docs_tests.readers(page, ROOT / "tests"), page
    assert not docs_tests.readers("docs/explain/gate.md", ROOT / "tests")


def asks(repository: Repository, monkeypatch: pytest.MonkeyPatch, name: str, payload: object) -> str:
    """Return the output of the command in a job of this event."""
    event, output = repository.path.with_name("event.json"), repository.path.with_name("output")
    event.write_text(json.dumps(payload))
    output.unlink(missing_ok=True)
    facts = {"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(event), "GITHUB_OUTPUT": str(output)}
    for key, value in {**facts, "GITHUB_SHA": repository.git("rev-parse", "HEAD")}.items():
        monkeypatch.setenv(key, value)
    monkeypatch.chdir(repository.path)
    assert docs_tests.main() == 0
    return output.read_text()


def test_the_workflow_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a pull request and a merge group; a push to main is tested whole, and so is an unknown base."""
    repository = Repository(tmp_path / "repository")
    base = repository.commit({"docs/a.md": "1"})
    head = repository.commit({"docs/a.md": "2"})
    own = {"full_name": "me/hil"}
    sides = {"head": {"sha": head, "repo": own}, "base": {"sha": base, "repo": own}}
    pull_request = {"pull_request": {"number": 7, **sides}}
    assert asks(repository, monkeypatch, "pull_request", pull_request) == "only-pages=true\n"
    group = {"merge_group": {"head_sha": head, "base_sha": base}}
    assert asks(repository, monkeypatch, "merge_group", group) == "only-pages=true\n"
    assert asks(repository, monkeypatch, "push", {}) == "only-pages=false\n"
    sides["base"]["sha"] = "c0ffee" * 6 + "c0ff"
    assert asks(repository, monkeypatch, "pull_request", pull_request) == "only-pages=false\n"


def test_the_required_check_always_tests() -> None:
    """The job has no condition that could skip it: of its two steps that test one runs, whatever is said."""
    workflow = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "checks.yml")
    assert not {"paths", "paths-ignore"} & set(workflow["on"]["pull_request"] or {})
    job = workflow["jobs"]["test"]
    named = {step["name"]: step for step in job["steps"]}
    assert named["Tests"]["if"] == "steps.docs.outputs.only-pages != 'true'"
    assert named["Tests of the documentation"]["if"] == "steps.docs.outputs.only-pages == 'true'"
    assert "needs" not in job

# SPDX-License-Identifier: Apache-2.0
"""What looks after the pages: the linter, messages, what is pasted, tests of pages alone, what CI costs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from hil.boards.rack import load_rack
from hil.store import RunDirectory
from tests import in_process
from tests.ci.ci_rig import Repository
from tests.golden.comparing import RENDERED, STORED
from tests.lab import ROOT
from tests.reports.as_read import Seen
from tools import docs_tests, messages, paste, prose
from tools.ci_cost import AFTER, SECONDS, billed, lines
from tools.comment_page import to_html
from tools.paste import Values, invisible, not_in_git, not_planned


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# A page\n\nThe owner is\ntold by name.\n", ["page.md:3: 'is told': write 'is reported'"]),
        ("`is told`\n\n```\nis told\n```\n\n    is told\n", []),
        ("word " * (prose.LONGEST_PAGE + 1), ["page.md: 1501 words"]),
    ],
    ids=["word", "code", "long"],
)
def test_what_is_wrong_in_a_page_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: list[str]
) -> None:
    """A word of the list, with file, line and what to write instead, also where the words stand on two lines;
    a page that answers more than one question. Words within code spans and code blocks are a program's."""
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(text)
    assert [said.partition(", ")[0] for said in prose.findings(tmp_path / "page.md")] == found


SOURCE = """
raise ConfigError(f"{path}: no board {name!r}.", next_step="add it")
raise RigError("The port " "is gone.")
raise node.error("baud", "a baud rate is a number.")
raise ValueError("nobody reads this")
log.error("nor this")
"""


def test_each_message_is_listed_with_owner_and_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors with an owner are listed, values as placeholders; what is not shown to a person is left out."""
    (tmp_path / "part.py").write_text(SOURCE)
    monkeypatch.setattr(messages, "ROOT", tmp_path)
    assert list(messages.messages_in(tmp_path / "part.py")) == [
        messages.Message("part.py", 2, "configuration", "{…}: no board {…}.", "add it"),
        messages.Message("part.py", 3, "rig", "The port is gone."),
        messages.Message("part.py", 4, "configuration", "a baud rate is a number."),
    ]


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
    said = "steps.docs.outputs.only-pages {} 'true'"
    assert named["Tests"]["if"] == said.format("!=")
    assert named["Tests of the documentation"]["if"] == said.format("==")
    assert "needs" not in job


(RUN,) = RunDirectory.list(STORED / "out")


@pytest.mark.slow
def test_each_kind_of_value_is_copied() -> None:
    """What the code spans of a summary hold is sorted by its grammar."""
    page = (RENDERED / "summary.md").read_text(encoding="utf-8")
    values = Values(Seen(to_html(page)).spans, {"e1", "e2", "e4"})
    assert values.run_ids == [RUN.path.name]
    assert values.commands == [f"hil gate out/{RUN.path.name}"]
    assert set(values.boards) == {"e1", "e2", "e4"}
    assert "publish/count=40,warmup=2" in values.cases
    assert values.digests
    assert values.times
    assert values.metrics


@pytest.mark.slow
def test_what_is_not_found_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest that git and images do not have, a case and a board that no run plans, a hidden character."""
    assert list(not_in_git(["0123456789ab", "feedc0de0001"], {"feedc0de0001ffff"})) == ["0123456789ab"]
    monkeypatch.setattr(paste, "_hil", in_process.hil)
    rack = Path(ROOT / "hil/racks/virtual.yaml")
    board = load_rack(rack).boards[0].id
    unknown = not_planned(["jitter/defaults", "jitter/count=7"], [board, "b0"], rack)
    assert set(unknown) == {"jitter/count=7", "b0"}
    assert invisible("a\u200bb") == ["\u200b"]


def test_the_jobs_are_those_of_the_workflows() -> None:
    """A job that is added to a pull request is counted; the legs of the virtual rack are two.
    docs/operate/ci.md has the table as it is; each job is billed by the whole minute, and a second more is a
    minute more."""
    workflows = {
        name: YAML(typ="safe").load(ROOT / ".github" / "workflows" / f"{name}.yml")["jobs"]
        for name in ("pr", "measure", "comment")
    }
    elsewhere = {"rack", "patience", "give-up", "emulator"}  # jobs that not every repository has
    called = set(workflows["measure"]) - elsewhere | {"compare"}
    assert set(workflows["pr"]) == {"hil"}  # which calls them
    assert set(AFTER["firmware"]) == called | set(workflows["comment"])
    assert set(AFTER["documentation"]) == {"plan", "comment"}
    page = (ROOT / "docs" / "operate" / "ci.md").read_text(encoding="utf-8")
    assert all(line in page for line in lines())
    assert SECONDS["container"] == 60
    assert [billed(steps) for steps in (("machine",), ("container",), ("container", "plan"))] == [1, 1, 2]

# SPDX-License-Identifier: Apache-2.0
"""Whether a repository at GitHub is set up: what is wrong is named, with the command that mends it."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner

from hil.base.finding import Finding
from hil.ci.github import GitHub
from hil.ci.pinning import FOR_RACKS
from hil.ci.repository import check_repository
from hil.cli.ci import command
from tests.ci.github_server import HOME, TOKEN, State, serve

ACTIONS = 15368


def required(**by: object) -> dict[str, Any]:
    """Return a branch's rule that requires the verdict, of an app where one is named."""
    checks = {"required_status_checks": [{"context": "hil-verdict", **by}]}
    return {"type": "required_status_checks", "parameters": checks}


REVIEWED = {"protection_rules": [{"type": "required_reviewers", "reviewers": [{"type": "User"}]}]}
GROUPS = "/orgs/example/actions/runner-groups"
CALL = "    uses: example/hil/.github/workflows/rack.yml@main\n"
ADMITTED = [f"example/hil/{workflow}@refs/heads/main" for workflow in FOR_RACKS]
GROUP = {"id": 4, "name": "racks", "restricted_to_workflows": True, "selected_workflows": ADMITTED}
RUNNER = {"status": "online", "labels": [{"name": name} for name in ("self-hosted", "hil", "esp32")]}
WELL: dict[str, Any] = {
    "": {
        "default_branch": "main",
        "private": False,
        "owner": {"type": "Organization", "login": "example"},
    },
    "contents/.github/workflows/pr.yml": {"content": base64.b64encode(CALL.encode()).decode()},
    GROUPS: {"runner_groups": [GROUP, {"id": 1, "name": "Default", "restricted_to_workflows": False}]},
    f"{GROUPS}/4/runners": {"runners": [RUNNER]},
    f"{GROUPS}/1/runners": {"runners": [{"labels": [{"name": "self-hosted"}]}]},
    "rules/branches/main": [required(integration_id=ACTIONS)],
    "actions/permissions/workflow": {"default_workflow_permissions": "read"},
    "actions/permissions/fork-pr-contributor-approval": {"approval_policy": "all_external_contributors"},
    "branches/hil-history": {"name": "hil-history"},
    "codeowners/errors": {"errors": []},
    "pages": {"build_type": "workflow"},
    "labels/hil%3Aaccept": {"name": "hil:accept"},
    "labels/hil%3Amore": {"name": "hil:more"},
    "environments/hil-rack": {"protection_rules": []},
    "environments/hil-rack-forks": REVIEWED,
    "actions/runners": {"runners": [RUNNER]},
}
CHANGES: tuple[tuple[str, Any, str, str], ...] = (
    ("rules/branches/main", [], "required check", "rulesets --input -"),
    ("rules/branches/main", [required()], "required check", f'"integration_id": {ACTIONS}'),
    ("rules/branches/main", [required(integration_id=1)], "required check", f'"integration_id": {ACTIONS}'),
    ("/apps/github-actions", {"id": 4}, "required check", '"integration_id": 4'),  # of another server
    (
        "actions/permissions/workflow",
        {"default_workflow_permissions": "write"},
        "token of jobs",
        "permissions=read",
    ),
    (
        "actions/permissions/fork-pr-contributor-approval",
        {"approval_policy": "first_time_contributors"},
        "forks",
        "approval_policy=all_external_contributors",
    ),
    ("environments/hil-rack-forks", {"protection_rules": []}, "environment hil-rack-forks", "reviewers"),
    ("environments/hil-rack-forks", None, "environment hil-rack-forks", "reviewers"),
    ("environments/hil-rack", REVIEWED, "environment hil-rack", "--input -"),
    ("environments/hil-rack/secrets", {"total_count": 1}, "environment hil-rack", "gh secret list"),
    (
        "contents/.github/workflows/pr.yml",
        {"content": base64.b64encode(b"    uses: ./.github/workflows/rack.yml\n").decode()},
        "workflow of racks",
        "hil ci pin-racks --repository example/hil --ref main",
    ),
    ("contents/.github/workflows/pr.yml", None, "workflow of racks", "hil ci pin-racks"),
    (
        GROUPS,
        {"runner_groups": [{**GROUP, "restricted_to_workflows": False}]},
        "runner group of racks",
        "-F restricted_to_workflows=true",
    ),
    (
        GROUPS,
        {"runner_groups": [{**GROUP, "selected_workflows": [ADMITTED[0].replace("rack.yml", "pr.yml")]}]},
        "runner group of racks",
        f"-f 'selected_workflows[]={ADMITTED[0]}'",
    ),
    (
        "codeowners/errors",
        {"errors": [{"line": 2, "path": ".github/CODEOWNERS"}]},
        "owners",
        "your own accounts",
    ),
)
NOTES: tuple[tuple[str, Any, str, str], ...] = (
    ("", {"default_branch": "main", "owner": {"type": "User"}}, "runner group of racks", "organisation"),
    (f"{GROUPS}/4/runners", {"runners": []}, "runner group of racks", "look again"),
    ("branches/hil-history", None, "history", "gh workflow run nightly.yml"),
    ("pages", None, "Pages", "-X POST repos/example/hil/pages"),
    ("pages", {"build_type": "legacy"}, "Pages", "-X PUT repos/example/hil/pages"),
    ("labels/hil%3Amore", None, "label hil:more", "gh label create hil:more"),
    (
        "actions/runners",
        {"runners": [{**RUNNER, "status": "offline"}]},
        "runner for esp32",
        "hil runner serve",
    ),
    ("actions/permissions/fork-pr-contributor-approval", None, "forks", "Require approval"),
)


@pytest.fixture
def state() -> State:
    return State(head="", settings=dict(WELL))


@pytest.fixture
def github(state: State) -> Iterator[GitHub]:
    with serve(state) as api:
        yield GitHub(HOME, TOKEN, api, wait=lambda _seconds: None)


def look(github: GitHub) -> dict[str, Finding]:
    return {finding.subject: finding for finding in check_repository(github, ["esp32"])}


def test_a_repository_that_is_set_up_has_no_finding(github: GitHub) -> None:
    """Everything is looked at, and all of it is well."""
    found = look(github)
    assert len(found) == 13
    assert [finding.line for finding in found.values() if not finding.ok] == []


@pytest.mark.parametrize(("path", "answer", "subject", "mend"), [*CHANGES, *NOTES])
def test_what_is_wrong_is_named_with_its_command(
    state: State, github: GitHub, path: str, answer: Any, subject: str, mend: str
) -> None:
    """One setting changed is one finding, a fault or a note, whose command names it."""
    if answer is None:
        del state.settings[path]
    else:
        state.settings[path] = answer
    wrong = [finding for finding in look(github).values() if not finding.ok]
    assert [finding.subject for finding in wrong] == [subject]
    assert mend in wrong[0].mend
    assert wrong[0].needed == ((path, answer, subject, mend) in CHANGES)


def test_a_check_of_a_called_workflow_counts(state: State, github: GitHub) -> None:
    """A repository that calls the pipeline has the caller's job in front; older protection counts too."""
    state.settings["rules/branches/main"] = []
    check: dict[str, Any] = {"context": "hil / hil-verdict", "app_id": ACTIONS}
    protection = {"contexts": ["hil / hil-verdict"], "checks": [check]}
    state.settings["branches/main/protection/required_status_checks"] = protection
    assert look(github)["required check"].ok
    check["app_id"] = None
    assert '"context": "hil / hil-verdict"' in look(github)["required check"].mend


def test_the_rule_that_mends_is_one_that_counts(state: State, github: GitHub) -> None:
    """The ruleset in the command is JSON, and with its rule in force the check is required."""
    state.settings["rules/branches/main"] = []
    words = shlex.split(look(github)["required check"].mend)
    assert words[0] == "echo"
    state.settings["rules/branches/main"] = json.loads(words[1])["rules"]
    assert look(github)["required check"].ok


def test_what_the_token_may_not_see_is_no_fault(state: State, github: GitHub) -> None:
    """A refusal is a note that says which right is missing."""
    refusal = (403, {}, b'{"message": "Resource not accessible"}')
    state.trouble["GET /repos/example/hil/actions/permissions/workflow"] = [refusal]
    state.trouble["GET /repos/example/hil/actions/runners"] = [refusal]
    found = look(github)
    for subject in ("token of jobs", "runner for esp32"):
        assert not found[subject].needed
        assert "Administration: read" in found[subject].mend


def test_a_repository_that_is_not_there(state: State, github: GitHub) -> None:
    """Nothing more is asked of it."""
    state.settings.clear()
    assert [(finding.subject, finding.ok) for finding in check_repository(github, [])] == [
        ("repository", False)
    ]


def test_the_command_says_what_to_do_first(
    state: State, github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line each; the status is 2 with the first fault's command, 0 where there are notes alone."""
    monkeypatch.setenv("GITHUB_API_URL", github.api)
    monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
    arguments = ["doctor", "--repository", HOME]
    del state.settings["pages"]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    assert re.search(r"^note Pages: switched off", done.output, re.MULTILINE)
    state.settings["rules/branches/main"] = []
    done = CliRunner().invoke(command, arguments)
    assert "can be merged" in str(done.exception)
    assert "rulesets" in str(done.exception)

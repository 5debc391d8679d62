# SPDX-License-Identifier: Apache-2.0
"""Whether a repository is set up as docs/operate/ci.md says: settings, rules, environments, labels, runners.

Each finding has the command that mends it; nothing is changed here. What a token may not see is said, and is
no fault. Answers are those of GitHub's REST API, version 2022-11-28.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from hil.base.finding import Finding
from hil.ci.acceptance import LABEL as ACCEPT
from hil.ci.github import GitHub, Refused
from hil.ci.history import BRANCH
from hil.ci.more import LABEL as MORE
from hil.ci.repository_racks import racks_call, runner_groups

CHECK = "hil-verdict"
ACTIONS_APP = 15368  # GitHub Actions on github.com
RACK, FORKS = "hil-rack", "hil-rack-forks"
_LABELS = (
    (ACCEPT, "takes a regression on purpose"),
    (MORE, "more boots of an undecided rack"),
)
_UNSEEN = "give GITHUB_TOKEN the repository permission Administration: read, or look by hand"


class _Hidden(Exception):  # noqa: N818 (an answer)
    """The token may not see this."""


class _Repository:
    """What is asked of a repository; what is not there is None."""

    def __init__(self, github: GitHub) -> None:
        self.name = github.repository
        self._github = github

    def get(self, path: str) -> Any:
        """Return an answer, None for 404. Raises _Hidden, RigError."""
        try:
            return self._github.get(path)
        except Refused as refused:
            if refused.status == 404:
                return None
            if refused.status in (401, 403):
                raise _Hidden from refused
            raise

    def list(self, path: str, key: str) -> list[Any]:
        """Return the whole of a list. Raises _Hidden, RigError."""
        try:
            return list(self._github.pages(path, key))
        except Refused as refused:
            raise _Hidden from refused

    def put(self, path: str, *fields: str) -> str:
        """Return the command that sets something."""
        return " ".join(["gh api -X PUT", f"repos/{self.name}/{path}".rstrip("/"), *fields])


def check_repository(github: GitHub, chips: Sequence[str]) -> Iterator[Finding]:
    """Yield what was looked at; ``chips`` are those that racks measure. Raises RigError: no answer."""
    repository = _Repository(github)
    about = repository.get(f"/repos/{github.repository}")
    if about is None:
        yield Finding(
            "repository",
            ok=False,
            sentence=f"GitHub knows no {github.repository}, or the token has no access to it",
            mend="check --repository and GITHUB_TOKEN",
        )
        return
    branch = str(about.get("default_branch") or "main")
    looks: list[tuple[str, Callable[[], Finding]]] = [
        ("required check", partial(_required_check, repository, branch)),
        ("token of jobs", partial(_token, repository)),
        ("history", partial(_history, repository)),
        ("owners", partial(_owners, repository)),
        ("Pages", partial(_pages, repository)),
        *((f"label {name}", partial(_label, repository, name, what)) for name, what in _LABELS),
    ]
    if not about.get("private"):
        looks.append(("forks", partial(_forks, repository)))
    if chips:
        owner = about.get("owner") or {}
        organisation = str(owner.get("login")) if owner.get("type") == "Organization" else ""
        looks += [
            ("workflow of racks", partial(racks_call, repository.get, repository.name, branch)),
            (
                "runner group of racks",
                partial(runner_groups, repository.list, repository.name, branch, organisation),
            ),
        ]
        looks += [(f"environment {name}", partial(_environment, repository, name)) for name in (RACK, FORKS)]
        looks += [(f"runner for {chip}", partial(_runner, repository, chip)) for chip in chips]
    for subject, look in looks:
        try:
            yield look()
        except _Hidden:
            yield Finding(subject, ok=False, sentence="the token may not see it", mend=_UNSEEN, needed=False)


def _required_check(repository: _Repository, branch: str) -> Finding:
    """Look for a rule that requires the verdict of GitHub Actions: any other app could post that name."""
    subject, app = "required check", _actions_app(repository)
    of_anybody = ""
    for name, by in _required(repository, quote(branch, safe="")):
        if _is_verdict(name) and by == app:
            return Finding(subject, ok=True, sentence=f"{branch} requires {CHECK} of GitHub Actions")
        of_anybody = name if _is_verdict(name) else of_anybody
    check = {"context": of_anybody or CHECK, "integration_id": app}
    parameters = {"strict_required_status_checks_policy": False, "required_status_checks": [check]}
    body = {
        "name": CHECK,
        "target": "branch",
        "enforcement": "active",
        "conditions": {"ref_name": {"include": ["~DEFAULT_BRANCH"], "exclude": []}},
        "rules": [{"type": "required_status_checks", "parameters": parameters}],
    }
    return Finding(
        subject,
        ok=False,
        sentence=f"{branch} requires {CHECK} of any app, so whoever may write a status can post it"
        if of_anybody
        else f"nothing requires {CHECK} on {branch}, so a regression can be merged",
        mend=f"echo '{json.dumps(body)}' | gh api -X POST repos/{repository.name}/rulesets --input -",
    )


def _required(repository: _Repository, branch: str) -> Iterator[tuple[str, object]]:
    """Yield each required check of a branch, with the app that must post it: by rulesets, then protection."""
    for rule in repository.get(f"rules/branches/{branch}") or []:
        if rule.get("type") == "required_status_checks":
            for one in rule["parameters"]["required_status_checks"]:
                yield str(one.get("context")), one.get("integration_id")
    protection = repository.get(f"branches/{branch}/protection/required_status_checks") or {}
    for one in protection.get("checks", []):
        yield str(one.get("context")), one.get("app_id")


def _actions_app(repository: _Repository) -> int:
    """Return the id of the app GitHub Actions, which is another one on GitHub Enterprise Server."""
    return int((repository.get("/apps/github-actions") or {}).get("id", ACTIONS_APP))


def _is_verdict(name: str) -> bool:
    return (
        name.rpartition(" / ")[2] == CHECK
    )  # "hil / hil-verdict" where a workflow of another repository is called


def _token(repository: _Repository) -> Finding:
    subject, path = "token of jobs", "actions/permissions/workflow"
    found = repository.get(path) or {}
    if found.get("default_workflow_permissions") == "read":
        return Finding(subject, ok=True, sentence="it only reads, unless a workflow says more")
    return Finding(
        subject,
        ok=False,
        sentence="jobs may write by default, those of a rack too",
        mend=repository.put(path, "-f default_workflow_permissions=read"),
    )


def _forks(repository: _Repository) -> Finding:
    subject, path = "forks", "actions/permissions/fork-pr-contributor-approval"
    found = repository.get(path)
    if found is None:
        return Finding(
            subject,
            ok=False,
            sentence="this server does not say whose workflows wait for an approval",
            mend="look at Settings, Actions, General: Require approval for all external contributors",
            needed=False,
        )
    if found.get("approval_policy") == "all_external_contributors":
        return Finding(subject, ok=True, sentence="workflows of everybody from outside wait for an approval")
    return Finding(
        subject,
        ok=False,
        sentence="whoever once had a change merged reaches a rack without being looked at",
        mend=repository.put(path, "-f approval_policy=all_external_contributors"),
    )


def _environment(repository: _Repository, name: str) -> Finding:
    subject, path = f"environment {name}", f"environments/{name}"
    found = repository.get(path)
    reviewers = [
        rule for rule in (found or {}).get("protection_rules", []) if rule.get("type") == "required_reviewers"
    ]
    body = '{"reviewers":[{"type":"User","id":ID}]}' if name == FORKS else "{}"
    mend = f"echo '{body}' | {repository.put(path, '--input -')}"
    if name == FORKS:
        mend += " (ID: gh api users/LOGIN --jq .id)"
    if found is None:
        sentence = "it is not there, and the first job would make it, without reviewers"
    elif name == FORKS and not reviewers:
        sentence = "nobody has to review what a fork runs on a rack"
    elif name == RACK and reviewers:
        sentence = "each job of a rack waits for a reviewer, those of the night too"
    elif (repository.get(f"{path}/secrets") or {}).get("total_count"):
        sentence = "it has secrets, and what a pull request runs on a rack could read them"
        mend = f"gh secret list --env {name} --repo {repository.name}, and delete each"
    else:
        return Finding(subject, ok=True, sentence="as it should be")
    return Finding(subject, ok=False, sentence=sentence, mend=mend)


def _runner(repository: _Repository, chip: str) -> Finding:
    subject = f"runner for {chip}"
    fitting = [
        one
        for one in repository.list("actions/runners", "runners")
        if {"self-hosted", "hil", chip} <= {label["name"] for label in one["labels"]}
    ]
    if any(one["status"] == "online" for one in fitting):
        return Finding(subject, ok=True, sentence="one is online")
    return Finding(
        subject,
        ok=False,
        sentence=f"{len(fitting)} registered, none online; its legs are undecided after an hour",
        mend=f"hil runner serve --repo {repository.name} --to hil-mint@RACK --label {chip}; "
        f"or take {chip} out of racks in .github/hil-targets.json",
        needed=False,  # a registration is for one job, and between two there may be none
    )


def _owners(repository: _Repository) -> Finding:
    errors = (repository.get("codeowners/errors") or {}).get("errors", [])
    if not errors:
        return Finding("owners", ok=True, sentence="each line of CODEOWNERS names somebody")
    lines = ", ".join(str(one.get("line")) for one in errors[:5])
    return Finding(
        "owners",
        ok=False,
        sentence=f"{errors[0].get('path')}: GitHub ignores line {lines}",
        mend="put your own accounts or teams there, with write access",
    )


def _history(repository: _Repository) -> Finding:
    there = repository.get(f"branches/{BRANCH}") is not None
    sentence = f"the branch {BRANCH} is there" if there else f"no branch {BRANCH} yet"
    mend = "the first night makes it: gh workflow run nightly.yml"
    return Finding("history", ok=there, sentence=sentence, mend=mend, needed=False)


def _pages(repository: _Repository) -> Finding:
    found = repository.get("pages")
    if found and found.get("build_type") == "workflow":
        return Finding("Pages", ok=True, sentence="workflows deploy them")
    verb = "PUT" if found else "POST"
    return Finding(
        "Pages",
        ok=False,
        sentence="they have another source" if found else "switched off: no night's report is shown",
        mend=f"gh api -X {verb} repos/{repository.name}/pages -f build_type=workflow",
        needed=False,
    )


def _label(repository: _Repository, name: str, what: str) -> Finding:
    if repository.get(f"labels/{quote(name, safe='')}") is not None:
        return Finding(f"label {name}", ok=True, sentence="is there")
    mend = f"gh label create {name} --repo {repository.name} --description '{what}'"
    return Finding(f"label {name}", ok=False, sentence="nobody can set it yet", mend=mend, needed=False)

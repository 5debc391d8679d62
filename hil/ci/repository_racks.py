# SPDX-License-Identifier: Apache-2.0
"""Whether racks take jobs from workflows of the default branch only: pr.yml's call, and the runner group."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from hil.base.finding import Finding
from hil.ci.pinning import CALLED, CALLER, FOR_RACKS, called_at, pinned

Get = Callable[[str], Any]
List = Callable[[str, str], list[Any]]


def racks_call(get: Get, name: str, branch: str) -> Finding:
    """Look at what pr.yml of the default branch calls for its racks."""
    subject, wanted = "workflow of racks", pinned(name, branch)
    stored = get(f"contents/{CALLER}?ref={quote(branch, safe='')}") or {}
    text = base64.b64decode(stored.get("content") or "").decode("utf-8", "replace")
    found = called_at(text)
    if found.lower() == wanted.lower():
        return Finding(subject, ok=True, sentence=f"pr.yml calls it at {branch}")
    sentence = (
        f"pr.yml calls {found}, so a pull request says itself what runs on a rack"
        if found
        else f"pr.yml of {branch} does not call {CALLED}"
    )
    mend = f"hil ci pin-racks --repository {name} --ref {branch}, then commit and merge that"
    return Finding(subject, ok=False, sentence=sentence, mend=mend)


def runner_groups(get_list: List, name: str, branch: str, organisation: str) -> Finding:
    """Look whether the groups of the racks' runners admit workflows of the default branch only."""
    subject = "runner group of racks"
    if not organisation:
        return Finding(
            subject,
            ok=False,
            sentence="a person's repository has no runner groups: its racks take jobs from every workflow",
            mend="keep the approval of each outside run, or give the repository to an organisation",
            needed=False,
        )
    base = f"/orgs/{organisation}/actions/runner-groups"
    groups = get_list(f"{base}?visible_to_repository={quote(name.partition('/')[2])}", "runner_groups")
    of_racks = [one for one in groups if _has_a_rack(get_list(f"{base}/{one['id']}/runners", "runners"))]
    admitted = [f"{name}/{workflow}@refs/heads/{branch}" for workflow in FOR_RACKS]
    for group in of_racks:
        if why := _is_open(group, admitted):
            fields = " ".join(f"-f 'selected_workflows[]={one}'" for one in admitted)
            mend = f"gh api -X PATCH orgs/{organisation}/actions/runner-groups/{group['id']} "
            mend += f"-F restricted_to_workflows=true {fields}"
            return Finding(subject, ok=False, sentence=f"{group['name']!r} {why}", mend=mend)
    if of_racks:
        return Finding(subject, ok=True, sentence="it admits workflows of the default branch only")
    return Finding(
        subject,
        ok=False,
        sentence="no group of the organisation has a rack now, so nothing is known of its limits",
        mend="look again while a rack's runner is registered",
        needed=False,
    )


def _has_a_rack(runners: list[Any]) -> bool:
    return any({"self-hosted", "hil"} <= set(_labels(runner)) for runner in runners)


def _labels(runner: Mapping[str, Any]) -> Iterator[str]:
    yield from (str(label["name"]) for label in runner["labels"])


def _is_open(group: Mapping[str, Any], admitted: list[str]) -> str:
    if not group.get("restricted_to_workflows"):
        return "takes jobs from every workflow, those of pull requests too"
    known = {one.lower() for one in admitted}
    strange = [str(one) for one in group.get("selected_workflows") or () if str(one).lower() not in known]
    return f"admits {strange[0]}, too" if strange else ""

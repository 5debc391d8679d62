# SPDX-License-Identifier: Apache-2.0
"""The label hil:accept: who may write takes a regression on purpose, with a reason, for one commit."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hil.base.errors import ExitCode
from hil.base.untrusted import markdown
from hil.ci.acceptance import LABEL, Acceptance, find_acceptance
from hil.ci.comment import comment
from hil.ci.conclusion import CiVerdict, accept, conclude
from hil.ci.github import GitHub
from hil.ci.plan import read_plan
from hil.model import Fault, NotRun
from tests.ci.ci_rig import HEAD
from tests.ci.comment_rig import kept, leave_all, leave_virtual, own_repository, pull_request_state, zipped
from tests.ci.github_server import HOME, RUN, TOKEN, State, serve
from tests.in_process import hil
from tests.lab import own_environment
from tests.make_records import RUN_ID

LATER, EARLIER = "2026-11-20T01:20:00Z", "2026-11-20T00:59:59Z"  # the run began at 01:00
REASON = "TLS 1.3 costs that, and we want it"


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of which a comparison regressed, and nothing else is wrong."""
    return leave_all(tmp_path_factory.mktemp("slower"), effect=0.18)


@pytest.fixture
def state() -> State:
    """A pull request of a fork whose owner has set the label and said why."""
    state = pull_request_state()
    state.set_jobs("success", **{"hil / Virtual rack compare": "failure"})
    state.permissions |= {"owner": "write", "somebody": "read"}
    state.set_label(LABEL, "owner", LATER)
    state.add_comment(f"Looked at it.\nhil:accept: {REASON}\n", "owner")
    return state


@pytest.fixture(autouse=True)
def _where_comment_yml_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own_repository().path)


@pytest.fixture
def github(state: State) -> Iterator[GitHub]:
    with serve(state) as api:
        yield GitHub(HOME, TOKEN, api)


def found(github: GitHub) -> Acceptance | None:
    return find_acceptance(github, 7, RUN, HEAD)


def verdict_on(folder: Path) -> CiVerdict:
    return conclude(read_plan(folder / "plan.json"), folder / "legs", {})


def test_an_owner_accepts_with_a_reason(github: GitHub, state: State) -> None:
    """Who set the label may write, and says why.

    A pull request of somebody who may write can say it at once in its description.
    """
    assert found(github) == Acceptance("owner", REASON, LATER)
    state.comments[7].clear()
    assert found(github) is None
    state.pulls[7] |= {"user": {"login": "owner"}, "body": f"Slower.\r\nhil:accept: {REASON}\r\n"}
    assert found(github) == Acceptance("owner", REASON, LATER)


def _drop_label(state: State) -> None:
    state.pulls[7]["labels"].clear()


def _reason_of_the_author(state: State) -> None:
    state.comments[7][0]["user"]["login"] = "somebody"
    state.pulls[7]["body"] = f"hil:accept: {REASON}"


NOT_ACCEPTED: dict[str, Callable[[State], object]] = {
    "no-label": _drop_label,
    "by-the-author": lambda state: state.events[7][0]["actor"].update(login="somebody"),
    "before-the-push": lambda state: state.events[7][0].update(created_at=EARLIER),
    "reason-of-the-author": _reason_of_the_author,
    "no-reason": lambda state: state.comments[7][0].update(body="hil:accept:   \nfine by me"),
    "triage-only": lambda state: state.permissions.update(owner="read"),
    "newer-head": lambda state: state.pulls[7]["head"].update(sha="d" * 40),
    "unknown": lambda state: state.permissions.pop("owner"),
}


@pytest.mark.parametrize("change", NOT_ACCEPTED.values(), ids=NOT_ACCEPTED)
def test_nobody_else_can(github: GitHub, state: State, change: Callable[[State], object]) -> None:
    """Not the fork's author, not for a commit pushed later, not without a reason, not without the right."""
    change(state)
    assert found(github) is None


def test_what_is_accepted_is_neutral_and_never_a_pass(slower: Path, tmp_path: Path) -> None:
    """The required check passes; headline and conclusion keep that it regressed. A broken limit, which is
    no comparison, is not accepted, whichever leg breaks it."""
    before = verdict_on(slower)
    assert (before.exit_code, before.acceptable) == (ExitCode.FIRMWARE, True)
    after = accept(before, Acceptance("owner", REASON, LATER))
    assert (after.exit_code, after.conclusion) == (ExitCode.PASS, "neutral")
    assert after.headline == f"REGRESSED, accepted by owner: {REASON}"
    folder = leave_all(tmp_path, effect=0.18)
    leave_virtual(folder / "legs", latency_ms=31.0)
    before = verdict_on(folder)
    assert not before.acceptable
    assert accept(before, Acceptance("owner", REASON, LATER)) == before


@pytest.mark.parametrize(
    "change",
    [
        {"faults": [dataclasses.asdict(Fault(RUN_ID, "firmware", 1, "It panicked."))]},
        {"not_run": [NotRun(RUN_ID, "v1", "a/b", "killed").values()]},
        {"on_undecided": "fail"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_nothing_hides_behind_an_accepted_regression(tmp_path: Path, change: dict[str, object]) -> None:
    """A fault, a part that was not measured, an undecided figure that its policy fails."""
    folder = leave_all(tmp_path, effect=0.18)
    (path,) = (folder / "legs" / "compare").glob("*/verdicts.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    verdict = verdict_on(folder)
    assert (verdict.exit_code, verdict.acceptable) == (ExitCode.FIRMWARE, False)


def test_comment_and_check_keep_who_and_why(github: GitHub, state: State, slower: Path) -> None:
    """The page begins with it, the check is neutral, and neither calls it a pass.

    The job's own code is the pull request's: what GitHub does not show accepted is none.
    """
    state.add_artefact(zipped(kept(slower)))
    comment(github, RUN)
    body = state.comments[7][-1]["body"].splitlines()
    assert body[1] == f"### ✗ {markdown(f'REGRESSED, accepted by owner: {REASON}')}"
    assert "✗ regressed, accepted" in body[5]
    (check,) = state.checks
    title = f"REGRESSED, accepted by owner: {REASON}"
    assert (check["conclusion"], check["output"]["title"]) == ("neutral", title)
    _drop_label(state)
    comment(github, RUN)
    assert "No verdict" in state.comments[7][-1]["body"]


def test_the_required_job_asks_github(state: State, slower: Path) -> None:
    """`hil ci verdict` passes with the label, and fails without."""
    assert read_plan(slower / "plan.json").pull_request == 7
    command = ["ci", "verdict"]
    with serve(state) as api:
        facts = {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": api, "GITHUB_REPOSITORY": HOME}
        env = {**own_environment(), **facts, "GITHUB_RUN_ID": str(RUN), "HIL_CI": str(slower)}
        done = hil(*command, env=env)
        assert done.returncode == 0, done.stdout
        assert f"# REGRESSED, accepted by owner: {REASON}" in done.stdout
        _drop_label(state)
        again = hil(*command, env={**env, "GITHUB_RUN_ATTEMPT": "2"})
        assert again.returncode == 1
        assert "Attempt 2 " in again.stdout

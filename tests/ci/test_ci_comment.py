# SPDX-License-Identifier: Apache-2.0
"""`hil ci comment` against a server that behaves like GitHub's: written once, renewed in place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3.util.retry

from hil.base.errors import ConfigError, RigError
from hil.base.untrusted import markdown
from hil.ci.comment import comment
from hil.ci.github import GitHub, GitHubRefusal
from hil.ci.plan import write_plan
from hil.ci.publish import Marker, find_marker
from tests.ci.ci_rig import HEAD, a_plan
from tests.ci.comment_rig import kept, leave_all, own_repository, pull_request_state, zipped
from tests.ci.github_server import BOT, FORK, HOME, RUN, TOKEN, Answer, State, serve
from tests.in_process import hil
from tests.lab import own_environment
from tests.reports.as_read import Seen
from tools.comment_page import to_html

OTHER = "d" * 40
UNREAD = "No verdict could be read"


@pytest.fixture(autouse=True)
def _where_comment_yml_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own_repository().path)


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The artefact of a run whose head is 20 % slower in one case."""
    return zipped(kept(leave_all(tmp_path_factory.mktemp("slower"), effect=0.18)))


@pytest.fixture(scope="module")
def same(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The artefact of a run in which nothing changed."""
    return zipped(kept(leave_all(tmp_path_factory.mktemp("same"))))


class Rig:
    """A repository with a pull request from a fork and one run of pr.yml."""

    def __init__(self, state: State, api: str) -> None:
        self.state = state
        self.api = api

    def comment(self, run_id: int = RUN, **options: bool) -> str:
        github = GitHub(HOME, TOKEN, self.api)
        said = comment(github, run_id, **options)
        return "\n".join(line for line in said if "check 'hil'" not in line)

    @property
    def bodies(self) -> list[str]:
        return [one["body"] for one in self.state.comments[7]]


@pytest.fixture
def rig(slower: bytes) -> Iterator[Rig]:
    state = pull_request_state()
    state.set_jobs("failure", **{"hil / Virtual rack compare": "failure"})
    state.add_artefact(slower)
    with serve(state) as api:
        yield Rig(state, api)


def test_a_fork_gets_a_comment(rig: Rig) -> None:
    """The pull request is found by its head, and the comment opens with verdict, figure and size."""
    assert rig.comment() == "#7: comment written."
    (body,) = rig.bodies
    marker, headline, _, said = body.splitlines()[:4]
    assert find_marker(marker) == Marker(RUN, 10, 1, HEAD)
    assert headline == f"### ✗ {markdown('REGRESSED: compare')}"
    assert re.search(r"latency p\d\d.* on virtual-esp32 .*\+\d", said.replace("\\", "")), said
    assert "blocks\u00a0from\u00a0" in body
    assert "Simulated noise" in body
    assert f"https://github.com/{HOME}/actions/runs/{RUN}#artifacts" in body
    assert "Authorization" not in rig.state.blob_headers[0]  # the artefact's server never sees the token


def test_a_commit_is_called_what_people_call_it(rig: Rig) -> None:
    """Title and author as GitHub has them, made harmless; how many commits there are, and their diff. Where
    GitHub says nothing of it, it is its digits."""
    message = "Send at once | <b>@all</b>\n\nwith a body"
    rig.state.runs[RUN]["head_commit"] = {"message": message, "author": {"name": "A. Author"}}
    base, rig.state.commits = rig.state.base, 3
    rig.comment()
    (body,) = rig.bodies
    (line,) = [line for line in body.splitlines() if "its merge base" in line]
    assert f"{markdown('Send at once | <b>@all</b>')}, A. Author)" in line
    seen = Seen(to_html(line))
    assert "b" not in seen.tags
    assert "@all" not in "".join(seen.plain)
    assert "), 3 commits " in line
    assert f"([diff](https://github.com/{HOME}/compare/{base}...{HEAD}))" in line
    rig.state.runs[RUN]["head_commit"], rig.state.commits = None, 0
    rig.comment()
    assert (
        f"[`{HEAD[:12]}`](https://github.com/{HOME}/commit/{HEAD}) against its merge base [`" in rig.bodies[0]
    )


@pytest.fixture(scope="module")
def undecided(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The artefact of a run whose boots differ too much to decide."""
    return zipped(kept(leave_all(tmp_path_factory.mktemp("undecided"), effect=0.07, deviation=0.25)))


@pytest.mark.parametrize("written", [False, True], ids=["measured-before", "never-measured"])
def test_an_edited_title_leaves_what_was_said(rig: Rig, written: bool) -> None:
    """Its run skips each job. Where no other has measured the commit, that is said: a fork may skip all."""
    rig.state.add_run(conclusion="skipped", number=11)
    if not written:
        rig.state.add_run(RUN - 1)
    rig.comment()
    assert bool(rig.bodies) is written
    assert [one["conclusion"] == "success" for one in rig.state.checks] == [False] * written


@pytest.mark.parametrize(
    ("left", "required", "conclusion", "title", "said"),
    [
        ("slower", "failure", "failure", "REGRESSED: compare", ""),
        # it ran the pull request's own code
        ("slower", "success", "failure", UNREAD, "hil-verdict ended with 'success'"),
        ("undecided", "success", "neutral", "UNDECIDED: compare", "4 of 6 comparisons"),
        ("same", "success", "success", "PASS: virtual, compare", ""),
    ],
)
def test_the_check_says_what_was_decided(
    rig: Rig, request: pytest.FixtureRequest, left: str, required: str, conclusion: str, title: str, said: str
) -> None:
    """It is of the measured commit; green alone where every leg was measured and decided."""
    rig.state.set_jobs(required, **{"hil / Virtual rack compare": required})
    rig.state.artefacts.clear()
    rig.state.add_artefact(request.getfixturevalue(left))
    rig.comment()
    (check,) = rig.state.checks
    assert (check["name"], check["head_sha"], check["conclusion"]) == ("hil", HEAD, conclusion)
    assert check["output"]["title"] == title
    assert said in check["output"]["summary"]
    assert markdown(title) in rig.bodies[0].splitlines()[1]
    assert ("? undecided" in rig.bodies[0]) == (left == "undecided")


def test_a_comment_is_renewed_in_place(rig: Rig, same: bytes) -> None:
    """A newer run changes the one comment, behind two pages of others', and none that only looks like it."""
    for n in range(230):
        rig.state.add_comment(f"remark {n}", "somebody")
    rig.comment()
    mine = rig.bodies[-1]
    rig.state.add_comment(mine, "somebody")  # a person's copy, marker and all
    rig.state.add_run(RUN + 1, number=11)
    rig.state.set_jobs("success")
    rig.state.add_artefact(same)
    assert "brought up to date" in rig.comment(RUN + 1)
    assert len(rig.bodies) == 232
    assert rig.bodies[230].splitlines()[1].startswith(f"✓ **{markdown('PASS: virtual, compare')}.** All ")
    assert rig.bodies[231] == mine


def new_comments(rig: Rig) -> int:
    """Return how often GitHub notified people: of each comment that was made, and of no edit."""
    return sum(verb == "POST" and path.endswith("/comments") for verb, path in rig.state.asked)


def test_a_pull_request_that_passes_notifies_once(rig: Rig, same: bytes) -> None:
    """Pushes that pass, and runs of them again, edit the first comment; nobody is told of that."""
    rig.state.set_jobs("success")
    rig.state.artefacts.clear()
    rig.state.add_artefact(same)
    for number, attempt in ((10, 1), (10, 2), (11, 1), (12, 1)):
        rig.state.add_run(RUN + number, number=number, attempt=attempt)
        rig.comment(RUN + number)
    assert (new_comments(rig), len(rig.bodies)) == (1, 1)
    assert find_marker(rig.bodies[0]) == Marker(RUN + 12, 12, 1, HEAD)


def test_where_nothing_was_measured_nobody_is_notified(rig: Rig, tmp_path: Path) -> None:
    """A documentation change gets a green check and no comment; one that is there is renewed."""
    plan = a_plan(files=["README.md"], compare=True, emulated=True)
    rig.state.files = ["README.md"]
    write_plan(replace(plan, base=rig.state.base), tmp_path / "plan.json")
    (tmp_path / "legs").mkdir()
    skipped = ("hil / Virtual rack virtual", "hil / Virtual rack compare")
    rig.state.set_jobs("skipped", **dict.fromkeys(skipped, "skipped"))
    rig.state.artefacts.clear()
    rig.state.add_artefact(zipped(kept(tmp_path)))
    rig.comment()
    assert (new_comments(rig), rig.bodies) == (0, [])
    assert [check["conclusion"] for check in rig.state.checks] == ["success"]
    rig.state.add_comment(f"{Marker(1, 9, 1, HEAD)}\nolder", BOT)
    rig.comment()
    assert "(README.md)" in rig.bodies[0]
    assert new_comments(rig) == 0


@pytest.mark.parametrize(("number", "attempt", "kept_back"), [(11, 1, True), (10, 2, True), (9, 3, False)])
def test_an_older_run_never_replaces_a_newer_one(
    rig: Rig, number: int, attempt: int, kept_back: bool
) -> None:
    """Where the comment is of a later run, or a later attempt, it stays as it is."""
    there = f"{Marker(1, number, attempt, HEAD)}\nnewer"
    rig.state.add_comment(there, BOT)
    said = rig.comment()
    assert (rig.bodies == [there]) is kept_back
    assert ("newer run" in said) is kept_back


def test_a_head_that_has_moved_on_is_not_commented(rig: Rig) -> None:
    """A newer push before the run was read, or just before writing: nothing is written, which is no error.
    Nor does the run against a former base: the newer run of the same commit, which may measure still, says
    it."""
    rig.state.add_pull(head=OTHER)
    assert HEAD[:12] in rig.comment()
    rig.state.add_pull()
    pull = {"number": 7, "state": "open", "head": {"sha": OTHER}, "base": {"sha": HEAD}}
    moved: list[Answer] = [(200, {}, json.dumps(pull).encode())]
    rig.state.trouble["GET /repos/example/hil/pulls/7"] = moved
    assert "#7 has a newer head" in rig.comment()
    assert rig.bodies == []
    rig.state.add_pull()
    rig.state.checks.clear()
    rig.state.add_run(RUN + 1, number=11, status="in_progress", conclusion=None)
    rig.comment()
    assert (rig.bodies, rig.state.checks) == ([], [])


def test_another_forks_branch_of_the_same_name_is_not_meant(rig: Rig) -> None:
    """Owner, repository, branch and commit must all be the run's."""
    rig.state.add_pull(origin="somebody/other")
    assert "No open pull request" in rig.comment()
    rig.state.add_pull(8)
    assert rig.comment() == "#8: comment written."


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"path": ".github/workflows/evil.yml"}, "not of .github/workflows/pr.yml"),
        ({"repository": {"full_name": FORK}}, "not of .github/workflows/pr.yml"),
        ({"status": "in_progress"}, "has not ended yet"),
    ],
)
def test_only_runs_of_our_workflow_count(rig: Rig, changes: dict[str, object], words: str) -> None:
    """A run of another workflow, of another repository or still going is refused; nothing is written."""
    rig.state.add_run(**changes)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=words):
        rig.comment()
    assert rig.bodies == []


@pytest.mark.parametrize(
    ("run", "words"),
    [({"event": "merge_group"}, "of no pull request"), ({"conclusion": "action_required"}, "approval")],
)
def test_a_run_that_has_no_comment(rig: Rig, run: dict[str, Any], words: str) -> None:
    """A merge group has nowhere to write to; a stranger's first pull request waits for somebody's approval,
    and has measured nothing yet, which is no verdict that cannot be read."""
    rig.state.add_run(**run)
    assert words in rig.comment()
    assert (rig.bodies, rig.state.checks) == ([], [])


@pytest.mark.parametrize(
    ("verdict", "second"),
    [("cancelled", None), ("", None), ("success", "failure"), ("success", "cancelled"), ("success", "")],
)
def test_the_artefact_must_agree_with_the_required_check(
    rig: Rig, same: bytes, verdict: str, second: str | None
) -> None:
    """An artefact that contradicts what GitHub says of hil-verdict is no verdict, never a pass. A fork may
    give two jobs that name: a job that did not end well keeps the comment from saying pass. So does a failed
    check beside an artefact that says pass."""
    rig.state.set_jobs(verdict)
    if second is not None:
        rig.state.jobs.insert(0, {"name": "hil-verdict", "conclusion": second})
        rig.state.add_artefact(same)
    rig.comment()
    assert rig.bodies[0].splitlines()[1] == f"### ? {UNREAD}"
    assert "hil-verdict" in rig.bodies[0]
    assert "publish_latency" not in rig.bodies[0]
    rig.state.set_jobs("failure", **{"hil / Virtual rack compare": "failure"})
    rig.state.add_artefact(same)
    rig.comment()
    assert rig.bodies[0].splitlines()[1].startswith("### ? NO VERDICT")
    assert "the job virtual" in rig.bodies[0]


def test_a_surprise_in_the_artefact_does_not_keep_an_older_comment(rig: Rig, tmp_path: Path) -> None:
    """Whatever is in the artefact, the comment says that there is no verdict; a former pass does not stay."""
    rig.state.add_comment(f"{Marker(1, 9, 1, OTHER)}\n✓ Passed", BOT)
    (tmp_path / "plan.json").write_text("[" * 100_000)  # more of these: test_ci_comment_hostile.py
    rig.state.add_artefact(zipped(tmp_path))
    rig.comment()
    assert rig.bodies[0].splitlines()[1] == f"### ? {UNREAD}"


def test_two_jobs_that_write_at_once_leave_one_verdict(rig: Rig) -> None:
    """Another job commented between our look and our own comment: only the newest keeps its verdict."""
    newer = f"{Marker(1, 11, 1, OTHER)}\nnewer"
    rig.state.before_write = lambda: _once(rig, newer)
    assert rig.comment() == "#7: comment written."
    assert rig.bodies[0] == newer
    assert rig.bodies[1].splitlines()[1:] == [GAVE_WAY]
    rig.state.add_run(RUN + 1, number=12)
    rig.comment(RUN + 1)
    assert [body.splitlines()[1] == GAVE_WAY for body in rig.bodies] == [False, True]
    assert find_marker(rig.bodies[0]) == Marker(RUN + 1, 12, 1, HEAD)


GAVE_WAY = "_The newest verdict is in another comment of this pull request._"


def _once(rig: Rig, body: str) -> None:
    rig.state.before_write = None
    rig.state.add_comment(body, BOT)


@pytest.mark.parametrize(
    "change",
    [lambda state: state.artefacts[0].update(expired=True), lambda state: state.add_run(attempt=2)],
    ids=["expired", "of-an-earlier-attempt"],
)
def test_no_artefact(rig: Rig, change: Callable[[State], None]) -> None:
    """It has expired, or the run was begun again since it was made: the comment says so, and reads none.

    A run has one artefact an attempt.
    """
    change(rig.state)
    rig.comment()
    assert "no artefact “verdict”" in rig.bodies[0]
    assert "publish_latency" not in rig.bodies[0]


def test_a_large_artefact_is_not_fetched(rig: Rig) -> None:
    """GitHub's own size is looked at first; one that turns out larger is given up in the middle."""
    rig.state.artefacts[0]["size_in_bytes"] = 25 * 1024 * 1024
    rig.comment()
    assert "at most 25,165,824 are read" in rig.bodies[0]
    assert not rig.state.blob_headers
    rig.state.add_artefact(b"\0" * (25 * 1024 * 1024), size=1000)
    rig.comment()
    assert "larger than 25,165,824 B" in rig.bodies[0]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that are taken, in no time."""
    taken: list[float] = []
    monkeypatch.setattr(urllib3.util.retry, "time", SimpleNamespace(sleep=taken.append))
    return taken


def test_a_busy_server_is_asked_again(rig: Rig, waits: list[float]) -> None:
    """A status of 5xx and a rate limit are waited for as long as GitHub asks, then the comment is written."""
    limit = (403, {"Retry-After": "17"}, b'{"message": "secondary rate limit"}')
    rig.state.trouble = {"GET /repos/example/hil/actions/runs": [(502, {}, b""), (503, {}, b""), limit]}
    assert rig.comment() == "#7: comment written."
    assert waits == [2.0, 17.0]  # after the first failure at once


@pytest.mark.parametrize(
    ("answer", "words", "pauses"),
    [
        ((429, {"Retry-After": "3600"}, b""), "got status 429, and asks for 3600 s", [40, 40, 40]),
        ((500, {}, b""), f"GET /repos/example/hil/actions/runs/{RUN}: status 500", [2.0, 4.0]),
    ],
)
def test_trouble_that_lasts_ends_the_job(
    rig: Rig, waits: list[float], answer: Answer, words: str, pauses: list[float]
) -> None:
    """After four attempts, or where a rate limit is longer than a job should wait: the rig's error names what
    was asked and what came back."""
    rig.state.trouble = {"actions/runs": [answer] * 9}
    with pytest.raises(RigError, match=words):
        rig.comment()
    assert waits == pauses


def test_a_token_that_may_not_write(rig: Rig, waits: list[float]) -> None:
    """Status 403 without a rate limit: the sentence names the permission, and not the token."""
    rig.state.may_write = False
    with pytest.raises(GitHubRefusal) as caught:
        rig.comment()
    assert "`pull-requests: write`" in str(caught.value)
    assert TOKEN not in str(caught.value)
    assert waits == []


def test_a_comment_whose_answer_is_lost_is_not_written_twice(rig: Rig) -> None:
    """GitHub wrote it and then answered 502: the job fails, and finds the comment where it is run again."""
    rig.state.add_comment(f"{Marker(RUN, 10, 1, HEAD)}\nwritten", "nobody")
    rig.state.trouble["POST /repos/example/hil/issues/7/comments"] = [(502, {}, b"")]
    with pytest.raises(GitHubRefusal, match="502"):
        rig.comment()
    rig.state.comments[7][0]["user"] = {"login": BOT}
    rig.comment()
    assert len(rig.bodies) == 1


def test_an_address_that_is_none_for_a_token() -> None:
    """The token goes to https, or to this machine, and nowhere else."""
    for address in ("http://api.github.com", "https://user@evil.example", "ftp://127.0.0.1"):
        with pytest.raises(ConfigError, match="sends no token to"):
            GitHub(HOME, TOKEN, address)
    assert TOKEN not in repr(GitHub(HOME, TOKEN))


def hil_ci_comment(*arguments: str, **environment: str) -> tuple[int, str]:
    env = {**own_environment(), **environment}
    done = hil("ci", "comment", *arguments, env=env, cwd=own_repository().path)
    return done.returncode, done.stdout


def test_the_command(rig: Rig) -> None:
    """As comment.yml calls it; a wrong head is refused."""
    known = {"GITHUB_API_URL": rig.api, "GITHUB_REPOSITORY": HOME, "GITHUB_TOKEN": TOKEN}
    status, said = hil_ci_comment("--run", str(RUN), "--head", OTHER, **known)
    assert (status, rig.bodies) == (2, [])
    assert "not of dddddddddd" in said
    status, said = hil_ci_comment("--run", str(RUN), "--head", HEAD, **known)
    assert (status, said.splitlines()[0]) == (0, "#7: comment written.")
    status, said = hil_ci_comment("--run", str(RUN), GITHUB_API_URL=rig.api, GITHUB_REPOSITORY=HOME)
    assert status == 2
    assert "GITHUB_TOKEN is not set" in said


def test_what_is_on_this_machine(tmp_path: Path) -> None:
    """Without --run the legs of a person's own out/ci are rendered, without a token."""
    leave_all(tmp_path)
    status, said = hil_ci_comment(HIL_CI=str(tmp_path))
    assert status == 0, said
    assert said.startswith("✓ **PASS")


def test_an_attempt_after_the_first_is_told(rig: Rig, same: bytes) -> None:
    """Comment and check say that the run was run again."""
    rig.comment()
    rig.state.add_run(attempt=2)
    rig.state.set_jobs("success")
    rig.state.add_artefact(same, created_at="2026-11-20T02:30:00Z")
    rig.comment()
    said = "Attempt 2 "
    assert said in rig.bodies[0]
    assert rig.state.checks[1]["conclusion"] == "success"
    assert said in rig.state.checks[1]["output"]["summary"]
    assert "Attempt" not in rig.state.checks[0]["output"]["summary"]

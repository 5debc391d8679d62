# SPDX-License-Identifier: Apache-2.0
"""Each event of the nights has one issue: opened, followed, closed; what it quotes is words and no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hil.base.errors import ConfigError
from hil.ci.event_issues import LABEL, MOST_NEW, sync
from hil.ci.github import GitHub
from hil.cli.app import app
from hil.history.nightly.event_lines import change_words
from tests.ci.ci_rig import HEAD
from tests.ci.github_server import HOME, TOKEN, State, serve
from tests.reports.as_read import Seen, as_read
from tools.comment_page import to_html

GOOD, BAD = "a" * 40, "b" * 40
REPORT = "https://example.org/report"


def an_event(*series: int, night: str = "2026-09-10", **changes: Any) -> dict[str, Any]:
    facts = {
        "cause": "firmware", "effect": "worse", "racks": ["lab"], "boards": ["lab/b1"], "night": night,
        "nights": 5, "state": "open", "ended": "", "open_nights": 5, "of_ratio": True, "good": GOOD,
        "bad": BAD, "headline": "Firmware: publish latency p95 12 % slower on 2 boards since bbbbbbb",
        "sentence": "publish latency p95 +12 % beside the reference.",
        "bisect": "git bisect start bbb aaa", "series": list(series),
        "commit": {"title": "Send at once", "author": "Ana Diaz", "count": 3, "diff": ""},
    }  # fmt: skip
    return {**facts, **changes}


def a_trend(*events: dict[str, Any]) -> dict[str, Any]:
    return {"series": [{"id": f"lab/b1/case/metric{n}"} for n in range(40)], "events": list(events)}


class Nights:
    """A repository, and what the nights say there."""

    def __init__(self, state: State, api: str) -> None:
        self.state, self.api = state, api

    def sync(self, *events: dict[str, Any]) -> list[str]:
        github = GitHub(HOME, TOKEN, self.api)
        return sync(github, a_trend(*events), REPORT, "https://github.com")


@pytest.fixture
def nights() -> Iterator[Nights]:
    state = State(HEAD)
    with serve(state) as api:
        yield Nights(state, api)


def test_a_new_event_opens_one_issue_with_all_that_is_needed(nights: Nights) -> None:
    """Banner words with title and author, range with its diff, report, bisect."""
    event = an_event(0, 1)
    nights.sync(event)
    (issue,) = nights.state.issues
    assert (issue["title"], issue["labels"]) == (event["headline"], [{"name": LABEL}])
    body = issue["body"]
    assert change_words(event) in as_read(body)
    assert f"`{GOOD[:12]}..{BAD[:12]}`](https://github.com/{HOME}/compare/{GOOD}...{BAD})" in body
    assert f"({REPORT}/trend/)" in body
    assert event["bisect"] in body
    assert "(Send at once, Ana Diaz)" in as_read(body)


def test_the_same_event_is_followed_and_never_opened_twice(nights: Nights) -> None:
    """Its night moves by three and a series joins it: the same issue. A later step is another event."""
    nights.sync(an_event(0, 1))
    done = nights.sync(an_event(0, 1, 2, night="2026-09-13", open_nights=6))
    assert "open 6 nights" in nights.state.issues[0]["body"]
    again = nights.sync(an_event(0, 1, 2, night="2026-09-13", open_nights=6))
    assert done != again == ["issue #300 says so"]
    nights.sync(an_event(0, 1, night="2026-09-18"))
    assert len(nights.state.issues) == 2


def test_an_event_that_is_over_closes_its_issue_with_a_sentence(nights: Nights) -> None:
    """Closed, said why; not opened again when it is told again. What became better or ended before it was
    told opens nothing: nobody has to do anything about it."""
    nights.sync(an_event(0, effect="better"), an_event(1, state="ended", ended="2026-09-20"))
    assert nights.state.issues == []
    nights.sync(an_event(0, 1))
    nights.state.comments[300] = []
    nights.sync(an_event(0, 1, state="ended", ended="2026-09-20"))
    (issue,) = nights.state.issues
    assert issue["state"] == "closed"
    assert "It is over: ended 2026" in nights.state.comments[300][0]["body"]
    assert nights.sync(an_event(0, 1)) == []


def test_one_night_opens_five_issues_and_the_next_night_the_rest(nights: Nights) -> None:
    """A bad night does not flood anybody."""
    events = [an_event(n, headline=f"Event {n}") for n in range(MOST_NEW + 2)]
    nights.sync(*events)
    assert [one["title"] for one in nights.state.issues] == [f"Event {n}" for n in range(MOST_NEW)]
    nights.sync(*events)
    assert [one["title"] for one in nights.state.issues] == [f"Event {n}" for n in range(MOST_NEW + 2)]


def test_what_a_commit_says_mentions_and_links_nobody(nights: Nights) -> None:
    """A title is foreign: no mention, no link, no comment that could pose as a marker."""
    commit = {"title": "@everyone <!-- x --> [a](http://b)", "author": "@boss", "count": 1, "diff": ""}
    nights.sync(an_event(0, commit=commit))
    body = nights.state.issues[0]["body"]
    seen = Seen(to_html(body))
    assert not [word for word in ("@everyone", "@boss") if word in "".join(seen.plain)]
    assert 'href="http://b' not in to_html(body)
    assert body.startswith("<!--")
    assert body.count("<!--") == 1


def test_an_issue_of_somebody_else_is_none_of_the_nights(nights: Nights) -> None:
    """Whoever copies a marker does not keep an event from being told."""
    nights.sync(an_event(0))
    nights.state.issues[0]["user"] = {"login": "somebody"}
    nights.sync(an_event(0))
    assert len(nights.state.issues) == 2


@pytest.mark.parametrize("trend", [None, [], {}, {"events": [{"effect": "worse"}]}, {"events": 3}])
def test_what_is_no_trend_is_refused(trend: object) -> None:
    """Nothing is asked of GitHub."""
    with pytest.raises(ConfigError, match="not a trend"):
        sync(GitHub(HOME, TOKEN, "http://127.0.0.1:9"), trend, "", "https://github.com")


def test_without_the_right_to_write_it_is_said_and_nothing_fails(
    nights: Nights, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork's token: the summary says that the issues are not up to date, exit code 0."""
    nights.state.may_write = False
    summary, trend = tmp_path / "summary.md", tmp_path / "trend.json"
    trend.write_text(json.dumps(a_trend(an_event(0))), encoding="utf-8")
    for name, value in {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": nights.api, "GITHUB_REPOSITORY": HOME,
                        "GITHUB_STEP_SUMMARY": str(summary)}.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    result = CliRunner().invoke(app, ["ci", "sync-issues", str(trend)])
    assert result.exit_code == 0, result.output
    assert "not up to date" in result.output
    assert "not up to date" in summary.read_text(encoding="utf-8")

# SPDX-License-Identifier: Apache-2.0
"""Keep one issue for each event of the nights: open it, bring it up to date, close it.

What the nights' artefact says is data: it is bounded, read strictly, and shown as words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import sha256
from typing import Any

from msgspec import Struct

from hil.base.errors import ConfigError
from hil.base.untrusted import fenced, markdown, visible
from hil.ci.github import GitHub
from hil.ci.github_run import BOT, COMMIT, User
from hil.history.nightly.event_lines import change_words, open_words

LABEL = "hil:event"
MOST_NEW = 5  # issues that one night opens; the rest wait for the next night
SHIFT = timedelta(days=3)  # the night of a step may move as nights come in
_MOST_EVENTS = 200
_MOST_HASHES = 64
_LEAST_SHARED = 0.5  # of the smaller event's series
_MARKER = re.compile(r"<!-- hil-event night=(\d{4}-\d\d-\d\d) series=([0-9a-f]{8}(?:,[0-9a-f]{8}){0,63}) -->")


@dataclass(frozen=True)
class _Place:
    """The night of a step and the series that it moved, by which an event is known again."""

    night: date
    series: frozenset[str]

    def is_of(self, other: _Place) -> bool:
        shared = len(self.series & other.series) / min(len(self.series), len(other.series))
        return abs(self.night - other.night) <= SHIFT and shared >= _LEAST_SHARED


class _Issue(Struct, frozen=True):
    number: int
    state: str
    user: User | None = None
    body: str | None = None


def sync(github: GitHub, trend: object, report_url: str, server: str) -> list[str]:
    """Open, update and close the issues of a trend.json's events; return a line for each thing done.

    ``report_url`` is the report's address, "" where none is deployed; ``server`` is that of the repository's
    pages. An issue that somebody closed stays closed: it is the event's still, and the event is not new.

    Raises:
        ConfigError: ``trend`` is no trend.json.
        RigError: GitHub refuses, or does not answer.
    """
    events = _read(trend)
    known = list(_issues(github))
    done, new = [], []
    for place, event in events:
        issue = next((one for where, one in known if place.is_of(where)), None)
        page = _page(place, event, report_url, f"{server}/{github.repository}")
        if issue and issue.state == "open":
            done.append(_update(github, event, issue, page))
        elif issue is None and event.get("state", "open") == "open":
            new.append({"title": visible(event["headline"], 200), "body": page, "labels": [LABEL]})
    for asked in new[:MOST_NEW]:
        number = github.post("issues", asked, _Issue).number
        done.append(f"issue #{number} opened: {asked['title']}")
    return done


def _update(github: GitHub, event: Mapping[str, Any], issue: _Issue, page: str) -> str:
    where, state = f"issues/{issue.number}", markdown(open_words(event))
    if event.get("state", "open") != "open":
        github.patch(where, {"body": page, "state": "closed", "state_reason": "completed"})
        github.post(f"{where}/comments", {"body": f"It is over: {state}."})
        return f"issue #{issue.number} closed: {state}"
    if (issue.body or "").split() == page.split():
        return f"issue #{issue.number} says so"
    github.patch(where, {"body": page})
    return f"issue #{issue.number} brought up to date"


def _issues(github: GitHub) -> Iterator[tuple[_Place, _Issue]]:
    for issue in github.pages("issues", _Issue, labels=LABEL, state="all"):
        marker = _MARKER.match(issue.body or "")
        if issue.user == User(BOT) and marker:
            yield _Place(date.fromisoformat(marker[1]), frozenset(marker[2].split(","))), issue


def _read(trend: object) -> list[tuple[_Place, Mapping[str, Any]]]:
    """Return the events that are no improvement. Raises ConfigError."""
    try:
        events = trend["events"][:_MOST_EVENTS]  # type: ignore[index]
        return [(_place(one, trend), one) for one in events if one["effect"] != "better"]  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ConfigError(
            f"not a trend.json with events: {error!r}.",
            next_step="name out/report/trend/trend.json of a report of nights.",
        ) from error


def _place(event: Mapping[str, Any], trend: Mapping[str, Any]) -> _Place:
    change_words(event)  # raises where its words are missing
    ids = {str(trend["series"][int(number)]["id"]) for number in event["series"]}
    hashes = sorted(sha256(one.encode()).hexdigest()[:8] for one in ids)[:_MOST_HASHES]
    if not hashes:
        raise ValueError("an event of no series")
    return _Place(date.fromisoformat(event["night"]), frozenset(hashes))


def _page(place: _Place, event: Mapping[str, Any], report_url: str, repository: str) -> str:
    """Return the body of an issue: the event, its commits with their diff, the report, the bisect command."""
    good, bad = str(event.get("good", "")), str(event.get("bad", ""))
    lines = [
        f"<!-- hil-event night={place.night} series={','.join(sorted(place.series))} -->",
        f"**{markdown(change_words(event))}**\n",
        f"{markdown(event.get('sentence', ''), 1000)}\n",
    ]
    if COMMIT.fullmatch(good) and COMMIT.fullmatch(bad):
        lines.append(f"- [Commits `{good[:12]}..{bad[:12]}`]({repository}/compare/{good}...{bad})")
    if report_url.startswith("https://"):
        lines.append(f"- [The report with its picture]({report_url.rstrip('/')}/trend/)")
    if event.get("bisect"):
        lines.append(f"\nTo find the commit:\n\n{fenced(visible(event['bisect'], 2000))}")
    lines.append("\nThis issue follows the event each night, and is closed when the event has ended.")
    return "\n".join(lines) + "\n"

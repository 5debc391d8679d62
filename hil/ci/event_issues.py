# SPDX-License-Identifier: Apache-2.0
"""An issue for each event of the nights: opened once, brought up to date, closed when the event is over.

What the nights' artefact says is data: it is bounded, read strictly, and shown as words. The commit's author
is mentioned only where GitHub itself names the login of that very commit's author.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import sha256
from math import isfinite
from typing import Any

from hil.base.errors import ConfigError
from hil.base.untrusted import fenced, markdown, visible
from hil.ci.github import GitHub, Refused
from hil.ci.github_run import BOT, COMMIT
from hil.history.nightly.event_lines import change_words, commit_words, open_words

LABEL = "hil:event"
MOST_NEW = 5  # issues that one night opens
SHIFT = timedelta(days=3)  # the night of a step may move as nights come in
_MOST_EVENTS = 200
_MOST_HASHES = 64
_LEAST_SHARED = 0.5  # of the smaller event's series
_MOST_POINTS = 60
_POINTS_BEFORE = 20  # of them, before the step
_MARKER = re.compile(r"<!-- hil-event night=(\d{4}-\d\d-\d\d) series=([0-9a-f]{8}(?:,[0-9a-f]{8}){0,63}) -->")
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?")


@dataclass(frozen=True)
class _Known:
    """An issue of an earlier night, open or closed."""

    number: int
    is_open: bool
    body: str
    night: date
    series: frozenset[str]


@dataclass(frozen=True)
class _Told:
    """An event with what an issue says of it."""

    event: Mapping[str, Any]
    night: date
    series: frozenset[str]
    chart: str

    @property
    def is_open(self) -> bool:
        return str(self.event.get("state", "open")) == "open"

    def is_of(self, known: _Known) -> bool:
        shared = len(self.series & known.series) / min(len(self.series), len(known.series))
        return abs(self.night - known.night) <= SHIFT and shared >= _LEAST_SHARED


def speak(github: GitHub, trend: object, report_url: str, server: str) -> list[str]:
    """Open, update and close the issues of a trend.json's events; return a line for each thing done.

    ``report_url`` is the report's address, "" where none is deployed; ``server`` is that of the repository's
    pages. An issue that somebody closed stays so: it is the event's still, and the event is not new.

    Raises:
        ConfigError: ``trend`` is no trend.json.
        RigError: GitHub refuses, or does not answer.
    """
    told = _read(trend)
    known = [*_issues(github, "open"), *_issues(github, "closed")]
    done, new = [], []
    for one in told:
        issue = next((issue for issue in known if one.is_of(issue)), None)
        if issue is None:
            new += [one] if one.is_open else []
        elif issue.is_open:
            done.append(_update(github, one, issue, _page(github, one, report_url, server)))
    for number, one in enumerate(new[:MOST_NEW], start=1):
        page = _page(github, one, report_url, server)
        if number == MOST_NEW:
            page += _rest(new[MOST_NEW:])
        title = visible(one.event["headline"], 200)
        asked = {"title": title, "body": page, "labels": [LABEL]}
        done.append(f"issue #{github.post('issues', asked)['number']} opened: {title}")
    return done


def _update(github: GitHub, told: _Told, issue: _Known, page: str) -> str:
    if not told.is_open:
        over = {"body": page, "state": "closed", "state_reason": "completed"}
        github.patch(f"issues/{issue.number}", over)
        github.post(f"issues/{issue.number}/comments", {"body": f"It is over: {_state(told)}."})
        return f"issue #{issue.number} closed: {_state(told)}"
    if issue.body.split() == page.split():
        return f"issue #{issue.number} says so"
    github.patch(f"issues/{issue.number}", {"body": page})
    return f"issue #{issue.number} brought up to date"


def _issues(github: GitHub, state: str) -> Iterator[_Known]:
    for stored in github.pages("issues", labels=LABEL, state=state):
        body, number = str(stored.get("body") or ""), stored.get("number")
        marker, author = _MARKER.match(body), (stored.get("user") or {}).get("login")
        if author == BOT and marker and isinstance(number, int):
            try:
                night = date.fromisoformat(marker[1])
            except ValueError:
                continue
            yield _Known(number, state == "open", body, night, frozenset(marker[2].split(",")))


def _read(trend: object) -> list[_Told]:
    """Return the events that are no improvement. Raises ConfigError."""
    try:
        events: Sequence[Any] = trend["events"][:_MOST_EVENTS]  # type: ignore[index]
        return [_told(one, trend) for one in events if one["effect"] != "better"]  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise ConfigError(
            f"this is no trend.json with events: {error!r}.",
            next_step="name out/report/trend/trend.json of a report of nights.",
        ) from error


def _told(event: Mapping[str, Any], trend: Mapping[str, Any]) -> _Told:
    change_words(event)  # raises where its words are missing
    series = [trend["series"][int(place)] for place in event["series"]]
    hashes = sorted({sha256(str(one["id"]).encode()).hexdigest()[:8] for one in series})[:_MOST_HASHES]
    if not hashes:
        raise ValueError("an event of no series")
    shown = trend["series"][int((event.get("picture") or {}).get("series", event["series"][0]))]
    return _Told(event, date.fromisoformat(event["night"]), frozenset(hashes), _chart(shown, event, trend))


def _chart(series: Mapping[str, Any], event: Mapping[str, Any], trend: Mapping[str, Any]) -> str:
    """Return Mermaid's chart of the figure that decides; GitHub shows no picture that is not deployed."""
    points = series["points"]
    values = points["value"]
    reference = points.get("reference") or [None] * len(values)
    started = trend["runs"]["started_utc"]
    drawn = [
        (date.fromisoformat(str(started[int(run)])[:10]), value / beside if event["of_ratio"] else value)
        for run, value, beside in zip(points["run"], values, reference, strict=True)
        if value is not None and (beside or not event["of_ratio"])
    ]
    drawn = [(night, float(value)) for night, value in drawn if isfinite(value)]
    step = date.fromisoformat(event["night"])
    before = sum(night < step for night, _ in drawn)
    first = max(0, min(len(drawn) - _MOST_POINTS, before - _POINTS_BEFORE))
    drawn = drawn[first : first + _MOST_POINTS]  # the step is in it, however long ago it was
    if len(drawn) < 2:
        return ""
    what = "candidate / reference" if event["of_ratio"] else "candidate"
    unit = "" if event["of_ratio"] else re.sub(r"[^A-Za-z0-9/%µ ]", "", str(series.get("unit", "")))[:20]
    low, high = min(value for _, value in drawn), max(value for _, value in drawn)
    air = (high - low) * 0.1 or abs(high) * 0.05 or 1.0
    nights = f"nights, {drawn[0][0]} to {drawn[-1][0]}, step on {step}"
    label = f"{what}, {unit}" if unit else what
    return (
        "```mermaid\nxychart-beta\n"
        f'  x-axis "{nights}" 1 --> {len(drawn)}\n'
        f'  y-axis "{label}" {low - air:.6g} --> {high + air:.6g}\n'
        f"  line [{', '.join(f'{value:.6g}' for _, value in drawn)}]\n```\n"
    )


def _page(github: GitHub, told: _Told, report_url: str, server: str) -> str:
    event = told.event
    marker = f"<!-- hil-event night={told.night} series={','.join(sorted(told.series))} -->"
    lines = [
        marker,
        f"**{markdown(change_words(event))}**",
        "",
        markdown(event.get("sentence", ""), 1000),
        "",
    ]
    lines += [told.chart] if told.chart else []
    lines += _commit_lines(github, event, server)
    if report_url.startswith("https://"):
        lines.append(f"- [The report with its picture]({report_url.rstrip('/')}/trend/)")
    if event.get("bisect"):
        lines += [
            "",
            "To find the commit (docs/operate/bisect.md):",
            "",
            fenced(visible(event["bisect"], 2000)),
        ]
    lines += [
        "",
        "This issue follows the event each night, and is closed when the event has ended. If you close it "
        "by hand, it stays closed (docs/operate/events.md).",
    ]
    return "\n".join(lines) + "\n"


def _commit_lines(github: GitHub, event: Mapping[str, Any], server: str) -> list[str]:
    good, bad = str(event.get("good", "")), str(event.get("bad", ""))
    if not (COMMIT.fullmatch(good) and COMMIT.fullmatch(bad)):
        return []
    count = (event.get("commit") or {}).get("count", 0)
    many = f"{count} commit{'' if count == 1 else 's'}" if isinstance(count, int) and count > 0 else "commits"
    named = commit_words(event)
    login = _login(github, bad)
    whom = f" (author: @{login})" if login else ""
    lines = [f"- [{many} `{good[:12]}..{bad[:12]}`]({server}/{github.repository}/compare/{good}...{bad})"]
    lines.append(
        f"- The last of them: {markdown(named)}{whom}" if named else f"- The last of them: {bad}{whom}"
    )
    return lines


def _login(github: GitHub, commit: str) -> str:
    """Return the login of a commit's author as GitHub knows it, "" where it knows none."""
    try:
        stored = github.get(f"commits/{commit}")
    except Refused:
        return ""
    login = ((stored.get("author") if isinstance(stored, dict) else None) or {}).get("login")
    return login if isinstance(login, str) and _LOGIN.fullmatch(login) else ""


def _rest(left: Sequence[_Told]) -> str:
    """Return the events beyond those that one night opens issues for."""
    if not left:
        return ""
    return "\nFound that night too:\n\n" + "".join(
        f"- {markdown(change_words(one.event))}\n" for one in left[:20]
    )


def _state(told: _Told) -> str:
    return markdown(open_words(told.event))

# SPDX-License-Identifier: Apache-2.0
"""What changed, on the first page: each event with its picture, what is open first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hil.history.nightly.divisive import FEWEST_NIGHTS
from hil.history.nightly.event_lines import commit_words, open_words
from hil.reports.trend.picture import event_picture, surest
from hil.reports.view.html import written
from hil.reports.view.marks import Link, Words

MOST_SHOWN = 6  # of what is open; of it the first MOST_PICTURES stand open
MOST_PICTURES = 2
BOARDS_NAMED = 3
_COMMIT_DIGITS = 7
_CAUSES = {"firmware": "Firmware", "environment": "Environment", "board": "Board"}
_NO_NIGHTS = (
    "Change points come from nightly runs, of which the history has none yet: docs/operate/nightly.md says "
    "how to measure them."
)


def changed(
    trend: Mapping[str, Any] | None,
    *,
    nights: int = 0,
    heading: str = "What changed",
    trend_page: str = "trend/index.html",
) -> str:
    """Return the events of trend.json as HTML: what is open with pictures, the rest folded.

    ``nights`` is how many nights were judged. Each event leads to ``trend_page``, its index in the address.
    None of a trend is no section.
    """
    if trend is None:
        return ""
    events = list(enumerate(trend["events"]))
    if not events:
        return f'<p class="soft">{escape(_nothing(nights))}</p>'
    current = [(n, event) for n, event in events if _is_current(event)]
    others = [(n, event) for n, event in events if not _is_current(event)]
    shown = [
        _event(event, trend, f"{trend_page}#event={n}", picture=place < MOST_PICTURES)
        for place, (n, event) in enumerate(current[:MOST_SHOWN])
    ]
    more = len(current) - MOST_SHOWN
    if more > 0:
        link = written(Link(f"and {more} more, in the trend", trend_page))
        shown.append(f'<li class="soft">{link}</li>')
    part = f'<ul class="events">{"".join(shown)}</ul>' if shown else ""
    return f"<h2>{escape(heading)}</h2>{part}{_folded(others, trend, trend_page)}"


def _is_current(event: Mapping[str, Any]) -> bool:
    return bool(event.get("state", "open") == "open" and event["effect"] != "better")


def _folded(
    events: Sequence[tuple[int, Mapping[str, Any]]], trend: Mapping[str, Any], trend_page: str
) -> str:
    """Return what ended or became better, below one line."""
    if not events:
        return ""
    better = sum(event["effect"] == "better" for _, event in events)
    counts = ((better, "improved"), (len(events) - better, "ended"))
    words = ", ".join(f"{count} {word}" for count, word in counts if count)
    items = [_event(event, trend, f"{trend_page}#event={n}", picture=False) for n, event in events]
    return (
        f'<details class="more"><summary>And {words}</summary>'
        f'<ul class="events">{"".join(items)}</ul></details>'
    )


def _nothing(nights: int) -> str:
    if not nights:
        return _NO_NIGHTS
    measured = f"{nights} {'night' if nights == 1 else 'nights'}"
    if nights < FEWEST_NIGHTS:
        return f"{measured} so far: change points need {FEWEST_NIGHTS} at least."
    return f"No change point in {measured}."


def _event(event: Mapping[str, Any], trend: Mapping[str, Any], address: str, *, picture: bool) -> str:
    tone, tag = _tag(event)
    facts = " · ".join(f"<span>{written(fact)}</span>" for fact in _facts(event, trend))
    drawn = event_picture(event, trend)
    if drawn and not picture:
        drawn = f"<details><summary>Picture</summary>{drawn}</details>"
    return (
        f'<li><b class="tag {tone}">{escape(tag)}</b><div>'
        f'<a href="{escape(address)}">{escape(str(event["headline"]))}</a>'
        f'<p class="soft">{facts}</p>{drawn}</div></li>'
    )


def _tag(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return tone and words of a tag; its sign and its words say what its colour says."""
    cause, effect = str(event["cause"]), str(event["effect"])
    if cause == "unclear" or cause not in _CAUSES:
        return "unsure", "Unclear ?"
    name = _CAUSES[cause]
    if effect == "better":
        return "good", f"{name} ↑ improved"
    tone = "bad" if cause == "firmware" else "unsure"
    words = {"worse": "✗ worse", "mixed": "± mixed"}.get(effect, "? changed")
    return ("unsure" if words.startswith("?") else tone), f"{name} {words}"


def _facts(event: Mapping[str, Any], trend: Mapping[str, Any]) -> list[Words]:
    """Summarise onset, commit range, size and boards of a change."""
    facts: list[Words] = [f"since {event['night']}, {open_words(event)}"]
    facts += filter(None, [commit_words(event), _range(event)])
    of_ratio = " beside the reference" if event["of_ratio"] else ""
    low, high = _signed(event["low"]), _signed(event["high"])
    series = event.get("series", event.get("series_ids", ()))
    surest = "surest series " if len(series) > 1 else ""
    facts.append(f"{surest}{_signed(event['change'])} % [{low}, {high}]{of_ratio}")
    boards = [str(board) for board in event["boards"]]
    rest = len(boards) - BOARDS_NAMED
    facts.append(", ".join(boards[:BOARDS_NAMED]) + (f" and {rest} more" if rest > 0 else ""))
    return [*facts, *_test(event, trend)]


def _range(event: Mapping[str, Any]) -> Words:
    """Return the commits between which it lies, linked to their diff where that has an address."""
    if not event["good"] or not event["bad"]:
        return ""
    commit = event.get("commit") or {}
    words = f"{str(event['good'])[:_COMMIT_DIGITS]}..{str(event['bad'])[:_COMMIT_DIGITS]}"
    if count := int(commit.get("count", 0)):
        words += f" ({count} commit{'' if count == 1 else 's'})"
    diff = str(commit.get("diff", ""))
    return Link(f"commits {words}", diff if diff.startswith("https://") else "")


def _test(event: Mapping[str, Any], trend: Mapping[str, Any]) -> list[Words]:
    """Return the way to the surest series' test in the test report, where the run measured it."""
    series = surest(event, trend)
    test = str(series.get("test", "")) if series else ""
    return [Link("its test", f"tests/index.html#{test}")] if test else []


def _signed(ratio: float) -> str:
    """Return per cent with a sign, without its unit: "+12.3", "−4.0"."""
    return f"{100 * ratio:+,.1f}".replace("-", "−")

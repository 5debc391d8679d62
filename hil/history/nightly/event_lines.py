# SPDX-License-Identifier: Apache-2.0
"""How a stored event is named beside a verdict, an issue or a chart: headline, commit, how long open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_MOST_TITLE = 60  # characters of a commit's title, and of its author
_MOST_AUTHOR = 30
_COMMIT_DIGITS = 7


def open_changes(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the words of the events that are open and no improvement, in their order.

    "firmware: publish latency p95 12 % slower since 618e3a8 (Send at once, A. Author), open 59 nights".
    ``events`` are as Event.to_json() has them, with ``commit`` where it is known.
    """
    told = (one for one in events if one.get("state") == "open" and one["effect"] != "better")
    return [words[0].lower() + words[1:] for words in map(change_words, told)]


def change_words(event: Mapping[str, Any]) -> str:
    """Return the headline of an event with what its commit is called, and whether it is open."""
    words, bad = str(event["headline"]), str(event.get("bad", ""))[:_COMMIT_DIGITS]
    named = commit_words(event)
    if bad and named:
        since = "" if bad in words else f" since {bad}"
        words = f"{words}{since} ({named})"
    return f"{words}, {open_words(event)}"


def open_words(event: Mapping[str, Any]) -> str:
    """Return "open 59 nights" or "ended 2026-10-02, after 20 nights"."""
    nights = int(event.get("open_nights", event["nights"]))
    count = f"{nights} night{'' if nights == 1 else 's'}"
    ended = event.get("ended", "")
    return f"ended {ended}, after {count}" if ended else f"open {count}"


def commit_words(event: Mapping[str, Any]) -> str:
    """Return title and author of the commit that an event began with, as far as they are known; else ""."""
    commit = event.get("commit") or {}
    title, author = str(commit.get("title", "")), str(commit.get("author", ""))
    return ", ".join(filter(None, (_cut(title, _MOST_TITLE), _cut(author, _MOST_AUTHOR))))


def _cut(text: str, most: int) -> str:
    """Return foreign words in one line of at most ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"

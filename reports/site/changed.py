"""What changed in the nights, on the first page: who did it, what, since when, on which boards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hil.reports.site import markup

MOST_SHOWN = 6
BOARDS_NAMED = 3
_COMMIT_DIGITS = 7
_CAUSES = {"firmware": "Firmware", "environment": "Environment", "board": "Board"}
_NO_NIGHTS = (
    "Change points come from nightly runs, of which the history has none yet: docs/nightly.md says how to "
    "measure them."
)


def changed(
    events: Sequence[Mapping[str, Any]], *, nights: int = 0, trend_page: str = "trend/index.html"
) -> str:
    """Return the events of trend.json as HTML, the first MOST_SHOWN of them, in their order.

    ``nights`` is how many nights were judged. Each event leads to ``trend_page``, its index in the address.
    """
    if not events:
        return f'<p class="soft">{escape(_nothing(nights))}</p>'
    lines = [_event(event, f"{trend_page}#event={index}") for index, event in enumerate(events[:MOST_SHOWN])]
    more = len(events) - MOST_SHOWN
    if more > 0:
        link = markup.link(trend_page, f"and {more} more, in the trend")
        lines.append(f'<li class="soft">{markup.safe(link)}</li>')
    return f'<h2>What changed</h2><ul class="events">{"".join(lines)}</ul>'


def _nothing(nights: int) -> str:
    if not nights:
        return _NO_NIGHTS
    return f"No change point in {nights} {'night' if nights == 1 else 'nights'}."


def _event(event: Mapping[str, Any], address: str) -> str:
    tone, tag = _tag(event)
    facts = " · ".join(f"<span>{escape(fact)}</span>" for fact in _facts(event))
    return (
        f'<li><b class="tag {tone}">{escape(tag)}</b><div>'
        f'<a href="{escape(address)}">{escape(str(event["headline"]))}</a>'
        f'<p class="soft">{facts}</p></div></li>'
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


def _facts(event: Mapping[str, Any]) -> list[str]:
    """Return since when, between which commits, by how much and where."""
    nights = int(event["nights"])
    facts = [f"since {event['night']}, {nights} {'night' if nights == 1 else 'nights'}"]
    if event["good"] and event["bad"]:
        facts.append(f"commits {str(event['good'])[:_COMMIT_DIGITS]}..{str(event['bad'])[:_COMMIT_DIGITS]}")
    of_ratio = " beside the reference" if event["of_ratio"] else ""
    low, high = _signed(event["low"]), _signed(event["high"])
    series = event.get("series", event.get("series_ids", ()))
    surest = "surest series " if len(series) > 1 else ""
    facts.append(f"{surest}{_signed(event['change'])} % [{low}, {high}]{of_ratio}")
    boards = [str(board) for board in event["boards"]]
    rest = len(boards) - BOARDS_NAMED
    facts.append(", ".join(boards[:BOARDS_NAMED]) + (f" and {rest} more" if rest > 0 else ""))
    return facts


def _signed(ratio: float) -> str:
    """Return per cent with a sign, without its unit: "+12.3", "−4.0"."""
    return f"{100 * ratio:+,.1f}".replace("-", "−")

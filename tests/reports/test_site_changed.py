# SPDX-License-Identifier: Apache-2.0
"""What changed, on the first page: events as a person reads them, in few lines, safe whatever they hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from hil.history.nightly.event_words import HEADLINE_MAX
from hil.reports.site.changed import MOST_SHOWN
from hil.reports.site.changed import changed as changed_in
from hil.reports.site.landing import render_landing
from hil.reports.site.runs import shown
from hil.store import read_judged_run
from tests.make_records import publish_record
from tests.reports.as_read import words
from tests.reports.browser import visit
from tests.reports.site_runs import store_run

NAME = "20261121T101500Z-quick-0001"
GOOD, BAD = "4f1c0d7a9be25360c1f4b8e0d2a7639581ce4af0", "9b07e6d5c4b3a29180f7e6d5c4b3a29180f7e6d5"


def event(**changes: Any) -> Mapping[str, Any]:
    """Return an event as trend.json holds it."""
    return {
        "cause": "firmware",
        "effect": "worse",
        "racks": ["lab"],
        "boards": ["lab/e1", "lab/e2"],
        "night": "2026-03-04",
        "nights": 12,
        "change": 0.123,
        "low": 0.101,
        "high": 0.146,
        "of_ratio": True,
        "good": GOOD,
        "bad": BAD,
        "conditions": [],
        "headline": "Firmware: publish latency p99 12 % slower on 2 boards since 9b07e6d",
        "sentence": "",
        "bisect": "",
        "note": "",
        "run": 3,
        "series": [4, 5],
        **changes,
    }


def changed(events: Sequence[Mapping[str, Any]], **options: Any) -> str:
    """Return the part of a trend that draws none of the events' series."""
    return changed_in({"events": events, "series": []}, **options)


def test_an_event_says_who_what_when_and_where() -> None:
    """Tag, headline, nights, commits, size with its interval, boards."""
    said = words(changed([event()], nights=60))
    order = ["Firmware ✗ worse", event()["headline"], "2026-03-04", "12 nights", f"{GOOD[:7]}..{BAD[:7]}"]
    order += ["+12.3 % [+10.1, +14.6] beside the reference", "lab/e1, lab/e2"]
    assert re.search(".*".join(map(re.escape, order)), said)


@pytest.mark.parametrize(
    ("cause", "effect", "tag", "tone"),
    [
        ("firmware", "worse", "Firmware ✗ worse", "bad"),
        ("firmware", "mixed", "Firmware ± mixed", "bad"),
        ("firmware", "better", "Firmware ↑ improved", "good"),
        ("firmware", "", "Firmware ? changed", "unsure"),
        ("board", "worse", "Board ✗ worse", "unsure"),
        ("environment", "worse", "Environment ✗ worse", "unsure"),
        ("environment", "better", "Environment ↑ improved", "good"),
        ("unclear", "worse", "Unclear ?", "unsure"),
    ],
)
def test_a_tag_says_in_words_and_a_sign_what_its_colour_says(
    cause: str, effect: str, tag: str, tone: str
) -> None:
    """Nobody has to tell red from green."""
    assert f'<b class="tag {tone}">{tag}</b>' in changed([event(cause=cause, effect=effect)])


def test_each_event_leads_to_itself_in_the_trend() -> None:
    """Its index stands in the address; six are shown, and how many more there are."""
    said = changed([event(headline=f"event {n}") for n in range(MOST_SHOWN + 3)], trend_page="t.html")
    assert re.findall(r'<a href="([^"]*)">event (\d)</a>', said) == [
        (f"t.html#event={n}", str(n)) for n in range(MOST_SHOWN)
    ]
    assert '<a href="t.html">and 3 more' in said


def test_where_nothing_changed_one_line_says_so() -> None:
    """No heading, no list. Nights too few for any change point do not say that nothing changed; without
    nights it is said where change points come from.
    """
    for nights, said in (
        (70, "No change .* 70 nights"),
        (3, "3 nights .* 4 "),
        (1, "1 night so far: .* 4 "),
        (0, "docs/operate/nightly.md"),
    ):
        assert re.fullmatch(f'<p class="soft">.*{said}.*</p>', changed([], nights=nights))


def test_an_event_without_commits_names_none() -> None:
    """An access point is no commit; of many boards the first are named."""
    boards = [f"lab/e{n}" for n in range(1, 8)]
    said = words(changed([event(cause="environment", good="", bad="", of_ratio=False, boards=boards)]))
    assert "commits" not in said
    assert "beside the reference" not in said
    assert "lab/e3 and 4 more" in said


def test_what_racks_and_boards_are_called_is_no_markup() -> None:
    """Names, conditions and nights that hold HTML are shown as they are."""
    bad = '<script>alert("1")</script>'
    text_fields = ("headline", "night", "good", "bad", "cause", "effect")
    said = changed([event(**dict.fromkeys(text_fields, bad), boards=[f"lab/{bad}"])])
    assert "<script" not in said
    assert said.count("&lt;script&gt;") >= 3
    assert changed([event()], trend_page='"><script>').count("<script") == 0


def landing(out: Path, **options: Any) -> str:
    run = shown(read_judged_run(store_run(out, NAME, [publish_record(board="v1")])))
    return render_landing([run], past=1, raw=(), **options)


def test_it_stands_between_verdict_and_ways(tmp_path: Path) -> None:
    """After what the run says, what changed; a page of runs alone says nothing of nights."""
    page = landing(tmp_path / "a", trend={"events": [event()], "series": []}, nights=60)
    order = ['class="verdict', "What changed", 'class="ways"']
    assert [page.index(part) for part in order] == sorted(page.index(part) for part in order)
    assert "in 60 nights" in landing(tmp_path / "b", trend={"events": []}, nights=60)
    plain = landing(tmp_path / "c")
    assert "What changed" not in plain
    assert "nightly" not in plain


@pytest.mark.slow
def test_verdict_and_six_events_are_seen_at_once(browser: Browser, tmp_path: Path) -> None:
    """Of a window of 800 pixels nothing need be scrolled; a narrow one is not scrolled sideways."""
    page = tmp_path / "index.html"
    longest = "Access point: SSID lab-2 → lab-3, publish latency p95, p99 on 12 virtual boards "
    longest += "(simulated noise) 1,150 % slower"
    events = [event(headline=longest[:HEADLINE_MAX]) for _n in range(MOST_SHOWN)]
    page.write_text(landing(tmp_path, trend={"events": events, "series": []}, nights=60), encoding="utf-8")
    with visit(browser, page.as_uri()) as seen:
        box = seen.page.locator("ul.events").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800
        assert seen.complaints == []
    with visit(browser, page.as_uri(), width=400) as seen:
        assert seen.width() <= 400

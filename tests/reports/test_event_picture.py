# SPDX-License-Identifier: Apache-2.0
"""The events on the first page, and the picture of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from hil.reports.site.changed import changed
from hil.reports.trend.picture import event_picture
from tests.reports.trend_rig import LATEST, METRIC, figure, history_of, line, nights, trend

NIGHTS, STEP = 40, 25


def stepped(factor: float, *, reference: bool = True) -> dict[str, Any]:
    """Return a trend of NIGHTS nights, a commit each; from STEP on the candidate is ``factor`` as slow."""
    past = nights(NIGHTS, STEP, factor, reference=reference)
    lines = [
        line(
            one.run_id,
            {METRIC: figure(float(np.mean(one.candidate)))},
            commit=one.commit,
            title=f"<b>{n}</b>",
        )
        for n, one in enumerate(past)
    ]
    return trend(line(LATEST), lines=lines, history=history_of(*past))


def lines_of(picture: str) -> Mapping[str, list[tuple[float, float]]]:
    """Return the points of each polyline, by its class."""
    found = re.findall(r'<polyline class="(\w+)" points="([^"]+)"', picture)
    pairs = {name: [pair.split(",") for pair in points.split()] for name, points in found}
    return {name: [(float(x), float(y)) for x, y in own] for name, own in pairs.items()}


def test_a_picture_shows_what_was_measured_and_what_decides() -> None:
    """A step of 12 % takes most of the panel's height, and a limit far above it is a word at the edge. Where
    the values come near the limit, it is drawn where it is. Below, the ratio that decides is in per cent of
    the level before, with both levels; without a reference there is none. The range of commits is shaded,
    from the last night before the step to the first after."""
    data = stepped(1.12)
    picture = event_picture(data["events"][0], data)
    points, heights = zip(*lines_of(picture)["candidate"], strict=True)
    before, after = np.mean(heights[:STEP]), np.mean(heights[STEP:])
    assert (before - after) / (132 - 22) > 0.5
    assert "limit 25 ms ↑" in picture
    assert 'class="limit"' not in picture
    ratio = [y for _, y in lines_of(picture)["ratio"]]
    assert np.mean(ratio[:STEP]) > np.mean(ratio[STEP:]) + 15
    assert "beside the reference" in picture
    assert picture.count('class="level') == 2
    ((left, width),) = re.findall(r'class="step" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', picture)
    assert abs(float(left) - points[STEP - 1]) < 0.2
    assert abs(float(left) + float(width) - points[STEP]) < 0.2
    alone = stepped(1.12, reference=False)
    assert alone["events"]
    assert set(lines_of(event_picture(alone["events"][0], alone))) == {"candidate"}
    near = stepped(4.0)
    assert 'class="limit"' in event_picture(near["events"][0], near)


def test_an_event_says_whose_commit_it_is_and_leads_on() -> None:
    """Title, range and nights stand with it, foreign words as words; it leads to its place in the trend. What
    improved is one line that opens; without picture, commit and state, as in a trend of older days, an event
    is told all the same; without a trend nothing is."""
    data = stepped(1.12)
    said = changed(data, nights=NIGHTS)
    assert 'href="trend/index.html#event=0"' in said
    assert f"open {NIGHTS - STEP} nights" in said
    assert f"&lt;b&gt;{STEP}&lt;/b&gt;" in said
    assert "<b>25" not in said
    assert said.count('class="picture"') == 1
    data["events"][0]["effect"] = "better"
    said = changed(data, nights=NIGHTS)
    assert "<summary>And 1 improved</summary>" in said
    assert '<ul class="events">' not in said.partition("<details")[0]
    for key in ("picture", "commit", "state", "ended", "open_nights"):
        del data["events"][0][key]
    assert "Firmware" in changed(data)
    assert changed(None) == ""

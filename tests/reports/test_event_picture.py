# SPDX-License-Identifier: Apache-2.0
"""The events on the first page, and the picture of each."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from hil.reports.site.changed import changed
from hil.reports.trend.picture import event_picture
from tests.reports.trend_rig import LATEST, METRIC, Boots, figure, history_of, line, trend

NIGHTS, STEP = 40, 25


def nights(factor: float, *, reference: bool = True) -> dict[str, Any]:
    """Return a trend of NIGHTS nights, a commit each; from STEP on the candidate is ``factor`` as slow."""
    chance = np.random.default_rng(7)
    found, lines = [], []
    for number in range(NIGHTS):
        run_id = f"{datetime.date(2026, 1, 1) + datetime.timedelta(days=number):%Y%m%d}T010000Z-nightly-0001"
        boots = 7000 * np.exp(chance.normal(0, 0.01, 12))
        slow = factor if number >= STEP else 1.0
        other = boots[6:].tolist() if reference else []
        own = (boots[:6] * slow).tolist()
        commit = f"{number:040x}"
        found.append(Boots(run_id, own, other, image=f"{number:064x}", commit=commit))
        lines.append(line(run_id, {METRIC: figure(7000.0 * slow)}, commit=commit, title=f"<b>{number}</b>"))
    return trend(line(LATEST), lines=lines, history=history_of(*found))


def lines_of(picture: str) -> Mapping[str, list[tuple[float, float]]]:
    """Return the points of each polyline, by its class."""
    found = re.findall(r'<polyline class="(\w+)" points="([^"]+)"', picture)
    return {name: [_point(pair) for pair in points.split()] for name, points in found}


def _point(pair: str) -> tuple[float, float]:
    x, y = pair.split(",")
    return float(x), float(y)


def test_the_axis_fits_what_was_measured() -> None:
    """A step of 12 % takes most of the panel's height, and a limit far above it is a word at the edge."""
    data = nights(1.12)
    picture = event_picture(data["events"][0], data)
    heights = [y for _, y in lines_of(picture)["candidate"]]
    before, after = np.mean(heights[:STEP]), np.mean(heights[STEP:])
    assert (before - after) / (132 - 22) > 0.5
    assert "limit 25 ms ↑" in picture
    assert 'class="limit"' not in picture


def test_a_limit_within_reach_is_a_line() -> None:
    """Where the values come near it, it is drawn where it is."""
    data = nights(4.0)
    assert 'class="limit"' in event_picture(data["events"][0], data)


def test_the_ratio_that_decides_is_drawn_below() -> None:
    """It is in per cent of the level before, with both levels; without a reference there is none."""
    data = nights(1.12)
    picture = event_picture(data["events"][0], data)
    ratio = [y for _, y in lines_of(picture)["ratio"]]
    assert np.mean(ratio[:STEP]) > np.mean(ratio[STEP:]) + 15
    assert "beside the reference" in picture
    assert picture.count('class="level') == 2
    alone = nights(1.12, reference=False)
    assert alone["events"]
    assert set(lines_of(event_picture(alone["events"][0], alone))) == {"candidate"}


def test_the_step_is_shaded_from_the_last_night_before_to_the_first_after() -> None:
    """The commits of that range are what it is about."""
    data = nights(1.12)
    picture = event_picture(data["events"][0], data)
    points = [x for x, _ in lines_of(picture)["candidate"]]
    left, width = map(
        float, re.search(r'class="step" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', picture).groups()
    )  # type: ignore[union-attr]
    assert abs(left - points[STEP - 1]) < 0.2
    assert abs(left + width - points[STEP]) < 0.2


def test_an_event_says_whose_commit_it_is_and_leads_on() -> None:
    """Title, range and nights stand with it, foreign words as words; it leads to its place in the trend."""
    data = nights(1.12)
    said = changed(data, nights=NIGHTS)
    assert 'href="trend/index.html#event=0"' in said
    assert f"open {NIGHTS - STEP} nights" in said
    assert f"&lt;b&gt;{STEP}&lt;/b&gt;" in said
    assert "<b>25" not in said
    assert said.count('class="picture"') == 1


def test_what_ended_or_improved_is_folded() -> None:
    """What a person has to look at stands open; the rest is one line that opens."""
    data = nights(1.12)
    data["events"][0]["effect"] = "better"
    said = changed(data, nights=NIGHTS)
    assert "<summary>And 1 improved</summary>" in said
    assert '<ul class="events">' not in said.partition("<details")[0]


def test_a_trend_of_older_days_is_no_obstacle() -> None:
    """Without picture, commit and state an event is told all the same; without a trend nothing is."""
    data = nights(1.12)
    for key in ("picture", "commit", "state", "ended", "open_nights"):
        del data["events"][0][key]
    assert "Firmware" in changed(data)
    assert changed(None) == ""

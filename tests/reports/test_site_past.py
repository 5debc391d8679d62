# SPDX-License-Identifier: Apache-2.0
"""A test's own page in the report: how its figure moved over the reports before this one."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from hil.reports.allure.identity import id_of
from hil.reports.site.past import draw_past
from hil.reports.site.runs import ShownRun, copy_results, shown
from hil.store import read_judged_run
from tests.reports.site_runs import healthy, store_run

RUN_ID = "20261120T221257Z-quick-3fa9"
BEFORE_MS = (7.0, 7.2, 31.0)


@pytest.fixture
def run(tmp_path: Path) -> ShownRun:
    return shown(read_judged_run(store_run(tmp_path / "out", RUN_ID, healthy())))


def series_of(run: ShownRun, board: str) -> str:
    """Return the key of the 95th percentile of a board's first case, which has a limit of 25 ms."""
    return next(
        item.series_id
        for item in run.verdict.series
        if item.board == board and item.metric == "publish_latency_p95_us"
    )


def history(key: str, values_ms: tuple[float, ...]) -> list[dict[str, Any]]:
    """Return Allure's points of reports that had these figures."""
    return [
        {"started_utc": f"2026-11-{day:02}T01:00:00Z", "metrics": {key: value}}
        for day, value in enumerate(values_ms, start=1)
    ]


def described(tmp_path: Path, run: ShownRun, past: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Return the description of each (board, case id) as Allure is given it."""
    (folder,) = copy_results(tmp_path / "results", [run], lambda content: content)
    draw_past(folder, run, past)
    found: dict[str, dict[str, Any]] = {
        id_of(path.name.removesuffix("-result.json")): json.loads(path.read_text())
        for path in folder.glob("*-result.json")
    }
    return {place: found[test_id]["descriptionHtml"] for place, test_id in run.test_ids.items()}


def drawing(description: str) -> str:
    """Return the picture in a description, as a browser decodes it."""
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([\w+/=]+)"', description)
    return base64.b64decode(data).decode()


def test_a_test_shows_its_figure_over_the_reports_before(tmp_path: Path, run: ShownRun) -> None:
    """Below its verdict: a point a report and this run's own, the limit, the first and the last day. Only the
    board whose figures the history has gets a picture; the run's own results get none."""
    key = series_of(run, "v2")
    (item,) = (item for item in run.verdict.series if item.series_id == key)
    texts = described(tmp_path, run, history(key, BEFORE_MS))
    assert sum("data:image" in text for text in texts.values()) == 1
    assert not any("data:image" in path.read_text() for path in run.results.glob("*-result.json"))
    text = texts[item.board, item.case_id]
    first, _, rest = text.partition("</p>")
    assert "limits kept" in first
    assert re.match(r"\s*<p><strong>publish latency p95 .* 3 before", rest)
    svg = drawing(text)
    (line,) = re.findall(r'<polyline class="candidate" points="([^"]+)"', svg)
    heights = [float(point.partition(",")[2]) for point in line.split()]
    assert len(heights) == 4
    assert min(heights) == heights[2]  # 31 ms stand highest
    assert ">limit 25 ms<" in svg  # 31 ms are beyond it, so it lies on the axis
    assert ">2026-11-01<" in svg
    assert ">2026-11-20<" in svg


def test_one_report_before_is_no_line(tmp_path: Path, run: ShownRun) -> None:
    """With fewer than two reports before this one nothing is drawn, and without a history neither."""
    texts = described(tmp_path, run, history(series_of(run, "v2"), (7.0,)))
    assert not any("data:image" in text for text in texts.values())
    draw_past(tmp_path / "results" / RUN_ID, run, [])

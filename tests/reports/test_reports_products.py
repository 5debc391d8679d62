# SPDX-License-Identifier: Apache-2.0
"""Reports of several products on one rack: none draws on another's line, and each is named."""

from __future__ import annotations

import json
from pathlib import Path

from hil.model import RunRecord
from hil.reports.allure.identity import full_name, history_id, ids_of, parameters_of
from hil.reports.allure.story import case_label
from hil.reports.history import comparable, line_of
from hil.reports.rebuild import write_run
from hil.store import JudgedRun, RunDirectory, read_judged_run
from tests.history.test_history_store_runs import four_boots, leave_run
from tests.history.test_products import of
from tests.judging import judge
from tests.make_records import publish_thresholds
from tests.reports.trend_rig import LATEST, METRIC, Boots, figure, history_of, line, trend

FIRST, SECOND = "20260227T010000Z-nightly-0001", "20260228T010000Z-nightly-0001"
NODE = "sensor-node"


def test_products_on_one_board_are_lines_of_their_own() -> None:
    """Same rack, board, case and metric, by boot values and by lines: a series each, with its product."""
    past = history_of(Boots(FIRST, [1000.0] * 6), Boots(SECOND, [2000.0] * 6, product=NODE))
    own = line(LATEST, {METRIC: figure(2100.0)}, product=NODE)
    data = trend(own, lines=[own], history=past)
    series = {one.get("product", ""): one for one in data["series"]}
    assert set(series) == {"", NODE}
    assert series[""]["points"]["value"] == [1000]
    assert series[NODE]["points"]["value"] == [2000, 2100]
    assert series[NODE]["id"] == f"{NODE}:{series['']['id']}"
    assert data["runs"]["product"] == ["", NODE, NODE]


def test_where_no_product_is_named_nothing_says_so() -> None:
    """The data is what it was before there were products."""
    data = trend(line(LATEST, {METRIC: figure(2100.0)}), history=history_of(Boots(FIRST, [1000.0] * 6)))
    assert "product" not in data["runs"]
    assert all("product" not in one for one in data["series"])


def test_each_product_keeps_its_newest_runs() -> None:
    """A product that measures often does not push another one off the page."""
    days = [f"2026020{day}T010000Z-nightly-0001" for day in range(1, 8)]
    past = history_of(
        Boots(days[0], [1000.0], product=NODE), *(Boots(day, [2000.0], product="gateway") for day in days[1:])
    )
    data = trend(line(LATEST, product="gateway"), history=past, most=3)
    assert data["runs"]["product"].count(NODE) == 1
    assert data["runs"]["product"].count("gateway") == 3


def test_a_line_keeps_its_product_when_it_is_chosen() -> None:
    """What reported runs are shown against holds all products, each by its name."""
    lines = [line(FIRST, product=NODE), line(SECOND)]
    assert [one.get("product") for one in comparable(lines, [line(LATEST)])] == [NODE, None]


def _judged(out: Path, product: str) -> JudgedRun:
    """Return a judged run of a product, with its Allure results and its plain files."""
    records = [of(product, record) for record in four_boots()]
    run = RunDirectory.open(leave_run(out, records, **({"product": product} if product else {})))
    entries = [one for one in run.read().entries if isinstance(one, RunRecord)]
    run.write_verdict(judge(entries, {"publish": publish_thresholds()}))
    found = read_judged_run(run.path)
    write_run(found)
    return found


def test_no_test_of_the_report_has_results_of_two_products(tmp_path: Path) -> None:
    """Allure's history of a case goes on by product; a run without one keeps the identity that it had."""
    ids: dict[str, set[str]] = {}
    for product in ("", NODE):
        run = _judged(tmp_path / (product or "own"), product)
        results = [json.loads(path.read_text()) for path in run.path.glob("allure-results/*-result.json")]
        ids[product] = {one["historyId"] for one in results}
        assert {key: value for key, value in ids_of(run).items() if value}
    label = case_label(four_boots()[0].case_id, {"publish": publish_thresholds()})
    own, other = (parameters_of(place, "v1", label) for place in ("virtual", f"{NODE}:virtual"))
    assert history_id(full_name("publish"), own) in ids[""]
    assert history_id(full_name("publish"), other) in ids[NODE]
    assert not ids[""] & ids[NODE]


def test_a_run_says_whose_figures_it_has(tmp_path: Path) -> None:
    """Summary, terminal, history and metrics name the product; without one they are as before."""
    named, plain = _judged(tmp_path / "named", NODE), _judged(tmp_path / "plain", "")
    assert "product: `sensor-" in (named.path / "summary.md").read_text()
    assert "product" not in (plain.path / "summary.md").read_text()
    assert line_of(named)["product"] == NODE
    assert line_of(plain)["product"] == ""
    assert 'product="sensor-node"' in (named.path / "openmetrics.txt").read_text()
    assert "product=" not in (plain.path / "openmetrics.txt").read_text()

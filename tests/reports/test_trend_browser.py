# SPDX-License-Identifier: Apache-2.0
"""The trend page and the first page in a real browser, over nights with planted changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

from hil.reports.site import build_site
from hil.store import read_judged_run
from tests.reports.browser import Visit, visit
from tests.reports.site_runs import healthy, store_run
from tools.demo.making import make
from tools.demo.plan import Plan

pytestmark = pytest.mark.slow

PAGES = {"index.html": "What changed", "trend/index.html": "Every series"}
BEHIND = ("dotted: reference firmware", "400 samples", "in the order of measurement", "All 24 runs")
# each width and each theme once; the other two pairs where all tests run
LOOKS = [
    (1280, "light"),
    (400, "dark"),
    pytest.param(1280, "dark", marks=pytest.mark.heavy),
    pytest.param(400, "light", marks=pytest.mark.heavy),
]
AXE = Path(__file__).resolve().parents[2] / "reports/site/node_modules/axe-core/axe.min.js"
TOLD_APART = ("rack", "board", "kind", "profile", "case_id", "quantity", "unit")
CUT = """() => [...document.querySelectorAll(".scroll")]
    .filter((table) => table.scrollWidth > table.clientWidth + 1).length"""
SPILLING = """() => [...document.querySelectorAll("td, th")].filter((cell) => {
    const own = document.createRange(), { left, right } = cell.getBoundingClientRect();
    own.selectNodeContents(cell);
    const boxes = [...own.getClientRects()].filter(({ width }) => width);
    return boxes.some((box) => Math.max(left - box.left, box.right - right) > 1);
}).map((cell) => cell.innerText)"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nights of two virtual racks with four changes planted in them."""
    demo = make(tmp_path_factory.mktemp("trend"), Plan(nights=24, boots=2, seed=3))
    return build_site(demo.out, list(map(read_judged_run, demo.runs))).parent


@pytest.fixture(scope="module")
def data(report: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((report / "trend" / "trend.json").read_text())
    return found


@pytest.fixture
def trend(tab: Visit, report: Path) -> Iterator[Visit]:
    """The trend page; whatever a test does there asks no other host and leaves no complaint."""
    tab.go(f"{report.as_uri()}/trend/index.html")
    yield tab
    tab.assert_at_home()


def tiles(seen: Visit) -> list[str]:
    """Return the titles of the charts that are open."""
    return seen.page.locator("figure.tile figcaption").all_inner_texts()


def charts(data: dict[str, Any], matches: Callable[[dict[str, Any]], bool]) -> int:
    """Return how many charts have a series that matches."""
    return len({tuple(item[name] for name in TOLD_APART) for item in data["series"] if matches(item)})


def shown(seen: Visit, wanted: int) -> None:
    """Wait until the page says that it shows so many charts, and see that it does."""
    seen.page.locator(".shown", has_text=f"{wanted} of ").wait_for()
    assert len(tiles(seen)) == wanted > 0


def choose(page: Page, name: str, value: str) -> None:
    page.get_by_role("combobox", name=name, exact=True).select_option(value)


def test_a_drill_down_shows_what_is_behind_and_leads_to_its_test(tab: Visit, report: Path) -> None:
    """A publish latency has its distribution, boots and runs below a heading that says virtual and simulated;
    one click leads to the case in the test report. Neither page asks another host.
    """
    tab.go(f"{report.as_uri()}/trend/index.html")
    tab.show(PAGES["trend/index.html"])
    tab.page.locator("figure.tile button", has_text="publish latency").first.click()
    panel, title = tab.page.locator(".drill"), tab.page.locator("#drill-title").inner_text()
    assert "(virtual, simulated noise)" in title
    for words in BEHIND:
        panel.get_by_text(words).first.wait_for()
    assert panel.locator("canvas:visible").count() == 3
    tab.assert_at_home()
    link = tab.page.locator('.drill footer a[href*="tests/index.html#"]').first
    test = (link.get_attribute("href") or "").partition("#")[2]
    link.click()
    tab.page.wait_for_url(f"**/tests/index.html#*{test}*")
    name = tab.page.get_by_test_id("test-result-info-title")
    name.wait_for()
    assert "publish" in name.inner_text()
    board = title.partition(" on ")[2].partition(" ")[0]
    assert f" on {board} (virtual" in name.inner_text()
    assert tab.foreign() == []


def test_the_first_screens_answer_what_when_where_and_whose_fault(
    tab: Visit, report: Path, data: dict[str, Any]
) -> None:
    """Within 800 pixels both pages have the worst event's headline, its night and its commits."""
    worst = data["events"][0]
    assert worst["cause"] == "firmware"
    assert tab.page.viewport_size == {"width": 1280, "height": 800}
    for page in PAGES:
        tab.go(f"{report.as_uri()}/{page}")
        for words in (worst["headline"], worst["night"], f"{worst['good'][:7]}..{worst['bad'][:7]}"):
            box = tab.page.get_by_text(words).first.bounding_box()
            assert box, (page, words)
            assert box["y"] + box["height"] <= 800, (page, words)


def test_filters_show_what_they_name(trend: Visit, data: dict[str, Any]) -> None:
    """Board, statistic, what changed and words narrow the charts, together too, and all come back."""
    page = trend.page
    choose(page, "Board", "e2")
    shown(trend, charts(data, lambda item: item["board"] == "e2"))
    assert all(title.endswith("e2") for title in tiles(trend))
    page.get_by_role("button", name="tail5", exact=True).click()
    shown(trend, charts(data, lambda item: item["board"] == "e2" and item["stat"] == "tail5"))
    page.get_by_role("button", name="Show everything").click()
    page.get_by_label("changed only").check()
    shown(trend, charts(data, lambda item: bool(item["changes"])))
    page.fill("#filter-text", "latency transport=tls")
    choose(page, "Rack", "lab")
    wanted = charts(
        data,
        lambda item: (
            bool(item["changes"])
            and item["rack"] == "lab"
            and "latency" in item["quantity"]
            and "transport=tls" in item["case_id"]
        ),
    )
    shown(trend, wanted)
    page.fill("#filter-text", "transport=quic")
    trend.show("No chart matches.")


def test_the_first_page_opens_the_event(tab: Visit, report: Path, data: dict[str, Any]) -> None:
    """Its headline leads to the row of that event on the trend page, open, with only its charts. Neither page
    asks another host.
    """
    for index in (0, 1):
        event = data["events"][index]
        tab.go(f"{report.as_uri()}/index.html")
        tab.page.get_by_role("link", name=event["headline"]).click()
        row = tab.page.locator(f"#event-{index}")
        row.get_by_role("button", name=event["headline"], expanded=True).wait_for()
        tab.page.locator(".chosen", has_text=event["headline"]).wait_for()
        ids = set(event["series"])
        wanted = [item for number, item in enumerate(data["series"]) if number in ids]
        shown(tab, len({tuple(item[name] for name in TOLD_APART) for item in wanted}))
        tab.assert_at_home()


def test_the_page_says_once_that_its_figures_are_virtual_and_simulated(trend: Visit) -> None:
    """Its top does, and each chart's text for who does not see it. Whoever scrolls meets three groups of
    charts, not all, and opens more with a click."""
    trend.page.locator("canvas").first.wait_for()
    charts = trend.page.locator(".trend-chart")
    titles = [charts.nth(at).get_attribute("aria-label") or "" for at in range(charts.count())]
    assert titles
    assert all("(virtual, simulated noise)" in title for title in titles)
    top = trend.page.locator("header").first.inner_text()
    assert "virtual" in top
    assert "simulated noise" in top
    heads = trend.page.locator(".group > h3 > button")
    assert trend.page.locator(".group > h3 > button[aria-expanded=true]").count() <= 3 < heads.count()
    before = len(tiles(trend))
    heads.last.click()
    assert len(tiles(trend)) > before


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_its_window_and_axe_finds_nothing(
    browser: Browser, report: Path, page: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    """No page has a violation of axe-core's rules: contrast, names, landmarks, what a keyboard can reach.
    Nothing is cut off or hangs out: on a telephone wide tables scroll, on a desk none has to.
    """
    with visit(browser, f"{report.as_uri()}/{page}", width=width, scheme=scheme) as seen:
        seen.show(PAGES[page])
        if page.startswith("trend"):
            seen.page.locator("figure.tile").first.scroll_into_view_if_needed()
            seen.page.locator("figure.tile canvas").first.wait_for()
        assert violations(seen.page) == []
        if page.startswith("trend"):
            seen.page.locator("#event-0 button").click()
            seen.page.locator("#event-0-more").wait_for()
        assert width < 1280 or seen.page.evaluate(CUT) == 0
        assert_within(seen, width)


def assert_within(seen: Visit, width: int) -> None:
    """The page is no wider than its window, and no cell's words leave the cell."""
    assert seen.width() <= width
    assert seen.page.evaluate(SPILLING) == []


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the trend page of one run alone."""
    out = tmp_path_factory.mktemp("first")
    run = store_run(out, "20261121T101500Z-quick-0001", healthy(7.0))
    return (build_site(out, [read_judged_run(run)]).parent / "trend/index.html").as_uri()


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_shares_of_a_first_run_stay_in_their_cells(
    browser: Browser, first_run: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    """In place of charts of one dot stands how much of each limit is used; no figure covers its neighbour."""
    with visit(browser, first_run, width=width, scheme=scheme) as seen:
        seen.show("Nearest to their limits")
        assert_within(seen, width)


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.heavy), "dark"])
def test_axe_finds_nothing_in_a_drill_down(
    browser: Browser, report: Path, scheme: Literal["light", "dark"]
) -> None:
    """With an event open behind it."""
    with visit(browser, f"{report.as_uri()}/trend/index.html#event=0", width=400, scheme=scheme) as seen:
        seen.page.locator(".boards-charts figcaption button").first.click()
        seen.page.locator(".drill canvas").nth(2).wait_for()
        assert violations(seen.page) == []


def violations(page: Page) -> list[str]:
    """Return what axe-core finds wrong: the rule and the first element that breaks it."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("async () => (await axe.run({resultTypes: ['violations']})).violations")
    return [f"{rule['id']}: {rule['nodes'][0]['target']}" for rule in found]

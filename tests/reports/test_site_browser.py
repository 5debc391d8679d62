# SPDX-License-Identifier: Apache-2.0
"""The report site in a real browser, over three runs: what each page shows; no page asks another host."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from hil.history.files import read_past
from hil.history.from_run import keep_run
from hil.model import Fault, NotRun
from hil.reports.allure.charts import draw_distribution, draw_timeline
from hil.reports.allure.samples import samples_of
from hil.reports.allure.story import story_of
from hil.reports.site import build_site
from hil.reports.site.landing import render_landing
from hil.reports.site.runs import shown
from hil.store import read_judged_run
from tests.make_records import publish_record
from tests.reports.allure_runs import judged
from tests.reports.browser import Visit, channels, served, visit
from tests.reports.site_runs import healthy, store_run

pytestmark = pytest.mark.slow

PAGES = {
    "index.html": "1 of 12 limits broken:",
    "tests/index.html": "publish transport=tls on v2 (virtual)",
    "trend/index.html": "publish latency",
}
SLOW = "publish transport=tls on v2 (virtual)"
NAMES = tuple(f"2026112{day}T101500Z-quick-000{day}" for day in (1, 2, 3))
CI = {"url": "https://github.example/acme/fw/actions/runs/17"}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs with a report after each, as on a rack; the third is too slow over TLS on v2."""
    out = tmp_path_factory.mktemp("out")
    for name, latency_ms, commit in zip(NAMES, (7.0, 7.5, 31.0), "abc", strict=True):
        run = store_run(out, name, healthy(latency_ms), commit=commit * 40, ci=CI)
        keep_run(read_judged_run(run), out / "history")
        build_site(out, [read_judged_run(run)])
    return out


@pytest.fixture(scope="module")
def web(out: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The third run's report again, as many files behind a web server; its host and port."""
    copy = tmp_path_factory.mktemp("web")
    shutil.copytree(out / "history", copy / "history")
    build_site(copy, [read_judged_run(out / NAMES[2])], single_file=False, append=False)
    with served(copy / "report") as host:
        yield host


def address(out: Path, page: str) -> str:
    return (out / "report" / page).as_uri()


@pytest.mark.parametrize("page", ["index.html", "trend/index.html"])
def test_a_page_opens_over_http(browser: Browser, web: str, page: str) -> None:
    """Behind a web server a page asks its own host alone; so does the test report, see its sections."""
    with visit(browser, f"http://{web}/{page}") as seen:
        seen.show(PAGES[page])
        seen.assert_at_home(web)


def test_a_report_that_arrives_slowly_waits_for_its_data(out: Path) -> None:
    """Allure's program finds the object of its data, or would ask the page's host for files."""
    text = (out / "report/tests/index.html").read_text(encoding="utf-8")
    assert 0 < text.find("window.allureReportData = {}") < text.find('src="data:text/javascript;')


def test_a_test_shows_its_past_its_figures_and_whose_fault_it_is(browser: Browser, out: Path) -> None:
    """The third run failed in category Regression after two that passed; it stands first of its board's
    cases, whatever the order in which they ran. Results, charts and samples are in scripts beside the page
    and are loaded when a test is opened, so that many of them cost no start.
    """
    with visit(browser, address(out, "tests/index.html")) as seen:
        seen.show(SLOW)
        seen.page.get_by_text("v2 (virtual)", exact=True).last.wait_for()
        names = seen.page.get_by_text(re.compile(r"^publish .* on v2 \(virtual\)$")).all_inner_texts()
        assert names[0] == SLOW
        begun = {name for name in seen.requests if "/parts/" in name}
        seen.page.get_by_text(SLOW).first.click()
        seen.show("Category: Regression")
        seen.show("breaks its limit of 25 ms")
        seen.page.get_by_text("publish latency distribution (virtual)").first.click()
        seen.page.locator("img[src^='blob:'], img[src^='data:'], svg text").first.wait_for()
        assert {name for name in seen.requests if "/parts/" in name} - begun
        assert count_past(seen) == 2
        seen.assert_at_home()
    parts = out / "report" / "tests" / "parts"
    assert all(path.read_text().startswith("hilPart({") for path in parts.iterdir())
    assert "data/attachments" in (out / "report" / "tests" / "index.html").read_text()


def count_past(seen: Visit) -> int:
    """Return how many earlier runs the history of the test shown has."""
    seen.page.get_by_text("History").first.click()
    items = seen.page.get_by_test_id("test-result-history-item")
    items.first.wait_for()
    return items.count()


def test_every_section_of_the_test_report_stays_at_home(browser: Browser, web: str) -> None:
    """Attachments and the metrics section, too; a change from one run to the next is not coloured."""
    with visit(browser, f"http://{web}/tests/index.html") as seen:
        seen.page.get_by_text(SLOW).first.click()
        seen.page.get_by_text("Attachments").first.click()
        seen.page.get_by_text("Latency").first.wait_for()
        seen.page.goto(f"http://{web}/tests/index.html#metrics")
        seen.show("Performance metrics")
        change = seen.page.get_by_text("+27.175 ms").first
        red, green, _ = channels(change.evaluate("element => getComputedStyle(element).color"))
        assert abs(red - green) < 40
        seen.assert_at_home(web)


def test_the_trend_shows_three_runs_and_the_third_over_its_limit(browser: Browser, out: Path) -> None:
    """The chart says so, with the figure to read; its run and commit are linked."""
    with visit(browser, address(out, "trend/index.html")) as seen:
        seen.show(PAGES["trend/index.html"])
        seen.show("3 runs, ")
        seen.show("1 limit broken now")
        tile = seen.page.locator("figure.tile").first
        assert tile.locator("figcaption").inner_text().split("\n") == ["publish latency", "v2"]
        label = tile.get_by_role("img").get_attribute("aria-label") or ""
        assert re.search("35.8 ms .*25 ms, broken", label)
        tile.locator("button").click()
        row = seen.page.locator("table.runs tbody tr").first.inner_text()
        assert "ccccccc" in row
        assert "35.8 ms" in row
        links = seen.page.locator(".drill a")
        hrefs = {link.get_attribute("href") for link in links.all()}
        assert {CI["url"], f"https://github.example/acme/fw/commit/{'c' * 40}"} <= hrefs
        seen.assert_at_home()


def test_the_first_page_leads_everywhere(browser: Browser, out: Path) -> None:
    """Verdict to test report, to trend, and back; what broke is one click from its test; the raw files are
    there.
    """
    with visit(browser, address(out, "index.html")) as seen:
        seen.show(PAGES["index.html"])
        for link, text in (("Trend →", "Nearest to their limits"), ("Test report →", SLOW)):
            seen.page.get_by_text(link).first.click()
            seen.show(text)
            seen.page.get_by_text("← Verdict").click()
            seen.show("1 of 12 limits broken:")
        hrefs = [link.get_attribute("href") or "" for link in seen.page.locator("a").all()]
        for href in hrefs:
            file = out / "report" / href.partition("#")[0]
            assert href.startswith("https:") or file.is_file(), href
        assert f"runs/{NAMES[2]}/records.jsonl" in hrefs
        seen.page.get_by_role("link", name="publish latency p95 publish/transport=tls").first.click()
        seen.show("Category: Regression")
        seen.show(SLOW)
        seen.assert_at_home()


def test_the_way_back_covers_nothing_and_follows_the_theme(browser: Browser, out: Path) -> None:
    """It has a strip of its own, so the language switch and the page's foot stay whole and in view. Nothing
    is scrolled until somebody acts; Allure's charts are there.
    """
    looks: tuple[tuple[int, Literal["light", "dark"]], ...]
    looks = ((800, "light"), (1280, "light"), (1280, "dark"), (800, "dark"))
    with visit(browser, address(out, "tests/index.html"), width=800) as seen:
        seen.show(SLOW)
        seen.page.locator("[data-testid=tree-section]").first.wait_for()
        back = seen.page.locator(".way-back")
        for width, scheme in looks:
            seen.page.set_viewport_size({"width": width, "height": 800})
            seen.page.emulate_media(color_scheme=scheme)
            theme = "scheme => document.documentElement.dataset.theme === scheme"
            seen.page.wait_for_function(theme, arg=scheme)
            assert seen.page.evaluate("[...document.querySelectorAll('*')].every(one => one.scrollTop === 0)")
            box, app = back.bounding_box(), seen.page.locator("#app > div").bounding_box()
            assert box
            assert app
            assert box["y"] + box["height"] <= app["y"]
            assert app["y"] + app["height"] <= 800
            ink = channels(back.locator("a").first.evaluate("element => getComputedStyle(element).color"))
            ground = channels(back.evaluate("element => getComputedStyle(element).backgroundColor"))
            assert (sum(ink) > sum(ground)) == (scheme == "dark")
            assert abs(sum(ink) - sum(ground)) > 300
        seen.page.get_by_text("Report", exact=True).first.click()
        seen.show("Graphs")


def test_a_test_leads_to_its_trend_and_back(browser: Browser, out: Path) -> None:
    """The strip has the trend of the test that is open: its chart, opened, which leads to the test again."""
    with visit(browser, address(out, "tests/index.html")) as seen:
        seen.show(SLOW)
        strip = seen.page.locator(".way-back a").last
        assert (strip.inner_text(), strip.get_attribute("href")) == ("Trend", "../trend/index.html")
        seen.page.get_by_text(SLOW).first.click()
        seen.page.get_by_text("Trend of this test").click()
        seen.page.wait_for_url(re.compile(r"trend/index\.html#chart=[^&]*v2/publish/[^&]*transport=tls"))
        seen.page.locator('a[href^="../tests/index.html#"]').first.click()
        seen.show("Category: Regression")
        seen.assert_at_home()


def test_labels_stay_within_their_chart(browser: Browser, tmp_path: Path) -> None:
    """As the browser measures them, bold ones too: inside the panel with some room, none on another."""
    page = browser.new_page()
    for latency_ms in (4.23, 7, 24, 239, 1_234):
        run = judged(tmp_path / str(latency_ms), [publish_record(latency_ms=latency_ms, failed=1)])
        (story,) = story_of(read_judged_run(run)).stories
        (samples,) = samples_of(story)
        for draw in (draw_distribution, draw_timeline):
            page.set_content(draw(samples).decode())
            assert_apart(*page.evaluate(MEASURE))
    page.close()


def assert_apart(width: float, boxes: list[tuple[str, float, float, float, float]]) -> None:
    assert len(boxes) > 10
    for text, left, top, right, bottom in boxes:
        assert left >= 4, text
        assert right <= width - 8, text
        for other, *box in boxes:
            apart = right <= box[0] or box[2] <= left or bottom <= box[1] or box[3] <= top
            assert other == text or apart, (text, other)


# width of the chart, and of each level text its words and its box, lines' own spacing left out
MEASURE = """() => {
    const chart = document.querySelector("svg");
    const start = chart.getBoundingClientRect();
    const texts = [...chart.querySelectorAll("text:not([transform])")].map((text) => {
        const box = text.getBoundingClientRect();
        const base = Number(text.getAttribute("y")), size = Number(text.getAttribute("font-size"));
        return [text.textContent, box.left - start.left, base - 0.7 * size, box.right - start.left, base];
    });
    return [start.width, texts];
}"""


def test_the_trend_tells_only_what_this_run_measured(browser: Browser, tmp_path: Path) -> None:
    """A board that broke a limit and then vanished: its figure is closed, dated, and in no table."""
    for name, records in zip(NAMES, (healthy(31.0), healthy()[:2]), strict=False):
        run = store_run(tmp_path, name, records, profile="lab")
        keep_run(read_judged_run(run), tmp_path / "history")
    build_site(tmp_path, [read_judged_run(run)])
    with visit(browser, address(tmp_path, "trend/index.html")) as seen:
        seen.show("2 runs, ")
        assert "v2" not in seen.page.locator("table.limits").inner_text()
        assert seen.page.locator(".bad").count() == 0
        past = seen.page.locator(".group.past")
        assert past.get_by_role("button").inner_text().endswith("last measured 2026-11-21 10:15")
        assert past.locator("figure").count() == 0
        seen.page.fill("#filter-text", "transport=tls")
        past.locator("figure").first.wait_for()
        assert past.locator(".case").count() == 1
        seen.assert_at_home()


def test_a_report_built_again_has_no_fourth_run(browser: Browser, out: Path) -> None:
    """Neither history counts a run twice, and an older run's report does not know the newer ones."""
    build_site(out, [read_judged_run(out / NAMES[2])])
    assert len(read_past(out / "history").runs) == 3
    assert len((out / "history" / "allure.jsonl").read_text().splitlines()) == 3
    assert runs_of_the_trend(out) == list(NAMES)
    again = out / "again"
    build_site(again, [read_judged_run(out / NAMES[1])], history=out / "history")
    assert runs_of_the_trend(again) == list(NAMES[:2])
    with visit(browser, address(again, "tests/index.html")) as seen:
        for group in ("virtual", "v2 (virtual)", "publish"):  # closed where all passed
            seen.page.get_by_text(group, exact=True).last.click()
        seen.page.get_by_text(SLOW).first.click()
        assert count_past(seen) == 1


def runs_of_the_trend(out: Path) -> list[str]:
    """Return the ids of the runs that the trend page of a report has."""
    trend = json.loads((out / "report" / "trend" / "trend.json").read_text())
    return list(trend["runs"]["id"])


def test_a_long_word_breaks_on_a_telephone(browser: Browser, tmp_path: Path) -> None:
    """A case has no blank in it; in a sentence or a list it makes the page no wider than its window."""
    case = f"jitter/{','.join(f'parameter_{n}=100000' for n in range(9))}"
    entries = [publish_record(latency_ms=60), Fault("", "rig", 3, case, ""), NotRun("", "v1", "x/y=1", case)]
    run = store_run(tmp_path, NAMES[0], entries)
    page = tmp_path / "page.html"
    page.write_text(render_landing([shown(read_judged_run(run))], past=1, raw=()), encoding="utf-8")
    with visit(browser, page.as_uri(), width=400) as seen:
        assert seen.width() <= 400

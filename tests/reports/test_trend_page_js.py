# SPDX-License-Identifier: Apache-2.0
"""The trend page in a real browser, over made-up nights: keys, address, filters, colours; and its types."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from hil.reports.site.generator import NODE, SITE
from tests.reports.browser import Visit, chromium, visit

pytestmark = pytest.mark.slow

# runs the plugin as Allure does, over the sample data that the unit tests use
_BUILD = """
import { writeFile } from "node:fs/promises";
const [index, sample, data, out] = process.argv.slice(1);
const { default: Plugin } = await import(index);
const { smallTrend } = await import(sample);
await writeFile(data, JSON.stringify(smallTrend()));
await new Plugin({ data }).done({ reportFiles: { addFile: (_, content) => writeFile(out, content) } });
"""
TILE = "figure.tile button[data-chart]"
FIRST_CHART = "lab/e1/publish/transport=tls/publish latency"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trend")
    out = folder / "index.html"
    modules = [(SITE / "trend" / name).as_uri() for name in ("index.js", "sample.js")]
    argv = [str(NODE), "--input-type=module", "-e", _BUILD, *modules, str(folder / "trend.json"), str(out)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def seen(browser: Browser, page_file: Path) -> Iterator[Visit]:
    with visit(browser, page_file.as_uri()) as seen:
        expect(seen.page.get_by_role("heading", level=1)).to_be_visible()
        yield seen
        assert seen.complaints == []


def hash_of(page: Page) -> str:
    return str(page.evaluate("decodeURIComponent(location.hash)"))


def focused_chart(page: Page) -> str | None:
    found = page.evaluate("document.activeElement?.dataset.chart ?? null")
    return None if found is None else str(found)


def test_the_modules_agree_on_their_types() -> None:
    """What one module hands to another is of the type that the other asks for (tsc over all of them)."""
    tsc = SITE / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run([str(NODE), str(tsc), "-p", str(SITE)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_the_modules_pass_their_own_tests() -> None:
    """Every *.test.js beside the modules is run by Node and passes (npm test)."""
    files = sorted(str(path) for path in (SITE / "trend").glob("*.test.js"))
    assert files
    argv = [str(NODE), "--test", "--test-reporter=dot", *files]
    done = subprocess.run(argv, cwd=SITE, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_the_first_screen_answers_and_nothing_is_fetched(seen: Visit) -> None:
    """The first screen of 1280 × 800 says what got worse, when, where and why; one file, no request."""
    row = seen.page.locator("#event-0")
    expect(row).to_be_in_viewport()
    for words in (
        "worse",
        "Firmware: publish latency",
        "3 boards",
        "2026-11-11",
        "ms → ",
        "+65 %",
        "firmware",
    ):
        expect(row).to_contain_text(words)
    assert seen.requests == [seen.page.url]


def test_charts_are_drawn_as_they_come_into_view_and_nothing_jumps(seen: Visit) -> None:
    """A chart far below has only its place; it is drawn when one scrolls there, and keeps its height."""
    last = seen.page.locator("figure.tile").last
    expect(last.locator(".place")).to_be_attached()
    last.scroll_into_view_if_needed()
    expect(last.get_by_role("img")).to_be_visible()
    heights = seen.page.locator("figure.tile").evaluate_all("tiles => tiles.map(tile => tile.offsetHeight)")
    assert max(heights) - min(heights) <= 25, heights  # a line of a legend


def test_one_finds_ones_way_without_a_mouse(seen: Visit) -> None:
    """`/` goes to the filter, j and k from chart to chart, Enter opens one, Esc gives the focus back."""
    keys = seen.page.keyboard
    keys.press("/")
    expect(seen.page.locator("#filter-text")).to_be_focused()
    keys.type("j")  # a letter here
    assert hash_of(seen.page) == "#text=j"
    keys.press("Backspace")
    seen.page.locator("#filter-text").blur()
    keys.press("j")
    first = focused_chart(seen.page)
    keys.press("j")
    second = focused_chart(seen.page)
    keys.press("k")
    assert (focused_chart(seen.page), first == second) == (first, False)
    keys.press("Enter")
    expect(seen.page.get_by_role("dialog")).to_be_visible()
    keys.press("j")  # the page below is out of reach
    expect(seen.page.get_by_role("dialog")).to_be_visible()
    keys.press("Escape")
    expect(seen.page.get_by_role("dialog")).to_have_count(0)
    assert focused_chart(seen.page) == first


def test_help_lists_the_keys(seen: Visit) -> None:
    """`?` shows the keys, Esc takes them away, and the focus is where it was."""
    seen.page.keyboard.press("j")
    chart = focused_chart(seen.page)
    seen.page.keyboard.press("?")
    expect(seen.page.get_by_role("dialog", name="Keys")).to_contain_text("next chart")
    expect(seen.page.get_by_role("button", name="Close")).to_be_focused()
    seen.page.keyboard.press("Escape")
    expect(seen.page.get_by_role("dialog")).to_have_count(0)
    assert focused_chart(seen.page) == chart


def test_an_event_is_opened_by_its_address(browser: Browser, page_file: Path) -> None:
    """`#event=3` opens that row, brings it into view, and shows the charts of its series alone."""
    with visit(browser, f"{page_file.as_uri()}#event=3", height=420) as seen:
        row = seen.page.locator("#event-3")
        expect(row).to_be_in_viewport()
        expect(row.get_by_role("button")).to_have_attribute("aria-expanded", "true")
        names = seen.page.locator(TILE).all_inner_texts()
        assert set(names) == {"publish throughput"}
        assert seen.complaints == []


def test_the_back_button_goes_back(seen: Visit) -> None:
    """Each choice is a step: back from a chart to the event, and from there to everything."""
    page = seen.page
    page.locator("#event-0").get_by_role("button").click()
    page.locator("#event-0-more summary").click()
    page.locator("#event-0-more .series").get_by_role("link").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert hash_of(page) == f"#event=0&chart={FIRST_CHART.replace(' ', '+')}"
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#event-0-more")).to_be_visible()
    page.go_back()
    expect(page.locator("#event-0-more")).to_have_count(0)
    assert hash_of(page) == ""


def test_a_shared_address_shows_the_same(browser: Browser, page_file: Path) -> None:
    """A chart, a tab, filters and a theme stand in the address; what nobody knows is left out."""
    address = f"{page_file.as_uri()}#board=e1&stat=p99&chart={FIRST_CHART}&tab=boots&theme=dark&evil=<b>"
    with visit(browser, address) as seen:
        expect(seen.page.get_by_role("tab", selected=True)).to_have_text("Boot by boot")
        expect(seen.page.locator("html")).to_have_attribute("data-theme", "dark")
        seen.page.keyboard.press("Escape")
        assert focused_chart(seen.page) == FIRST_CHART
        expect(seen.page.get_by_label("Board")).to_have_value("e1")
        expect(seen.page.get_by_role("button", name="p99", exact=True)).to_have_attribute(
            "aria-pressed", "true"
        )
        assert seen.complaints == []


def test_filters_narrow_the_charts_and_the_address_says_so(seen: Visit) -> None:
    """Board, statistic, changed and a range of dates each leave charts out; one click brings all back."""
    page, shown = seen.page, seen.page.get_by_role("status").first
    expect(shown).to_have_text("24 charts")
    page.get_by_label("Board").select_option("e2")
    expect(shown).to_have_text("8 of 24 charts")
    page.get_by_label("changed only").check()
    expect(shown).to_have_text("4 of 24 charts")
    page.get_by_label("From").fill("2026-11-10")
    expect(shown).to_have_text("1 of 24 charts")
    assert hash_of(page) == "#board=e2&changed=1&from=2026-11-10"
    page.get_by_role("button", name="Show everything").click()
    expect(shown).to_have_text("24 charts")


def test_dark_and_light_are_the_systems_until_one_chooses(browser: Browser, page_file: Path) -> None:
    """The page follows the system, and a choice in the page wins over it."""
    ground = "getComputedStyle(document.body).backgroundColor"
    with visit(browser, page_file.as_uri()) as seen:
        light = seen.page.evaluate(ground)
        seen.page.emulate_media(color_scheme="dark")
        dark = seen.page.evaluate(ground)
        assert light != dark
        seen.page.get_by_label("Theme").select_option("light")
        expect(seen.page.locator("html")).to_have_attribute("data-theme", "light")
        assert seen.page.evaluate(ground) == light


def test_without_script_what_changed_is_still_read(browser: Browser, page_file: Path) -> None:
    """Where no script runs the headlines are plain text."""
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(page_file.as_uri())
        expect(page.get_by_role("listitem")).to_have_count(4)
        expect(page.get_by_role("listitem").first).to_contain_text("Firmware: publish latency")
    finally:
        context.close()

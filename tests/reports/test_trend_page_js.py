# SPDX-License-Identifier: Apache-2.0
"""The trend page in a real browser, over made-up nights: keys, address, filters, colours; and its types."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from hil.reports.site.generator import NODE, SITE
from tests.reports.browser import Visit, channels, visit

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
GARBAGE = (
    "#event=99999&chart=%00%ff/../<img src=x onerror=alert(1)>&tab=nope&stat=,&from=2026-99-99&theme=&=&&%"
)
FIRST_CHART = "lab/e1/publish/transport=tls/publish latency"


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


def test_the_keyboard_alone_is_enough(seen: Visit) -> None:
    """`/` filters and Enter goes to what is found; j and k walk, Enter opens, Tab stays inside, Escape and
    `?` give the focus back.
    """
    page, keys = seen.page, seen.page.keyboard
    keys.press("/")
    expect(page.locator("#filter-text")).to_be_focused()
    keys.type("j")  # a letter here
    assert hash_of(page) == "#text=j"
    keys.press("Backspace")
    keys.type("latency")
    page.locator("figure.tile").first.wait_for()
    walked = []
    for key in ("Enter", "j", "k"):
        keys.press(key)
        walked.append(focused_chart(page) or "")
    assert walked[0] == walked[2] != walked[1]
    assert all("latency" in chart for chart in walked)
    keys.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    for key in ["j"] + ["Tab"] * 20 + ["Shift+Tab"] * 20:  # the page below is out of reach
        keys.press(key)
        assert page.evaluate("() => Boolean(document.activeElement.closest('.drill'))"), key
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert focused_chart(page) == walked[2]
    keys.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("next chart")
    expect(page.get_by_role("button", name="Close")).to_be_focused()
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert focused_chart(page) == walked[2]


def test_tabs_are_walked_with_the_arrow_keys(seen: Visit) -> None:
    """Right and left go from tab to tab, and around."""
    seen.page.locator(TILE).first.click()
    seen.page.locator("#drill-tab-runs").focus()
    for key, tab in (("ArrowRight", "distribution"), ("ArrowLeft", "runs"), ("ArrowLeft", "wire")):
        seen.page.keyboard.press(key)
        expect(seen.page.locator(f"#drill-tab-{tab}[aria-selected=true]")).to_be_focused()


def test_an_event_is_opened_by_its_address(browser: Browser, page_file: Path) -> None:
    """`#event=3` opens that row, brings it into view, and shows the charts of its series alone."""
    with visit(browser, f"{page_file.as_uri()}#event=3", height=420) as seen:
        row = seen.page.locator("#event-3")
        expect(row).to_be_in_viewport()
        expect(row.get_by_role("button")).to_have_attribute("aria-expanded", "true")
        names = seen.page.locator(TILE).all_inner_texts()
        assert set(names) == {"publish throughput"}
        assert seen.complaints == []


def test_the_address_keeps_what_is_seen_and_back_undoes_it(seen: Visit) -> None:
    """After a reload filter, event, chart and tab are there; back undoes the choices step by step."""
    page = seen.page
    page.get_by_label("Board").select_option("e2")
    page.locator("#event-0").get_by_role("button").click()
    page.locator("#event-0-more summary").click()
    page.locator("#event-0-more .series").get_by_role("link").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert hash_of(page) == f"#board=e2&event=0&chart={FIRST_CHART.replace(' ', '+')}"
    title = page.locator("#drill-title").inner_text()
    page.locator("#drill-tab-boots").click()
    page.reload()
    expect(page.locator("#drill-tab-boots")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#drill-title")).to_have_text(title)
    expect(page.locator("#event-0-more")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#event-0-more")).to_be_visible()
    page.go_back()
    expect(page.locator("#event-0-more")).to_have_count(0)
    expect(page.get_by_label("Board")).to_have_value("e2")
    page.go_back()
    expect(page.get_by_label("Board")).to_have_value("")
    assert hash_of(page) == ""


def test_an_address_of_garbage_shows_the_whole_page(browser: Browser, page_file: Path) -> None:
    """What no report has is left out; nothing breaks, and nothing of it becomes markup."""
    with visit(browser, f"{page_file.as_uri()}{GARBAGE}") as seen:
        expect(seen.page.get_by_role("status").first).to_have_text("24 charts")
        seen.page.locator("figure.tile svg.trend-chart").first.wait_for()
        assert seen.page.locator(".drill, img").count() == 0
        assert seen.complaints == []


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


def test_the_theme_follows_the_system_until_a_reader_chooses(seen: Visit) -> None:
    """Dark where the system is; a choice in the page overrides it both ways, and the address keeps it."""
    page = seen.page

    def is_dark() -> bool:
        style = "() => getComputedStyle(document.body).{}"
        ground, ink = (page.evaluate(style.format(name)) for name in ("backgroundColor", "color"))
        return sum(channels(ground)) < sum(channels(ink))

    assert not is_dark()
    page.emulate_media(color_scheme="dark")
    assert is_dark()
    page.get_by_label("Theme").select_option("light")
    page.wait_for_url("**#theme=light")
    assert not is_dark()
    page.emulate_media(color_scheme="light")
    page.get_by_label("Theme").select_option("dark")
    page.reload()
    page.locator("figure.tile").first.wait_for()
    assert is_dark()


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

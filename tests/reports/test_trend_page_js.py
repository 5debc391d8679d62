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
const [index, sample, data, out, odd] = process.argv.slice(1);
const { default: Plugin } = await import(index);
const { smallTrend } = await import(sample);
const trend = smallTrend();
if (odd) trend.series.forEach(({ points, levels }, at) => {
  const strange = [null, 0, 1e-300, 5e-324, 1e299, 1.7e308, -1, 7000];
  points.value = points.value.map((_, run) => strange[(at * 7 + run * (1 + at % 5)) % strange.length]);
  if (at % 6 === 1) points.value.fill(null);
  levels.forEach((level, n) => { level.value = strange[(at + n) % strange.length] ?? 0; });
});
await writeFile(data, JSON.stringify(trend));
await new Plugin({ data }).done({ reportFiles: { addFile: (_, content) => writeFile(out, content) } });
"""
# whether a canvas has pixels of each colour of the style sheet, about
_DRAWN = """(canvas, names) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const probe = document.body.appendChild(document.createElement("i"));
  return names.map((name) => {
    probe.style.color = `var(${name})`;
    const wanted = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
    for (let at = 0; at < data.length; at += 4) {
      if (wanted.every((part, n) => Math.abs(data[at + n] - part) < 30) && data[at + 3] > 60) return true;
    }
    return false;
  });
}"""
TILE = "figure.tile button[data-chart]"
GARBAGE = "#event=99999&chart=%00%ff/../<img src=x onerror=alert(1)>&stat=,&from=2026-99-99&theme=&=&&%"
FIRST_CHART = "lab/e1/publish/transport=tls/publish latency"


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _made(tmp_path_factory.mktemp("trend"))


def _made(folder: Path, *more: str) -> Path:
    out = folder / "index.html"
    modules = [(SITE / name).as_uri() for name in ("trend/index.js", "test/sample.js")]
    argv = [
        str(NODE),
        "--input-type=module",
        "-e",
        _BUILD,
        *modules,
        str(folder / "trend.json"),
        str(out),
        *more,
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def seen(tab: Visit, page_file: Path) -> Iterator[Visit]:
    """The trend page, loaded anew; it keeps nothing but its address."""
    tab.go(page_file.as_uri())
    expect(tab.page.get_by_role("heading", level=1)).to_be_visible()
    yield tab
    assert tab.complaints == []


def hash_of(page: Page) -> str:
    return str(page.evaluate("decodeURIComponent(location.hash)"))


def focused_chart(page: Page) -> str | None:
    found = page.evaluate("document.activeElement?.dataset.chart ?? null")
    return None if found is None else str(found)


def expect_focus(page: Page, chart: str) -> None:
    """The page puts the focus back when the browser has closed what was open."""
    page.wait_for_function("chart => document.activeElement?.dataset.chart === chart", arg=chart)


def test_the_modules_agree_on_their_types() -> None:
    """What one module hands to another is of the type that the other asks for (tsc over all of them)."""
    tsc = SITE / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run([str(NODE), str(tsc), "-p", str(SITE)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_the_modules_pass_their_own_tests() -> None:
    """Every *.test.js is run by Node and passes (npm test)."""
    files = sorted(str(path) for path in (SITE / "test").glob("*.test.js"))
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
    """A chart far off has only its place; it is drawn when one scrolls there, and keeps its height."""
    last = seen.page.locator("figure.tile").last
    expect(last.locator(".place")).to_be_attached()
    last.scroll_into_view_if_needed()
    expect(last.get_by_role("img")).to_be_visible()
    heights = seen.page.locator("figure.tile").evaluate_all("tiles => tiles.map(tile => tile.offsetHeight)")
    assert max(heights) - min(heights) <= 25, heights  # a line of a legend


def test_the_keyboard_alone_is_enough(seen: Visit) -> None:
    """`/` filters and Enter goes to what is found; j and k walk, Enter opens, Tab stays inside, Escape and
    `?` give the focus back; in a chart the arrow keys go from run to run.
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
        assert page.evaluate("() => !document.activeElement.closest('main, header:not(dialog *)')"), key
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect_focus(page, walked[2])
    keys.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("next chart")
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect_focus(page, walked[2])


def test_a_chart_is_read_with_the_arrow_keys(seen: Visit) -> None:
    """Left goes to the newest run and on to the one before, Home to the first; each is said with its limit,
    and Enter chooses it.
    """
    seen.page.locator(TILE, has_text="publish latency").first.click()
    chart = seen.page.locator(".drill .trend-chart").first
    tip = seen.page.locator(".drill .tip").first
    chart.focus()
    expect(tip).to_be_hidden()
    for key, night in (("ArrowLeft", "2026-11-20"), ("ArrowLeft", "2026-11-19"), ("Home", "2026-10-28")):
        seen.page.keyboard.press(key)
        expect(tip).to_contain_text(night)
    expect(tip).to_contain_text("limit 25 ms")
    seen.page.keyboard.press("Enter")
    expect(seen.page.locator(".run-chosen")).to_contain_text("2026-10-28")


def test_a_change_has_the_sign_of_its_cause_and_opens_its_event(seen: Visit) -> None:
    """A triangle for firmware, a diamond for a board, a ring for the surroundings; red only where the
    firmware got worse. Its title says what happened when; a click opens the event.
    """
    page = seen.page
    page.locator("figure.tile .change").first.wait_for()
    signs: dict[str, str] = {}
    for tile in page.locator("figure.tile").all():
        tile.scroll_into_view_if_needed()
        signs |= page.locator(".change").evaluate_all(
            "all => Object.fromEntries(all.map(one => [one.textContent, one.className]))"
        )
    assert {"▲", "◆", "○"} <= signs.keys()
    assert signs["▲"].split()[-1] in ("tone-bad", "tone-good")
    assert "tone-bad" not in signs["◆"] + signs["○"]
    page.locator("figure.tile").first.scroll_into_view_if_needed()
    worse = page.locator("figure.tile .change.tone-bad").first
    assert "Firmware: publish latency" in (worse.get_attribute("title") or "")
    worse.click(position={"x": 11, "y": 8})
    expect(page.locator("#event-0-more")).to_be_visible()


def test_a_chart_has_its_line_its_reference_and_its_limit_on_the_canvas(seen: Visit) -> None:
    """Line and reference are on the large chart of an event, the limit on the chart that it leads to."""
    seen.page.locator("#event-3 button").click()
    chart = seen.page.locator("#event-3-more canvas").first
    assert chart.evaluate(_DRAWN, ["--chart-one", "--soft"]) == [True, True]
    seen.page.locator("#event-3-more .boards-charts button").first.click()
    assert seen.page.locator(".drill canvas").first.evaluate(_DRAWN, ["--bad"]) == [True]


def test_figures_that_cannot_be_drawn_break_no_page(tab: Visit, tmp_path: Path) -> None:
    """Of empty runs, lone points, zeros, and amounts at the ends of what a number holds each chart opens."""
    tab.go(_made(tmp_path, "odd").as_uri())  # values that no board measures
    for index in range(tab.page.locator(".group > h3 > button").count()):
        button = tab.page.locator(".group > h3 > button").nth(index)
        if button.get_attribute("aria-expanded") == "false":
            button.click()
    charts = tab.page.locator("figure.tile")
    assert charts.count() == 24
    for index in range(charts.count()):
        charts.nth(index).scroll_into_view_if_needed()
        charts.nth(index).locator("canvas, p.place").first.wait_for()
    assert tab.complaints == []


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
    """After a reload filter, event and chart are there; back undoes the choices step by step."""
    page = seen.page
    page.get_by_role("combobox", name="Board").select_option("e2")
    page.locator("#event-0").get_by_role("button").click()
    page.locator("#event-0-more summary").click()
    page.locator("#event-0-more .series").get_by_role("link").first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert hash_of(page) == f"#board=e2&event=0&chart={FIRST_CHART.replace(' ', '+')}"
    title = page.locator("#drill-title").inner_text()
    page.reload()
    expect(page.locator("#drill-title")).to_have_text(title)
    expect(page.locator("#event-0-more")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#event-0-more")).to_be_visible()
    page.go_back()
    expect(page.locator("#event-0-more")).to_have_count(0)
    expect(page.get_by_role("combobox", name="Board")).to_have_value("e2")
    page.go_back()
    expect(page.get_by_role("combobox", name="Board")).to_have_value("")
    assert hash_of(page) == ""


def test_a_shared_address_shows_the_same(tab: Visit, page_file: Path) -> None:
    """A chart, filters and a theme stand in the address; what nobody knows is left out, nothing breaks, and
    nothing of it becomes markup: of garbage the whole page is left."""
    page = tab.page
    tab.go(f"{page_file.as_uri()}{GARBAGE}")
    expect(page.get_by_role("status").first).to_have_text("24 charts")
    page.locator("figure.tile canvas").first.wait_for()
    assert page.locator(".drill, img").count() == 0
    assert tab.complaints == []
    tab.go(f"{page_file.as_uri()}#board=e1&stat=p99&chart={FIRST_CHART}&theme=dark&evil=<b>")
    expect(page.locator("#drill-title")).to_have_text("publish latency on e1")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.keyboard.press("Escape")
    expect_focus(page, FIRST_CHART)
    expect(page.get_by_role("combobox", name="Board")).to_have_value("e1")
    expect(page.get_by_role("button", name="p99", exact=True)).to_have_attribute("aria-pressed", "true")
    assert tab.complaints == []


def test_filters_narrow_the_charts_and_the_address_says_so(seen: Visit) -> None:
    """Board, statistic, changed and a range of dates each leave charts out; one click brings all back."""
    page, shown = seen.page, seen.page.get_by_role("status").first
    expect(shown).to_have_text("24 charts")
    page.get_by_role("combobox", name="Board").select_option("e2")
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

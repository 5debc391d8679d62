# SPDX-License-Identifier: Apache-2.0
"""``make screenshots``: the pictures in docs/img.

case.png and trace-inversion.png are of the newest report (``hil report build``); report.png, trend.png and
drilldown.png are of the demonstration's (``make demo``), which has nights and changes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.reports.browser import chromium, visit

ROOT = Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 1280, 860
CASE_HEIGHT = 1560  # down to its first chart
MOST_BYTES = 200_000


def main(out: Path, demo: Path, folder: Path) -> int:
    """Write the pictures of both reports; return 1 where one is missing, or a picture is too large."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures: list[Path] = []
    missing = False
    with chromium() as browser:
        for path, take, step in (
            (out, _of_run, "make hil, or hil report build"),
            (demo, _of_nights, "make demo"),
        ):
            if (path / "report" / "index.html").is_file():
                pictures += take(browser, path, folder)
            else:
                missing = True
                print(f"{path / 'report'}: there is no report. Next: {step}", file=sys.stderr)
    large = [path.name for path in pictures if path.stat().st_size > MOST_BYTES]
    for path in pictures:
        print(f"{path}: {path.stat().st_size // 1000} kB{' (too large)' if path.name in large else ''}")
    return 1 if large or missing else 0


def _of_run(browser: Browser, out: Path, folder: Path) -> list[Path]:
    return [_case(browser, out, folder), *_inversion(browser, out, folder)]


def _of_nights(browser: Browser, out: Path, folder: Path) -> list[Path]:
    return [take(browser, out, folder) for take in (_first_page, _trend, _drilldown)]


def _first_page(browser: Browser, out: Path, folder: Path) -> Path:
    with visit(browser, _address(out, "index.html"), width=WIDTH, height=HEIGHT) as seen:
        return _shoot(seen.page, folder / "report.png")


def _case(browser: Browser, out: Path, folder: Path) -> Path:
    """Show a case that failed, or where none did, the first publishing over TLS."""
    point = json.loads((out / "history" / "allure.jsonl").read_text().splitlines()[-1])
    results = list(point["testResults"].values())
    chosen = min(
        results,
        key=lambda item: (
            item["status"] != "failed",
            not item["name"].startswith("publish transport="),
            item["name"],
        ),
    )
    page = _address(out, f"tests/index.html#{chosen['id']}")
    with visit(browser, page, width=WIDTH, height=CASE_HEIGHT) as seen:
        seen.show("distribution (")
        seen.page.get_by_text("distribution (").first.click()
        seen.page.mouse.move(0, 0)
        return _shoot(seen.page, folder / "case.png")


def _trend(browser: Browser, out: Path, folder: Path) -> Path:
    with visit(browser, _address(out, "trend/index.html"), width=WIDTH, height=HEIGHT) as seen:
        return _shoot(seen.page, folder / "trend.png")


def _drilldown(browser: Browser, out: Path, folder: Path) -> Path:
    """Show the series that tells most of the worst event, opened."""
    with visit(browser, _address(out, "trend/index.html#event=0"), width=WIDTH, height=HEIGHT) as seen:
        seen.page.locator(".boards-charts figcaption button").first.click()
        seen.show("candidate")
        seen.page.mouse.move(0, 0)
        return _shoot(seen.page, folder / "drilldown.png", part=".drill")


def _inversion(browser: Browser, out: Path, folder: Path) -> list[Path]:
    """Show a priority inversion of the report's runs; none is there unless a fault was planted
    (tests/firmware/inverted_jitter.c), and then the picture stays as it is."""
    drawn = sorted((out / "report" / "runs").glob("*/trace/**/*.svg"))
    found = [path for path in drawn if "<title>Priority inversion" in path.read_text(encoding="utf-8")]
    if not found:
        return []
    with visit(browser, found[-1].resolve().as_uri(), width=WIDTH, height=HEIGHT) as seen:
        return [_shoot(seen.page, folder / "trace-inversion.png", part="svg")]


def _address(out: Path, page: str) -> str:
    return f"{(out / 'report').resolve().as_uri()}/{page}"


def _shoot(page: Page, path: Path, part: str = "") -> Path:
    """Take a picture of the page, or of its first ``part`` alone."""
    page.wait_for_load_state("networkidle")
    page.evaluate("() => document.fonts.ready")
    where = page.locator(part).first if part else page
    where.screenshot(path=path, animations="disabled")
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=ROOT / "out")
    parser.add_argument("--demo", type=Path, default=ROOT / "out" / "demo")
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "img")
    wanted = parser.parse_args()
    sys.exit(main(wanted.out, wanted.demo, wanted.to))

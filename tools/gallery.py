# SPDX-License-Identifier: Apache-2.0
"""The second half of ``make screenshots``: every page as people open it, in out/screenshots.

Each page at four sizes, light and dark; the comment of each outcome as GitHub shows it; the terminal at
80 × 24. Runs of each outcome are generated and really judged; nights are the demonstration's.
Prints how high each page is, and which one scrolls sideways: that is a defect, and it exits with 1.
"""

from __future__ import annotations

import argparse
import fcntl
import html
import io
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser
from rich.console import Console
from rich.text import Text

from hil.history.from_run import keep_run
from hil.reports.site import build_site
from hil.store import read_judged_run
from tests.make_records import publish_record
from tests.reports.browser import chromium, visit
from tests.reports.outcome_runs import OUTCOMES, leave
from tests.reports.site_runs import BOARDS, store_run
from tools import comment_page

ROOT = Path(__file__).resolve().parents[1]
SIZES = ((1440, 900), (1920, 1080), (768, 1024), (390, 844))
COLUMNS, LINES = 80, 24
TERMINAL = (700, 470)  # in which so many characters fit
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
LOCAL_MS = (7.0, 7.1, 28.0)  # three local runs: the third is four times as slow
# of the comment: how much slower the head is in its two cases, and how far apart boots are
COMMENTS = {
    "pass": (0.0, 0.0, 0.02, 7.0),
    "regressed": (0.18, 0.0, 0.02, 7.0),
    "undecided": (0.06, 0.06, 0.12, 7.0),
    "limit-broken": (0.0, 0.0, 0.02, 30.0),
    "exceeded-not-proven": (0.0, 0.0, 0.02, 22.0),
}


@dataclass(frozen=True)
class Shown:
    """A page that is looked at, by a name that becomes its pictures'; in which sizes and colours."""

    name: str
    address: str
    sizes: Sequence[tuple[int, int]] = SIZES
    schemes: Sequence[Scheme] = SCHEMES


def main(demo: Path, to: Path) -> int:
    """Write all pictures to ``to``, and an index.html of them; return 1 where a page scrolls sideways."""
    to.mkdir(parents=True, exist_ok=True)
    wide: list[str] = []
    with tempfile.TemporaryDirectory(prefix="hil-gallery-") as work, chromium() as browser:
        for page in _pages(Path(work), demo):
            for width, height in page.sizes:
                for scheme in page.schemes:
                    _shoot(browser, page, to, (width, height), scheme, wide)
    pictures = sorted(path.name for path in to.glob("*.png"))
    figures = "".join(
        f'<figure><a href="{html.escape(name)}"><img loading="lazy" src="{html.escape(name)}" alt=""></a>'
        f"<figcaption>{html.escape(name)}</figcaption></figure>"
        for name in pictures
    )
    style = (
        "body{font:14px sans-serif}figure{display:inline-block;margin:8px}img{width:420px;border:1px solid}"
    )
    (to / "index.html").write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style>{figures}")
    print(f"{len(pictures)} pictures: {to / 'index.html'}")
    for line in wide:
        print(f"scrolls sideways: {line}", file=sys.stderr)
    return 1 if wide else 0


def _shoot(
    browser: Browser, page: Shown, to: Path, size: tuple[int, int], scheme: Scheme, wide: list[str]
) -> None:
    width, height = size
    name = f"{page.name}-{width}-{scheme}"
    with visit(browser, page.address, width=width, height=height, scheme=scheme) as seen:
        seen.page.wait_for_load_state("networkidle")
        seen.page.evaluate("() => document.fonts.ready")
        seen.page.screenshot(path=to / f"{name}.png", animations="disabled")
        high, across = seen.page.evaluate(
            "() => [document.documentElement.scrollHeight, document.documentElement.scrollWidth]"
        )
    print(f"{name:<44} {high:>6} px high")
    if across > width:
        wide.append(f"{name}: {across} px of {width}")


def _pages(work: Path, demo: Path) -> Iterator[Shown]:
    for outcome in OUTCOMES:
        out = work / outcome
        run = leave(out, outcome)
        keep_run(read_judged_run(run), out / "history")
        report = build_site(out, [read_judged_run(run)]).parent
        yield Shown(f"first-{outcome}", (report / "index.html").as_uri())
        screen = _terminal(run, work / f"{outcome}.html").as_uri()
        yield Shown(f"terminal-{outcome}", screen, sizes=[TERMINAL], schemes=["dark"])
        if outcome == "limit-broken":
            yield Shown("trend-of-one", (report / "trend" / "index.html").as_uri())
            yield Shown("allure", (report / "tests" / "index.html").as_uri())
    yield Shown("trend-of-three", (_three(work / "three") / "trend" / "index.html").as_uri())
    for name, (effect, tls_effect, deviation, latency_ms) in COMMENTS.items():
        sample = comment_page.sample(
            work / f"comment-{name}",
            effect=effect,
            tls_effect=tls_effect,
            deviation=deviation,
            latency_ms=latency_ms,
        )
        path = work / f"comment-{name}.html"
        path.write_text(comment_page.page(sample), encoding="utf-8")
        yield Shown(f"comment-{name}", path.as_uri(), schemes=["light"])  # GitHub has its own dark
    report = demo / "report"
    if not (report / "index.html").is_file():
        print(f"{report}: there is no report. Next: make demo", file=sys.stderr)
        return
    for name, address in (
        ("demo-first", "index.html"),
        ("demo-trend", "trend/index.html"),
        ("demo-event", "trend/index.html#event=0"),
        ("demo-allure", "tests/index.html"),
    ):
        yield Shown(name, f"{report.resolve().as_uri()}/{address}")


def _three(out: Path) -> Path:
    """Leave three local runs, each as `hil run` would; return the report of the last."""
    for number, latency_ms in enumerate(LOCAL_MS, start=1):
        entries = [publish_record(board=board, latency_ms=latency_ms) for board in BOARDS]
        run = store_run(out, f"2026112{number}T101500Z-quick-000{number}", entries)
        keep_run(read_judged_run(run), out / "history")
    return build_site(out, [read_judged_run(run)]).parent


def _terminal(run: Path, to: Path) -> Path:
    """Write a page that shows the last screen of `hil gate` in a terminal of 80 × 24."""
    said = Text.from_ansi(in_terminal([sys.executable, "-m", "hil", "gate", str(run)]))
    screen = Text("\n").join(said.split("\n")[-LINES:])
    console = Console(width=COLUMNS, record=True, file=io.StringIO())
    console.print(screen, end="")
    page = console.export_html(inline_styles=True)
    to.write_text(page.replace("<pre", '<pre style="background:#111;color:#ddd;padding:8px"', 1), "utf-8")
    return to


def in_terminal(command: Sequence[str]) -> str:
    """Return what a command writes to a terminal of 80 × 24."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment = {key: value for key, value in environment.items() if key not in ("COLUMNS", "LINES", "CI")}
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment, cwd=ROOT):
        os.close(its)
        found = bytearray()
        while part := _read(ours):
            found += part
    os.close(ours)
    return found.decode("utf-8", "replace").replace("\r\n", "\n").rstrip("\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end is closed
        return b""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demo", type=Path, default=ROOT / "out" / "demo")
    parser.add_argument("--to", type=Path, default=ROOT / "out" / "screenshots")
    wanted = parser.parse_args()
    sys.exit(main(wanted.demo, wanted.to))

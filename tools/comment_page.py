# SPDX-License-Identifier: Apache-2.0
"""``python -m tools.comment_page --to docs/img``: the comment as GitHub shows it, of generated runs."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options

from hil.ci import comment_page
from hil.ci.conclusion import conclude
from tests.ci.comment_rig import leave_all, pull_request_plan
from tests.reports.browser import chromium, visit

ROOT = Path(__file__).resolve().parents[1]
CSS = ROOT / "reports/site/node_modules/github-markdown-css/github-markdown.css"
EXTENSIONS = ["table", "autolink", "strikethrough", "tagfilter", "tasklist"]
WIDTH = 980
FRAME = "body{margin:0;padding:24px;background:#fff}.markdown-body{max-width:930px}"


def to_html(markdown: str) -> str:
    """Return what GitHub's own Markdown makes of it, before GitHub looks for mentions and the like."""
    options = Options.CMARK_OPT_UNSAFE  # tags pass, as on GitHub, where a sanitiser comes after
    return cmarkgfm.markdown_to_html_with_extensions(markdown, options=options, extensions=EXTENSIONS)


def page(markdown: str) -> str:
    """Return a page that shows ``markdown`` in GitHub's style."""
    style = CSS.read_text(encoding="utf-8")
    head = f'<meta charset="utf-8"><title>Comment</title><style>{style}{FRAME}</style>'
    article = f'<article class="markdown-body">{to_html(markdown)}</article>'
    return f'<!doctype html><html lang="en">{head}{article}</html>'


def shoot(markdown: str, to: Path, *, unfold: bool = False) -> None:
    """Take a picture of it."""
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        path = Path(folder) / "comment.html"
        path.write_text(page(markdown), encoding="utf-8")
        with visit(browser, path.as_uri(), width=WIDTH, height=400) as seen:
            if unfold:
                seen.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
            seen.page.locator("body").screenshot(path=to, animations="disabled")


def sample(folder: Path, **changes: float) -> str:
    """Return the comment on generated runs that the gate has judged; by default one case is 20 % slower."""
    leave_all(folder, **({"effect": 0.18, "tls_effect": 0.0} | changes))
    plan, legs = pull_request_plan(), folder / "legs"
    source = comment_page.Source(
        comment_page.run_links("https://github.com/example/hil/actions/runs/4711"),
        "https://github.com/example/hil/commit/",
        title="Send each message at once",
        author="Mira Okoye",
        count=3,
    )
    facts = comment_page.facts_of(plan, conclude(plan, legs, {}), legs, source)
    return comment_page.render(facts, "comment")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", type=Path, default=ROOT / "docs" / "img")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shoot(sample(Path(folder)), wanted.to / "comment.png")
    print(wanted.to / "comment.png")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Links between the pages lead to files and headings that are there, and the index names every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lab import ROOT

_INDEX = ROOT / "docs" / "README.md"
_PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ELSEWHERE = re.compile(r"https?:|mailto:")


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: list[str] = []
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.append(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return {f"{name}-{found[:n].count(name)}" if name in found[:n] else name for n, name in enumerate(found)}


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Each relative link names a file, and of a page a heading that it has."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in _LINK.findall(text):
        if _ELSEWHERE.match(link):
            continue
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name}: {link}: there is no such file"
        if heading and target.suffix == ".md":
            assert heading in anchors(target), f"{page.name}: {link}: there is no such heading"


def test_the_index_names_every_page() -> None:
    """docs/README.md names each page below docs once, under the folder that it stands in."""
    folder, named = "", []
    for line in _INDEX.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            folder = line.removeprefix("## ").lower()
        elif line.startswith("| ["):
            path = _LINK.findall(line)[0]
            assert path.startswith(f"{folder}/"), f"{path} stands under {folder!r}"
            named.append(path)
    pages = [str(page.relative_to(_INDEX.parent)) for page in _PAGES if page.parent.parent == _INDEX.parent]
    assert sorted(named) == sorted(pages)

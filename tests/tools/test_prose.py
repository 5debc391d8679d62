# SPDX-License-Identifier: Apache-2.0
"""The linter of the pages finds what it lists, and reads no code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import prose


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# A page\n\nThe owner is\ntold by name.\n", ["page.md:3: 'is told': write 'is reported'"]),
        ("`is told`\n\n```\nis told\n```\n\n    is told\n", []),
        ("word " * (prose.LONGEST_PAGE + 1), ["page.md: 1501 words"]),
    ],
    ids=["word", "code", "long"],
)
def test_what_is_wrong_in_a_page_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, found: list[str]
) -> None:
    """A word of the list, with file, line and what to write instead, also where the words stand on two lines;
    a page that answers more than one question. Words within code spans and code blocks are a program's."""
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(text)
    assert [said.partition(", ")[0] for said in prose.findings(tmp_path / "page.md")] == found

# SPDX-License-Identifier: Apache-2.0
"""The linter of the pages finds what it lists, and reads no code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import prose


def page(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    (tmp_path / "page.md").write_text(text)
    return list(prose.findings(tmp_path / "page.md"))


def test_a_word_of_the_list_is_found_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File, line, the words and what to write instead, also where the words stand on two lines."""
    text = "# A page\n\nThe owner is\ntold by name.\n"
    assert page(tmp_path, text, monkeypatch) == ["page.md:3: 'is told': write 'is reported'"]


def test_code_is_no_prose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words within code spans, code blocks and indented commands are a program's."""
    text = "`is told`\n\n```\nis told\n```\n\n    is told\n"
    assert page(tmp_path, text, monkeypatch) == []


def test_a_page_beyond_the_limit_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that answers more than one question is too long."""
    text = "word " * (prose.LONGEST_PAGE + 1)
    assert page(tmp_path, text, monkeypatch) == [
        "page.md: 1501 words, and 1500 at most: make two pages of it"
    ]

# SPDX-License-Identifier: Apache-2.0
"""A page of Markdown as a person reads it: what keeps foreign words in their place is not seen."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser


def as_read(page: str) -> str:
    """Return a page without entities, the marks of code spans and blanks at which no line ends."""
    return html.unescape(page).replace("`", "").replace("\u00a0", " ")


def words(markup: str) -> str:
    """Return what an HTML page says, its style sheet and tags left out, its blanks alike."""
    text = re.sub(r"<style>.*?</style>|<[^>]*>", " ", markup, flags=re.DOTALL)
    return re.sub(r"\s+", " ", text).replace(" ,", ",").strip()


class Seen(HTMLParser):
    """Tags and text of a page as a browser shows them: ``plain`` outside of code, ``spans`` within."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.plain: list[str] = []
        self.spans: list[str] = []
        self._in_code = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        self.tags.append(tag)
        if tag == "code":
            self._in_code = True
            self.spans.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_code = self._in_code and tag != "code"

    def handle_comment(self, _data: str) -> None:
        self.tags.append("!--")

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._in_code:
            self.spans[-1] += data
        else:
            self.plain.append(data)

    @property
    def text(self) -> str:
        """What a person reads, and copies."""
        return "".join(self.words).strip()

    @property
    def blocks(self) -> list[str]:
        """The tags but those of code spans."""
        return [tag for tag in self.tags if tag != "code"]

"""Nothing that the site shows may come from another host: takes out what would, and refuses what is left."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from hil.base.errors import RigError

# what Allure's pages need: scripts and styles in the page or beside it, attachments as blobs
POLICY = (
    "default-src 'self' 'unsafe-inline' data: blob:; object-src 'none'; base-uri 'self'; form-action 'none'"
)
_POLICY_TAG = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
_SCRIPT = re.compile(r"<script\b([^>]*)>(.*?)</script\s*>", re.DOTALL | re.IGNORECASE)
_FOREIGN_SOURCE = re.compile(r"""\bsrc\s*=\s*["']?\s*(?:https?:)?//""", re.IGNORECASE)
_ANALYTICS = re.compile(r"\s*window\.dataLayer\s*=")
_FOREIGN_STYLE = re.compile(r"""(?:@import\s+|url\()\s*["']?\s*(?:https?:)?//""", re.IGNORECASE)
_FOREIGN = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)
# elements whose address is fetched without a click
_FETCHED = {
    **dict.fromkeys(
        ("script", "img", "iframe", "embed", "audio", "video", "source", "track", "input"), "src"
    ),
    **dict.fromkeys(("link", "base", "image", "use"), "href"),
    "object": "data",
}


def seal(page: str) -> str:
    """Return an HTML page without scripts from other hosts, and with a policy that forbids to fetch any."""
    kept = _SCRIPT.sub(lambda found: "" if _is_foreign(found[1], found[2]) else found[0], page)
    return add_after("head", _POLICY_TAG, kept)


def add_after(tag: str, markup: str, page: str) -> str:
    """Return ``page`` with ``markup`` behind the first opening ``tag``."""
    return re.sub(rf"<{tag}\b[^>]*>", lambda found: found[0] + markup, page, count=1)


def _is_foreign(attributes: str, text: str) -> bool:
    return bool(_FOREIGN_SOURCE.search(attributes) or _ANALYTICS.match(text))


def check(folder: Path) -> None:
    """Refuse a page below ``folder`` that would fetch something from another host. Raises RigError."""
    for path in sorted(folder.rglob("*.html")):
        for line, address in foreign_addresses(path.read_text(encoding="utf-8", errors="replace")):
            raise RigError(
                f"the report was not published: {path.relative_to(folder)}:{line} would fetch {address!r} "
                "from another host.",
                next_step="teach reports/site/outside.py to take it out.",
            )


def foreign_addresses(page: str) -> Iterator[tuple[int, str]]:
    """Yield line and address of everything on a page that a browser fetches from another host."""
    finder = _Finder()
    finder.feed(page)
    finder.close()
    yield from finder.found


class _Finder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        for name, value in attrs:
            fetched = name == _FETCHED.get(tag) or name in ("poster", "srcset")
            if value and (
                (fetched and _FOREIGN.match(value)) or (name == "style" and _FOREIGN_STYLE.search(value))
            ):
                self.found.append((self.getpos()[0], value[:120]))

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - html.parser's signature
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style and (found := _FOREIGN_STYLE.search(data)):
            self.found.append((self.getpos()[0], data[found.start() :][:120]))

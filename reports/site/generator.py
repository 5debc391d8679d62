# SPDX-License-Identifier: Apache-2.0
"""Runs Allure 3 (Node.js), which the lock file beside this module pins.

Nothing that the site shows may come from another host: takes out what would, and refuses what is left.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, Any

from hil.base.errors import ConfigError, RigError
from hil.base.paths import CHECKOUT
from hil.reports.fetching import fetch, node_folder, site_folder

SITE = site_folder()
ALLURE = SITE / "node_modules" / "allure" / "cli.js"
NODE = node_folder() / "bin" / "node"
TREND = SITE / "trend" / "index.js"
DEADLINE_S = 300.0  # 10,000 results take 12 s
_NODE_FLAGS = ("--max-semi-space-size=32",)  # MiB; what it reads dies young: a third less of processor time
_LINES_QUOTED = 5
_DISK_FULL = "ENOSPC"


@contextmanager
def generating(config: Mapping[str, Any], results: Sequence[Path], work: Path) -> Iterator[None]:
    """Build what ``config`` (Allure's own format) describes from the ``results`` folders, while the caller's
    block goes on; an exception in the block ends the generator, its end waits for it.

    ``work`` takes the configuration file and whatever the generator wants to keep.

    Raises:
        ConfigError: Node.js or the generator is not installed, or cannot be fetched.
        RigError: the generator failed, hung, or left out a page; its last lines are in the sentence.
        OSError: no space was left for what it writes.
    """
    if not CHECKOUT:
        fetch(SITE)
    for part in (NODE, ALLURE):
        if not part.is_file():
            raise ConfigError(
                f"the report was not built: its generator is not installed ({part} is missing).",
                next_step=".ci/bootstrap run, which installs it",
            )
    path = work / "allurerc.json"
    path.write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")
    command = [str(NODE), *_NODE_FLAGS, str(ALLURE), "generate", "--config", str(path), "--cwd", str(work)]
    log = work / "generator.log"
    with log.open("wb") as said, _started([*command, *map(str, results)], work, said) as process:
        yield
        _wait(process, log)
    pages = [(name, Path(config["output"]) / name / "index.html") for name in config["plugins"]]
    missing = [name for name, page in pages if not page.is_file()]
    if missing:
        raise RigError(f"the report was not built: its page {missing[0]!r} is missing. {_last_lines(log)}")


@contextmanager
def _started(command: Sequence[str], work: Path, said: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    # an environment of its own: the caller's may name services that results would be sent to
    environment = {"PATH": f"{NODE.parent}:/usr/bin:/bin", "HOME": str(work), "LANG": "C.UTF-8"}
    try:
        process = subprocess.Popen(
            # the kernel ends it with this process, even by kill -9; Ctrl-C in a terminal is for this process
            ["setpriv", "--pdeathsig", "KILL", "--", *command],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise RigError(f"the report's generator did not start: {error}.") from error
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:  # late, or interrupted
                os.killpg(process.pid, signal.SIGKILL)


def _wait(process: subprocess.Popen[bytes], log: Path) -> None:
    try:
        code = process.wait(DEADLINE_S)
    except subprocess.TimeoutExpired as error:
        raise RigError(
            f"the report's generator did not end within {DEADLINE_S:.0f} s; it was stopped."
        ) from error
    if code:
        if _DISK_FULL in log.read_text(errors="replace"):  # a trace of Node's hides what happened
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise RigError(f"the report's generator ended with {code}. {_last_lines(log)}")


def _last_lines(log: Path) -> str:
    said = log.read_text(errors="replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()][-_LINES_QUOTED:]
    return f"It said: {' / '.join(lines)}" if lines else "It said nothing."


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
                next_step="teach reports/site/generator.py to take it out.",
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

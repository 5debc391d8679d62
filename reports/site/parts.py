# SPDX-License-Identifier: Apache-2.0
"""Takes what is seen of a test only when it is opened out of Allure's single page, into scripts beside it.

A page from disk may load no data by fetch, but scripts it may. Allure reads all that it shows from one object
by name, and waits where it finds a promise. It waits for the data where it finds that object, and else takes
its files from the page's host (allurereport/web-commons, data.js). The object stands behind some megabytes of
program: a program that was quicker than the rest of its page showed an empty report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from hil.reports.site.generator import add_after

FOLDER = "parts"
_PART_CHARACTERS = 250_000  # one test's result and charts are some 100,000
_OPENED = re.compile(r'd\("((?:data/|widgets/metrics\.json)[^"]*)","([^"]*)"\),?')
_READY = "window.allureReportData = window.allureReportData || {};"
_AWAITED = "<script>window.allureReportData = {};</script>"
_LOADER = (
    _READY
    + """
      const hilPart = (found) => {
        for (const [name, value] of Object.entries(found)) {
          Object.defineProperty(window.allureReportData, name, { value });
        }
      };
      const hilOpened = (parts) => parts.forEach((names, number) => {
        let loading;
        const load = () => loading ??= new Promise((resolve, reject) => {
          const script = document.createElement("script");
          script.src = `FOLDER/${number}.js`;
          script.onload = resolve;
          script.onerror = () => {
            reject(new Error(`${script.src} is missing: it belongs beside this page`));
          };
          document.head.append(script);
        });
        for (const name of names) {
          const get = () => load().then(() => window.allureReportData[name]);
          Object.defineProperty(window.allureReportData, name, { get, configurable: true, enumerable: true });
        }
      });
      hilOpened(NAMES);""".replace("FOLDER", FOLDER)
)


def take_apart(page: str, folder: Path) -> str:
    """Return Allure's page without what a test's own page shows, which goes into scripts below ``folder``.

    The page waits for its data, however slowly it arrives.
    """
    if _READY not in page:
        return page
    page = add_after("head", _AWAITED, page)
    names = []
    for number, part in enumerate(_parts(page)):
        (folder / FOLDER).mkdir(exist_ok=True)
        (folder / FOLDER / f"{number}.js").write_text(f"hilPart({json.dumps(part)})", encoding="utf-8")
        names.append(list(part))
    if not names:
        return page
    loader = _LOADER.replace("NAMES", json.dumps(names))
    return _OPENED.sub("", page).replace(_READY, loader, 1)


def _parts(page: str) -> Iterator[dict[str, str]]:
    """Yield values by name. One that is larger than a part is a part of its own, and so is what Allure asks
    for as soon as it opens."""
    part: dict[str, str] = {}
    size = 0
    for found in _OPENED.finditer(page):
        name, value = found[1], found[2]
        if not name.startswith("data/"):
            yield {name: value}
            continue
        if part and size + len(value) > _PART_CHARACTERS:
            yield part
            part, size = {}, 0
        part[name] = value
        size += len(value)
    if part:
        yield part

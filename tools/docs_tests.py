# SPDX-License-Identifier: Apache-2.0
"""Which tests a pull request needs: those of the documentation alone, or all; `checks.yml` asks.

    python -m tools.docs_tests             # of HEAD, against where it left the default branch

The output `only-pages` is "true" where nothing but pages and pictures changed and no test reads one of them.
Some tests follow a page step by step; such a page is code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from hil.base.errors import ConfigError
from hil.ci.event import changed_files, merge_base, read_event
from hil.cli.ci_steps import write_outputs
from tests.lab import ROOT

PAGES = (".md", ".png", ".svg")
EVENTS = ("pull_request", "merge_group", "local")  # a push to the default branch is tested whole


def is_page(path: str) -> bool:
    """Whether it is text or a picture for people; schemas and dashboards below docs/ are read by programs."""
    name = PurePosixPath(path)
    return name.suffix in PAGES and (name.parts[0] == "docs" or len(name.parts) == 1)


def readers(path: str, tests: Path) -> list[str]:
    """Return the files of ``tests`` that read a page below docs/: they name it, as a part of a path."""
    if not path.startswith("docs/"):
        return []
    part = f'/ "{PurePosixPath(path).name}"'
    found = (file for file in sorted(tests.rglob("*.py")) if part in file.read_text(encoding="utf-8"))
    return [file.name for file in found if file.name != "test_docs_links.py"]


def why_all(files: Sequence[str], tests: Path) -> str:
    """Return why all tests are needed, "" where those of the documentation are enough."""
    if not files:
        return "what changed is not known"
    for path in files:
        if not is_page(path):
            return f"{path} is no page"
        if read_by := readers(path, tests):
            return f"{path} is read by {read_by[0]}"
    return ""


def changed(repository: Path) -> tuple[str, ...]:
    """Return what the event's commit changes, nothing where that is not known."""
    event = read_event(os.environ, repository)
    base = merge_base(repository, event.base_tip, event.head) if event.name in EVENTS else ""
    return changed_files(repository, base, event.head) if base else ()


def main() -> int:
    """Print the needed tests, for a person and the workflow; if that is unknown, all tests."""
    try:
        reason = why_all(changed(Path.cwd()), ROOT / "tests")
    except ConfigError as error:
        reason = error.sentence
    print(f"All tests: {reason}" if reason else "Only pages changed: the tests of the documentation")
    write_outputs({"only-pages": "false" if reason else "true"})
    return 0


if __name__ == "__main__":
    sys.exit(main())

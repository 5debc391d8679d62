# SPDX-License-Identifier: Apache-2.0
"""What tests of workflow steps share: verdicts that were judged again once, pages written in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from hil.ci import comment_page
from hil.reports.comment import CHARACTERS, read_facts, render
from tests.judging import judge


@pytest.fixture(scope="session", autouse=True)
def _judge_again_once() -> Iterator[None]:
    """Have each leg judged again once in a process: the gate is pure, and many tests read the same leg."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hil.ci.again.judge", judge)
        yield


@pytest.fixture(autouse=True)
def _pages_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pages written without a process for each; test_ci_comment_hostile.py holds this to the process."""
    monkeypatch.setattr(comment_page, "print_page", print_page_here)


def print_page_here(facts: Path, layout: comment_page.Layout) -> CompletedProcess[bytes]:
    page = render(read_facts(facts), CHARACTERS[layout])
    return CompletedProcess([], 0, page.encode(), b"")

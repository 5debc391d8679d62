# SPDX-License-Identifier: Apache-2.0
"""What a pull request costs: the sums are those of the jobs that there are, and the page quotes them."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from tests.lab import ROOT
from tools.ci_cost import AFTER, SECONDS, billed, lines


@pytest.mark.parametrize(
    ("steps", "minutes"), [(("machine",), 1), (("container",), 1), (("container", "plan"), 2)]
)
def test_each_job_is_billed_by_the_whole_minute(steps: tuple[str, ...], minutes: int) -> None:
    """A second more is a minute more."""
    assert SECONDS["container"] == 60
    assert billed(steps) == minutes


def test_the_jobs_are_those_of_the_workflows() -> None:
    """A job that is added to a pull request is counted; the legs of the virtual rack are two."""
    workflows = {
        name: YAML(typ="safe").load(ROOT / ".github" / "workflows" / f"{name}.yml")["jobs"]
        for name in ("pr", "measure", "comment")
    }
    elsewhere = {"rack", "patience", "give-up", "emulator"}  # jobs that not every repository has
    called = set(workflows["measure"]) - elsewhere | {"compare"}
    assert set(workflows["pr"]) == {"hil"}  # which calls them
    assert set(AFTER["firmware"]) == called | set(workflows["comment"])
    assert set(AFTER["documentation"]) == {"plan", "comment"}


def test_the_page_quotes_what_is_printed() -> None:
    """docs/operate/ci.md has the table as it is."""
    page = (ROOT / "docs" / "operate" / "ci.md").read_text(encoding="utf-8")
    assert all(line in page for line in lines())

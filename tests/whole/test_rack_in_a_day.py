# SPDX-License-Identifier: Apache-2.0
"""The page on building a rack in a day, followed as it stands, as far as no hardware is needed."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab import ROOT
from tools.adopt import Step, WrongPageError, follow, steps

PAGE = ROOT / "docs" / "start" / "rack-in-a-day.md"
WITH_RESULTS = re.compile(r"^hil (run\b|exporter|(rack|board) \w+)")
REHEARSAL = "1. Rehearse"
AT_THE_RACK = re.compile(r"# at the rack$")


@pytest.fixture
def environment() -> dict[str, str]:
    """A user's, with hil on the PATH."""
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HIL_RACKS": str(ROOT / "hil" / "racks")}


def without_hardware(folder: Path) -> list[Step]:
    """Return the page's steps that need none; what they measure goes to the test's own folder."""
    return [
        step if step.path else replace(step, text=WITH_RESULTS.sub(rf"\g<0> --out {folder}/out", step.text))
        for step in steps(PAGE, "The day")
        if not AT_THE_RACK.search(step.text)
    ]


@pytest.mark.slow
def test_the_page_is_followed(tmp_path: Path, environment: dict[str, str]) -> None:
    """Every command that needs no hardware ends as the page says; the rehearsal is the next test's."""
    wanted = [step for step in without_hardware(tmp_path) if REHEARSAL not in step.where]
    assert [step.path for step in wanted if step.path] == ["my-rack.yaml"]
    assert len([step for step in wanted if step.text.startswith("hil ")]) >= 6
    done = follow(wanted, tmp_path, environment, lambda _line: None)
    said = {one.step.words.split(" --")[0]: one.said for one in done}
    assert "esp32-1" in said["hil rack check"], "the check names the board that is not there"
    assert "labgrid" in said["hil exporter"]
    assert (tmp_path / "hil-runner" / "install.sh").is_file()


@pytest.mark.heavy
@pytest.mark.slow
def test_the_page_is_rehearsed(tmp_path: Path, environment: dict[str, str]) -> None:
    """The virtual rack is checked, measures, and says how it fared, by the page's own commands."""
    wanted = [step for step in without_hardware(tmp_path) if REHEARSAL in step.where]
    said = [one.said for one in follow(wanted, tmp_path, environment, lambda _line: None)]
    assert len(said) == 3
    assert ": 1 run\n" in said[-1]


def test_a_page_that_lies_is_found(tmp_path: Path) -> None:
    """A command that ends otherwise than the page says fails with the page's own words."""
    page = tmp_path / "page.md"
    page.write_text("## The day\n\n### 1. Begin\n\n```sh\nfalse\n```\n")
    with pytest.raises(WrongPageError) as error:
        follow(steps(page, "The day"), tmp_path, dict(os.environ), lambda _line: None)
    assert "page.md: 1. Begin: false" in str(error.value)

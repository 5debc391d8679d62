# SPDX-License-Identifier: Apache-2.0
"""Who takes a file of this project along knows its licence."""

from __future__ import annotations

import tomllib

from tests.lab import ROOT
from tools.licence import without_licence


def test_each_source_begins_with_its_licence() -> None:
    """Each source begins with its SPDX line; `python -m tools.licence` puts it there."""
    assert [str(path.relative_to(ROOT)) for path in without_licence()] == []


def test_the_package_brings_its_licence() -> None:
    """What is built of the project holds the text of the licence that it declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    for name in project["license-files"]:
        assert "Apache License" in (ROOT / name).read_text(encoding="utf-8")

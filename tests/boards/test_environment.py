# SPDX-License-Identifier: Apache-2.0
"""What a record says of the rig."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hil.boards import environment
from hil.boards.rack import load_rack
from tests.lab import ROOT


@pytest.mark.parametrize(("asked", "said"), [(True, "fail"), (False, "warn"), (None, None)])
def test_a_virtual_rig_says_how_strict_its_project_is(
    monkeypatch: pytest.MonkeyPatch, asked: bool | None, said: str | None
) -> None:
    """A reader of a virtual record knows what hil.toml asked for; a board's chip is strict by itself."""
    monkeypatch.setattr(environment, "strict_here", lambda: asked)
    rack = load_rack(ROOT / "hil" / "racks" / "virtual.yaml")
    assert environment.rig_environment(rack).get("strict") == said
    physical = replace(rack, access_point=replace(rack.access_point, type="external"))
    assert "strict" not in environment.rig_environment(physical)

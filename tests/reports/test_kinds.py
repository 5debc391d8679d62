# SPDX-License-Identifier: Apache-2.0
"""No figure of a virtual or emulated board stands without that word."""

from __future__ import annotations

from hil.model import KINDS, UNREAL
from hil.reports.kinds import EMULATED_REMARK, VIRTUAL_REMARK, kind_remark, mark, unreal


def test_every_kind_but_silicon_has_its_remark() -> None:
    """What it is worth is said once for each kind; the words stand where a form says, nothing for silicon."""
    assert kind_remark(["physical"]) == ""
    assert kind_remark(["virtual", "physical", "virtual"]) == VIRTUAL_REMARK
    assert kind_remark(["virtual", "emulated"]) == f"{EMULATED_REMARK} {VIRTUAL_REMARK}"
    assert unreal(KINDS) == UNREAL
    assert mark(["emulated"], " ({})") == " (emulated)"
    assert mark(["virtual", "emulated"], ", {}") == ", emulated, virtual"
    assert mark(["physical"], " ({})") == ""
